package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"till"
	"till/config"
)

const withMethods = `
[[method]]
code = "sama_money"
name = "Sama Money"
[[method.country]]
code = "SN"
currency = "XOF"
[[method.country]]
code = "CI"
currency = "XOF"
min_amount = 200
max_amount = 1500000
amount_step = 5
prefixes = ["07", "05"]

[[method]]
code = "mtn_momo"
[[method.country]]
code = "CG"
currency = "XAF"
max_amount = 500000
name = "MoMo Congo"
prefixes = []

[[connection]]
name = "a"
operator = "other"
[[route]]
method = "sama_money"
connections = ["a"]
`

// A method is data: the file adds one, with its countries, and routes it; and it
// changes what it wants of one that is there.
func TestMethodsOfTheFile(t *testing.T) {
	t.Parallel()
	f, err := config.Parse("till.toml", []byte(withMethods), options())
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Methods) != 2 || len(f.Routes[0].Markets) != 2 || f.Routes[0].Markets[1].Country != "CI" {
		t.Fatalf("got %+v, the route is %+v", f.Methods, f.Routes[0])
	}
	sama, momo := f.Methods[0], f.Methods[1]
	if sama.Name != "Sama Money" || !sama.CountryScoped || !slices.Equal(sama.RequiredCustomerFields, []string{"phone"}) {
		t.Errorf("got %+v", sama)
	}
	if k := sama.Markets[0]; k.Min != 100 || k.Max != 2_000_000 || k.Step != 1 || k.Sandbox || k.Prefixes != nil {
		t.Errorf("as usual: %+v", k)
	}
	if k := sama.Markets[1]; k.Min != 200 || k.Max != 1_500_000 || k.Step != 5 || !slices.Equal(k.Prefixes, []string{"07", "05"}) {
		t.Errorf("as written: %+v", k)
	}
	if k := momo.Markets[0]; k.Min != 100 || k.Max != 500_000 || k.Local != "MoMo Congo" || !k.Sandbox || len(k.Prefixes) != 0 {
		t.Errorf("what is not said stays, and prefixes can be taken away: %+v", k)
	}
	if _, known := till.MethodOf("sama_money"); known {
		t.Error("to read a file changes the catalogue")
	}

	// The methods alone are read without the credentials of the rest.
	path := filepath.Join(t.TempDir(), "till.toml")
	if err := os.WriteFile(path, []byte(withMethods+"\n[[connection]]\noperator = \"none\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if alone, err := config.Methods(path); err != nil || len(alone) != 2 || alone[0].Code != "sama_money" {
		t.Errorf("got %v, %v", alone, err)
	}
}

func TestMistakesInMethods(t *testing.T) {
	t.Parallel()
	text := `
[[method]]
code = "Sama!"
[[method]]
code = "sama_money"
[[method.country]]
code = "SN"
currency = "XOF"
[[method]]
code = "sama_money"
name = "Sama Money"
[[method]]
code = "sama_money"
name = "Sama Money"
frequency = 3
[[method]]
code = "sama_money"
name = "Sama Money"
[[method.country]]
code = "FR"
currency = "XYZ"
[[method.country]]
code = "SN"
currency = "XOF"
min_amount = 10
max_amount = 5
[[method.country]]
code = "SN"
currency = "XOF"
prefixes = ["+221"]
[[method]]
code = "mtn_momo"
[[method.country]]
code = "CG"
currency = "XAF"
amount_step = 0
`
	want := []string{
		"3: code: at most 40 small letters",
		"4: the method sama_money is new and needs a name",
		"9: the method sama_money is new and needs its countries",
		"15: there is no key frequency here",
		`20: code: "FR" is not a country`,
		`21: currency: "XYZ" is not known`,
		"22: amounts are in minor units",
		`30: prefixes: "+221" is not how national numbers begin`,
		"33: amounts are in minor units",
	}
	_, err := config.Parse("till.toml", []byte(text), options())
	var e *config.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v", err)
	}
	got := strings.Split(e.Error(), "\n")
	for i, line := range got {
		if i >= len(want) || !strings.HasPrefix(line, "till.toml:"+want[i]) {
			t.Errorf("problem %d: %s", i, line)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %d problems, want %d", len(got), len(want))
	}
	twice := strings.Replace(withMethods, `code = "CI"`, `code = "SN"`, 1)
	if _, err := config.Parse("till.toml", []byte(twice), options()); err == nil || !strings.Contains(err.Error(), "SN with XOF stands here twice") {
		t.Errorf("got %v", err)
	}
}
