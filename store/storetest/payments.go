package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"till"
	"till/collect"
	"till/engine"
	"till/internal/jsonx"
	"till/provider"
	"till/store"
)

// Connection is the name of the one connection of NewCollector.
const Connection = "silent"

// silent is an operator that never answers: its word is brought by the test,
// through Apply. It has the times that the contract names.
type silent struct{}

var errSilence = errors.New("storetest: the operator is silent")

func (silent) Submit(context.Context, provider.Request) (provider.Result, error) {
	return provider.Result{}, errSilence
}

func (silent) Check(context.Context, provider.Query) (provider.Result, error) {
	return provider.Result{}, errSilence
}

func (silent) Fingerprint() string { return Connection }

// CanRefund lets a test send refunds by the operator's own call; without such a configuration
// they are transfers.
func (silent) CanRefund(o provider.Original, amount till.Money) bool { return o.Holds(amount) }

func (silent) Traits() provider.Traits {
	return provider.Traits{
		ClientReference: true, ApprovalWindow: time.Minute, SubmitTimeout: time.Second, CheckTimeout: time.Second,
		NotFoundDelay: time.Second, Poll: time.Second, PollMax: time.Hour, Grace: time.Second,
		LateReads: []time.Duration{5 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour, 72 * time.Hour},
	}
}

// NewCollector makes a collector that accepts payments and calls nobody: what
// becomes of them is decided by the test, with Apply.
func NewCollector(tb testing.TB, s *store.Store, change ...func(c *engine.Config)) *collect.Collector {
	c := collect.New(newConfig(s, change))
	tb.Cleanup(func() {
		if err := c.Close(context.WithoutCancel(tb.Context())); err != nil {
			tb.Error(err)
		}
	})
	return c
}

// newConfig returns the configuration of a Processor that calls nobody.
func newConfig(s *store.Store, change []func(c *engine.Config)) engine.Config {
	c := engine.Config{
		Store: s, Secret: []byte("a secret for tests"), AcceptOnly: true,
		Connections: map[string]provider.Provider{Connection: silent{}},
		Refunds:     engine.Refunds{Origins: map[string]engine.Origin{Connection: {Fingerprint: Connection}}},
		Routes:      engine.ByMode(func(till.Mode, string, string, string) string { return Connection }),
	}
	for _, f := range change {
		f(&c)
	}
	return c
}

// Body is a create call's body with the members that most tests change.
type Body struct {
	Method, Country, Phone, Currency string     // MTN MoMo in Congo unless set
	Key                              string     // a new one unless set
	Value                            string     // 5000 unless set
	Reference                        string     // none unless set
	Rest                             string     // further members, `"tax": {…}`
	Fees                             []till.Fee // none unless set
}

func (b Body) request(tb testing.TB) *collect.Request {
	tb.Helper()
	set := func(s *string, otherwise string) {
		if *s == "" {
			*s = otherwise
		}
	}
	set(&b.Method, "mtn_momo")
	set(&b.Country, "CG")
	set(&b.Phone, "242061234567")
	set(&b.Currency, "XAF")
	set(&b.Value, "5000")
	set(&b.Key, till.NewID(till.TimeOf(time.Now())).String())
	body, err := json.Marshal(map[string]any{
		"method": b.Method, "country": b.Country, "idempotency_key": b.Key,
		"amount": map[string]string{"value": b.Value, "currency": b.Currency}, "customer": map[string]string{"phone": b.Phone},
	})
	if err != nil {
		tb.Fatal(err)
	}
	body = body[:len(body)-1]
	if b.Reference != "" {
		body = append(body, `,"reference":"`+b.Reference+`"`...)
	}
	if b.Rest != "" {
		body = append(body, ","+b.Rest...)
	}
	r := &collect.Request{}
	if err := jsonx.Decode(append(body, '}'), r); err != nil {
		tb.Fatal(err)
	}
	return r
}

// CreatePayment asks for a payment of a client.
func CreatePayment(tb testing.TB, c *collect.Collector, client *till.Client, b Body) (collect.Created, error) {
	tb.Helper()
	who := engine.Client{Client: client, Enabled: func(string) bool { return true }, Fees: b.Fees}
	return c.Create(tb.Context(), who, b.request(tb))
}

// NewPayment makes a payment of a client.
func NewPayment(tb testing.TB, c *collect.Collector, client *till.Client, b Body) *till.Payment {
	tb.Helper()
	made, err := CreatePayment(tb, c, client, b)
	if err != nil {
		var e *till.Error
		if errors.As(err, &e) {
			tb.Fatalf("create a payment: %v %+v", err, e.Fields)
		}
		tb.Fatalf("create a payment: %v", err)
	}
	return made.Payment
}

// Apply records an operator's word about a payment, as if it had just been
// asked, and returns the payment as it is then.
func Apply(tb testing.TB, c *collect.Collector, s *store.Store, p *till.Payment, r provider.Result) *store.PaymentRow {
	tb.Helper()
	ref := store.Ref{Client: p.ClientID, ID: p.ID}
	var row *store.PaymentRow
	var version, wake int64
	read := func() {
		tb.Helper()
		err := s.View(tb.Context(), func(tx *store.Tx) (err error) {
			st, err := tx.Step(tb.Context(), ref)
			if err != nil {
				return err
			}
			if st != nil {
				version, wake = st.LeaseVersion, st.WakeSeq
			}
			row, err = tx.Payment(tb.Context(), ref)
			return err
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
	read()
	now := s.Now()
	a := &engine.Answer{Ref: ref, Action: engine.Check, Connection: p.Connection, Reference: p.ID,
		LeaseVersion: version, WakeSeq: wake, Started: now, Ended: now, Result: r}
	c.Apply(tb.Context(), []*engine.Answer{a})
	if a.RecordErr != nil {
		tb.Fatalf("apply %s: %v", r.Outcome, a.RecordErr)
	}
	read()
	return row
}

// The operator's words that tests bring most.
var (
	Opened    = provider.Result{Outcome: provider.Open}
	Succeeded = provider.Result{Outcome: provider.Success}
	Declined  = provider.Result{Outcome: provider.Failed, Reason: till.CustomerDeclined, Code: "DECLINED"}
	Reversed  = provider.Result{Outcome: provider.Reversed, Code: "REVERSED"}
	TimedOut  = provider.Result{Outcome: provider.Expired, Reason: till.CustomerTimeout, Code: "TIMEOUT", Retryable: true}
)
