package config

import (
	"path/filepath"
	"reflect"
	"strings"
	"unicode"
)

// maxSecret is the longest credential in bytes: a certificate.
const maxSecret = 64 << 10

// secrets fills in the credentials of an adapter's Config: the fields with the tag
// toml:"-". Each is named by the tag secret, or by the field's name in snake case.
func (r *reader) secrets(at string, table map[string]any, settings any) {
	v := reflect.ValueOf(settings).Elem()
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Tag.Get("toml") != "-" || f.Type.Kind() != reflect.String || !f.IsExported() {
			continue
		}
		name := f.Tag.Get("secret")
		if name == "" {
			name = snake(f.Name)
		}
		v.Field(i).SetString(r.secret(at, table, name))
	}
}

// secret returns one credential, "" if there is none or it cannot be read.
func (r *reader) secret(at string, table map[string]any, name string) string {
	if _, literal := table[name]; literal {
		r.problem(r.lines.line(at+"."+name), "a credential must not stand in this file: name an environment variable with %[1]s_env, or a file with %[1]s_file; "+
			"and take it for known to others", name)
		delete(table, name)
	}
	env, byEnv := r.text(at, table, name+"_env")
	path, byFile := r.text(at, table, name+"_file")
	switch {
	case byEnv && byFile:
		r.problem(r.lines.line(at+"."+name+"_file"), "%s comes from a variable and from a file; leave one out", name)
	case byEnv:
		value, ok := r.o.Env(env)
		if value = strings.TrimSpace(value); !ok || value == "" {
			r.problem(r.lines.line(at+"."+name+"_env"), "the environment variable %s is not set", env)
		}
		return value
	case byFile:
		if !filepath.IsAbs(path) {
			path = filepath.Join(r.dir, path)
		}
		b, err := r.o.ReadFile(path)
		value := strings.TrimSpace(string(b))
		switch {
		case err != nil:
			r.problem(r.lines.line(at+"."+name+"_file"), "%v", err)
		case value == "" || len(b) > maxSecret:
			r.problem(r.lines.line(at+"."+name+"_file"), "the file %s is empty or larger than %d bytes", path, maxSecret)
		}
		return value
	}
	return ""
}

// text removes a text from a table and returns it.
func (r *reader) text(at string, table map[string]any, name string) (string, bool) {
	v, ok := table[name]
	delete(table, name)
	if !ok {
		return "", false
	}
	s, ok := v.(string)
	if !ok || s == "" {
		r.problem(r.lines.line(at+"."+name), "%s is a text", name)
		return "", false
	}
	return s, true
}

// snake turns APIUser into api_user.
func snake(name string) string {
	var b strings.Builder
	letters := []rune(name)
	for i, c := range letters {
		begins := i > 0 && unicode.IsUpper(c) &&
			(!unicode.IsUpper(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1]))
		if begins {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}
