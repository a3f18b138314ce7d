package dbfault

import "strings"

// split returns the statements of a migration of either dialect. A semicolon ends one unless
// it is in a comment, in quotes, between two $$, or in a trigger of SQLite, which ends
// with END behind a semicolon.
func split(script string) (out []string) {
	begin, last := 0, 0 // of the statement, and of its part since the last semicolon
	keep := func(end int) {
		if s := strings.TrimSpace(script[begin:end]); beginning(s) != "" {
			out = append(out, s)
		}
		begin = end
	}
	for i := 0; i < len(script); {
		rest := script[i:]
		switch {
		case strings.HasPrefix(rest, "--"):
			i += through(rest, "\n", 2)
		case strings.HasPrefix(rest, "$$"):
			i += through(rest, "$$", 2)
		case rest[0] == '\'' || rest[0] == '"':
			i += through(rest, rest[:1], 1)
		case rest[0] == ';':
			i++
			part := beginning(script[last : i-1])
			last = i
			if !trigger(script[begin:i]) || strings.EqualFold(part, "END") {
				keep(i)
			}
		default:
			i++
		}
	}
	keep(len(script))
	return out
}

// through returns how long the beginning of text is that ends with the next end, which
// is looked for behind the first skip bytes.
func through(text, end string, skip int) int {
	if n := strings.Index(text[skip:], end); n >= 0 {
		return skip + n + len(end)
	}
	return len(text)
}

// trigger reports whether a statement is a trigger whose body is in it: one of SQLite.
func trigger(s string) bool {
	words := strings.Fields(strings.ToUpper(withoutComments(s)))
	if len(words) < 2 || words[0] != "CREATE" || words[1] != "TRIGGER" && (words[1] != "TEMP" && words[1] != "TEMPORARY" || words[2] != "TRIGGER") {
		return false
	}
	for _, w := range words {
		if w == "BEGIN" {
			return true
		}
	}
	return false
}

// beginning returns the first words of a statement, "" if there are none.
func beginning(s string) string {
	words := strings.Fields(withoutComments(s))
	return strings.TrimSuffix(strings.Join(words[:min(len(words), 6)], " "), ";")
}

func withoutComments(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		code, _, _ := strings.Cut(line, "--")
		b.WriteString(code + "\n")
	}
	return b.String()
}
