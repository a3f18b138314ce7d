package payout_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"till"
	"till/collect"
	"till/engine"
	"till/ledger"
	"till/payout"
	"till/provider"
	"till/store"
	"till/store/storetest"
)

// shop is a client with a payment of 100 francs and its refunds, on an operator whose word the
// test brings.
type shop struct {
	t       *testing.T
	s       *store.Store
	client  *till.Client
	collect *collect.Collector
	payouts *payout.Disburser
	payment *till.Payment
}

const paid = 10_000

func newShop(t *testing.T, s *store.Store, change ...func(c *engine.Config)) *shop {
	t.Helper()
	storetest.AllowRefunds(t, s)
	h := &shop{t: t, s: s, client: storetest.NewClient(t, s, till.Live), collect: storetest.NewCollector(t, s), payouts: storetest.NewDisburser(t, s, change...)}
	h.payment = h.pay(paid)
	return h
}

// pay lets a customer pay.
func (h *shop) pay(amount int64) *till.Payment {
	h.t.Helper()
	p := storetest.NewPayment(h.t, h.collect, h.client, storetest.Body{Value: till.Money{Minor: amount}.Value()})
	return &storetest.Apply(h.t, h.collect, h.s, p, storetest.Succeeded).Payment
}

func (h *shop) refund(value string) (*till.Payout, error) {
	h.t.Helper()
	made, err := storetest.CreateRefund(h.t, h.payouts, h.s, h.client, storetest.RefundBody{PaymentID: h.payment.ID.String(), Value: value})
	return made.Payout, err
}

func (h *shop) refunded(value string) *till.Payout {
	h.t.Helper()
	p, err := h.refund(value)
	if err != nil {
		h.t.Fatalf("refund %q: %v", value, err)
	}
	return p
}

func (h *shop) answer(p *till.Payout, r provider.Result) {
	h.t.Helper()
	storetest.ApplyPayout(h.t, h.payouts, h.s, p, r)
}

// resolve records what a person brought about a refund.
func (h *shop) resolve(p *till.Payout, success bool) {
	h.t.Helper()
	if err := h.payouts.Resolve(h.t.Context(), store.Ref{Client: p.ClientID, ID: p.ID}, engine.Resolution{Success: success, By: "Awa", Evidence: "a letter"}); err != nil {
		h.t.Fatal(err)
	}
}

// reverse lets the operator take the payment's money back.
func (h *shop) reverse() {
	h.t.Helper()
	now := h.s.Now()
	a := &engine.Answer{Ref: store.Ref{Client: h.client.ID, ID: h.payment.ID}, Action: engine.Check, Connection: storetest.Connection,
		Reference: h.collect.ReferenceOf(h.payment), Started: now, Ended: now, Result: provider.Result{Outcome: provider.Reversed}}
	h.collect.Apply(h.t.Context(), []*engine.Answer{a})
	if a.RecordErr != nil {
		h.t.Fatal(a.RecordErr)
	}
}

func (h *shop) wantSums(refunding, refunded, late int64) {
	h.t.Helper()
	want := till.RefundSums{Amount: paid, Refunding: refunding, Refunded: refunded, Late: late}
	if got := storetest.RefundSums(h.t, h.s, h.payment); got != want {
		h.t.Errorf("the sums are %+v, want %+v", got, want)
	}
}

func (h *shop) wallet() (w *ledger.Wallet) {
	h.t.Helper()
	storetest.View(h.t, h.s, func(ctx context.Context, tx *store.Tx) (err error) {
		w, err = tx.Wallet(ctx, h.client.ID, "XAF")
		return err
	})
	return w
}

func (h *shop) wantWallet(balance, reserved, owed int64) {
	h.t.Helper()
	if w := h.wallet(); w.Balance != balance || w.Reserved != reserved || w.Owed != owed {
		h.t.Errorf("the wallet has %d, %d reserved, %d owed; want %d, %d, %d", w.Balance, w.Reserved, w.Owed, balance, reserved, owed)
	}
}

// cases lists the open cases of the client by kind.
func (h *shop) cases() string {
	h.t.Helper()
	var kinds []string
	storetest.View(h.t, h.s, func(ctx context.Context, tx *store.Tx) error {
		all, err := tx.Cases(ctx, store.CaseFilter{Client: h.client.ID, Limit: 100})
		for _, c := range all {
			kinds = append(kinds, c.Kind)
		}
		return err
	})
	slices.Sort(kinds)
	return strings.Join(kinds, " ")
}

// Each row of the table of sums, and of that of postings.
func TestRefundSums(t *testing.T) {
	t.Parallel()
	succeeded, failed := storetest.Succeeded, provider.Result{Outcome: provider.Failed, Reason: till.RecipientLimitReached}
	for _, c := range []struct {
		name                      string
		act                       func(h *shop)
		refunding, refunded, late int64
		balance, reserved, owed   int64
		lines, events, cases      string
	}{
		{"created", func(h *shop) { h.refunded("6000") }, 6000, 0, 0, paid, 6000, 0, "", "refund.pending", ""},
		{"succeeded", func(h *shop) { h.answer(h.refunded("6000"), succeeded) }, 0, 6000, 0, paid - 6000, 0, 0,
			"refund", "refund.pending refund.success", ""},
		{"all of it", func(h *shop) { h.answer(h.refunded(""), succeeded) }, 0, paid, 0, 0, 0, 0, "refund", "refund.pending refund.success", ""},
		{"failed", func(h *shop) { h.answer(h.refunded("6000"), failed) }, 0, 0, 0, paid, 0, 0, "", "refund.pending refund.failed", ""},
		{"cancelled", func(h *shop) {
			p := h.refunded("6000")
			if _, err := h.payouts.CancelRefund(h.t.Context(), store.Ref{Client: p.ClientID, ID: p.ID}, "api:test"); err != nil {
				h.t.Fatal(err)
			}
		}, 0, 0, 0, paid, 0, 0, "", "refund.pending refund.cancelled", ""},
		{"paid after it had failed", func(h *shop) {
			p := h.refunded("6000")
			h.answer(p, failed)
			h.answer(p, succeeded)
		}, 0, 0, 6000, paid - 6000, 0, 0, "late_refund", "refund.pending refund.failed refund.late_success", "late_money"},
		{"with another amount", func(h *shop) {
			r := succeeded
			r.Amount = till.Money{Minor: 5999, Currency: "XAF"}
			h.answer(h.refunded("6000"), r)
		}, 6000, 0, 0, paid, 6000, 0, "", "refund.pending refund.processing refund.needs_attention", "mismatch"},
		{"with another amount, and a person says that it was paid", func(h *shop) {
			r := succeeded
			r.Amount = till.Money{Minor: 5999, Currency: "XAF"}
			p := h.refunded("6000")
			h.answer(p, r)
			h.resolve(p, true)
		}, 0, 6000, 0, paid - 6000, 0, 0, "refund", "refund.pending refund.processing refund.needs_attention refund.success", ""},
		{"with another amount, and a person says that it failed", func(h *shop) {
			r := succeeded
			r.Amount = till.Money{Minor: 5999, Currency: "XAF"}
			p := h.refunded("6000")
			h.answer(p, r)
			h.answer(p, failed) // that is not believed: money moved
			h.resolve(p, false)
		}, 0, 0, 0, paid, 0, 0, "", "refund.pending refund.processing refund.needs_attention refund.failed", ""},
		{"without an answer", func(h *shop) { h.answer(h.refunded("6000"), provider.Result{Outcome: provider.Open}) }, 6000, 0, 0, paid, 6000, 0,
			"", "refund.pending refund.processing", ""},
		{"with an answer that nobody knows", func(h *shop) {
			h.answer(h.refunded("6000"), provider.Result{Outcome: provider.Unrecognised, Code: "ODD"})
		},
			6000, 0, 0, paid, 6000, 0, "", "refund.pending refund.processing", "unknown_status"},
		{"taken back by the operator while it was open", func(h *shop) { h.answer(h.refunded("6000"), provider.Result{Outcome: provider.Reversed}) },
			0, 0, 0, paid, 0, 0, "", "refund.pending refund.failed", ""},
		{"taken back by the operator after it had succeeded", func(h *shop) {
			p := h.refunded("6000")
			h.answer(p, succeeded)
			h.answer(p, provider.Result{Outcome: provider.Reversed})
		}, 0, 6000, 0, paid - 6000, 0, 0, "refund", "refund.pending refund.success", "contradiction"},
		{"told each end twice", func(h *shop) {
			p := h.refunded("6000")
			h.answer(p, failed)
			h.answer(p, failed)
			h.answer(p, succeeded)
			h.answer(p, succeeded)
			h.answer(p, failed)
		}, 0, 0, 6000, paid - 6000, 0, 0, "late_refund", "refund.pending refund.failed refund.late_success", "late_money"},
		{"paid although it was cancelled before it was sent", func(h *shop) {
			p := h.refunded("6000")
			if _, err := h.payouts.CancelRefund(h.t.Context(), store.Ref{Client: p.ClientID, ID: p.ID}, "api:test"); err != nil {
				h.t.Fatal(err)
			}
			h.answer(p, succeeded)
		}, 0, 0, 0, paid, 0, 0, "", "refund.pending refund.cancelled", "contradiction"},
		{"in two parts", func(h *shop) {
			h.answer(h.refunded("6000"), succeeded)
			second := succeeded
			second.Receipt = "R-2"
			h.answer(h.refunded("4000"), second)
		}, 0, paid, 0, 0, 0, 0, "refund refund", "refund.pending refund.success refund.pending refund.success", ""},
		{"late and beyond", func(h *shop) {
			first := h.refunded("6000")
			h.answer(first, failed)
			h.answer(h.refunded(""), succeeded)
			second := succeeded
			second.Receipt = "R-2"
			h.answer(first, second)
		}, 0, paid, 6000, 0, 0, 6000, "refund", "refund.pending refund.failed refund.pending refund.success refund.late_success", "late_money refunded_beyond"},
		{"late, while another is on its way", func(h *shop) {
			first := h.refunded("6000")
			h.answer(first, failed)
			h.refunded("5000")
			h.answer(first, succeeded)
		}, 5000, 0, 6000, 5000, 5000, 1000, "late_refund", "refund.pending refund.failed refund.pending refund.late_success", "late_money refunded_beyond"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, func(t *testing.T, s *store.Store) {
				h := newShop(t, s)
				c.act(h)
				h.wantSums(c.refunding, c.refunded, c.late)
				h.wantWallet(c.balance, c.reserved, c.owed)
				if got := h.lines(); got != c.lines {
					t.Errorf("the lines are %q, want %q", got, c.lines)
				}
				if got := h.events(); got != c.events {
					t.Errorf("the events are %q, want %q", got, c.events)
				}
				if got := h.cases(); got != c.cases {
					t.Errorf("the cases are %q, want %q", got, c.cases)
				}
			})
		})
	}
}

// What an operator paid late is gone: it cannot go back once more.
func TestLateMoneyIsNoLongerRefundable(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		h := newShop(t, s)
		late := h.refunded("6000")
		h.answer(late, provider.Result{Outcome: provider.Failed, Reason: till.RecipientLimitReached})
		h.answer(late, storetest.Succeeded)
		_, err := h.refund("4001")
		if e := want(t, err, till.CodeRefundExceeds); e.Refundable == nil || *e.Refundable != 4000 {
			t.Errorf("more than is left: %+v", e)
		}
		if rest := h.refunded(""); rest.Amount.Minor != 4000 {
			t.Errorf("the rest is %v", rest.Amount)
		}
		h.wantSums(4000, 0, 6000)
	})
}

// lines lists the wallet's lines of the payment that name a refund, the oldest first.
func (h *shop) lines() string {
	h.t.Helper()
	var types []string
	storetest.View(h.t, h.s, func(ctx context.Context, tx *store.Tx) error {
		all, _, err := tx.ListTransactions(ctx, h.client.ID, store.TransactionFilter{PaymentID: h.payment.ID}, store.Page{Limit: 100, Ascending: true})
		for _, l := range all {
			if !l.PayoutID.IsZero() {
				types = append(types, l.Type)
			}
		}
		return err
	})
	return strings.Join(types, " ")
}

// events lists the kinds of the events about refunds, in order.
func (h *shop) events() string {
	h.t.Helper()
	var kinds []string
	storetest.View(h.t, h.s, func(ctx context.Context, tx *store.Tx) error {
		all, err := tx.EventBodies(ctx, h.client.ID, 0, 200)
		for _, e := range all {
			if e.Kind.Subject() == "payment" {
				continue
			}
			kinds = append(kinds, string(e.Kind))
			if e.Payout == nil || e.Payout.PaymentID != h.payment.ID || !strings.Contains(string(e.AppendJSON(nil)), `"data":{"refund":{"id":"`) {
				h.t.Errorf("the event is %s", e.AppendJSON(nil))
			}
		}
		return err
	})
	return strings.Join(kinds, " ")
}

// A refund is the payment's: its method, country, currency and number, with the refund's own
// fee and none of a payout.
func TestARefundGoesToWhoPaid(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		h := newShop(t, s)
		made, err := storetest.CreateRefund(t, h.payouts, s, h.client, storetest.RefundBody{PaymentID: strings.ToUpper(h.payment.ID.String()), Value: "6000", Fee: 75,
			Rest: `"reason":"duplicate","reference":"order-1","description":"Twice","metadata":{"a":1},"recipient":{"phone":"242069999999"},"phone":"242069999999"`})
		if err != nil {
			t.Fatal(err)
		}
		p := made.Payout
		if p.PaymentID != h.payment.ID || p.Method != h.payment.Method || p.Country != h.payment.Country || p.Phone != h.payment.Phone ||
			p.Amount != (till.Money{Minor: 6000, Currency: "XAF"}) || p.Fee != 75 || p.Road != till.RoadTransfer || p.Reason != "duplicate" {
			t.Errorf("got %+v", p)
		}
		body := string(p.AppendJSON(nil))
		for _, want := range []string{`"status":"pending","payment_id":"` + h.payment.ID.String() + `","method":`, `"net":"6075","reason":"duplicate","reference":"order-1"`,
			`"description":"Twice","recipient":{"phone":"` + h.payment.Phone + `"},"metadata":{"a":1}`} {
			if !strings.Contains(body, want) {
				t.Errorf("%s lacks %s", body, want)
			}
		}
		if strings.Contains(body, "road") || strings.Contains(body, "transfer") {
			t.Errorf("the road is shown: %s", body)
		}
		h.wantWallet(paid, 6075, 0)
		h.answer(p, storetest.Succeeded)
		h.wantWallet(paid-6075, 0, 0)
		if got := h.lines(); got != "refund fee" {
			t.Errorf("the lines are %q", got)
		}
		h.wantSums(0, 6000, 0)
	})
}

// want compares an error's code.
func want(t *testing.T, err error, code till.Code) *till.Error {
	t.Helper()
	var e *till.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Fatalf("got %v, want %s", err, code)
	}
	return e
}

// The refusals of a refund, in their order: each of the cases is refused although all that
// would be refused after it is wrong as well.
func TestRefusalsOfRefunds(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		nowhere := func(c *engine.Config) { c.Refunds.Origins, c.Refunds.Retired = nil, nil }
		h := newShop(t, s)
		body := func(change func(b *storetest.RefundBody)) error {
			b := storetest.RefundBody{PaymentID: h.payment.ID.String(), Value: "6000"}
			change(&b)
			_, err := storetest.CreateRefund(t, h.payouts, s, h.client, b)
			return err
		}
		for _, c := range []struct {
			name   string
			change func(b *storetest.RefundBody)
			codes  string // of the fields
		}{
			{"nothing", func(b *storetest.RefundBody) { b.PaymentID = "x"; b.Value = "0"; b.Rest = `"reason":"because"` },
				"/amount/value amount_out_of_bounds, /payment_id invalid_format, /reason invalid_format"},
			{"negative", func(b *storetest.RefundBody) { b.Value = "-1" }, "/amount/value invalid_format"},
			{"a fraction", func(b *storetest.RefundBody) { b.Value = "1.5" }, "/amount/value invalid_format"},
			{"23 digits", func(b *storetest.RefundBody) { b.Value = strings.Repeat("9", 23) }, "/amount/value invalid_format"},
			{"another currency", func(b *storetest.RefundBody) { b.Currency = "XOF" }, "/amount/currency currency_not_supported"},
			{"below the bounds", func(b *storetest.RefundBody) { b.Value = "99" }, "/amount/value amount_out_of_bounds"},
			{"above the bounds", func(b *storetest.RefundBody) { b.Value = "2000001" }, "/amount/value amount_out_of_bounds"},
			{"no key", func(b *storetest.RefundBody) { b.Key = "1" }, "/idempotency_key invalid_format"},
		} {
			e := want(t, body(c.change), till.CodeValidationFailed)
			var codes []string
			for _, f := range e.Fields {
				codes = append(codes, f.Pointer+" "+string(f.Code))
			}
			slices.Sort(codes)
			if got := strings.Join(codes, ", "); got != c.codes {
				t.Errorf("%s: %s, want %s", c.name, got, c.codes)
			}
		}

		stranger := storetest.NewClient(t, s, till.Live)
		if _, err := storetest.CreateRefund(t, h.payouts, s, stranger, storetest.RefundBody{PaymentID: h.payment.ID.String(), Value: "1", Currency: "XOF"}); till.ErrorCode(err) != till.CodePaymentNotFound {
			t.Errorf("another client's payment: %v", err)
		}
		open := storetest.NewPayment(t, h.collect, h.client, storetest.Body{})
		e := want(t, body(func(b *storetest.RefundBody) { b.PaymentID, b.Value, b.Currency = open.ID.String(), "1", "XOF" }), till.CodeNotRefundable)
		if e.Detail != "The payment is not paid." || e.Refundable == nil || *e.Refundable != 0 {
			t.Errorf("not paid: %+v", e)
		}
		e = want(t, body(func(b *storetest.RefundBody) { b.Value = "10001" }), till.CodeRefundExceeds)
		if e.Refundable == nil || *e.Refundable != paid {
			t.Errorf("one above: %+v", e)
		}
		first := h.refunded("6000")
		e = want(t, body(func(b *storetest.RefundBody) { b.Value = "4001" }), till.CodeRefundExceeds)
		if e.Refundable == nil || *e.Refundable != 4000 {
			t.Errorf("more than is left: %+v", e)
		}
		for _, value := range []string{"4000", ""} {
			e = want(t, body(func(b *storetest.RefundBody) { b.Value = value }), till.CodeRefundInProgress)
			if e.RefundID != first.ID {
				t.Errorf("in progress: %+v", e)
			}
		}
		want(t, body(func(b *storetest.RefundBody) { b.PaymentID = first.ID.String() }), till.CodePaymentNotFound)
		h.answer(first, storetest.Succeeded)
		lost := storetest.NewDisburser(t, s, nowhere)
		rest := storetest.RefundBody{PaymentID: h.payment.ID.String(), Value: "4000", Fee: 4000}
		if _, err := storetest.CreateRefund(t, lost, s, h.client, rest); till.ErrorCode(err) != till.CodeServiceUnavailable {
			t.Errorf("an instance without the connection: %v", err)
		}
		none := storetest.NewDisburser(t, s, func(c *engine.Config) {
			c.Connections, c.Routes = map[string]provider.Provider{}, engine.ByMode(func(till.Mode, string, string, string) string { return "" })
		})
		if _, err := storetest.CreateRefund(t, none, s, h.client, rest); till.ErrorCode(err) != till.CodeRefundNotPossible {
			t.Errorf("no road: %v", err)
		}
		hold := func(by store.Hold) {
			t.Helper()
			if err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.HoldPayouts(t.Context(), by) }); err != nil {
				t.Fatal(err)
			}
		}
		hold(store.Hold{Client: h.client.ID, Cause: store.HoldPerson, By: "Anne", Reason: "a look"})
		if _, err := storetest.CreateRefund(t, h.payouts, s, h.client, rest); till.ErrorCode(err) != till.CodeInsufficientBalance {
			t.Errorf("the wallet lacks the fee: %v", err)
		}
		rest.Fee = 0
		if _, err := storetest.CreateRefund(t, h.payouts, s, h.client, rest); till.ErrorCode(err) != till.CodePayoutsHeld {
			t.Errorf("held: %v", err)
		}
		h.wantSums(0, 6000, 0)
		h.reverse()
		e = want(t, body(func(b *storetest.RefundBody) { b.Value = "4000" }), till.CodeNotRefundable)
		if !strings.Contains(e.Detail, "taken") {
			t.Errorf("taken back: %+v", e)
		}
	})
}

// Before the level is raised, an older program may run beside this one: it would take a refund
// for a payout.
func TestRefundsWaitForTheLevel(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		client := storetest.NewClient(t, s, till.Live)
		c, m := storetest.NewCollector(t, s), storetest.NewDisburser(t, s)
		p := storetest.Apply(t, c, s, storetest.NewPayment(t, c, client, storetest.Body{}), storetest.Succeeded)
		b := storetest.RefundBody{PaymentID: p.ID.String(), Key: till.NewID(1).String()}
		_, err := storetest.CreateRefund(t, m, s, client, b)
		if e := want(t, err, till.CodeServiceUnavailable); !strings.Contains(e.Detail, "level") {
			t.Errorf("got %v", e)
		}
		storetest.AllowRefunds(t, s)
		if _, err := storetest.CreateRefund(t, m, s, client, b); err != nil {
			t.Error(err)
		}
	})
}

// Payouts and refunds share one space of keys, and a replay gets the first answer.
func TestKeysOfRefunds(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		h := newShop(t, s)
		key, payoutKey := till.NewID(1).String(), till.NewID(2).String()
		b := storetest.RefundBody{PaymentID: h.payment.ID.String(), Key: key}
		first := storetest.NewRefund(t, h.payouts, s, h.client, b)
		h.answer(first, storetest.Succeeded)
		again, err := storetest.CreateRefund(t, h.payouts, s, h.client, b)
		if err != nil || !again.Replayed || string(again.Payout.AppendJSON(nil)) != string(first.AppendJSON(nil)) || again.Payout.Amount.Minor != paid {
			t.Errorf("the replay is %+v, %v", again, err)
		}
		b.Value = "6000"
		_, err = storetest.CreateRefund(t, h.payouts, s, h.client, b)
		if e := want(t, err, till.CodeKeyReused); e.RefundID != first.ID || !e.PayoutID.IsZero() {
			t.Errorf("another amount: %+v", e)
		}
		h.pay(paid)
		plain := storetest.NewPayout(t, h.payouts, h.client, storetest.Body{Key: payoutKey}, 0)
		b.Key = payoutKey
		_, err = storetest.CreateRefund(t, h.payouts, s, h.client, b)
		if e := want(t, err, till.CodeKeyReused); e.PayoutID != plain.ID || !e.RefundID.IsZero() {
			t.Errorf("a payout's key: %+v", e)
		}
		_, err = storetest.CreatePayout(t, h.payouts, h.client, storetest.Body{Key: key}, 0)
		if e := want(t, err, till.CodeKeyReused); e.RefundID != first.ID {
			t.Errorf("a refund's key: %+v", e)
		}
		if _, err := h.payouts.Cancel(t.Context(), store.Ref{Client: first.ClientID, ID: first.ID}, "api:test"); till.ErrorCode(err) != till.CodePayoutNotFound {
			t.Errorf("a refund as a payout: %v", err)
		}
		if _, err := h.payouts.CancelRefund(t.Context(), store.Ref{Client: plain.ClientID, ID: plain.ID}, "api:test"); till.ErrorCode(err) != till.CodeRefundNotFound {
			t.Errorf("a payout as a refund: %v", err)
		}
		if _, err := h.payouts.CancelRefund(t.Context(), store.Ref{Client: first.ClientID, ID: first.ID}, "api:test"); till.ErrorCode(err) != till.CodeRefundNotCancellable {
			t.Errorf("one that has ended: %v", err)
		}
	})
}

// A refund, and the operator takes the collection back, in every order: debits equal credits,
// one case, nothing twice.
func TestRefundAgainstReversal(t *testing.T) {
	t.Parallel()
	failed := provider.Result{Outcome: provider.Failed, Reason: till.RecipientLimitReached}
	for _, c := range []struct {
		name                      string
		act                       func(h *shop)
		refunding, refunded, late int64
		balance, reserved, owed   int64
		cases                     string
	}{
		{"refunded, then taken back", func(h *shop) { h.answer(h.refunded("6000"), storetest.Succeeded); h.reverse() },
			0, 6000, 0, 0, 0, 6000, "refunded_and_reversed reversed"},
		{"taken back while a refund is open, which succeeds", func(h *shop) { p := h.refunded("6000"); h.reverse(); h.answer(p, storetest.Succeeded) },
			0, 6000, 0, 0, 0, 6000, "refunded_and_reversed reversed"},
		{"taken back while a refund is open, which fails", func(h *shop) { p := h.refunded("6000"); h.reverse(); h.answer(p, failed) },
			0, 0, 0, 0, 0, 0, "refunded_and_reversed reversed"},
		{"taken back while a refund is open", func(h *shop) { h.refunded("6000"); h.reverse() },
			6000, 0, 0, 6000, 6000, 6000, "refunded_and_reversed reversed"},
		{"failed, taken back, paid late", func(h *shop) {
			p := h.refunded("6000")
			h.answer(p, failed)
			h.reverse()
			h.answer(p, storetest.Succeeded)
		},
			0, 0, 6000, 0, 0, 6000, "late_money refunded_and_reversed reversed"},
		{"failed, paid late, taken back", func(h *shop) {
			p := h.refunded("6000")
			h.answer(p, failed)
			h.answer(p, storetest.Succeeded)
			h.reverse()
		},
			0, 0, 6000, 0, 0, 6000, "late_money refunded_and_reversed reversed"},
		{"failed, then taken back", func(h *shop) { h.answer(h.refunded("6000"), failed); h.reverse() },
			0, 0, 0, 0, 0, 0, "reversed"},
		{"at the same moment", func(h *shop) {
			p := h.refunded("6000")
			var both sync.WaitGroup
			both.Go(h.reverse)
			both.Go(func() { h.answer(p, storetest.Succeeded) })
			both.Wait()
		}, 0, 6000, 0, 0, 0, 6000, "refunded_and_reversed reversed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, func(t *testing.T, s *store.Store) {
				h := newShop(t, s)
				c.act(h)
				h.wantSums(c.refunding, c.refunded, c.late)
				h.wantWallet(c.balance, c.reserved, c.owed)
				if got := h.cases(); got != c.cases {
					t.Errorf("the cases are %q, want %q", got, c.cases)
				}
			})
		})
	}
}

// The case of a payment that went back twice says both amounts, whichever came first, and that of
// more than was paid says how much more.
func TestTheCasesOfRefundsSayHowMuch(t *testing.T) {
	t.Parallel()
	both := func(back string) string {
		return "refunded_and_reversed: the operator took the money back, 10000 XAF, and the customer was refunded, too: " + back + " XAF went back or is on its way"
	}
	for _, c := range []struct {
		name string
		act  func(h *shop) (about till.ID)
		want string
	}{
		{"refunded, then taken back", func(h *shop) till.ID {
			h.answer(h.refunded("6000"), storetest.Succeeded)
			h.reverse()
			return h.payment.ID
		}, both("6000")},
		{"on its way, then taken back", func(h *shop) till.ID { h.refunded("2500"); h.reverse(); return h.payment.ID }, both("2500")},
		{"taken back, then paid late", func(h *shop) till.ID {
			p := h.refunded("6000")
			h.answer(p, storetest.Declined)
			h.reverse()
			h.answer(p, storetest.Succeeded)
			return h.payment.ID
		}, both("6000")},
		{"late and beyond", func(h *shop) till.ID {
			p := h.refunded("6000")
			h.answer(p, storetest.Declined)
			h.refunded("5000")
			h.answer(p, storetest.Succeeded)
			return p.ID
		}, "refunded_beyond: it was paid after it had ended otherwise, and with it more goes back of the payment than was paid: 11000 XAF instead of 10000 XAF"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, func(t *testing.T, s *store.Store) {
				h := newShop(t, s)
				about := c.act(h)
				var said []string
				storetest.View(t, s, func(ctx context.Context, tx *store.Tx) error {
					all, err := tx.Cases(ctx, store.CaseFilter{Client: h.client.ID, Limit: 100})
					for _, c := range all {
						if c.SubjectID == about {
							said = append(said, c.Kind+": "+c.Why.String())
						}
					}
					return err
				})
				if !slices.Contains(said, c.want) {
					t.Errorf("the cases say %q, want %q", said, c.want)
				}
			})
		})
	}
}

// Who asked for a refund or took it back, and each decision about its money, is in the audit
// log, under the refund.
func TestTheTrailOfARefund(t *testing.T) {
	t.Parallel()
	const create = "api:test refund.create: 6075 XAF reserved for 242******567 by mtn_momo (request 1)"
	for _, c := range []struct {
		name string
		act  func(h *shop, p *till.Payout)
		want []string
	}{
		{"paid", func(h *shop, p *till.Payout) { h.answer(p, storetest.Succeeded) },
			[]string{create, "engine refund: 6000 XAF debited (check, word)", "engine fee: 75 XAF debited (check, word)"}},
		{"failed, paid late", func(h *shop, p *till.Payout) { h.answer(p, storetest.Declined); h.answer(p, storetest.Succeeded) },
			[]string{create, "engine refund.release: 6075 XAF released (check, word)", "engine late_refund: 6000 XAF debited (check, word)"}},
		{"cancelled", func(h *shop, p *till.Payout) {
			if _, err := h.payouts.CancelRefund(store.WithCause(h.t.Context(), "request 2"), store.Ref{Client: p.ClientID, ID: p.ID}, "api:k2"); err != nil {
				h.t.Fatal(err)
			}
		}, []string{create, "api:k2 refund.cancel: 6075 XAF released (request 2)"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, func(t *testing.T, s *store.Store) {
				h := newShop(t, s)
				who := engine.Client{Client: h.client, Actor: "api:test", Enabled: func(string) bool { return true },
					Fees: []till.Fee{{Kind: till.RefundFee, Method: "mtn_momo", Currency: "XAF", Flat: 75}}}
				r := storetest.RefundBody{PaymentID: h.payment.ID.String(), Value: "6000"}.Request(t, s)
				made, err := h.payouts.Refund(store.WithCause(t.Context(), "request 1"), who, r)
				if err != nil {
					t.Fatal(err)
				}
				if again, err := h.payouts.Refund(store.WithCause(t.Context(), "request 3"), who, r); err != nil || !again.Replayed {
					t.Fatalf("asked again: %+v, %v", again, err)
				}
				c.act(h, made.Payout)
				got := trail(t, s, store.Ref{Client: h.client.ID, ID: made.Payout.ID}, []byte{7})
				if !slices.Equal(got, c.want) {
					t.Errorf("got %q\nwant %q", got, c.want)
				}
			})
		})
	}
}

// A refund whose creation and a reversal meet: one of them is first.
func TestARefundIsAskedForWhileTheMoneyIsTakenBack(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		h := newShop(t, s)
		for range 10 {
			h.payment = h.pay(paid)
			var both sync.WaitGroup
			both.Go(h.reverse)
			both.Go(func() {
				if _, err := h.refund("6000"); err != nil && till.ErrorCode(err) != till.CodeNotRefundable && till.ErrorCode(err) != till.CodeInsufficientBalance {
					t.Error(err)
				}
			})
			both.Wait()
		}
	})
}

// A payment that is too old, or whose number was erased, is not given back.
func TestOldPaymentsAreNotRefunded(t *testing.T) {
	t.Parallel()
	start := till.TimeOf(time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC))
	storetest.RunAt(t, &start, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		h := newShop(t, s)
		clock.Advance(90 * 24 * time.Hour)
		h.answer(h.refunded("1000"), storetest.Succeeded)
		clock.Advance(time.Minute)
		_, err := h.refund("1000")
		if e := want(t, err, till.CodeNotRefundable); e.Detail != "The payment is older than 90 days. The number may belong to somebody else by now." {
			t.Error(e)
		}
		h.payouts = storetest.NewDisburser(t, s, func(c *engine.Config) { c.Refunds.MaxAge = 91 * 24 * time.Hour })
		h.refunded("1000")
	})
}

// A refund cannot be cancelled, nor made anew, while its outcome is not known.
func TestAnUnknownRefundBlocksTheNext(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		h := newShop(t, s)
		p := h.refunded("1000")
		h.answer(p, provider.Result{Outcome: provider.Open})
		h.answer(p, provider.Result{Outcome: provider.Unrecognised, Code: "ODD"})
		if _, err := h.payouts.CancelRefund(t.Context(), store.Ref{Client: p.ClientID, ID: p.ID}, "api:test"); till.ErrorCode(err) != till.CodeRefundNotCancellable {
			t.Error(err)
		}
		_, err := h.refund("1000")
		if e := want(t, err, till.CodeRefundInProgress); e.RefundID != p.ID {
			t.Error(e)
		}
		h.wantSums(1000, 0, 0)
		h.wantWallet(paid, 1000, 0)
		h.answer(p, storetest.Succeeded)
		h.answer(p, storetest.Succeeded) // repeated
		h.wantSums(0, 1000, 0)
		h.refunded(fmt.Sprint(paid - 1000))
	})
}
