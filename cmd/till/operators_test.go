package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"till"
	"till/account"
	"till/cmd/till/internal/cli"
	"till/cmd/till/internal/money"
	"till/doctor"
	"till/operators"
	"till/provider"
	"till/provider/simulator"
	"till/server"
	"till/store"
)

// kioskConfig is what an adapter of a test's own wants to know.
type kioskConfig struct {
	BaseURL string `toml:"base_url"`
	Key     string `toml:"-"`
}

// kiosk is an operator whose side is simulated by kioskSide.
type kiosk struct{ c kioskConfig }

func newKiosk(c kioskConfig, _ provider.Deps) (*kiosk, error) { return &kiosk{c}, nil }

func (k *kiosk) Payments() provider.Provider { return k }
func (k *kiosk) Payouts() provider.Provider  { return nil }
func (k *kiosk) Fingerprint() string         { return k.c.BaseURL }

func (k *kiosk) Traits() provider.Traits {
	return provider.Traits{ClientReference: true, ApprovalWindow: time.Minute, SubmitTimeout: 5 * time.Second, CheckTimeout: 5 * time.Second,
		Poll: 50 * time.Millisecond, PollMax: time.Hour, Grace: time.Second}
}

func (k *kiosk) ask(ctx context.Context, path string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, k.c.BaseURL+path, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Key", k.c.Key)
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	a.Body.Close()
	if a.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers %d: %w", a.StatusCode, provider.ErrCredentials)
	}
	return nil
}

func (k *kiosk) Submit(ctx context.Context, _ provider.Request) (provider.Result, error) {
	return provider.Result{Outcome: provider.Accepted}, k.ask(ctx, "/pay")
}

func (k *kiosk) Check(ctx context.Context, q provider.Query) (provider.Result, error) {
	return provider.Result{Outcome: provider.Success, Receipt: q.Reference.String()}, k.ask(ctx, "/paid")
}

// ReadCallback implements provider.CallbackReader.
func (k *kiosk) ReadCallback(provider.CallbackRequest) (provider.Callback, error) {
	return provider.Callback{}, errors.New("it never calls")
}

// Test implements provider.Tester.
func (k *kiosk) Test(ctx context.Context) error {
	if err := k.ask(ctx, "/"); err != nil {
		return fmt.Errorf("the kiosk does not take the key; ask its owner: %w", err)
	}
	return nil
}

var (
	kiosks = operators.Adapters{"kiosk": operators.AdapterOf(newKiosk)}
	played = []simulation{{
		name: "kiosk",
		open: func(_ simulator.Faults, _, callbackURL string) (http.Handler, error) {
			if callbackURL != "" && !strings.Contains(callbackURL, "/v1/callbacks/kiosk/") {
				return nil, errors.New("that is not an address to call")
			}
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Key") != "open sesame" {
					w.WriteHeader(http.StatusUnauthorized)
				}
			}), nil
		},
		settings: `key_env = "SIMULATED_KIOSK_KEY"`,
		secrets:  map[string]string{"SIMULATED_KIOSK_KEY": "open sesame"},
		routes:   map[string][]string{"mtn_momo": {"CG", "CM"}},
	}}
)

// All of it at once: an operator is played, a live client's payment goes
// through its adapter, and the doctor and the list of connections see it.
func TestSimulatedOperators(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := server.Config{Database: filepath.Join(dir, "till.db"), Listen: "127.0.0.1:0",
		DemoFile: filepath.Join(dir, "demo.json"), LiveDemoFile: filepath.Join(dir, "live.json")}
	all, err := simulateAll(t.Context(), "simulated", dir, played, kiosks, &c)
	if err != nil {
		t.Fatal(err)
	}
	defer all.end()
	s, err := server.New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := all.begin(s.CallbackURL); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	var out bytes.Buffer
	if err := announce(&out, s, s.BaseURL(), dir, "", true); err != nil || !strings.Contains(out.String(), `"live_api_key":"till_live_`) {
		t.Errorf("announced: %s, %v", out.String(), err)
	}
	post := func(verb, path, body string) map[string]any {
		r, err := http.NewRequestWithContext(t.Context(), verb, s.BaseURL()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Api-Key", s.LiveDemo().APIKey)
		r.Header.Set("Content-Type", "application/json")
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		var v map[string]any
		if err := json.NewDecoder(a.Body).Decode(&v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	p := post(http.MethodPost, "/payments", `{"method": "mtn_momo", "country": "CG", "amount": {"value": "5000", "currency": "XAF"},
		"customer": {"phone": "242061234567"}, "idempotency_key": "0199a7f0-0000-4000-8000-000000000001"}`)
	for deadline := time.Now().Add(20 * time.Second); p["status"] != "success" && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		p = post(http.MethodGet, "/payments/"+p["id"].(string), "")
	}
	if p["status"] != "success" {
		t.Fatalf("the payment is %v", p)
	}

	// The doctor and the list, with the same configuration in a file. One of the
	// client's keys may pay out, and the kiosk does not.
	err = cli.WithDatabase(t.Context(), c.Database, func(db *store.Store) error {
		_, _, err := account.New(db, nil).CreateKey(t.Context(), s.LiveDemo().ClientID, "payouts", []till.Scope{till.PayoutsWrite}, 0, "test")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	url := c.Operators.Connections[0].Settings.(*kioskConfig).BaseURL
	for name, key := range map[string]string{"good": "open sesame", "bad": "wrong-key-canary"} {
		text := strings.Replace(played[0].connection(url), "key_env = \"SIMULATED_KIOSK_KEY\"", "key_file = \""+name+".key\"", 1) +
			"[[route]]\nmethod = \"mtn_momo\"\nconnections = [\"kiosk\"]\n"
		for file, content := range map[string]string{name + ".key": key, name + ".toml": text} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	o := doctor.Setup{Source: operators.Source{Database: c.Database, Config: filepath.Join(dir, "good.toml"), BaseURL: "https://pay.example.com/v1", Adapters: kiosks}}
	wantFindings(t, o, map[string]string{
		"ok kiosk payments":           "the operator lets us in",
		"ok kiosk callbacks":          "tell the operator to call https://pay.example.com/v1/callbacks/kiosk/",
		"warning routes":              "1 live client may use airtel_money for payments, and no route leads anywhere: it is not offered",
		"routes":                      "1 live client may use mtn_momo for payouts, and no route",
		"never mtn_momo for payments": "",
		"ok config":                   "1 connection and 1 route",
		"never wrong-key-canar":       "",
	})
	o.Config, o.BaseURL = filepath.Join(dir, "bad.toml"), "http://127.0.0.1/v1"
	wantFindings(t, o, map[string]string{
		"wrong kiosk payments":    "the kiosk does not take the key; ask its owner: it answers 401",
		"warning kiosk callbacks": "operators call HTTPS only",
	})
	list(t, &o.Source)
}

// A second start finds the operators where they were, with what they remember:
// payments on them may be open.
func TestSimulatedOperatorsStayWhereTheyAre(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new")
	var opened []string
	one := []simulation{{name: "kiosk", settings: played[0].settings, secrets: played[0].secrets, open: func(_ simulator.Faults, path, _ string) (http.Handler, error) {
		opened = append(opened, path)
		return http.NotFoundHandler(), nil
	}}}
	var urls []string
	for range 2 {
		all, err := simulateAll(t.Context(), "simulated", dir, one, kiosks, &server.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if err := all.begin(func(connection string) string { return "http://till.example/" + connection }); err != nil {
			t.Fatal(err)
		}
		urls = append(urls, all[0].url)
		if _, err := simulateAll(t.Context(), "simulated", dir, one, kiosks, &server.Config{}); err == nil || !strings.Contains(err.Error(), "simulated-kiosk.addr") {
			t.Errorf("a second one at the same address: %v", err)
		}
		all.end()
	}
	if urls[0] != urls[1] || len(opened) != 2 || opened[0] != filepath.Join(dir, "simulated-kiosk.book") || opened[1] != opened[0] {
		t.Errorf("it was at %v with %v", urls, opened)
	}
}

func list(t *testing.T, o *operators.Source) {
	t.Helper()
	err := cli.WithDatabase(t.Context(), o.Database, func(s *store.Store) error {
		list, err := operators.ListConnections(t.Context(), s, o)
		if err != nil {
			return err
		}
		if len(list) != 2 || list[0].Name != "kiosk" || !list[0].Configured || list[0].Operator != "kiosk" || list[1].Name != "sandbox" ||
			!strings.HasPrefix(list[0].CallbackURL, o.BaseURL+"/callbacks/kiosk/") {
			t.Errorf("got %+v", list)
		}
		cmd := money.NewConnections()
		cmd.SetOut(io.Discard)
		return errors.Join(money.PrintConnections(&cli.Call{Command: cmd}, list), money.PrintConnections(&cli.Call{Command: cmd, JSON: true}, list))
	})
	if err != nil {
		t.Error(err)
	}
}

// wantFindings compares what the doctor finds: "verdict name" and how its detail begins, or
// "never" and what must not be there.
func wantFindings(t *testing.T, s doctor.Setup, want map[string]string) {
	t.Helper()
	found, err := doctor.Examine(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, f := range found.All {
		fmt.Fprintf(&all, "%s %s: %s\n", f.Verdict, f.Name, f.Detail)
	}
	for name, detail := range want {
		if never, found := strings.CutPrefix(name, "never "); found {
			if strings.Contains(all.String(), never) {
				t.Errorf("the doctor says %q:\n%s", never, &all)
			}
		} else if !strings.Contains(all.String(), name+": "+detail) {
			t.Errorf("no %q with %q in\n%s", name, detail, &all)
		}
	}
}

func TestSimulate(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	run := func(w *lineWriter, args ...string) error {
		cmd := simulateOf(played)
		cmd.SetArgs(args)
		cmd.SetOut(w)
		cmd.SetErr(w)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		return cmd.ExecuteContext(ctx)
	}
	for _, args := range [][]string{{}, {"nobody"}, {"kiosk", "--slow", "2"}, {"kiosk", "--listen", "nowhere"}, {"kiosk", "--listen", "127.0.0.1:0", "--callback-url", "x"}} {
		if err := run(&lineWriter{}, args...); err == nil {
			t.Errorf("%v is taken", args)
		}
	}
	w := &lineWriter{line: make(chan string, 1)}
	ended := make(chan error, 1)
	go func() { ended <- run(w, "kiosk", "--listen", "127.0.0.1:0", "--json") }()
	var ready struct {
		BaseURL string `json:"base_url"`
	}
	if err := json.Unmarshal([]byte(<-w.line), &ready); err != nil {
		t.Fatal(err)
	}
	a, err := http.Get(ready.BaseURL)
	if err != nil || a.StatusCode != http.StatusUnauthorized {
		t.Fatal(a, err)
	}
	a.Body.Close()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// lineWriter hands what is written to the one that waits.
type lineWriter struct{ line chan string }

// Write implements io.Writer.
func (w *lineWriter) Write(b []byte) (int, error) {
	if w.line != nil {
		w.line <- string(b)
	}
	return len(b), nil
}
