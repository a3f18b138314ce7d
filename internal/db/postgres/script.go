package postgres

import "strings"

// commands splits a script into its commands. A semicolon ends a command unless it is
// in a comment, in quotes or between two $$. Comments of the other kind, /* */, and
// named dollar quotes are not in our scripts.
func commands(script string) (out []string) {
	begin := 0
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
			out = appendCommand(out, script[begin:i])
			i++
			begin = i
		default:
			i++
		}
	}
	return appendCommand(out, script[begin:])
}

// through returns how long the beginning of text is that ends with the next end, which
// is looked for behind the first skip bytes.
func through(text, end string, skip int) int {
	if n := strings.Index(text[skip:], end); n >= 0 {
		return skip + n + len(end)
	}
	return len(text)
}

// appendCommand leaves out what holds comments only.
func appendCommand(all []string, text string) []string {
	for _, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "--") {
			return append(all, text)
		}
	}
	return all
}
