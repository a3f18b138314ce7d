package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"till"
	"till/config"
	"till/operators"
	"till/provider"
	"till/provider/airtel"
	"till/provider/mpesa"
	"till/provider/mtnmomo"
	"till/provider/pawapay"
	"till/provider/providertest"
)

// simulated is an operator whose key is rotated.
type simulated struct {
	open     func(book, key string) (simulatedOperator, error)
	settings string // {key} is the file of the key
	request  provider.Request
}

type simulatedOperator interface {
	http.Handler
	Close() error
}

// undecided keeps customers from deciding during a test.
const undecided = time.Hour

var simulatedOperators = map[string]simulated{
	"mtnmomo": {
		func(book, key string) (simulatedOperator, error) {
			return mtnmomo.NewSimulator(mtnmomo.SimConfig{Path: book, APIKey: key, Decide: undecided})
		},
		strings.NewReplacer(`api_key_env = "SIM_MTN_API_KEY"`, `api_key_file = "{key}"`).Replace(mtnmomo.SimSettings),
		provider.Request{Method: "mtn_momo", Country: "CG", Phone: "242061234567", Amount: till.Money{Minor: 2500, Currency: "XAF"}},
	},
	"airtel": {
		func(book, key string) (simulatedOperator, error) {
			return airtel.NewSimulator(airtel.SimConfig{Path: book, ClientSecret: key, Decide: undecided})
		},
		strings.NewReplacer(`client_secret_env = "SIM_AIRTEL_CLIENT_SECRET"`, `client_secret_file = "{key}"`).Replace(airtel.SimSettings),
		provider.Request{Method: "airtel_money", Country: "CG", Phone: "242051234567", Amount: till.Money{Minor: 2500, Currency: "XAF"}},
	},
	"mpesa": {
		func(book, key string) (simulatedOperator, error) {
			return mpesa.NewSimulator(mpesa.SimConfig{Path: book, ConsumerSecret: key, Decide: undecided, Repeats: true})
		},
		strings.NewReplacer(`consumer_secret_env = "SIM_MPESA_SECRET"`, `consumer_secret_file = "{key}"`).Replace(mpesa.SimSettings),
		provider.Request{Method: "mpesa", Country: "KE", Phone: "254708374149", Amount: till.Money{Minor: 250000, Currency: "KES"}, CallbackURL: "http://127.0.0.1:9/callbacks"},
	},
	"pawapay": {
		func(book, key string) (simulatedOperator, error) {
			return pawapay.NewSimulator(pawapay.SimConfig{Path: book, Token: key, Decide: undecided})
		},
		strings.NewReplacer(`api_token_env = "SIM_PAWAPAY_TOKEN"`, `api_token_file = "{key}"`).Replace(pawapay.SimSettings),
		provider.Request{Method: "mtn_momo", Country: "CG", Phone: "242063456789", Amount: till.Money{Minor: 2500, Currency: "XAF"}},
	},
}

// simulatedSecrets are the credentials of all simulators that are not rotated.
func simulatedSecrets(name string) (string, bool) {
	for _, all := range []map[string]string{mtnmomo.SimSecrets, airtel.SimSecrets, mpesa.SimSecrets, pawapay.SimSecrets} {
		if value, ok := all[name]; ok {
			return value, true
		}
	}
	return "", false
}

// rotatedKey is one operator, its key in a file, and the simulator that takes the key.
type rotatedKey struct {
	t          *testing.T
	of         simulated
	name, dir  string
	behind     atomic.Pointer[simulatedOperator]
	server     *httptest.Server
	connection string // its part of the configuration
}

func newRotatedKey(t *testing.T, name, dir string) *rotatedKey {
	r := &rotatedKey{t: t, of: simulatedOperators[name], name: name, dir: dir}
	r.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { (*r.behind.Load()).ServeHTTP(w, q) }))
	t.Cleanup(func() {
		r.server.Close()
		(*r.behind.Load()).Close()
	})
	r.take("the-first-key-of-" + name)
	r.write("the-first-key-of-" + name)
	settings := strings.ReplaceAll(r.of.settings, "{key}", name+".key")
	r.connection = fmt.Sprintf("[[connection]]\nname = %q\noperator = %q\nbase_url = %q\n[connection.%s]\n%s\n", name, name, r.server.URL, name, settings)
	return r
}

// take makes the operator take another key, and no token that was given for the one before.
func (r *rotatedKey) take(key string) {
	r.t.Helper()
	if before := r.behind.Load(); before != nil {
		if err := (*before).Close(); err != nil {
			r.t.Fatal(err)
		}
	}
	sim, err := r.of.open(filepath.Join(r.dir, r.name+".book"), key)
	if err != nil {
		r.t.Fatal(err)
	}
	r.behind.Store(&sim)
}

// write puts a key into the file.
func (r *rotatedKey) write(key string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, r.name+".key"), []byte(key+"\n"), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// request returns a new request.
func (r *rotatedKey) request() provider.Request {
	now := till.TimeOf(time.Now())
	q := r.of.request
	q.Client, q.ID, q.Reference, q.Description, q.ExpiresAt = till.NewID(now), till.NewID(now), providertest.NewReference(), "Order 123", now.Add(5*time.Minute)
	return q
}

// Each operator's key is rotated while the service runs: the operator refuses the old one,
// what is in the file is read again, and from then on the operator takes new requests and
// knows those of before.
func TestEveryOperatorsKeyIsRotated(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var text strings.Builder
	keys := map[string]*rotatedKey{}
	for name := range operators.Builtin {
		if simulatedOperators[name].open == nil {
			t.Fatalf("%s has no simulator here", name)
		}
		keys[name] = newRotatedKey(t, name, dir)
		text.WriteString(keys[name].connection)
	}
	file := filepath.Join(dir, "till.toml")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	options := operators.Builtin.Options()
	options.Env = simulatedSecrets
	log := &lockedText{}
	c := Config{Database: filepath.Join(dir, "till.db"), Listen: "127.0.0.1:0", AdminListen: "127.0.0.1:0", Log: slog.New(slog.NewTextHandler(log, nil))}
	var err error
	if c.Operators, err = config.Load(file, options); err != nil {
		t.Fatal(err)
	}
	s, err := New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	for name, r := range keys {
		r.rotate(s)
		if said := fmt.Sprintf("msg=%q connection=%s error=\"the operator refuses them", "credentials not taken", name); !strings.Contains(log.String(), said) {
			t.Errorf("%s: the log does not say that a wrong key was refused:\n%s", name, log.String())
		}
		if said := fmt.Sprintf("msg=%q connection=%s\n", "credentials taken", name); !strings.Contains(log.String(), said) {
			t.Errorf("%s: the log does not say that the key was taken:\n%s", name, log.String())
		}
	}
	if strings.Contains(log.String(), "-key-of-") {
		t.Error("a key is in the log")
	}
}

// rotate sends with one key, rotates it, and goes on with the other.
func (r *rotatedKey) rotate(s *Server) {
	t, ctx, p := r.t, r.t.Context(), s.operators.Payments[r.name]
	t.Helper()
	before, after := r.request(), r.request()
	sent, err := p.Submit(ctx, before)
	if err != nil || sent.Outcome != provider.Accepted {
		t.Fatalf("%s: with the first key: %+v, %v", r.name, sent, err)
	}
	// A person asks for a key that the operator does not know: the one that works stays.
	r.write("a-wrong-key-of-" + r.name)
	s.credentials.Look(ctx, true)
	if result, err := p.Submit(ctx, r.request()); err != nil || result.Outcome != provider.Accepted {
		t.Errorf("%s: after a wrong key was in the file: %+v, %v", r.name, result, err)
	}
	r.take("the-second-key-of-" + r.name)
	if result, err := p.Submit(ctx, after); !errors.Is(err, provider.ErrCredentials) {
		t.Fatalf("%s: with a key that is refused: %+v, %v", r.name, result, err)
	}
	r.write("the-second-key-of-" + r.name)
	s.credentials.Look(ctx, true)
	if result, err := p.Submit(ctx, after); err != nil || result.Outcome != provider.Accepted {
		t.Errorf("%s: with the second key: %+v, %v", r.name, result, err)
	}
	result, err := p.Check(ctx, provider.Query{Client: before.Client, ID: before.ID, Reference: before.Reference, Method: before.Method, Country: before.Country,
		Phone: before.Phone, Amount: before.Amount, CallbackURL: before.CallbackURL, Handle: sent.Handle})
	if err != nil || result.Outcome != provider.Open {
		t.Errorf("%s: what was sent with the first key: %+v, %v", r.name, result, err)
	}
}

// lockedText is a log that several goroutines write.
type lockedText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedText) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
