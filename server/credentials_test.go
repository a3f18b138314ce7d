package server_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"till/operators"
	"till/provider/mtnmomo"
)

// An operator's key is rotated while the service runs: the operator refuses the old one,
// the new one is in the file, and the next payment succeeds without a restart. Credentials
// of another account are not taken. The refused payment stays open; collect's tests have its
// next send, for which this one would wait 12 s.
func TestAnOperatorsKeyIsRotatedWithoutARestart(t *testing.T) {
	t.Parallel()
	sim, err := mtnmomo.NewSimulator(mtnmomo.SimConfig{Decide: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer sim.Close()
	operator := httptest.NewServer(sim)
	defer operator.Close()
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("user", mtnmomo.SimUser)
	write("key", mtnmomo.SimKey+"\n")
	write("subscription", mtnmomo.SimCollectionKey)
	write("till.toml", `
[[connection]]
name = "mtn"
operator = "mtnmomo"
base_url = "`+operator.URL+`"
[connection.mtnmomo]
target_environment = "mtncongo"
callback_host = "127.0.0.1"
api_user_file = "user"
api_key_command = ["cat", "`+filepath.Join(dir, "key")+`"]
collection_subscription_key_file = "subscription"
[[route]]
method = "mtn_momo"
countries = ["CG"]
connections = ["mtn"]
`)
	c := testConfig(t)
	if c.Operators, err = operators.LoadConfig(filepath.Join(dir, "till.toml"), nil); err != nil {
		t.Fatal(err)
	}
	c.LiveDemoFile = filepath.Join(dir, "live-demo.json")
	log := &syncBuffer{}
	c.Log = slog.New(slog.NewTextHandler(log, nil))
	r := start(t, c)
	create := func(phone string) (path string) {
		t.Helper()
		status, body, err := r.doAs(r.LiveDemo(), "POST", "/payments", order(phone))
		if err != nil || status != http.StatusAccepted {
			t.Fatalf("answered %d %v %v", status, body, err)
		}
		return "/payments/" + body["id"].(string)
	}
	pays := func(phone string) {
		t.Helper()
		path := create(phone)
		for end := time.Now().Add(3 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
			_, now, err := r.doAs(r.LiveDemo(), "GET", path, "")
			if err == nil && now["status"] == "success" {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("the payment is %v, %v\n%s", now, err, log.String())
			}
		}
	}
	pays("242061234567")

	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, operator.URL+"/v1_0/apiuser/"+mtnmomo.SimUser+"/apikey", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Ocp-Apim-Subscription-Key", mtnmomo.SimCollectionKey)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var fresh struct{ APIKey string }
	if err := json.NewDecoder(answer.Body).Decode(&fresh); err != nil || fresh.APIKey == "" {
		t.Fatalf("%s, %v", answer.Status, err)
	}
	sim.ForgetTokens()
	write("key", fresh.APIKey)
	first := create("242061234568") // it is refused
	said := func(text string) {
		t.Helper()
		for end := time.Now().Add(2 * time.Minute); !strings.Contains(log.String(), text); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("the log does not say %q\n%s", text, log.String())
			}
		}
	}
	said(`msg="credentials taken" connection=mtn`)
	pays("242061234567")
	if _, now, err := r.doAs(r.LiveDemo(), "GET", first, ""); err != nil || now["status"] == "failed" {
		t.Errorf("the refused payment is %v, %v", now, err)
	}

	// A person asks by SIGHUP; what cannot be taken is said, and the old ones go on.
	write("user", "11111111-5cd1-4630-99e4-8ba4722fad56")
	r.Reload()
	said("they are those of another account")
	if err := os.Remove(filepath.Join(dir, "subscription")); err != nil {
		t.Fatal(err)
	}
	write("user", mtnmomo.SimUser)
	r.Reload()
	said("no such file")
	pays("242061234569")
	if strings.Contains(log.String(), fresh.APIKey) || strings.Contains(log.String(), mtnmomo.SimKey) {
		t.Error("a credential is in the log")
	}
}
