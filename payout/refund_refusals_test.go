package payout_test

import (
	"strings"
	"testing"

	"till"
	"till/engine"
	"till/payout"
	"till/provider"
	"till/store"
	"till/store/storetest"
)

// without returns an instance that pays out nowhere.
func (h *shop) without() *payout.Disburser {
	h.t.Helper()
	return storetest.NewDisburser(h.t, h.s, func(c *engine.Config) {
		c.Connections, c.Routes = map[string]provider.Provider{}, engine.ByMode(func(till.Mode, string, string, string) string { return "" })
	})
}

func (h *shop) hold() {
	h.t.Helper()
	err := h.s.Update(h.t.Context(), func(tx *store.Tx) error {
		return tx.HoldPayouts(h.t.Context(), store.Hold{Client: h.client.ID, Cause: store.HoldPerson, By: "Anne", Reason: "a look"})
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *shop) ask(m *payout.Disburser, b storetest.RefundBody) (payout.Created, error) {
	h.t.Helper()
	return storetest.CreateRefund(h.t, m, h.s, h.client, b)
}

// The order of the refusals, from the first to the last: everything that would be refused later
// is wrong as well, until it is put right, one after the other. At the end the refund is made.
func TestRefusalsOfRefundsHaveOneOrder(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		h := newShop(t, s)
		nowhere := h.without()
		first := h.refunded("6000")
		h.reverse()
		taken := h.payment
		h.payment = h.pay(paid)
		h.pay(2000)
		open := h.refunded("6000") // the first one's reserve, this one's and the debt are all there is
		h.hold()
		b := storetest.RefundBody{PaymentID: till.NewID(7).String(), Value: "20000", Currency: "XOF", Fee: 10, Rest: `"reason":"because"`}
		refused := func(m *payout.Disburser, code till.Code) *till.Error {
			t.Helper()
			_, err := h.ask(m, b)
			return want(t, err, code)
		}
		refused(nowhere, till.CodeValidationFailed) // of the body alone
		b.Rest = ""
		refused(nowhere, till.CodePaymentNotFound)
		b.PaymentID = taken.ID.String()
		if e := refused(nowhere, till.CodeNotRefundable); e.Detail != "The operator has taken the payment's money back." || *e.Refundable != 0 {
			t.Errorf("taken back, with %s open: %+v", first.ID, e)
		}
		b.PaymentID = h.payment.ID.String()
		if e := refused(nowhere, till.CodeValidationFailed); len(e.Fields) != 1 || e.Fields[0].Code != till.FieldCurrencyNotSupported {
			t.Errorf("another currency: %+v", e)
		}
		b.Currency, b.Value = "XAF", "2000001"
		if e := refused(nowhere, till.CodeValidationFailed); len(e.Fields) != 1 || e.Fields[0].Code != till.FieldAmountOutOfBounds {
			t.Errorf("more than the operator moves: %+v", e)
		}
		b.Value = "4001"
		if e := refused(nowhere, till.CodeRefundExceeds); *e.Refundable != 4000 {
			t.Errorf("one above: %+v", e)
		}
		b.Value = "4000"
		if e := refused(nowhere, till.CodeRefundInProgress); e.RefundID != open.ID {
			t.Errorf("one is open: %+v", e)
		}
		h.answer(open, storetest.Succeeded)
		refused(nowhere, till.CodeRefundNotPossible)
		refused(h.payouts, till.CodeInsufficientBalance)
		h.pay(paid)
		refused(h.payouts, till.CodePayoutsHeld)
		if err := s.Update(t.Context(), func(tx *store.Tx) error {
			return tx.ReleasePayouts(t.Context(), h.client.ID, store.HoldPerson)
		}); err != nil {
			t.Fatal(err)
		}
		if made, err := h.ask(h.payouts, b); err != nil || made.Payout.Amount.Minor != 4000 {
			t.Errorf("when nothing is wrong: %+v, %v", made, err)
		}
	})
}

// A key that made a refund is answered as ever, whatever would be refused by now, and with
// another body it is reused, whatever else is wrong with that.
func TestARefundsKeyIsLookedUpBeforeAnythingElse(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		h := newShop(t, s)
		b := storetest.RefundBody{PaymentID: h.payment.ID.String(), Key: till.NewID(1).String(), Value: "6000"}
		first, err := h.ask(h.payouts, b)
		if err != nil {
			t.Fatal(err)
		}
		h.answer(first.Payout, storetest.Succeeded)
		h.reverse() // the wallet owes by now
		h.hold()
		nowhere := h.without()
		for _, m := range []*payout.Disburser{h.payouts, nowhere} {
			again, err := h.ask(m, b)
			if err != nil || !again.Replayed || string(again.Payout.AppendJSON(nil)) != string(first.Payout.AppendJSON(nil)) {
				t.Errorf("the same again: %+v, %v", again, err)
			}
			for name, other := range map[string]storetest.RefundBody{
				"without the amount":       {PaymentID: b.PaymentID, Key: b.Key},
				"another amount":           {PaymentID: b.PaymentID, Key: b.Key, Value: "6001"},
				"more than was paid":       {PaymentID: b.PaymentID, Key: b.Key, Value: "20000"},
				"another currency":         {PaymentID: b.PaymentID, Key: b.Key, Value: "6000", Currency: "XOF"},
				"a payment that is not":    {PaymentID: till.NewID(7).String(), Key: b.Key, Value: "6000"},
				"with a reason":            {PaymentID: b.PaymentID, Key: b.Key, Value: "6000", Rest: `"reason":"other"`},
				"with metadata":            {PaymentID: b.PaymentID, Key: b.Key, Value: "6000", Rest: `"metadata":{}`},
				"with a description of it": {PaymentID: b.PaymentID, Key: b.Key, Value: "6000", Rest: `"description":"d"`},
			} {
				_, err := h.ask(m, other)
				if e := want(t, err, till.CodeKeyReused); e.RefundID != first.Payout.ID {
					t.Errorf("%s: %+v", name, e)
				}
			}
		}
		// The same body in other words.
		b.PaymentID, b.Key = strings.ToUpper(b.PaymentID), strings.ToUpper(b.Key)
		if again, err := h.ask(h.payouts, b); err != nil || !again.Replayed {
			t.Errorf("in capitals: %+v, %v", again, err)
		}
		h.wantSums(0, 6000, 0)
	})
}

// What is in suspense, open or not paid cannot go back, and what came late can.
func TestOnlyMoneyThatWasCreditedGoesBack(t *testing.T) {
	t.Parallel()
	const unpaid, aside = "The payment is not paid.", "Money of the payment is put aside until a person has decided about it."
	other := provider.Result{Outcome: provider.Success, Amount: till.Money{Minor: 7000, Currency: "XAF"}}
	for _, c := range []struct {
		name   string
		words  []provider.Result
		detail string
	}{
		{"pending", nil, unpaid},
		{"on its way", []provider.Result{storetest.Opened}, unpaid},
		{"declined", []provider.Result{storetest.Declined}, unpaid},
		{"expired", []provider.Result{storetest.TimedOut}, unpaid},
		{"paid with another amount", []provider.Result{other}, aside},
		{"paid", []provider.Result{storetest.Succeeded}, ""},
		{"paid late", []provider.Result{storetest.Declined, storetest.Succeeded}, ""},
		{"paid with another amount, and then as asked", []provider.Result{other, storetest.Succeeded}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, func(t *testing.T, s *store.Store) {
				h := newShop(t, s) // whose other payment fills the wallet
				p := storetest.NewPayment(t, h.collect, h.client, storetest.Body{Value: "5000"})
				for i, w := range c.words {
					if w.Outcome == provider.Success {
						w.Receipt = "R-" + strings.Repeat("x", i+1)
					}
					storetest.Apply(t, h.collect, s, p, w)
				}
				made, err := h.ask(h.payouts, storetest.RefundBody{PaymentID: p.ID.String()})
				if c.detail == "" {
					if err != nil || made.Payout.Amount.Minor != 5000 {
						t.Fatalf("%+v, %v", made.Payout, err)
					}
					h.answer(made.Payout, provider.Result{Outcome: provider.Success, Receipt: "R-back"})
					if got := storetest.RefundSums(t, s, p); got != (till.RefundSums{Amount: 5000, Refunded: 5000}) {
						t.Errorf("the sums are %+v", got)
					}
					return
				}
				if e := want(t, err, till.CodeNotRefundable); e.Detail != c.detail || e.Refundable == nil || *e.Refundable != 0 {
					t.Errorf("got %+v, want %q", e, c.detail)
				}
				if got := storetest.RefundSums(t, s, p); got != (till.RefundSums{}) {
					t.Errorf("the sums are %+v", got)
				}
			})
		})
	}
}

// A payment of which all went back has nothing left: with an amount, and without one.
func TestNothingIsLeftToGiveBack(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		h := newShop(t, s)
		h.answer(h.refunded(""), storetest.Succeeded)
		h.pay(paid)
		for _, value := range []string{"", "100", "10000"} {
			_, err := h.refund(value)
			if e := want(t, err, till.CodeRefundExceeds); e.Refundable == nil || *e.Refundable != 0 {
				t.Errorf("%q: %+v", value, e)
			}
		}
		h.wantSums(0, paid, 0)
	})
}

// A refund is made of as much as its operator can move: M-Pesa moves whole shillings.
func TestARefundIsAMultipleOfTheStep(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		h := newShop(t, s)
		p := storetest.NewPayment(t, h.collect, h.client, storetest.Body{Method: "mpesa", Country: "KE", Currency: "KES", Phone: "254711550015", Value: "50000"})
		storetest.Apply(t, h.collect, s, p, provider.Result{Outcome: provider.Success, Receipt: "R-KE"})
		b := storetest.RefundBody{PaymentID: p.ID.String(), Value: "10050", Currency: "KES"}
		_, err := h.ask(h.payouts, b)
		if e := want(t, err, till.CodeValidationFailed); len(e.Fields) != 1 || e.Fields[0].Pointer != "/amount/value" || e.Fields[0].Code != till.FieldNotRepresentable {
			t.Errorf("half a shilling: %+v", e)
		}
		b.Value = "10100"
		if _, err := h.ask(h.payouts, b); err != nil {
			t.Error(err)
		}
	})
}

// The wallet pays the amount and the refund's own fee: one franc less is too little. One that
// fails or is cancelled costs nothing, and one that is paid late costs no fee.
func TestTheFeeOfARefund(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		h := newShop(t, s)
		b := storetest.RefundBody{PaymentID: h.payment.ID.String(), Value: "9925", Fee: 76}
		_, err := h.ask(h.payouts, b)
		want(t, err, till.CodeInsufficientBalance)
		b.Fee = 75
		made, err := h.ask(h.payouts, b)
		if err != nil {
			t.Fatal(err)
		}
		h.wantWallet(paid, paid, 0)
		if _, err := h.payouts.CancelRefund(t.Context(), store.Ref{Client: h.client.ID, ID: made.Payout.ID}, "api:test"); err != nil {
			t.Fatal(err)
		}
		h.wantWallet(paid, 0, 0)
		late, err := h.ask(h.payouts, b)
		if err != nil {
			t.Fatal(err)
		}
		h.answer(late.Payout, storetest.Declined)
		h.wantWallet(paid, 0, 0)
		h.answer(late.Payout, storetest.Succeeded)
		h.wantWallet(75, 0, 0)
		if got := h.lines(); got != "late_refund" {
			t.Errorf("the lines are %q", got)
		}
	})
}
