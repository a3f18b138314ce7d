package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"till"
	"till/account"
	"till/cmd/till/internal/cli"
	"till/provider/mtnmomo"
	"till/provider/simulator"
	"till/store"
)

// strictOperator is an operator that no longer takes the key of a running service.
type strictOperator struct {
	*mtnmomo.Simulator
	t   *testing.T
	url string
}

func newStrictOperator(t *testing.T) *strictOperator {
	t.Helper()
	sim, err := mtnmomo.NewSimulator(mtnmomo.SimConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sim.Close() })
	srv := httptest.NewServer(sim)
	t.Cleanup(srv.Close)
	return &strictOperator{sim, t, srv.URL}
}

// newKey makes another key, the only one that it takes from now on.
func (o *strictOperator) newKey() (key string) {
	o.t.Helper()
	r, err := http.NewRequestWithContext(o.t.Context(), http.MethodPost, o.url+"/v1_0/apiuser/"+mtnmomo.SimUser+"/apikey", nil)
	if err != nil {
		o.t.Fatal(err)
	}
	r.Header.Set("Ocp-Apim-Subscription-Key", mtnmomo.SimCollectionKey)
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		o.t.Fatal(err)
	}
	defer a.Body.Close()
	var made struct{ APIKey string }
	if err := json.NewDecoder(a.Body).Decode(&made); err != nil || made.APIKey == "" {
		o.t.Fatalf("%s, %v", a.Status, err)
	}
	o.ForgetTokens()
	return made.APIKey
}

// write puts a file into the installation's folder.
func (w *runbook) write(name, text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// serve starts the installation's service for a live client whose payments go to an operator.
func (w *runbook) serve(o *strictOperator) (*killing, *instance) {
	w.t.Helper()
	w.write("user", mtnmomo.SimUser)
	w.write("key", mtnmomo.SimKey)
	w.write("subscription", mtnmomo.SimCollectionKey)
	w.write("till.toml", fmt.Sprintf(`
[[connection]]
name = "mtn-cg"
operator = "mtnmomo"
base_url = %q
[connection.mtnmomo]
target_environment = "mtncongo"
api_user_file = "user"
api_key_file = "key"
collection_subscription_key_file = "subscription"
[[route]]
method = "mtn_momo"
countries = ["CG"]
connections = ["mtn-cg"]
`, o.url))
	k := &killing{t: w.t, dir: filepath.Dir(w.database), database: w.database, book: filepath.Join(w.dir, "sandbox.db"), admin: "127.0.0.1:0", answered: map[string]string{}}
	onStore(w.t, w.database, func(s *store.Store) error {
		a := account.New(s, nil)
		c, _, err := a.CreateClient(w.t.Context(), "shop", till.Live, "test")
		if err != nil {
			return err
		}
		if err := a.EnableMethod(w.t.Context(), c.ID, "mtn_momo", true, "test"); err != nil {
			return err
		}
		k.key, _, err = a.CreateKey(w.t.Context(), c.ID, "shop", []till.Scope{"payments:write", "payments:read"}, 0, "test")
		return err
	})
	return k, k.start("--config", filepath.Join(w.dir, "till.toml"))
}

// await waits until something is so.
func (w *runbook) await(what string, so func() bool) {
	w.t.Helper()
	for end := time.Now().Add(4 * time.Minute); !so(); <-time.After(200 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("it is not so that %s", what)
		}
	}
}

func (w *runbook) refusedCredentials() {
	o := newStrictOperator(w.t)
	k, service := w.serve(o)
	firing := func() bool { return fires(w.t, w.alert, scrapeGauges(w.t, w.database)) }
	status := func(id string) (is string) {
		var p struct{ Status string }
		k.call(http.MethodGet, "/payments/"+id, "", &p)
		return p.Status
	}
	approved := k.pay("/payments", "4567", 5000)
	w.await("the customer was asked", func() bool { return len(o.Book().Entries()) == 1 })
	w.is(false, 0)

	key := o.newKey() // the customer approves, and the operator does not report it
	refused := k.pay("/payments", "4568", 2500)
	w.await("the alert fires", firing)
	if list := w.does(0, "till cases"); !strings.Contains(list, "mtn-cg") || !strings.Contains(list, "the operator refuses our credentials") {
		w.t.Errorf("till cases says %s", list)
	}
	if told := w.does(cli.ExitRefused, "till doctor"); !strings.Contains(told, "mtn-cg") || !strings.Contains(told, "MTN gives no token") {
		w.t.Errorf("till doctor says %s", told)
	}

	w.write("key", key)
	w.reload(service)
	w.await("the alert ends", func() bool { return !firing() })
	w.await("both are paid", func() bool { return status(approved) == "success" && status(refused) == "success" })
	k.end(service, syscall.SIGTERM)
	if log := service.log(); !strings.Contains(log, "credentials taken") || strings.Contains(log, key) {
		w.t.Errorf("the log does not say that the credentials were taken, or says more:\n%s", log)
	}
	asked := map[string]int{}
	for _, e := range o.Book().Entries() {
		if is, _ := e.StateAt(time.Now()); is == simulator.Success {
			asked[e.Amount]++
		}
	}
	if want := map[string]int{"5000": 1, "2500": 1}; !maps.Equal(asked, want) {
		w.t.Errorf("the operator has debits of %v, want %v", asked, want)
	}
	w.over(0)
}

// reload does what the page's 'systemctl reload till' does by the shipped unit.
func (w *runbook) reload(service *instance) {
	w.t.Helper()
	unit, err := os.ReadFile("../../deploy/systemd/till.service")
	if err != nil {
		w.t.Fatal(err)
	}
	if !strings.Contains(w.page, "`systemctl reload till`") || !strings.Contains(string(unit), "\nExecReload=/bin/kill -HUP $MAINPID\n") {
		w.t.Fatalf("the page of %s does not reload, or the unit sends no SIGHUP", w.alert)
	}
	if err := service.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		w.t.Fatal(err)
	}
}
