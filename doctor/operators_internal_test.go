package doctor

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"till/operators"
	"till/provider/mpesa"
	"till/provider/mtnmomo"
	"till/server"
)

// The doctor says what it knows of the real adapters' operators and no more: an
// M-Pesa that answers with a page does not let us in, and callbacks that MTN will
// never be asked for are told.
func TestTheDoctorSaysOnlyWhatItKnowsOfOperators(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := server.Config{Database: filepath.Join(dir, "till.db"), Listen: "127.0.0.1:0"}
	s, err := server.New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	momo, err := mtnmomo.NewSimulator(mtnmomo.SimConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer momo.Close()
	daraja, err := mpesa.NewSimulator(mpesa.SimConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer daraja.Close()
	broken := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/oauth/") {
			daraja.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusInternalServerError)
		w.Write([]byte("<html>Internal Server Error</html>"))
	})
	var text strings.Builder
	for _, o := range []struct {
		name, operator, settings string
		secrets                  map[string]string
		side                     http.Handler
	}{
		{"congo", "mtnmomo", mtnmomo.SimSettings, mtnmomo.SimSecrets, momo},
		{"kenya", "mpesa", mpesa.SimSettings, mpesa.SimSecrets, daraja},
		{"broken", "mpesa", mpesa.SimSettings, mpesa.SimSecrets, broken},
	} {
		side := httptest.NewServer(o.side)
		defer side.Close()
		for name, value := range o.secrets {
			o.settings = strings.ReplaceAll(o.settings, `_env = "`+name+`"`, `_file = "`+name+`"`)
			if err := os.WriteFile(filepath.Join(dir, name), []byte(value), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		text.WriteString("[[connection]]\nname = \"" + o.name + "\"\noperator = \"" + o.operator + "\"\nbase_url = \"" + side.URL + "\"\n[connection." + o.operator + "]\n" + o.settings)
	}
	config := filepath.Join(dir, "till.toml")
	if err := os.WriteFile(config, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	o := Setup{Source: operators.Source{Database: c.Database, Config: config, BaseURL: "https://pay.example.com/v1"}}
	wantFindings(t, &o, map[string]string{
		"warning proxy":           "",
		"ok congo payments":       "the operator lets us in",
		"ok congo payouts":        "the operator lets us in",
		"warning congo callbacks": `callback_host = "127.0.0.1", but the service's address is on "pay.example.com": MTN gets no callback address`,
		"ok kenya payments":       "the operator lets us in",
		"warning kenya payouts":   "Daraja takes our token; whether payout_short_code, initiator and its password are right shows with the first payout only",
		"wrong broken payments":   "Daraja gave a token, and then answered a query with HTTP 500 and no body of its own (text/html)",
		"wrong broken payouts":    "Daraja gave a token, and then answered a query with HTTP 500 and no body of its own (text/html)",
	})
	if err := os.WriteFile(config, []byte("trusted_proxies = [\"10.0.0.0/8\"]\n"+text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	wantFindings(t, &o, map[string]string{"never warning proxy": "", "ok kenya payments": ""})
	o.BaseURL = ""
	wantFindings(t, &o, map[string]string{
		"warning congo callbacks": `callback_host = "127.0.0.1"; name the service's address with --base-url`,
		"warning kenya callbacks": "answers about payouts come only by callback",
	})
	o.BaseURL = "http://127.0.0.1:8080/v1"
	wantFindings(t, &o, map[string]string{"never congo callbacks": ""})
}

// wantFindings compares what the doctor finds of operators: "verdict name" and how its detail
// begins, or "never" and what must not be there.
func wantFindings(t *testing.T, s *Setup, want map[string]string) {
	t.Helper()
	d := &doctor{}
	if err := d.examineOperators(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	all := findingsText(d)
	for name, detail := range want {
		if never, found := strings.CutPrefix(name, "never "); found {
			if strings.Contains(all, never) {
				t.Errorf("the doctor says %q:\n%s", never, all)
			}
		} else if !strings.Contains(all, name+": "+detail) {
			t.Errorf("no %q with %q in\n%s", name, detail, all)
		}
	}
}

// findingsText has a line for each finding.
func findingsText(d *doctor) string {
	var all strings.Builder
	for _, f := range d.All {
		fmt.Fprintf(&all, "%s %s: %s\n", f.Verdict, f.Name, f.Detail)
	}
	return all.String()
}
