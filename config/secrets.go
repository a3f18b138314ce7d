package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"unicode"
)

// maxSecret is the longest credential in bytes: a certificate.
const maxSecret = 64 << 10

// credentialFolder is the variable by which systemd names the folder of a unit's
// credentials.
const credentialFolder = "CREDENTIALS_DIRECTORY"

// credentialSource is where one credential comes from.
type credentialSource struct {
	field int // of the adapter's Config
	read  func() (string, error)
}

// secrets fills in the credentials of an adapter's Config: the fields with the tag
// toml:"-". Each is named by the tag secret, or by the field's name in snake case. It
// returns where those come from that may change while the program runs.
func (r *reader) secrets(at string, table map[string]any, settings any) (sources []credentialSource) {
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
		value, again := r.secret(at, table, name)
		v.Field(i).SetString(value)
		if again != nil {
			sources = append(sources, credentialSource{i, again})
		}
	}
	return sources
}

// secret returns one credential, "" if there is none or it cannot be read, and how to read
// it again; nil if it cannot change.
func (r *reader) secret(at string, table map[string]any, name string) (value string, again func() (string, error)) {
	if _, literal := table[name]; literal {
		r.problem(r.lines.line(at+"."+name), "a credential must not stand in this file: name an environment variable with %[1]s_env, or a file with %[1]s_file; "+
			"and take it for known to others", name)
		delete(table, name)
	}
	var key, from string
	var read func() (string, error)
	found := func(suffix, text string, f func() (string, error)) {
		if read != nil {
			r.problem(r.lines.line(at+"."+name+suffix), "%s comes from %s and from %s; leave one out", name, from, text)
		}
		key, from, read = name+suffix, text, f
	}
	before := len(r.problems)
	if env, ok := r.text(at, table, name+"_env"); ok {
		found("_env", "a variable", func() (string, error) { return r.o.fromEnv(env) })
	}
	if path, ok := r.text(at, table, name+"_file"); ok {
		if !filepath.IsAbs(path) {
			path = filepath.Join(r.dir, path)
		}
		found("_file", "a file", func() (string, error) { return r.o.fromFile(path) })
	}
	if credential, ok := r.text(at, table, name+"_credential"); ok {
		found("_credential", "a credential of systemd", func() (string, error) { return r.o.fromCredential(credential) })
	}
	if command, ok := r.texts(at, table, name+"_command"); ok {
		found("_command", "a command", func() (string, error) { return r.o.fromCommand(command) })
	}
	if read == nil || len(r.problems) > before {
		return "", nil
	}
	value, err := read()
	if err != nil {
		r.problem(r.lines.line(at+"."+key), "%v", err)
	}
	if strings.HasSuffix(key, "_env") {
		return value, nil
	}
	return value, read
}

func (o *Options) fromEnv(name string) (string, error) {
	value, ok := o.Env(name)
	if value = strings.TrimSpace(value); !ok || value == "" {
		return "", fmt.Errorf("the environment variable %s is not set", name)
	}
	return value, nil
}

func (o *Options) fromFile(path string) (string, error) {
	b, err := o.ReadFile(path)
	value := strings.TrimSpace(string(b))
	switch {
	case err != nil:
		return "", err
	case value == "" || len(b) > maxSecret:
		return "", fmt.Errorf("the file %s is empty or larger than %d bytes", path, maxSecret)
	}
	return value, nil
}

// validCredential is the form of a name of systemd's credentials. It names no other folder.
var validCredential = regexp.MustCompile(`^[A-Za-z0-9_@-][A-Za-z0-9._@-]{0,254}$`)

func (o *Options) fromCredential(name string) (string, error) {
	dir, ok := o.Env(credentialFolder)
	switch {
	case !validCredential.MatchString(name):
		return "", errors.New("the name of a credential has letters, digits, dots, - and _")
	case !ok || dir == "":
		return "", fmt.Errorf("there is no %s: systemd sets it for a unit with LoadCredential=%s:PATH", credentialFolder, name)
	}
	return o.fromFile(filepath.Join(dir, name))
}

func (o *Options) fromCommand(command []string) (string, error) {
	run := o.Run
	if run == nil {
		run = func(command []string) ([]byte, error) { return runCommand(command, o.environment()) }
	}
	out, err := run(command)
	value := strings.TrimSpace(string(out))
	switch {
	case err != nil:
		return "", fmt.Errorf("the command %s: %w", command[0], err)
	case value == "":
		return "", fmt.Errorf("the command %s printed nothing", command[0])
	}
	return value, nil
}

// CanReread reports whether a credential of the connection may change while the program
// runs.
func (c *Connection) CanReread() bool { return len(c.sources) > 0 }

// Reread reads the credentials of a connection again from files, systemd and commands. It
// returns new settings, and whether they differ from those of now. The connection itself
// does not change.
func (c *Connection) Reread() (settings any, changed bool, err error) {
	if len(c.sources) == 0 {
		return c.Settings, false, nil
	}
	old := reflect.ValueOf(c.Settings).Elem()
	fresh := reflect.New(old.Type())
	fresh.Elem().Set(old)
	for _, s := range c.sources {
		value, err := s.read()
		if err != nil {
			return nil, false, err
		}
		if value != old.Field(s.field).String() {
			fresh.Elem().Field(s.field).SetString(value)
			changed = true
		}
	}
	if v, ok := fresh.Interface().(interface{ Validate() error }); ok && changed {
		if err := v.Validate(); err != nil {
			return nil, false, err
		}
	}
	return fresh.Interface(), changed, nil
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

// texts removes a list of texts from a table and returns it.
func (r *reader) texts(at string, table map[string]any, name string) (out []string, found bool) {
	v, ok := table[name]
	delete(table, name)
	if !ok {
		return nil, false
	}
	list, ok := v.([]any)
	for _, one := range list {
		s, isText := one.(string)
		ok = ok && isText && !strings.Contains(s, "\x00")
		out = append(out, s)
	}
	if !ok || len(out) == 0 || len(out) > maxArguments || out[0] == "" {
		r.problem(r.lines.line(at+"."+name), "%s is a list of at most %d texts: the program, and its arguments", name, maxArguments)
		return nil, false
	}
	return out, true
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
