package server

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"till/internal/logs"
	"till/meter"
	"till/store/storetest"
)

const adminToken = "9f2b6c0d1e3a4f5061728394a5b6c7d8"

// Health is for everybody. What tells more is for this machine under its own name, which no
// page of another site can take, and for a bearer of the token.
func TestTheAdminAddressAnswersThisMachineOrABearer(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(adminToken+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	st := storetest.Open(t, storetest.Engines()[0].Config(t))
	inner := []string{"/metrics", "/status", "/debug/log", "/debug/pprof/", "/debug/pprof/heap?debug=1", "/debug/pprof/symbol"}
	for _, c := range []struct {
		about, remote, host, bearer, file string
		want                              int // of inner
	}{
		{"this machine", "127.0.0.1:1", "127.0.0.1:8081", "", "", http.StatusOK},
		{"this machine by name", "[::1]:1", "localhost:8081", "", file, http.StatusOK},
		{"a page that rebinds its name", "127.0.0.1:1", "evil.example", "", "", http.StatusUnauthorized},
		{"another machine", "10.1.0.9:1", "till:8081", "", "", http.StatusUnauthorized},
		{"another machine that says localhost", "10.1.0.9:1", "localhost:8081", "", "", http.StatusUnauthorized},
		{"a bearer where there is no token", "10.1.0.9:1", "till:8081", adminToken, "", http.StatusUnauthorized},
		{"an empty bearer", "10.1.0.9:1", "till:8081", " ", file, http.StatusUnauthorized},
		{"a wrong bearer", "10.1.0.9:1", "till:8081", strings.Repeat("0", 32), file, http.StatusUnauthorized},
		{"the bearer", "10.1.0.9:1", "till:8081", adminToken, file, http.StatusOK},
		{"the bearer of a file that is gone", "10.1.0.9:1", "till:8081", adminToken, file + ".gone", http.StatusUnauthorized},
	} {
		s := &Server{c: Config{AdminTokenFile: c.file, LogRing: logs.NewRing(&strings.Builder{})}, meter: meter.New(meter.Config{}), store: st, answers: &kept[error]{read: func() error { return nil }},
			status: &kept[[]byte]{read: func() []byte { return []byte("{}") }}}
		ask := func(path string) (int, string) {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.RemoteAddr, r.Host = c.remote, c.host
			if c.bearer != "" {
				r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(c.bearer))
			}
			w := httptest.NewRecorder()
			s.admin().ServeHTTP(w, r)
			return w.Code, w.Body.String()
		}
		for _, path := range inner {
			if got, body := ask(path); got != c.want {
				t.Errorf("%s: %s answers %d: %.80s", c.about, path, got, body)
			}
		}
		for _, path := range []string{"/healthz", "/readyz"} {
			if got, _ := ask(path); got != http.StatusOK {
				t.Errorf("%s: %s answers %d", c.about, path, got)
			}
		}
		// The command line may hold the database's password.
		if got, body := ask("/debug/pprof/cmdline"); got == http.StatusOK || strings.Contains(body, os.Args[0]) {
			t.Errorf("%s: cmdline answers %d", c.about, got)
		}
	}
}

// A start tells of an admin address that other machines reach without a token for them. The
// doctor does too: see its tests.
func TestAnAdminAddressForOthersWithoutATokenIsTold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		listen, token string
		told          bool
	}{{"127.0.0.1:8081", "", false}, {"", "", false}, {"0.0.0.0:8081", "", true}, {":8081", "", true}, {"10.1.0.1:8081", "", true}, {"0.0.0.0:8081", "/nowhere", false}} {
		told := false
		for _, e := range Exposed(Config{AdminListen: c.listen, AdminTokenFile: c.token}) {
			told = told || e.Name == ExposedAdmin
		}
		if told != c.told {
			t.Errorf("of %q with %q: told %t", c.listen, c.token, told)
		}
	}
}

func TestATokenOfTheAdminAddressIsLong(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	c := Config{Database: "till.db", Listen: "127.0.0.1:0", AdminTokenFile: file}
	for text, want := range map[string]string{"": "fewer than 16", "short\n": "fewer than 16", "                          \n": "fewer than 16", adminToken: ""} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := c.setDefaults(); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
