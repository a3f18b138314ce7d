package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"till"
	"till/books"
	"till/internal/logs"
	"till/secret"
	"till/server"
	"till/store"
	"till/store/storetest"
)

// testConfig returns a Config for a fresh folder and a free port.
func testConfig(t testing.TB) server.Config {
	t.Helper()
	dir := t.TempDir()
	return server.Config{
		Database: filepath.Join(dir, "data", "till.db"), Listen: "127.0.0.1:0", AdminListen: "127.0.0.1:0",
		DemoFile: filepath.Join(dir, "data", "demo-key.json"), ApprovalWindow: 3 * time.Second,
	}
}

// running is a Server under test.
type running struct {
	*server.Server
	t    testing.TB
	stop func() error
}

// start runs a Server until stop is called or the test ends. A new SQLite file has its
// schema already: to run all migrations takes longer than most tests.
func start(t testing.TB, c server.Config) *running {
	t.Helper()
	if !store.IsPostgres(c.Database) {
		storetest.NewFile(t, c.Database)
	}
	s, err := server.New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	r := &running{Server: s, t: t, stop: sync.OnceValue(func() error {
		cancel()
		return <-ended
	})}
	t.Cleanup(func() {
		if err := r.stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return r
}

// A first start applies all migrations, and has one line about them.
func TestAFirstStartHasOneLineAboutMigrations(t *testing.T) {
	t.Parallel()
	c := testConfig(t)
	var w bytes.Buffer
	c.Log = logs.New(&w, false, slog.LevelInfo)
	s, err := server.New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(w.String(), "what=migration"); n != 1 || !strings.Contains(w.String(), "the first is 0001_") {
		t.Errorf("%d lines about migrations:\n%s", n, w.String())
	}
}

// refused asserts that a Server cannot be made, and says why in plain words.
func refused(t testing.TB, c server.Config, want string) {
	t.Helper()
	s, err := server.New(t.Context(), c)
	if err == nil {
		s.Close()
		t.Fatalf("the server started, want %q", want)
	}
	if !strings.Contains(err.Error(), want) {
		t.Errorf("got %q, want %q", err, want)
	}
}

func (r *running) do(verb, path, body string) (int, map[string]any, error) {
	return r.doAs(r.Demo(), verb, path, body)
}

func (r *running) doAs(who *server.Demo, verb, path, body string) (int, map[string]any, error) {
	req, err := http.NewRequest(verb, r.BaseURL()+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("X-Api-Key", who.APIKey)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	var v map[string]any
	err = json.NewDecoder(res.Body).Decode(&v)
	return res.StatusCode, v, err
}

// order is the body of a payment by a phone.
func order(phone string) string {
	key := till.NewID(till.TimeOf(time.Now()))
	return fmt.Sprintf(`{"method": "mtn_momo", "country": "CG", "amount": {"value": "5000", "currency": "XAF"},
		"customer": {"phone": %q}, "idempotency_key": %q}`, phone, key)
}

// create makes a payment and returns its id.
func (r *running) create(phone string) string {
	r.t.Helper()
	status, v, err := r.do(http.MethodPost, "/payments", order(phone))
	if err != nil || status != http.StatusAccepted {
		r.t.Fatalf("create: %d %v %v", status, v, err)
	}
	return v["id"].(string)
}

// await reads a payment until it has the status.
func (r *running) await(id, status string) {
	r.t.Helper()
	var v map[string]any
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		var err error
		if _, v, err = r.do(http.MethodGet, "/payments/"+id, ""); err != nil {
			r.t.Fatal(err)
		}
		if v["status"] == status {
			return
		}
	}
	r.t.Fatalf("payment %s did not become %s: %v", id, status, v)
}

func TestAPaymentGoesThroughTheWholeProgram(t *testing.T) {
	t.Parallel()
	var log syncBuffer
	c := testConfig(t)
	c.Log = logs.New(&log, true, slog.LevelDebug)
	r := start(t, c)
	// 0015 sends its callback five times; they come in without a network.
	for _, phone := range []string{"242061234567", "242061230015"} {
		r.await(r.create(phone), "success")
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	for _, forbidden := range []string{r.Demo().APIKey, "242061234567", "242061230015"} {
		if strings.Contains(log.String(), forbidden) {
			t.Errorf("the log holds %q", forbidden)
		}
	}
	if !strings.Contains(log.String(), `"msg":"call"`) {
		t.Errorf("the log does not tell what was done:\n%s", log.String())
	}
	verify(t, c.Database)
}

// verify checks the books of a database that no server uses.
func verify(t testing.TB, database string) {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{Path: database})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	report, err := books.Verify(t.Context(), s, books.Options{})
	if err != nil || !report.Clean() {
		t.Errorf("the books are not right: %v %v", report.Problems, err)
	}
}

func TestOneFileHasOneServer(t *testing.T) {
	t.Parallel()
	c := testConfig(t)
	r := start(t, c)
	refused(t, c, fmt.Sprintf("another till server is using %s (process %d)", c.Database, os.Getpid()))
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	start(t, c) // the lock is free again
}

func TestABusyPortIsNamed(t *testing.T) {
	t.Parallel()
	r := start(t, testConfig(t))
	c := testConfig(t)
	c.Listen = r.Addr().String()
	_, port, _ := strings.Cut(c.Listen, ":")
	refused(t, c, "port "+port+" is in use; choose another with --listen")
	c.Listen, c.AdminListen = "127.0.0.1:0", r.AdminAddr().String()
	refused(t, c, "choose another with --admin-listen")
	if _, err := os.Stat(c.Database); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a database was made for a server that cannot run: %v", err)
	}
	c.AdminListen = ""
	start(t, c) // what failed to start left nothing held
}

func TestTheSecretStaysTheSame(t *testing.T) {
	t.Parallel()
	c := testConfig(t)
	if err := start(t, c).stop(); err != nil {
		t.Fatal(err)
	}
	path := secret.File(c.Database)
	secret, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if i, err := os.Stat(path); err != nil || i.Mode().Perm() != 0o600 {
		t.Errorf("the secret's file has mode %v, want 0600", i.Mode())
	}

	t.Run("a missing one is not made up for", func(t *testing.T) {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		refused(t, c, "is missing, and the database")
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Error("a new secret was made")
		}
	})
	t.Run("another one is refused", func(t *testing.T) {
		other := bytes.Clone(secret)
		if other[0] = '0'; secret[0] == '0' {
			other[0] = '1'
		}
		if err := os.WriteFile(path, other, 0o600); err != nil {
			t.Fatal(err)
		}
		refused(t, c, "it is not the secret that the database was made with")
	})
	t.Run("one that is none is refused", func(t *testing.T) {
		if err := os.WriteFile(path, []byte("password"), 0o600); err != nil {
			t.Fatal(err)
		}
		refused(t, c, "does not hold a secret")
	})
	t.Run("the right one opens it again", func(t *testing.T) {
		if err := os.WriteFile(path, secret, 0o600); err != nil {
			t.Fatal(err)
		}
		start(t, c)
	})
}

func TestTheAdminAddressTellsHealth(t *testing.T) {
	t.Parallel()
	c := testConfig(t)
	c.Role = server.RoleWorker
	r := start(t, c)
	if r.Addr() != nil {
		t.Errorf("a worker listens on %s", r.Addr())
	}
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/payments": 404} {
		res, err := http.Get("http://" + r.AdminAddr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("GET %s answered %d, want %d", path, res.StatusCode, want)
		}
	}
}

// F11: a stop under load loses nothing that was answered.
func TestAStopUnderLoadLosesNothing(t *testing.T) {
	t.Parallel()
	c := testConfig(t)
	r := start(t, c)
	var (
		mu       sync.Mutex
		answered []string
		clients  sync.WaitGroup
	)
	enough := make(chan struct{})
	for range 16 {
		clients.Go(func() {
			for {
				status, v, err := r.do(http.MethodPost, "/payments", order("242061234567"))
				if err != nil || status != http.StatusAccepted {
					return // refused or cut off: not answered
				}
				mu.Lock()
				answered = append(answered, v["id"].(string))
				if len(answered) == 100 {
					close(enough)
				}
				mu.Unlock()
			}
		})
	}
	<-enough
	begun := time.Now()
	if err := r.stop(); err != nil {
		t.Errorf("the stop was not clean: %v", err)
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("the stop took %s", took)
	}
	clients.Wait()

	r = start(t, c)
	for _, id := range answered {
		if status, v, err := r.do(http.MethodGet, "/payments/"+id, ""); status != http.StatusOK {
			t.Fatalf("payment %s was answered and is gone: %d %v %v", id, status, v, err)
		}
	}
	// Leases were given back: nothing waits for one to run out.
	r.await(answered[len(answered)-1], "success")
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	verify(t, c.Database)
}

func TestTheDemoKeyIsShownAgain(t *testing.T) {
	t.Parallel()
	c := testConfig(t)
	first := start(t, c)
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	second := start(t, c)
	if *second.Demo() != *first.Demo() {
		t.Error("a second start made another client or key")
	}
	if err := second.stop(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.DemoFile, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	third := start(t, c)
	if third.Demo().ClientID != first.Demo().ClientID || third.Demo().APIKey == first.Demo().APIKey {
		t.Error("a lost key is not followed by a new one of the same client")
	}
	if status, _, err := third.do(http.MethodGet, "/payments", ""); status != http.StatusOK {
		t.Errorf("the new key does not open anything: %d %v", status, err)
	}
}

// syncBuffer is a buffer that many may write to.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func TestPhonePatternsOfTheConfiguration(t *testing.T) {
	t.Parallel()
	if _, err := server.New(t.Context(), server.Config{Database: filepath.Join(t.TempDir(), "till.db"), Listen: "127.0.0.1:0", PhonePatterns: []string{"CG"}}); err == nil {
		t.Error("a pattern without a country was taken")
	}
	s, err := server.New(t.Context(), server.Config{Database: filepath.Join(t.TempDir(), "till.db"), Listen: "127.0.0.1:0", PhonePatterns: []string{`LS=9\d{7}`}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for code, phone := range map[string]string{"LS": "26690123456", "CM": "237642123456", "UG": "256731123456"} {
		c, _ := till.CountryOf(code)
		if ok, hint := till.CheckPhone(c, phone); !ok {
			t.Errorf("%s: a number of a newer range is refused: %s", code, hint)
		}
	}
}
