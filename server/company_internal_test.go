package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"till/config"
	"till/operators"
	"till/provider"
	"till/provider/pawapay"
	"till/store/storetest"
)

// twoCompanies is pawaPay with two customers: the token tells which of two accounts a call
// is about.
type twoCompanies struct {
	t        *testing.T
	accounts map[string]*pawapay.Simulator // by token
	lose     atomic.Bool                   // the answers of sends
	silent   atomic.Bool                   // it does not tell whose account it is
	dir, url string
	log      lockedText
}

const ownToken, foreignToken = "token-of-ours", "token-of-theirs"

func (o *twoCompanies) open(token, company string) {
	o.t.Helper()
	sim, err := pawapay.NewSimulator(pawapay.SimConfig{Token: token, Company: company, Path: filepath.Join(o.dir, token+".book"), Decide: undecided})
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() { sim.Close() })
	o.accounts[token] = sim
}

func (o *twoCompanies) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	sim := o.accounts[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	switch {
	case o.silent.Load() && r.URL.Path == "/v2/active-conf":
		w.WriteHeader(http.StatusBadGateway)
	case o.lose.Load() && r.Method == http.MethodPost:
		sim.ServeHTTP(&discarded{header: http.Header{}}, r)
		panic(http.ErrAbortHandler)
	default:
		sim.ServeHTTP(w, r)
	}
}

// discarded is an answer that nobody gets.
type discarded struct{ header http.Header }

func (d *discarded) Header() http.Header         { return d.header }
func (d *discarded) Write(b []byte) (int, error) { return len(b), nil }
func (d *discarded) WriteHeader(int)             {}

func newRequest() provider.Request { return (&rotatedKey{of: simulatedOperators["pawapay"]}).request() }

// token writes the token into the file of the connection.
func (o *twoCompanies) token(token string) {
	o.t.Helper()
	if err := os.WriteFile(filepath.Join(o.dir, "token"), []byte(token+"\n"), 0o600); err != nil {
		o.t.Fatal(err)
	}
}

// start starts a service on the same database, with more settings of the connection.
func (o *twoCompanies) start(more string) *Server {
	o.t.Helper()
	file := filepath.Join(o.dir, "till.toml")
	text := fmt.Sprintf("[[connection]]\nname = \"pawapay\"\noperator = \"pawapay\"\nbase_url = %q\n[connection.pawapay]\napi_token_file = \"token\"\noperations = [\"payments\", \"payouts\"]\n%s\n", o.url, more)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		o.t.Fatal(err)
	}
	c := Config{Database: filepath.Join(o.dir, "till.db"), Listen: "127.0.0.1:0", AdminListen: "127.0.0.1:0", Log: slog.New(slog.NewTextHandler(&o.log, nil))}
	var err error
	if c.Operators, err = config.Load(file, operators.Builtin.Options()); err != nil {
		o.t.Fatal(err)
	}
	s, err := New(o.t.Context(), c)
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() { s.close() })
	return s
}

func newTwoCompanies(t *testing.T) *twoCompanies {
	o := &twoCompanies{t: t, accounts: map[string]*pawapay.Simulator{}, dir: t.TempDir()}
	o.open(ownToken, "Ours SARL")
	o.open(foreignToken, "Theirs SA")
	storetest.NewFile(t, filepath.Join(o.dir, "till.db"))
	operator := httptest.NewServer(o)
	t.Cleanup(operator.Close)
	o.url = operator.URL
	o.token(ownToken)
	return o
}

// refuses checks that a check of a request tells nothing, and that it is not sent again.
func (o *twoCompanies) refuses(when string, p provider.Provider, q provider.Request) {
	o.t.Helper()
	result, err := p.Check(o.t.Context(), queryOf(q))
	if err == nil || !errors.Is(err, provider.ErrCredentials) || result.Outcome != "" {
		o.t.Errorf("%s: a check tells %+v, %v; want no answer", when, result, err)
	}
	if result, err := p.Submit(o.t.Context(), q); !errors.Is(err, provider.ErrNotSent) || !errors.Is(err, provider.ErrCredentials) {
		o.t.Errorf("%s: sent: %+v, %v; want that nothing is sent", when, result, err)
	}
	o.untouched(when, q)
}

// untouched checks that the other company's account has nothing of a request.
func (o *twoCompanies) untouched(when string, q provider.Request) {
	o.t.Helper()
	for _, kind := range []string{"payment", "payout"} {
		if e, sent := o.accounts[foreignToken].Book().Find(kind, q.Reference.String()); sent {
			o.t.Errorf("%s: it was sent to the other company's account: %+v", when, e)
		}
	}
}

// knows checks that a request is known at the account.
func (o *twoCompanies) knows(when string, p provider.Provider, q provider.Request) {
	o.t.Helper()
	if result, err := p.Check(o.t.Context(), queryOf(q)); err != nil || result.Outcome != provider.Open {
		o.t.Errorf("%s: a check tells %+v, %v; want open", when, result, err)
	}
}

// Examine is what 'till doctor' finds wrong at a database and a configuration, by the name of
// the check. Package doctor is above this one: an external test sets it.
var Examine func(ctx context.Context, database, file string) (map[string]string, error)

// doctor returns what 'till doctor' says about the payments or payouts of the connection.
func (o *twoCompanies) doctor(s *Server, kind string) string {
	o.t.Helper()
	wrong, err := Examine(o.t.Context(), s.c.Database, filepath.Join(o.dir, "till.toml"))
	if err != nil {
		o.t.Fatal(err)
	}
	return wrong["pawapay "+kind]
}

func queryOf(q provider.Request) provider.Query {
	return provider.Query{Client: q.Client, ID: q.ID, Reference: q.Reference, Method: q.Method, Country: q.Country, Phone: q.Phone, Amount: q.Amount}
}

// The answer of a send is lost, and then the token is another company's, after a SIGHUP or a
// restart. That the other account has nothing proves nothing, and nothing is sent to it.
func TestTheTokenOfAnotherCompanyProvesNothing(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"payments", "payouts"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			o := newTwoCompanies(t)
			side := func(s *Server) provider.Provider {
				if kind == "payouts" {
					return s.operators.Payouts["pawapay"]
				}
				return s.operators.Payments["pawapay"]
			}
			q := newRequest()
			s := o.start("")
			o.lose.Store(true)
			if result, err := side(s).Submit(t.Context(), q); err == nil || errors.Is(err, provider.ErrNotSent) {
				t.Fatalf("a send whose answer is lost: %+v, %v", result, err)
			}
			o.lose.Store(false)

			o.token(foreignToken)
			s.credentials.Look(t.Context(), true)
			if said := `msg="credentials not taken" connection=pawapay error="the credentials are those of another account`; !strings.Contains(o.log.String(), said) {
				t.Errorf("the log does not say %s\n%s", said, o.log.String())
			}
			o.knows("after SIGHUP", side(s), q)
			o.untouched("after SIGHUP", q)
			// Nor are they taken while nobody says whose they are.
			o.silent.Store(true)
			s.credentials.Look(t.Context(), true)
			o.silent.Store(false)
			o.knows("after SIGHUP, while the operator does not tell", side(s), q)
			s.close()

			o.silent.Store(true)
			s = o.start("")
			if result, err := side(s).Check(t.Context(), queryOf(q)); err == nil {
				t.Errorf("after a restart, while the operator does not tell, a check tells %+v", result)
			}
			o.silent.Store(false)
			s.close()

			s = o.start("")
			o.refuses("after a restart", side(s), q)
			if said := o.doctor(s, kind); !strings.Contains(said, `it is the company "Theirs SA", and it should be "Ours SARL"`) {
				t.Errorf("till doctor says %q", said)
			}
			// The right token is taken without another restart.
			o.token(ownToken)
			s.credentials.Look(t.Context(), true)
			o.knows("with the right token", side(s), q)
			s.close()

			if strings.Contains(o.log.String(), "token-of-") {
				t.Error("a token is in the log")
			}
		})
	}
}

// A company can change its name: a person writes it into the settings.
func TestAPersonAgreesToACompanysNewName(t *testing.T) {
	t.Parallel()
	o := newTwoCompanies(t)
	q, other := newRequest(), newRequest()
	s := o.start("")
	if _, err := s.operators.Payouts["pawapay"].Submit(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	s.close()
	o.accounts[ownToken].Close()
	o.open(ownToken, "Ours & Sons SARL")
	send := func(s *Server) error {
		_, err := s.operators.Payouts["pawapay"].Submit(t.Context(), other)
		return err
	}
	s = o.start("")
	if err := send(s); !errors.Is(err, provider.ErrNotSent) {
		t.Errorf("under another name: %v, want that nothing is sent", err)
	}
	s.close()
	s = o.start(`company = "Ours and Sons"`)
	if err := send(s); !errors.Is(err, provider.ErrNotSent) {
		t.Errorf("where the settings name a third: %v, want that nothing is sent", err)
	}
	s.close()
	for _, settings := range []string{`company = "Ours & Sons SARL"`, ""} { // agreed once, it is known
		s = o.start(settings)
		if err := send(s); err != nil {
			t.Errorf("with %q: %v", settings, err)
		}
		o.knows("under the new name", s.operators.Payouts["pawapay"], q)
		s.close()
	}
	// Another account in the configuration is another fingerprint, which has a company of its own.
	o.token(foreignToken)
	s = o.start(`account = "second"`)
	if err := send(s); err != nil {
		t.Errorf("with another account: %v", err)
	}
}
