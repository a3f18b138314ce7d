package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"till"
	"till/config"
	"till/operators"
	"till/provider"
	"till/server"
)

// bankConfig is what an adapter of a test's own wants to know.
type bankConfig struct {
	Account string `toml:"account"`
	PayOut  bool   `toml:"pay_out"`
	PIN     string `toml:"-"`
}

// bank is an operator without a network: whatever it is asked about has
// succeeded.
type bank struct {
	c bankConfig
	d provider.Deps
}

func newBank(c bankConfig, d provider.Deps) (*bank, error) {
	if c.Account == "" {
		return nil, errors.New("account is missing: the operator's portal shows it")
	}
	if c.PIN == "" {
		return nil, errors.New("pin_env or pin_file is missing")
	}
	return &bank{c, d}, nil
}

func (b *bank) Payments() provider.Provider { return b }

func (b *bank) Payouts() provider.Provider {
	if !b.c.PayOut {
		return nil
	}
	return b
}

func (b *bank) Traits() provider.Traits {
	return provider.Traits{ClientReference: true, ApprovalWindow: time.Minute, SubmitTimeout: time.Second, CheckTimeout: time.Second,
		Poll: 10 * time.Minute, PollMax: time.Hour, Grace: time.Second}
}

func (b *bank) Fingerprint() string { return "bank " + b.c.Account }

func (b *bank) token(ctx context.Context) (string, error) {
	return b.d.Tokens.Token(ctx, "all", "", func(context.Context) (string, time.Duration, error) { return "T", time.Hour, nil })
}

func (b *bank) Submit(ctx context.Context, _ provider.Request) (provider.Result, error) {
	if _, err := b.token(ctx); err != nil {
		return provider.Result{}, err
	}
	return provider.Result{Outcome: provider.Accepted}, nil
}

func (b *bank) Check(_ context.Context, q provider.Query) (provider.Result, error) {
	return provider.Result{Outcome: provider.Success, Receipt: "B" + q.Reference.String(), Amount: q.Amount}, nil
}

// ReadCallback implements provider.CallbackReader.
func (b *bank) ReadCallback(c provider.CallbackRequest) (provider.Callback, error) {
	id, err := till.ParseID(string(c.Body))
	return provider.Callback{Reference: id}, err
}

// Test implements provider.Tester.
func (b *bank) Test(ctx context.Context) error {
	_, err := b.token(ctx)
	return err
}

var banks = operators.Adapters{"bank": operators.AdapterOf(newBank)}

// withBank adds a configuration to a Config.
func withBank(t testing.TB, c *server.Config, text string) error {
	t.Helper()
	o := banks.Options()
	o.Env = func(name string) (string, bool) { return "1234", name == "BANK_PIN" }
	f, err := config.Parse("till.toml", []byte(text), o)
	c.Operators, c.Adapters = f, banks
	return err
}

const oneBank = `
[[connection]]
name = "first"
operator = "bank"
[connection.bank]
account = "A-1"
pin_env = "BANK_PIN"
[[route]]
method = "mtn_momo"
countries = ["CG"]
kind = "payment"
connections = ["first"]
`

func TestLiveClientsAreServedByTheConfiguredOperator(t *testing.T) {
	t.Parallel()
	c := testConfig(t)
	c.LiveDemoFile = filepath.Join(filepath.Dir(c.DemoFile), "live.json")
	if err := withBank(t, &c, oneBank); err != nil {
		t.Fatal(err)
	}
	r := start(t, c)
	live := func(verb, path, body string) (int, map[string]any) {
		t.Helper()
		req, err := http.NewRequest(verb, r.BaseURL()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Api-Key", r.LiveDemo().APIKey)
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var v map[string]any
		if err := json.NewDecoder(res.Body).Decode(&v); err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, v
	}
	// In the sandbox this number's customer would decline.
	status, p := live(http.MethodPost, "/payments", order("242061230002"))
	if status != http.StatusAccepted {
		t.Fatal(status, p)
	}
	path := "/payments/" + p["id"].(string)
	attempts := func() map[string]any {
		_, v := live(http.MethodGet, path+"/attempts", "")
		return v["items"].([]any)[0].(map[string]any)
	}
	for deadline := time.Now().Add(time.Minute); p["status"] != "processing" && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		_, p = live(http.MethodGet, path, "")
	}
	// The next poll is ten minutes off; the operator calls its one address.
	res, err := http.Post(r.CallbackURL("first"), "text/plain", strings.NewReader(attempts()["submission_reference"].(string)))
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(res, err)
	}
	res.Body.Close()
	for deadline := time.Now().Add(time.Minute); p["status"] != "success" && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		_, p = live(http.MethodGet, path, "")
	}
	if p["status"] != "success" {
		t.Fatalf("after the callback: %v", p)
	}
	// Where no route leads, a live client is not served, least of all by the
	// sandbox.
	status, v := live(http.MethodPost, "/payments", strings.NewReplacer("CG", "UG", "XAF", "UGX", "242061230002", "256772123456").Replace(order("242061230002")))
	if status != http.StatusUnprocessableEntity || !strings.Contains(fmt.Sprint(v["errors"]), "country_not_supported") {
		t.Errorf("without a route: %d %v", status, v)
	}
	r.await(r.create("242061230002"), "failed") // a test client is the sandbox's
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	verify(t, c.Database)
}

func TestConfigurationsThatAreRefusedAtStart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"what the adapter refuses, each with its line", `
[[connection]]
name = "a"
operator = "bank"
[[connection]]
name = "b"
operator = "bank"
[connection.bank]
account = "x"
`, "till.toml:2: the connection a: account is missing: the operator's portal shows it\ntill.toml:5: the connection b: pin_env or pin_file is missing"},
		{"a route for what a connection does not do", strings.Replace(oneBank, `kind = "payment"`, `kind = "payout"`, 1),
			"till.toml:8: the connection first does not serve what this route is for"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := testConfig(t)
			if err := withBank(t, &s, c.text); err != nil {
				t.Fatal(err)
			}
			refused(t, s, c.want)
		})
	}
}

// A name that stands for another account is refused while a payment on the old
// one is open, and taken when there is none.
func TestAnotherAccountUnderTheSameName(t *testing.T) {
	t.Parallel()
	c := testConfig(t)
	c.Role = server.RoleAPI // nothing is sent
	c.LiveDemoFile = filepath.Join(filepath.Dir(c.DemoFile), "live.json")
	begin := func(account string) error {
		if err := withBank(t, &c, strings.Replace(oneBank, "A-1", account, 1)+"\n"); err != nil {
			t.Fatal(err)
		}
		s, err := server.New(t.Context(), c)
		if err == nil {
			s.Close()
		}
		return err
	}
	for _, account := range []string{"A-1", "A-2", "A-1"} {
		if err := begin(account); err != nil {
			t.Fatalf("nothing is open, and %s is refused: %v", account, err)
		}
	}
	r := start(t, c)
	req, _ := http.NewRequest(http.MethodPost, r.BaseURL()+"/payments", strings.NewReader(order("242061234567")))
	req.Header.Set("X-Api-Key", r.LiveDemo().APIKey)
	req.Header.Set("Content-Type", "application/json")
	if res, err := http.DefaultClient.Do(req); err != nil || res.StatusCode != http.StatusAccepted {
		t.Fatal(res, err)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if err := begin("A-2"); err == nil || !strings.Contains(err.Error(), "the connection first stands for another account now, and 1 payments") {
		t.Errorf("a payment is open, and the change gives %v", err)
	}
	if err := begin("A-1"); err != nil {
		t.Error(err)
	}
}

func TestLoadConfigReadsAFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "pin"), []byte("1234\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "till.toml")
	text := strings.Replace(oneBank, `pin_env = "BANK_PIN"`, `pin_file = "pin"`, 1)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := operators.LoadConfig(path, banks)
	if err != nil || f.Connections[0].Settings.(*bankConfig).PIN != "1234" {
		t.Errorf("got %+v, %v", f, err)
	}
	if _, err := operators.LoadConfig(path, operators.Adapters{}); err == nil || !strings.Contains(fmt.Sprint(err), path+`:4: there is no operator "bank"; there are none`) {
		t.Errorf("without the adapter: %v", err)
	}
}
