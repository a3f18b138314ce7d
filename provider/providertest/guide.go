package providertest

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// Guide compares an operator's page of the guide with its adapter's Config. The page must
// explain each key, in backticks, and its example may use no others. A credential's key
// ends in _env or _file.
func Guide(t *testing.T, page, operator string, config any) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, f := range reflect.VisibleFields(reflect.TypeOf(config)) {
		key, _, _ := strings.Cut(f.Tag.Get("toml"), ",")
		if secret := f.Tag.Get("secret"); secret != "" {
			known[secret+"_env"], known[secret+"_file"] = true, true
			key = secret
		} else {
			known[key] = true
		}
		if !strings.Contains(string(text), "`"+key+"`") {
			t.Errorf("%s does not explain %s", page, key)
		}
	}
	_, example, found := strings.Cut(string(text), "[connection."+operator+"]\n")
	example, _, ended := strings.Cut(example, "\n\n")
	if !found || !ended {
		t.Fatalf("%s has no example of [connection.%s]", page, operator)
	}
	for line := range strings.Lines(example) {
		if key, _, ok := strings.Cut(line, "="); ok && !known[strings.TrimSpace(key)] {
			t.Errorf("the example of %s uses %s, which does not exist", page, strings.TrimSpace(key))
		}
	}
}
