package config

import (
	"regexp"
	"strconv"
	"strings"
)

// lines tells in which line of a file a key stands. The TOML library knows
// that only for what it refuses itself, and mixes up the tables of an array.
type lineNumbers map[string]int

var (
	headerLine = regexp.MustCompile(`^\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(#.*)?$`)
	keyLine    = regexp.MustCompile(`^\s*([A-Za-z0-9_."'-]+(?:\s*\.\s*[A-Za-z0-9_"'-]+)*)\s*=`)
)

// findLines goes through a file that is known to be good TOML. A key inside
// a value of several lines could be taken for one; then a message names the
// line of something that looks the same.
func findLines(text string) lineNumbers {
	found := lineNumbers{}
	arrays := map[string]int{} // how many tables an array has so far
	table := ""
	for i, line := range strings.Split(text, "\n") {
		if m := headerLine.FindStringSubmatch(line); m != nil && !strings.Contains(m[2], "=") {
			name := normalizeKey(m[2])
			if m[1] == "[[" {
				arrays[name]++
				// The tables inside start anew.
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

// normalizeKey writes a dotted key without quotes and spaces.
func normalizeKey(key string) string {
	parts := strings.Split(key, ".")
	for i, p := range parts {
		parts[i] = strings.Trim(strings.TrimSpace(p), `"'`)
	}
	return strings.Join(parts, ".")
}

// indexed puts the number of the current table behind each array in a path.
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
