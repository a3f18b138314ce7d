package config

import "log/slog"

// LoadLogLevel reads the log level only: it may change while the program runs. "" means
// that the file does not say.
func LoadLogLevel(path string) (string, error) {
	f, err := load(path, Options{}, func(r *reader, text []byte) {
		if tree, ok := r.tree(text); ok {
			var top struct {
				LogLevel string `toml:"log_level"`
			}
			r.decode(only(tree, "log_level"), "", &top)
			r.logLevel(top.LogLevel)
		}
	})
	if err != nil {
		return "", err
	}
	return f.LogLevel, nil
}

func (r *reader) logLevel(text string) {
	var l slog.Level
	if text != "" && l.UnmarshalText([]byte(text)) != nil {
		r.problem(r.lines.line("log_level"), "log_level is debug, info, warn or error")
		return
	}
	r.file.LogLevel = text
}

// only returns a tree with one of its keys, if it has it.
func only(tree map[string]any, key string) map[string]any {
	if v, ok := tree[key]; ok {
		return map[string]any{key: v}
	}
	return nil
}
