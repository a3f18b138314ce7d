package reference

import (
	"strings"

	"till/docs"
)

// example is a piece of a program that tests run.
type example struct {
	Language string // as it is written
	Code     string
}

// programs hold every call of the API in one language each. A line with "call:"
// and the name of an operation begins its part, "end" or the next one ends it.
var programs = []struct{ language, file string }{
	{"curl", "calls.sh"}, {"Go", "calls.go.txt"}, {"TypeScript", "calls.mjs"}, {"PHP", "calls.php"}, {"Python", "calls.py"},
}

// readExamples returns the parts of the programs by operation.
func readExamples() (map[string][]example, error) {
	out := map[string][]example{}
	for _, p := range programs {
		parts, err := partsOf(p.file)
		if err != nil {
			return nil, err
		}
		for _, part := range parts {
			out[part.name] = append(out[part.name], example{p.language, part.code})
		}
	}
	return out, nil
}

type part struct{ name, code string }

// partsOf cuts a program into its marked parts.
func partsOf(file string) ([]part, error) {
	text, err := docs.Files.ReadFile("_examples/" + file)
	if err != nil {
		return nil, err
	}
	var out []part
	inside := false
	for line := range strings.Lines(string(text)) {
		mark := strings.TrimLeft(strings.TrimSpace(line), "/# ")
		if name, ok := strings.CutPrefix(mark, "call: "); ok {
			out, inside = append(out, part{name: name}), true
		} else if mark == "end" {
			inside = false
		} else if inside {
			out[len(out)-1].code += line
		}
	}
	for i := range out {
		out[i].code = dedent(out[i].code)
	}
	return out, nil
}

// dedent takes the indentation of the first line from all lines.
func dedent(code string) string {
	code = strings.Trim(code, "\n") + "\n"
	indent := code[:len(code)-len(strings.TrimLeft(code, " \t"))]
	var b strings.Builder
	for line := range strings.Lines(code) {
		b.WriteString(strings.TrimPrefix(line, indent))
	}
	return strings.TrimRight(b.String(), "\n ")
}
