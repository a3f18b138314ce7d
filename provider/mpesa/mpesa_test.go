package mpesa

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"till"
	"till/provider"
	"till/provider/providertest"
	"till/provider/simulator"
)

// mailbox is where callbacks come, by path; the latest is kept, as the service
// does.
type mailbox struct {
	*httptest.Server
	mu   sync.Mutex
	mail map[string][]byte
	more chan struct{} // closed when something comes
}

func newMailbox(t testing.TB) *mailbox {
	m := &mailbox{mail: map[string][]byte{}, more: make(chan struct{})}
	m.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m.put(r.URL.Path, body)
	}))
	t.Cleanup(m.Close)
	return m
}

func (m *mailbox) put(path string, body []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mail[path] = body
	close(m.more)
	m.more = make(chan struct{})
}

func (m *mailbox) get(url string) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mail[strings.TrimPrefix(url, m.URL)]
}

// wait waits for a mail that ok likes.
func (m *mailbox) wait(ctx context.Context, url string, ok func([]byte) bool) ([]byte, error) {
	for {
		m.mu.Lock()
		mail, more := m.mail[strings.TrimPrefix(url, m.URL)], m.more
		m.mu.Unlock()
		if mail != nil && ok(mail) {
			return mail, nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// patient is a payout provider whose questions wait for their answers, as the
// service does between two Checks.
type patient struct {
	*payoutService
	box *mailbox
}

func (p patient) Check(ctx context.Context, q provider.Query) (provider.Result, error) {
	for range 5 {
		r, err := p.payoutService.Check(ctx, q)
		if r.Outcome.Final() {
			m := parseHandleState(r.Handle) // questions of before have nothing to do with it
			m.pendingQueries = nil
			r.Handle = m.String()
		}
		if err != nil || r.Outcome != provider.AnswerPending {
			return r, err
		}
		q.Handle = r.Handle
		if len(parseHandleState(r.Handle).pendingQueries) == 0 {
			continue // the answer told nothing: ask again
		}
		before := string(q.CallbackBody)
		mail, err := p.box.wait(ctx, q.CallbackURL, func(mail []byte) bool { return string(mail) != before })
		if err != nil {
			return provider.Result{}, err
		}
		q.CallbackBody = mail
	}
	return provider.Result{}, errors.New("the question is never answered")
}

type world struct {
	sim   *Simulator
	clock *providertest.Clock
	box   *mailbox
	line  *providertest.Line
	o     *Operator
}

var operations = map[string]providertest.Operation{
	"/oauth/v1/generate":                providertest.Token,
	"/mpesa/stkpush/v1/processrequest":  providertest.Submit,
	"/mpesa/stkpushquery/v1/query":      providertest.Check,
	"/mpesa/b2c/v3/paymentrequest":      providertest.Submit,
	"/mpesa/transactionstatus/v1/query": providertest.Check,
}

// open makes a simulated Daraja, an adapter to it over a line, and a place for
// callbacks.
func open(t testing.TB, change func(*SimConfig, *Config)) *world {
	t.Helper()
	w := &world{clock: providertest.NewClock(), box: newMailbox(t)}
	sc := SimConfig{Now: w.clock.Now, Decide: 40 * time.Second}
	c := Config{ConsumerKey: "simulated", ConsumerSecret: "simulated", ShortCode: "174379", Passkey: "simulated",
		PayoutShortCode: "600000", Initiator: "simulated", InitiatorPassword: "simulated", NotFoundCodes: []string{simNotFound}}
	if change != nil {
		change(&sc, &c)
	}
	var err error
	if w.sim, err = NewSimulator(sc); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.sim.Close() })
	w.line = providertest.NewLine(t, w.sim, func(r *http.Request) providertest.Operation { return operations[r.URL.Path] })
	c.BaseURL, c.Certificate = w.line.URL(), w.sim.Certificate()
	w.o = w.operator(t, c)
	return w
}

func (w *world) operator(t testing.TB, c Config) *Operator {
	t.Helper()
	o, err := New(c, provider.Deps{Connection: "mpesa", Now: w.clock.Now, Tokens: providertest.NewTokens(w.clock.Now), CallbackURL: "https://till.example/x"})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// warm has a token fetched.
func (w *world) warm(t *testing.T) {
	t.Helper()
	if _, err := w.o.access.Tokens.Token(t.Context(), w.o.access.Name, "", w.o.access.Fetch); err != nil {
		t.Fatal(err)
	}
}

// advance lets time pass at Daraja, and its callbacks come whose time it is.
func (w *world) advance(d time.Duration) {
	before := w.clock.Now()
	w.clock.Advance(d)
	for _, e := range w.sim.book.Entries() {
		was, _ := e.StateAt(before)
		is, _ := e.StateAt(w.clock.Now())
		if was == is {
			continue
		}
		path := strings.TrimPrefix(e.Callback, w.box.URL)
		if e.Kind == "payment" {
			w.box.put(path, w.sim.pushBody(&e))
		} else {
			w.box.put(path, w.sim.payoutBody(&e))
		}
	}
}

var numbers atomic.Int64

// request returns a request of a customer whose number ends in so many digits.
func (w *world) request(ending string) provider.Request {
	id := till.NewID(till.TimeOf(w.clock.Now()))
	return provider.Request{
		Client: till.NewID(1), ID: id, Reference: providertest.NewReference(), Method: "mpesa", Country: "KE",
		Phone: fmt.Sprintf("2547%04d%s", numbers.Add(1)%10000, ending), Amount: till.Money{Minor: 1500 * shilling, Currency: "KES"},
		Description: "Order 12345", CallbackURL: w.box.URL + "/callbacks/" + id.String(),
	}
}

func (w *world) harness(t *testing.T, p provider.Provider, endings map[providertest.Story]string) providertest.Harness {
	elsewhere, another := w.o.c, w.o.c
	elsewhere.BaseURL = "https://api.safaricom.co.ke"
	another.ShortCode, another.PayoutShortCode = "174380", "600001"
	others := []provider.Provider{}
	for _, c := range []Config{elsewhere, another, w.o.c} {
		o := w.operator(t, c)
		for _, side := range []provider.Provider{o.Payments(), o.Payouts()} {
			if side.Fingerprint() != p.Fingerprint() {
				others = append(others, side)
			}
		}
	}
	return providertest.Harness{
		Provider: p, Line: w.line, Advance: w.advance,
		Request: func(s providertest.Story) (provider.Request, bool) {
			ending, ok := endings[s]
			return w.request(ending), ok
		},
		CallbackBody:  func(r provider.Request) []byte { return w.box.get(r.CallbackURL) },
		StatusOutcome: func(providertest.Operation, int, string) provider.Outcome { return "" }, // an empty answer never says anything
		Rejection:     providertest.Answer{Status: 400, Body: `{"requestId":"1","errorCode":"400.002.02","errorMessage":"Bad Request - Invalid Amount"}`},
		Refused:       providertest.Answer{Status: 404, Body: `{"requestId":"1","errorCode":"404.001.03","errorMessage":"Invalid Access Token"}`},
		ForgetTokens:  w.sim.forgetToken,
		Others:        others,
	}
}

func TestPayments(t *testing.T) {
	t.Parallel()
	providertest.Run(t, func(t *testing.T) providertest.Harness {
		w := open(t, nil)
		h := w.harness(t, w.o.Payments(), map[providertest.Story]string{
			providertest.Approve: "4149", providertest.Decline: "1032", providertest.NeverAnswer: "1037", providertest.NoFunds: "0001",
			providertest.LimitReached: "0004", providertest.WrongPIN: "2001", providertest.Stuck: "0129",
		})
		h.Debits = func(ref till.ID) int { return 0 }
		var refs sync.Map // our reference: what the customer sees
		request := h.Request
		h.Request = func(s providertest.Story) (provider.Request, bool) {
			r, ok := request(s)
			refs.Store(r.Reference, w.o.payments.accountReference(r.ID))
			return r, ok
		}
		h.Debits = func(ref till.ID) (n int) {
			external, _ := refs.Load(ref)
			for _, e := range w.sim.book.Entries() {
				if state, _ := e.StateAt(w.clock.Now()); state == simulator.Success && e.External == external {
					n++
				}
			}
			return n
		}
		return h
	})
}

func payoutHarness(t *testing.T, faults simulator.Faults) providertest.Harness {
	w := open(t, func(s *SimConfig, _ *Config) { s.Faults = faults })
	h := w.harness(t, patient{w.o.payouts, w.box}, map[providertest.Story]string{
		providertest.Approve: "4149", providertest.NoFunds: "0001", providertest.UnknownPayer: "2040",
		providertest.LimitReached: "0008", providertest.Stuck: "0129",
	})
	h.Payout = true
	h.Debits = func(ref till.ID) int { return w.sim.book.Moved("payout", ref.String()) }
	return h
}

func TestPayouts(t *testing.T) {
	t.Parallel()
	providertest.Run(t, func(t *testing.T) providertest.Harness { return payoutHarness(t, simulator.Faults{}) })
}

// TestStorm: with a tenth of everything going wrong, nobody is paid twice. The
// callback of a payout may be overtaken by the answer to a question before it is
// read; then the word for a failure in that answer ends it.
func TestStorm(t *testing.T) {
	t.Parallel()
	providertest.Storm(t, payoutHarness(t, simulator.Faults{LostRequest: 0.1, LostResponse: 0.1, ServerError: 0.1, Slow: 0.05, SlowBy: time.Millisecond, Tokens: true, Seed: 6}), 150)
}
