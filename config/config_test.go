package config_test

import (
	"errors"
	"io/fs"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"till"
	"till/config"
)

// momo is the Config of an adapter.
type momo struct {
	BaseURL     string        `toml:"base_url"`
	Environment string        `toml:"target_environment"`
	Window      time.Duration `toml:"window"`
	APIUser     string        `toml:"-" secret:"user"`
	APIKey      string        `toml:"-"`
	Providers   []struct {
		Code string `toml:"code"`
	} `toml:"provider"`
}

type other struct {
	Account string `toml:"account"`
}

const canary = "s3cr3t-canary"

func options() config.Options {
	return config.Options{
		Operators: map[string]func() any{"mtnmomo": func() any { return &momo{} }, "other": func() any { return &other{} }},
		Env: func(name string) (string, bool) {
			v, ok := map[string]string{"MTN_USER": canary, "EMPTY": ""}[name]
			return v, ok
		},
		ReadFile: func(path string) ([]byte, error) {
			if path == "/etc/till/mtn.key" || path == "/run/key" {
				return []byte(canary + "\n"), nil
			}
			return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
		},
	}
}

const good = `
[callbacks]
trusted_proxies = ["10.0.0.0/8"]

[limits]
calls = 256

[[connection]]
name = "mtn-congo"
operator = "mtnmomo"
base_url = "https://momo.example"
callback_networks = ["212.88.125.100/32", "212.88.100.195"]
[connection.limits]
calls = 64
submit_per_second = 20
[connection.mtnmomo]
target_environment = "mtncongo" # as MTN writes it
window = "5m"
user_env = "MTN_USER"
api_key_file = "mtn.key"
[[connection.mtnmomo.provider]]
code = "A"
[[connection.mtnmomo.provider]]
code = "B"
[connection.statement]
delimiter = ";"

[[connection]]
name = "spare"
operator = "other"

[[route]]
method = "mtn_momo"
countries = ["CG", "CM"]
connections = ["mtn-congo", "spare"]

[[route]]
method = "mtn_momo"
countries = ["CG"]
kind = "payment"
clients = ["0199a7f0-0000-7000-8000-000000000001"]
connections = ["spare"]
`

func TestAGoodFile(t *testing.T) {
	t.Parallel()
	f, err := config.Parse("/etc/till/till.toml", []byte(good), options())
	if err != nil {
		t.Fatal(err)
	}
	c := f.Connections[0]
	got := *c.Settings.(*momo)
	if len(got.Providers) != 2 || got.Providers[1].Code != "B" {
		t.Errorf("providers: %+v", got.Providers)
	}
	got.Providers = nil
	if diff := cmp.Diff(got, momo{BaseURL: "https://momo.example", Environment: "mtncongo", Window: 5 * time.Minute, APIUser: canary, APIKey: canary}); diff != "" {
		t.Error(diff)
	}
	if want := []netip.Prefix{netip.MustParsePrefix("212.88.125.100/32"), netip.MustParsePrefix("212.88.100.195/32")}; !slices.Equal(c.CallbackNetworks, want) {
		t.Errorf("networks: %v", c.CallbackNetworks)
	}
	if c.Limits.Calls != 64 || c.Limits.SubmitPerSecond != 20 || f.Calls != 256 || len(f.TrustedProxies) != 1 || c.Statement["delimiter"] != ";" || c.Line != 8 {
		t.Errorf("got %+v of %+v", c, f)
	}
}

// Whose word for an address is taken stands at the top, where it counts for
// callbacks, limits and the log; [callbacks] is where it stood before.
func TestTrustedProxiesStandAtTheTop(t *testing.T) {
	t.Parallel()
	top, before := "trusted_proxies = [\"10.0.0.0/8\", \"192.0.2.1\"]\n", "[callbacks]\ntrusted_proxies = [\"10.0.0.0/8\", \"192.0.2.1\"]\n"
	want := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.0.2.1/32")}
	for _, text := range []string{top, before, top + "[callbacks]\n"} {
		f, err := config.Parse("/etc/till/till.toml", []byte(text), options())
		if err != nil || !slices.Equal(f.TrustedProxies, want) {
			t.Errorf("%s: %+v, %v", text, f, err)
		}
	}
	if _, err := config.Parse("/etc/till/till.toml", []byte(top+before), options()); err == nil || !strings.Contains(err.Error(), "trusted_proxies stands at the top already") {
		t.Errorf("both: %v", err)
	}
}

func TestRouter(t *testing.T) {
	t.Parallel()
	f, err := config.Parse("/etc/till/till.toml", []byte(good), options())
	if err != nil {
		t.Fatal(err)
	}
	r := f.Router(func(name string, kind till.SubjectKind) bool { return name != "spare" || kind == till.SubjectPayment })
	own, _ := till.ParseID("0199a7f0-0000-7000-8000-000000000001")
	for _, c := range []struct {
		client            till.ID
		kind              till.SubjectKind
		country, currency string
		want              string
	}{
		{till.ID{9}, till.SubjectPayment, "CG", "XAF", "mtn-congo spare"},
		{till.ID{9}, till.SubjectPayout, "CG", "XAF", "mtn-congo"},
		{own, till.SubjectPayment, "CG", "XAF", "spare"},
		{own, till.SubjectPayout, "CG", "XAF", "mtn-congo"},
		{own, till.SubjectPayment, "CM", "XAF", "mtn-congo spare"},
		{own, till.SubjectPayment, "UG", "UGX", ""},
		{own, till.SubjectPayment, "CG", "UGX", ""},
	} {
		if got := strings.Join(r.Find(c.client, c.kind, "mtn_momo", c.country, c.currency), " "); got != c.want {
			t.Errorf("%s of %s in %s: got %q, want %q", c.kind, c.client, c.country, got, c.want)
		}
	}
	if got := (*config.Router)(nil).Find(own, till.SubjectPayment, "mtn_momo", "CG", "XAF"); got != nil {
		t.Errorf("without a file: %v", got)
	}
}

// Every mistake is told at once, each with its line, and none of them shows a
// credential.
func TestMistakes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"not TOML", "\n[[connection]\nname = \"x\"", []string{"3: this is not TOML"}},
		{"a credential without quotes", "\n[[connection]]\nname = \"a\"\napi_key = " + canary, []string{"4: this is not TOML"}},
		{"unknown keys everywhere", `
frobnicate = 1
[server]
port = 3
[limits]
call = 3
[[connection]]
name = "a"
operator = "mtnmomo"
bas_url = "x"
[connection.mtnmomo]
target_enviroment = "x"
[[connection]]
name = "b"
operator = "other"
[connection.other]
target_environment = "x"
[connection.mtnmomo]
[[route]]
method = "mtn_momo"
country = "CG"
connections = ["a"]
`, []string{
			"2: there is no key frobnicate here",
			"3: there is no key server here",
			"6: there is no key limits.call here",
			"10: there is no key bas_url here",
			"12: there is no key target_enviroment here",
			"17: there is no key target_environment here",
			"18: [connection.mtnmomo] is not for a connection to other",
			"21: there is no key country here",
		}},
		{"credentials", `
[[connection]]
name = "a"
operator = "mtnmomo"
[connection.mtnmomo]
api_key = "` + canary + `"
user_env = "EMPTY"
[[connection]]
name = "b"
operator = "mtnmomo"
[connection.mtnmomo]
api_key_file = "gone.key"
api_key_env = "MTN_USER"
user_env = "MTN_USR"
[[connection]]
name = "c"
operator = "mtnmomo"
[connection.mtnmomo]
api_key_file = "gone.key"
user_env = 7
`, []string{
			"6: a credential must not stand in this file: name an environment variable with api_key_env, or a file with api_key_file",
			"7: the environment variable EMPTY is not set",
			"12: api_key comes from a variable and from a file",
			"14: the environment variable MTN_USR is not set",
			"19: open /etc/till/gone.key: file does not exist",
			"20: user_env is a text",
		}},
		{"connections", `
[[connection]]
operator = "mtnmomo"
[[connection]]
name = "Big Name"
operator = "mtnmomo"
[[connection]]
name = "sandbox"
operator = "mtnmomo"
[[connection]]
name = "a"
operator = "momo"
[[connection]]
name = "a"
operator = "sandbox"
[[connection]]
name = "b"
[[connection]]
name = "c"
operator = "other"
callback_networks = ["10.0.0.1/8", "x"]
[connection.limits]
calls = -1
[[connection]]
name = "d"
operator = "other"
[connection.other]
account = 7
`, []string{
			"2: the connection has no name",
			"5: a name has at most 40",
			`8: "sandbox" is the name`,
			`12: there is no operator "momo"; there are mtnmomo, other`,
			"14: a is the name of the connection in line 10, too",
			"15: the sandbox serves test clients",
			"16: the connection has no operator",
			`21: "10.0.0.1/8" names an address inside; the network is 10.0.0.0/8`,
			`21: "x" is not a network`,
			"23: calls must be between 1 and 10000",
			"28: account: incompatible types",
		}},
		{"routes", `
[[connection]]
name = "a"
operator = "other"
[[route]]
method = "cash"
connections = ["a"]
[[route]]
method = "mtn_momo"
countries = ["FR"]
connections = ["a", "b", "a"]
[[route]]
method = "mtn_momo"
countries = ["CG"]
currencies = ["UGX"]
kind = "money"
clients = ["me"]
[[route]]
method = "mtn_momo"
connections = ["a"]
[[route]]
method = "mtn_momo"
countries = ["CG"]
kind = "payout"
connections = ["a"]
`, []string{
			`6: there is no method "cash"; there are mtn_momo`,
			"8: no country of the route has its currency",
			`10: mtn_momo is not served in "FR"`,
			`11: there is no connection "b"`,
			"11: a stands here twice",
			"12: no country of the route has its currency",
			"12: the route leads nowhere",
			"16: kind is payment, payout or both",
			`17: "me" is not the id of a client`,
			"21: the route in line 18 is for mtn_momo in CG, too",
		}},
		{"a table that is none", "connection = 3\nroute = \"x\"", []string{"1: connection is written as [[connection]]", "2: route is written as [[route]]"}},
		{"too large", strings.Repeat("#", 1<<20+1), []string{"1: the file is larger"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := config.Parse("/etc/till/till.toml", []byte(c.text), options())
			var e *config.Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v", err)
			}
			got := strings.Split(e.Error(), "\n")
			for i, line := range got {
				if i >= len(c.want) || !strings.HasPrefix(line, "/etc/till/till.toml:"+c.want[i]) {
					t.Errorf("problem %d: %s", i, line)
				}
			}
			if len(got) != len(c.want) {
				t.Errorf("got %d problems, want %d", len(got), len(c.want))
			}
			if strings.Contains(e.Error(), canary) || strings.Contains(e.Error(), "s3cr3t") {
				t.Errorf("a credential is shown: %s", e)
			}
		})
	}
}

func TestLoad(t *testing.T) {
	t.Parallel()
	if _, err := config.Load(filepath.Join(t.TempDir(), "none.toml"), options()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(good)
	f.Add("[[connection]]\nname=\"a\"\n[connection.mtnmomo]\nuser_env=[1]")
	f.Fuzz(func(t *testing.T, text string) {
		_, err := config.Parse("x.toml", []byte(text), options())
		var e *config.Error
		if err != nil && !errors.As(err, &e) {
			t.Errorf("got %v", err)
		}
	})
}
