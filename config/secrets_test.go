package config_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"till/config"
)

const oneConnection = `
[[connection]]
name = "a"
operator = "mtnmomo"
[connection.mtnmomo]
`

// A credential comes from systemd, or from a command's output; each mistake has its line,
// and none shows what a command printed.
func TestCredentialsOfSystemdAndCommands(t *testing.T) {
	t.Parallel()
	o := options()
	files := map[string]string{"/run/credentials/till/mtn": canary + "\n"}
	o.Env = func(name string) (string, bool) { return "/run/credentials/till", name == "CREDENTIALS_DIRECTORY" }
	o.ReadFile = func(path string) ([]byte, error) {
		if text, ok := files[path]; ok {
			return []byte(text), nil
		}
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	printed := map[string]string{"vault": canary + "\n", "silent": " \n"}
	o.Run = func(command []string) ([]byte, error) {
		if text, ok := printed[command[0]]; ok {
			return []byte(text), nil
		}
		return nil, errors.New("it ended with exit status 2")
	}
	f, err := config.Parse("till.toml", []byte(oneConnection+"user_credential = \"mtn\"\napi_key_command = [\"vault\", \"get\", \"x\"]\n"), o)
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Connections[0].Settings.(*momo); got.APIUser != canary || got.APIKey != canary {
		t.Errorf("got %+v", got)
	}
	for line, want := range map[string]string{
		`user_credential = "../mtn"`:                         "6: the name of a credential",
		`user_credential = "other"`:                          "6: open /run/credentials/till/other",
		`user_credential = 7`:                                "6: user_credential is a text",
		`api_key_command = "vault get"`:                      "6: api_key_command is a list of at most 64 texts",
		`api_key_command = []`:                               "6: api_key_command is a list",
		`api_key_command = ["vault", 7]`:                     "6: api_key_command is a list",
		`api_key_command = ["broken", "--password=hush"]`:    "6: the command broken: it ended with exit status 2",
		`api_key_command = ["silent"]`:                       "6: the command silent printed nothing",
		"user_credential = \"mtn\"\nuser_file = \"mtn.key\"": "6: user comes from a file and from a credential of systemd",
	} {
		_, err := config.Parse("till.toml", []byte(oneConnection+line+"\n"), o)
		if err == nil || !strings.Contains(err.Error(), "till.toml:"+want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
	o.Env = func(string) (string, bool) { return "", false }
	if _, err := config.Parse("till.toml", []byte(oneConnection+"user_credential = \"mtn\"\n"), o); err == nil || !strings.Contains(err.Error(), "CREDENTIALS_DIRECTORY") {
		t.Errorf("without systemd: %v", err)
	}
}

// Reread returns new settings if a file or a command says something else, and leaves the
// connection alone.
func TestReread(t *testing.T) {
	t.Parallel()
	o, key, bad := options(), "first", error(nil)
	o.Run = func([]string) ([]byte, error) { return []byte(key), bad }
	f, err := config.Parse("/etc/till/till.toml", []byte(oneConnection+"user_env = \"MTN_USER\"\napi_key_command = [\"vault\"]\n"), o)
	if err != nil {
		t.Fatal(err)
	}
	c := f.Connections[0]
	if _, changed, err := c.Reread(); changed || err != nil || !c.CanReread() {
		t.Errorf("nothing new: %v, %v", changed, err)
	}
	key = "second"
	settings, changed, err := c.Reread()
	if err != nil || !changed || settings.(*momo).APIKey != "second" || settings.(*momo).APIUser != canary || c.Settings.(*momo).APIKey != "first" {
		t.Errorf("got %+v, %v, %v", settings, changed, err)
	}
	bad = errors.New("it took longer than 10s")
	if _, changed, err := c.Reread(); changed || err == nil {
		t.Errorf("a command that fails: %v, %v", changed, err)
	}
	f, err = config.Parse("/etc/till/till.toml", []byte(oneConnection+"user_env = \"MTN_USER\"\n"), o)
	if err != nil || f.Connections[0].CanReread() {
		t.Errorf("a variable cannot change: %v", err)
	}
}

// Real programs: what they print is taken, without a shell; what is too long, or fails,
// is not, and standard error is not shown.
func TestCommandsAreRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := filepath.Join(dir, "fail")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho "+canary+" >&2\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	parse := func(command string) (*config.File, error) {
		return config.Parse("till.toml", []byte(oneConnection+"api_key_command = "+command+"\n"), config.Options{Operators: options().Operators})
	}
	f, err := parse(`["echo", "$HOME;", "x"]`)
	if err != nil || f.Connections[0].Settings.(*momo).APIKey != "$HOME; x" {
		t.Errorf("got %+v, %v", f, err)
	}
	for command, want := range map[string]string{
		fmt.Sprintf("[%q]", script):             "it ended with exit status 3",
		`["head", "-c", "100000", "/dev/zero"]`: "printed more than 65536 bytes",
		`["till-test-no-such-program"]`:         "executable file not found",
	} {
		if _, err := parse(command); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), canary) {
			t.Errorf("%s: %v, want %q", command, err, want)
		}
	}
}

// A command gets PATH, HOME, LANG and what command_environment names: neither the
// database's URL nor another operator's credential.
func TestACommandGetsNoMoreOfTheEnvironmentThanItNeeds(t *testing.T) {
	t.Setenv("TILL_DATABASE", "postgres://till:"+canary+"@db/till")
	t.Setenv("MTN_USER", canary)
	t.Setenv("VAULT_ADDR", "https://vault.example")
	t.Setenv("LANG", "C")
	parse := func(top string) (string, error) {
		f, err := config.Parse("till.toml", []byte(top+oneConnection+"api_key_command = [\"env\"]\n"), config.Options{Operators: options().Operators})
		if err != nil {
			return "", err
		}
		return f.Connections[0].Settings.(*momo).APIKey, nil
	}
	got, err := parse("")
	if err != nil || strings.Contains(got, canary) || strings.Contains(got, "VAULT_ADDR") || !strings.Contains(got, "PATH=") || !strings.Contains(got, "LANG=C") {
		t.Errorf("it has %q, %v", got, err)
	}
	if got, err = parse("command_environment = [\"VAULT_ADDR\", \"NOT_SET\"]\n"); err != nil || strings.Contains(got, canary) || !strings.Contains(got, "VAULT_ADDR=https://vault.example") {
		t.Errorf("it has %q, %v", got, err)
	}
	if _, err := parse("command_environment = [\"A=B\"]\n"); err == nil || !strings.Contains(err.Error(), "names of variables") {
		t.Errorf("got %v", err)
	}
}

// The log level can be read again alone, whatever else the file says.
func TestLogLevel(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "till.toml")
	for text, want := range map[string]string{
		"log_level = \"debug\"\n[[connection]]\nname = \"x\"\n": "debug",
		"": "",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := config.LoadLogLevel(path); err != nil || got != want {
			t.Errorf("%q: got %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"log_level = \"loud\"", "log_level = 7"} {
		if _, err := config.Parse("till.toml", []byte(text), options()); err == nil || !strings.Contains(err.Error(), "till.toml:1: log_level") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
