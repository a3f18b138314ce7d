package config

import (
	"regexp"
	"strconv"
	"strings"
)

// lineNumbers gives the line of each key in a file. The TOML library knows it only for its
// own errors, and mixes up the tables of an array.
type lineNumbers map[string]int

var (
	headerLine = regexp.MustCompile(`^\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(#.*)?$`)
	keyLine    = regexp.MustCompile(`^\s*([A-Za-z0-9_."'-]+(?:\s*\.\s*[A-Za-z0-9_"'-]+)*)\s*=`)
)

// findLines scans a file that is valid TOML. It may take text inside a value of several
// lines for a key; then a message names the line of a key that looks the same.
func findLines(text string) lineNumbers {
	found := lineNumbers{}
	arrays := map[string]int{} // tables of each array so far
	table := ""
	for i, line := range strings.Split(text, "\n") {
		if m := headerLine.FindStringSubmatch(line); m != nil && !strings.Contains(m[2], "=") {
			name := normalizeKey(m[2])
			if m[1] == "[[" {
				arrays[name]++
				// Arrays inside start again.
				for other := range arrays {
					if strings.HasPrefix(other, name+".") {
						delete(arrays, other)
					}
				}
			}
			table = indexed(name, arrays)
			found.add(table, i+1)
			continue
		}
		if m := keyLine.FindStringSubmatch(line); m != nil {
			key := normalizeKey(m[1])
			if table != "" {
				key = table + "." + key
			}
			found.add(key, i+1)
		}
	}
	return found
}

func (l lineNumbers) add(path string, line int) {
	if l[path] == 0 {
		l[path] = line
	}
}

// line returns the line of a path, or that of the nearest table around it.
func (l lineNumbers) line(path string) int {
	for path != "" {
		if n := l[path]; n > 0 {
			return n
		}
		i := strings.LastIndexByte(path, '.')
		if i < 0 {
			break
		}
		path = path[:i]
	}
	return 1
}

// normalizeKey returns a dotted key without quotes and spaces.
func normalizeKey(key string) string {
	parts := strings.Split(key, ".")
	for i, p := range parts {
		parts[i] = strings.Trim(strings.TrimSpace(p), `"'`)
	}
	return strings.Join(parts, ".")
}

// indexed adds the number of the current table to each array in a path.
func indexed(name string, arrays map[string]int) string {
	var out, plain []string
	for _, part := range strings.Split(name, ".") {
		plain = append(plain, part)
		if n := arrays[strings.Join(plain, ".")]; n > 0 {
			part += "[" + strconv.Itoa(n-1) + "]"
		}
		out = append(out, part)
	}
	return strings.Join(out, ".")
}
