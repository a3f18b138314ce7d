package reconcile_test

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"till"
	"till/books"
	"till/engine"
	"till/internal/seal"
	"till/ledger"
	"till/provider"
	"till/store"
	"till/store/matching"
	"till/store/storetest"
)

// shore is where strays wash up: a desk with a book of them.
type strayTest struct {
	*statementTest
	strays *books.Strays
}

func newStrayTest(t *testing.T, s *store.Store) *strayTest {
	t.Helper()
	b, err := books.NewStrays(s, seal.Single([]byte("a secret for tests")))
	if err != nil {
		t.Fatal(err)
	}
	return &strayTest{newStatementTest(t, s), b}
}

// lost is a payment or payout of 5000 XAF that was made and is not here: all that
// is left of it is its client's key and what the operator has.
type lost struct {
	client             *till.Client
	key                string
	id, reference      till.ID
	receipt, direction string
}

func (h *strayTest) lose(receipt, direction string) *lost {
	l := &lost{client: h.client, key: till.NewID(h.s.Now()).String(), id: till.NewID(h.s.Now()), receipt: receipt, direction: direction}
	kind := till.SubjectPayment
	if direction == matching.StrayOut {
		kind = till.SubjectPayout
	}
	l.reference = engine.NewKeys(kind, []byte("a secret for tests")).Reference(l.client.ID, l.key)
	return l
}

// call is a callback about it, as different operators write it.
func (l *lost) call(by string) *matching.Stray {
	s := &matching.Stray{Connection: storetest.Connection, Client: l.client.ID, Subject: l.id, Direction: l.direction, Claimed: "success", Receipt: l.receipt}
	switch by {
	case "its address and receipt": // as MTN's and M-Pesa's
		s.Amount = till.Money{Minor: 5000, Currency: "XAF"}
	case "its reference": // as Airtel's
		s.Client, s.Subject, s.Reference, s.Receipt, s.Direction = till.ID{}, till.ID{}, l.reference, "", ""
	}
	return s
}

// saw brings a callback, and returns its stray.
func (h *strayTest) saw(s *matching.Stray) *matching.Stray {
	h.t.Helper()
	here, fresh, err := h.strays.Record(h.t.Context(), s, []byte(`{"status": "done"}`))
	if err != nil || here != nil || !fresh {
		h.t.Fatalf("the callback: here %v, new %t, %v", here, fresh, err)
	}
	return h.show(s.ID)
}

func (h *strayTest) show(id till.ID) *matching.Stray {
	h.t.Helper()
	s, err := books.ShowStray(h.t.Context(), h.s, id)
	if err != nil {
		h.t.Fatal(err)
	}
	return s
}

func (h *strayTest) open() []*matching.Stray {
	h.t.Helper()
	all, err := books.ListStrays(h.t.Context(), h.s, matching.StrayFilter{})
	if err != nil {
		h.t.Fatal(err)
	}
	return all
}

func (h *strayTest) wallet(c *till.Client) ledger.Wallet {
	h.t.Helper()
	var w *ledger.Wallet
	err := h.s.View(h.t.Context(), func(tx *store.Tx) (err error) { w, err = tx.Wallet(h.t.Context(), c.ID, "XAF"); return err })
	if err != nil {
		h.t.Fatal(err)
	}
	return *w
}

// retry is the client's create again, and the operator's word that it has the money.
func (h *strayTest) retry(l *lost) till.ID {
	h.t.Helper()
	r := provider.Result{Outcome: provider.Success, Receipt: l.receipt, Amount: till.Money{Minor: 5000, Currency: "XAF"}}
	if l.direction == matching.StrayOut {
		p := storetest.NewPayout(h.t, h.master, l.client, storetest.Body{Key: l.key}, 0)
		storetest.ApplyPayout(h.t, h.master, h.s, p, r)
		return p.ID
	}
	p := storetest.NewPayment(h.t, h.collector, l.client, storetest.Body{Key: l.key})
	storetest.Apply(h.t, h.collector, h.s, p, r)
	return p.ID
}

func (h *strayTest) give(s *matching.Stray, c *till.Client, change ...func(a *books.Attribution)) (books.AttributeResult, error) {
	a := books.Attribution{Stray: s.ID, Client: c.ID, By: "Anne Ndala", Evidence: bytes.Repeat([]byte{7}, 32), Named: "portal.png",
		Amount: till.Money{Minor: 5000, Currency: "XAF"}}
	if s.Direction == "" {
		a.Direction = matching.StrayIn
	}
	for _, f := range change {
		f(&a)
	}
	return books.AttributeStray(h.t.Context(), h.s, a)
}

func TestACallbackForALostPaymentIsOneStray(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		h := newStrayTest(t, s)
		l := h.lose("R1", matching.StrayIn)
		stray := h.saw(l.call("its address and receipt"))
		if body, err := h.strays.Body(stray); err != nil || string(body) != `{"status": "done"}` || bytes.Contains(stray.Sealed, []byte("done")) {
			t.Errorf("the body is %q sealed as %q: %v", body, stray.Sealed, err)
		}
		if stray.Why != "" || stray.Claimed != "success" || !stray.ConfirmedAt.IsZero() || stray.Amount.Minor != 5000 || stray.Subject != l.id || stray.Client != l.client.ID {
			t.Errorf("the stray is %+v", stray)
		}
		for range 20 { // replays of it, and the same in other words
			for _, again := range []*matching.Stray{l.call("its address and receipt"), {Connection: storetest.Connection, Receipt: "R1"}} {
				if here, fresh, err := h.strays.Record(t.Context(), again, nil); err != nil || here != nil || fresh {
					t.Fatalf("a replay: here %v, new %t, %v", here, fresh, err)
				}
			}
		}
		if open := h.open(); len(open) != 1 {
			t.Errorf("%d strays are open", len(open))
		}
		if n, err := books.CountOpenStrays(t.Context(), s); n != 1 || err != nil {
			t.Errorf("%d strays are counted, %v", n, err)
		}
		if h.wallet(h.client).Balance != 0 {
			t.Error("a callback was believed")
		}
		// What nobody can keep is left out, and what is about nothing is refused.
		odd := h.saw(&matching.Stray{Connection: storetest.Connection, Subject: till.NewID(s.Now()), Receipt: "a\x00b", Amount: till.Money{Currency: "XAF"}})
		if odd.Receipt != "" || odd.Amount.Currency != "" {
			t.Errorf("kept of an odd callback: %+v", odd)
		}
		if _, _, err := h.strays.Record(t.Context(), &matching.Stray{Connection: storetest.Connection, Receipt: "\x01"}, nil); err == nil {
			t.Error("a callback about nothing is kept")
		}
	})
}

// The retry that makes the payment again closes the stray, in the commit that
// credits it, and only if it is the same money.
func TestARetryClosesItsStray(t *testing.T) {
	t.Parallel()
	for _, way := range []string{matching.StrayIn, matching.StrayOut} {
		for _, by := range []string{"its address and receipt", "its reference"} {
			t.Run(way+" by "+by, func(t *testing.T) {
				t.Parallel()
				storetest.Run(t, func(t *testing.T, s *store.Store) {
					h := newStrayTest(t, s)
					h.fund(20000)
					l, other := h.lose("R1", way), h.lose("R2", way)
					stray := h.saw(l.call(by))
					h.retry(other)
					if got := h.show(stray.ID); got.Why != "" {
						t.Fatalf("another's money closed it: %+v", got)
					}
					id := h.retry(l)
					got := h.show(stray.ID)
					if got.Why != matching.StrayCredited || got.Settled != id || got.Owner != h.client.ID || got.TakenBack || got.Direction != way {
						t.Errorf("the stray is %+v", got)
					}
					if len(h.open()) != 0 {
						t.Error("it is open still")
					}
					want := int64(30000)
					if way == matching.StrayOut {
						want = 10000
					}
					if w := h.wallet(h.client); w.Balance != want {
						t.Errorf("the wallet has %d, want %d", w.Balance, want)
					}
					// The operator repeats itself: the payment is here now.
					if here, fresh, err := h.strays.Record(t.Context(), l.call("its address and receipt"), nil); err != nil || fresh || here == nil || here.Ref.ID != id {
						t.Errorf("a callback for the lost id: %+v, new %t, %v", here, fresh, err)
					}
				})
			})
		}
	}
}

// fund gives the client something to pay out.
func (h *strayTest) fund(minor int64) {
	h.t.Helper()
	_, err := books.Adjust(h.t.Context(), h.s, books.Adjustment{Client: h.client.ID, ID: till.NewID(h.s.Now()), Amount: till.Money{Minor: minor, Currency: "XAF"}, Reason: "to pay out", By: "test"})
	if err != nil {
		h.t.Fatal(err)
	}
}

// An attributed stray has its adjustment, and when its payment turns up after
// all, the commit that credits it takes the adjustment back.
func TestAnAttributedStrayIsTakenBackWhenItsPaymentTurnsUp(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		h := newStrayTest(t, s)
		l := h.lose("R1", matching.StrayIn)
		stray := h.saw(l.call("its reference"))
		done, err := h.give(stray, h.client)
		if err != nil || done.Wallet.Balance != 5000 || done.Why != matching.StrayAttributed || done.Before {
			t.Fatalf("attributed: %+v, %v", done, err)
		}
		if again, err := h.give(stray, h.client); err != nil || !again.Before || again.Wallet.Balance != 5000 {
			t.Errorf("the same again: %+v, %v", again, err)
		}
		if len(h.open()) != 0 {
			t.Error("it is open still")
		}
		storetest.CheckInvariants(t, s)
		id := h.retry(l)
		got := h.show(stray.ID)
		if got.Why != matching.StrayCredited || !got.TakenBack || got.Settled != id || got.Given != h.client.ID {
			t.Errorf("the stray is %+v", got)
		}
		if w := h.wallet(h.client); w.Balance != 5000 || w.Owed != 0 {
			t.Errorf("the wallet is %+v", w)
		}
		if got := h.trail(l.client); !strings.Contains(got, "stray.attribute") || !strings.Contains(got, "stray.credited") {
			t.Errorf("the audit log says %s", got)
		}
	})
}

func (h *strayTest) trail(c *till.Client) string {
	h.t.Helper()
	var out strings.Builder
	err := books.EachAudit(h.t.Context(), h.s, c.ID, books.AuditFilter{}, func(a *store.AuditRow) error {
		fmt.Fprintf(&out, "%s %s: %s\n", a.Actor, a.Action, a.Detail)
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return out.String()
}

// It was given to the wrong client, who has spent it: the right one is credited,
// and the other owes what is gone.
func TestAStrayGivenToAnotherClientIsTakenBackFromIt(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		h := newStrayTest(t, s)
		other := storetest.NewClient(t, s, till.Test)
		l := h.lose("R1", matching.StrayIn)
		stray := h.saw(l.call("its address and receipt"))
		if _, err := h.give(stray, other); err != nil {
			t.Fatal(err)
		}
		p := storetest.NewPayout(t, h.master, other, storetest.Body{Value: "3000"}, 0)
		storetest.ApplyPayout(t, h.master, s, p, paidUnder("P1"))
		h.retry(l)
		if w := h.wallet(h.client); w.Balance != 5000 || w.Owed != 0 {
			t.Errorf("the right client has %+v", w)
		}
		if w := h.wallet(other); w.Balance != 0 || w.Owed != 3000 {
			t.Errorf("the other has %+v", w)
		}
		if got := h.show(stray.ID); got.Owner != h.client.ID || got.Given != other.ID || !got.TakenBack {
			t.Errorf("the stray is %+v", got)
		}
		// And all of it is owed by one who has nothing left.
		broke := storetest.NewClient(t, s, till.Test)
		l = h.lose("R2", matching.StrayIn)
		stray = h.saw(l.call("its address and receipt"))
		if _, err := h.give(stray, broke); err != nil {
			t.Fatal(err)
		}
		p = storetest.NewPayout(t, h.master, broke, storetest.Body{Value: "5000"}, 0)
		storetest.ApplyPayout(t, h.master, s, p, paidUnder("P2"))
		h.retry(l)
		if w := h.wallet(broke); w.Balance != 0 || w.Owed != 5000 {
			t.Errorf("one who has nothing left has %+v", w)
		}
	})
}

// Money that went out is taken from the client, and given back when the payout
// turns up.
func TestAStrayThatWentOut(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		h := newStrayTest(t, s)
		h.fund(8000)
		l := h.lose("R1", matching.StrayOut)
		stray := h.saw(l.call("its address and receipt"))
		done, err := h.give(stray, h.client)
		if err != nil || done.Wallet.Balance != 3000 {
			t.Fatalf("attributed: %+v, %v", done, err)
		}
		h.fund(2000) // enough for the client's retry
		h.retry(l)
		if w := h.wallet(h.client); w.Balance != 5000 || w.Owed != 0 {
			t.Errorf("the wallet is %+v", w)
		}
		// A wallet that lacks it owes it.
		l = h.lose("R2", matching.StrayOut)
		poor := storetest.NewClient(t, s, till.Test)
		if done, err := h.give(h.saw(l.call("its address and receipt")), poor); err != nil || done.Wallet.Balance != 0 || done.Wallet.Owed != 5000 {
			t.Errorf("attributed to one who has nothing: %+v, %v", done, err)
		}
	})
}

func TestWhatCannotBeAttributed(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		h := newStrayTest(t, s)
		l := h.lose("R1", matching.StrayIn)
		stray := h.saw(l.call("its address and receipt"))
		unsaid := h.saw(h.lose("R2", matching.StrayIn).call("its reference"))
		for name, c := range map[string]struct {
			stray  *matching.Stray
			change func(a *books.Attribution)
			code   till.Code
		}{
			"no amount":       {stray, func(a *books.Attribution) { a.Amount = till.Money{} }, till.CodeValidationFailed},
			"no evidence":     {stray, func(a *books.Attribution) { a.Evidence = nil }, till.CodeValidationFailed},
			"no name":         {stray, func(a *books.Attribution) { a.By = "" }, till.CodeValidationFailed},
			"no such client":  {stray, func(a *books.Attribution) { a.Client = till.NewID(1) }, till.CodeClientNotFound},
			"no such stray":   {stray, func(a *books.Attribution) { a.Stray = till.NewID(1) }, till.CodeNotFound},
			"the other way":   {stray, func(a *books.Attribution) { a.Direction = matching.StrayOut }, till.CodeValidationFailed},
			"no way":          {unsaid, func(a *books.Attribution) { a.Direction = "" }, till.CodeValidationFailed},
			"no such wallet":  {stray, func(a *books.Attribution) { a.Amount.Currency = "EUR" }, till.CodeValidationFailed},
			"a minus":         {stray, func(a *books.Attribution) { a.Amount.Minor = -1 }, till.CodeValidationFailed},
			"beyond all ends": {stray, func(a *books.Attribution) { a.Amount.Minor = till.MaxMinor + 1 }, till.CodeValidationFailed},
		} {
			if _, err := h.give(c.stray, h.client, c.change); till.ErrorCode(err) != c.code {
				t.Errorf("%s: %v", name, err)
			}
		}
		foreign, err := books.CloseForeignStray(t.Context(), s, unsaid.ID, books.CaseAction{By: "Anne Ndala", Reason: "another shop's"})
		if err != nil || foreign.Why != matching.StrayForeign {
			t.Fatalf("foreign: %+v, %v", foreign, err)
		}
		if _, err := h.give(unsaid, h.client); till.ErrorCode(err) != till.CodeValidationFailed {
			t.Errorf("one that is foreign was attributed: %v", err)
		}
		// Its payment is here and open, under the receipt that a person brought.
		p := storetest.NewPayment(t, h.collector, l.client, storetest.Body{Key: l.key})
		h.rename(stray, p.ID)
		if _, err := h.give(stray, h.client); till.ErrorCode(err) != till.CodeValidationFailed || !strings.Contains(err.Error(), p.ID.String()) {
			t.Errorf("its payment is here, and it was attributed: %v", err)
		}
		if w := h.wallet(h.client); w.Balance != 0 {
			t.Errorf("the wallet has %d", w.Balance)
		}
	})
}

// Of several who decide about a stray at the same moment, one does: its money is given once.
func TestAStrayIsDecidedOnce(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		h := newStrayTest(t, s)
		clients := []*till.Client{h.client}
		for len(clients) < 4 {
			clients = append(clients, storetest.NewClient(t, s, till.Test))
		}
		for _, c := range clients { // with a wallet each
			p := storetest.NewPayment(t, h.collector, c, storetest.Body{})
			storetest.Apply(t, h.collector, s, p, provider.Result{Outcome: provider.Success, Amount: till.Money{Minor: 5000, Currency: "XAF"}})
		}
		const strays = 10
		for n := range strays {
			stray := h.saw(h.lose(fmt.Sprintf("S%d", n), matching.StrayIn).call("its address and receipt"))
			begin := make(chan struct{})
			var decided atomic.Int64
			var all sync.WaitGroup
			for i := range len(clients) + 1 {
				all.Go(func() {
					<-begin
					var err error
					if i == len(clients) {
						_, err = books.CloseForeignStray(t.Context(), s, stray.ID, books.CaseAction{By: "Anne Ndala", Reason: "another shop's"})
					} else {
						_, err = h.give(stray, clients[i])
					}
					switch {
					case err == nil:
						decided.Add(1)
					case till.ErrorCode(err) != till.CodeValidationFailed:
						t.Error(err)
					}
				})
			}
			close(begin)
			all.Wait()
			if got := decided.Load(); got != 1 {
				t.Fatalf("stray %d was decided %d times", n, got)
			}
		}
		given, balances := 0, int64(0)
		all, err := books.ListStrays(t.Context(), s, matching.StrayFilter{All: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, stray := range all {
			if stray.Why == matching.StrayAttributed {
				given++
			}
		}
		for _, c := range clients {
			balances += h.wallet(c).Balance
		}
		if want := int64(5000 * (len(clients) + given)); len(all) != strays || balances != want {
			t.Errorf("%d strays, %d of them given, and the wallets hold %d; want %d", len(all), given, balances, want)
		}
	})
}

// rename makes a stray name a payment that is here, as one does that was written
// down a moment before the payment was made.
func (h *strayTest) rename(stray *matching.Stray, id till.ID) {
	h.t.Helper()
	stray.Subject, stray.ConfirmedAt, stray.Confirmed = id, h.s.Now(), "a test"
	err := h.s.Update(h.t.Context(), func(tx *store.Tx) error { _, err := matching.ConfirmStray(h.t.Context(), tx, stray); return err })
	if err != nil {
		h.t.Fatal(err)
	}
}

// A credit that was committed while the stray was being written down did not see
// it: the next that finds it closes it, and does not give the money a second time.
func TestAStrayWhoseMoneyIsBookedAlready(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		h := newStrayTest(t, s)
		stray := h.saw(h.lose("R1", matching.StrayIn).call("its address and receipt"))
		p := h.pay("paid", paidUnder("R9"))
		h.rename(stray, p.ID)
		r, err := books.Verify(t.Context(), s, books.Options{})
		if err != nil || len(r.Problems) != 1 || r.Problems[0].Invariant != "I16" || r.Strays != 1 {
			t.Errorf("verify: %+v, %v", r.Problems, err)
		}
		if _, err := h.give(stray, h.client); till.ErrorCode(err) != till.CodeValidationFailed {
			t.Errorf("it was attributed: %v", err)
		}
		if got := h.show(stray.ID); got.Why != matching.StrayCredited || got.Settled != p.ID {
			t.Errorf("the stray is %+v", got)
		}
		if w := h.wallet(h.client); w.Balance != 5000 {
			t.Errorf("the wallet has %d", w.Balance)
		}
	})
}

// A payout has the money of a stray if it was paid, in time or late. One that was cancelled
// unsent has ended, too, but never has money: the stray stays open, for a person to attribute.
func TestACancelledPayoutHasNoStraysMoney(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		h := newStrayTest(t, s)
		h.fund(50_000)
		refused := provider.Result{Outcome: provider.Failed, Reason: till.RecipientNotFound}
		cancelled := h.payOut("cancelled")
		if _, err := h.master.Cancel(t.Context(), store.Ref{Client: h.client.ID, ID: cancelled.ID}, "a test"); err != nil {
			t.Fatal(err)
		}
		for i, c := range []struct {
			name  string
			p     *till.Payout
			money bool
		}{{"paid", h.payOut("paid", paidUnder("R7")), true}, {"paid late", h.payOut("late", refused, paidUnder("R8")), true}, {"cancelled", cancelled, false}} {
			stray := h.saw(h.lose(fmt.Sprintf("R2%d", i), matching.StrayOut).call("its address and receipt"))
			h.rename(stray, c.p.ID)
			problems := 0
			if c.money {
				problems = 1
			}
			if r, err := books.Verify(t.Context(), s, books.Options{}); err != nil || len(r.Problems) != problems {
				t.Errorf("%s: verify: %+v, %v", c.name, r.Problems, err)
			}
			_, err := h.give(stray, h.client)
			if got := h.show(stray.ID); c.money && (till.ErrorCode(err) != till.CodeValidationFailed || got.Why != matching.StrayCredited || got.Settled != c.p.ID) ||
				!c.money && (err != nil || got.Why != matching.StrayAttributed) {
				t.Errorf("%s: attributed with %v, the stray is %+v", c.name, err, got)
			}
			if r, err := books.Verify(t.Context(), s, books.Options{}); err != nil || len(r.Problems) != 0 {
				t.Errorf("%s: verify, once it is closed: %+v, %v", c.name, r.Problems, err)
			}
		}
	})
}

// A receipt that comes after the success tells whose money it was.
func TestAReceiptThatComesLaterClosesItsStray(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		h := newStrayTest(t, s)
		stray := h.saw(h.lose("R1", matching.StrayIn).call("its address and receipt"))
		if _, err := h.give(stray, h.client); err != nil {
			t.Fatal(err)
		}
		p := h.pay("paid", provider.Result{Outcome: provider.Success})
		if got := h.show(stray.ID); got.Why != matching.StrayAttributed {
			t.Fatalf("the stray is %+v", got)
		}
		storetest.Apply(t, h.collector, s, p, paidUnder("R1"))
		if got := h.show(stray.ID); got.Why != matching.StrayCredited || got.Settled != p.ID || !got.TakenBack {
			t.Errorf("the stray is %+v", got)
		}
		if w := h.wallet(h.client); w.Balance != 5000 {
			t.Errorf("the wallet has %d", w.Balance)
		}
	})
}

func TestStraysAreLimited(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Config{Path: filepath.Join(t.TempDir(), "till.db")})
	h := newStrayTest(t, s)
	err := s.Update(t.Context(), func(tx *store.Tx) error {
		for range books.MaxStrays {
			id := till.NewID(tx.Now())
			if _, err := matching.InsertStray(t.Context(), tx, &matching.Stray{Connection: storetest.Connection, ID: id, Subject: id, Source: matching.StrayCallback, SeenAt: tx.Now()}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.strays.Record(t.Context(), h.lose("R1", matching.StrayIn).call("its reference"), nil); !errors.Is(err, books.ErrManyStrays) {
		t.Errorf("one too many: %v", err)
	}
	h.line("", h.lose("", "").id.String(), "R2", "5 000,00", "XAF", "Done", "C")
	r, _ := h.reconcile()
	if a := h.apply(r); a.Beyond != 1 || a.Strays != 0 {
		t.Errorf("a statement's line: %+v", a)
	}
	elsewhere := h.lose("R1", matching.StrayIn).call("its reference")
	elsewhere.Connection = "elsewhere"
	h.saw(elsewhere)
}

// A line of a statement that names us and that nothing is known of is a stray: by
// a reference, an id, or the end of an id that M-Pesa shows.
func TestAStatementLineMissingHereBecomesAStray(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		h := newStrayTest(t, s)
		byCall, byReference, byID, byEnd, back := h.lose("R1", matching.StrayIn), h.lose("R2", matching.StrayIn), h.lose("R3", matching.StrayOut), h.lose("R4", matching.StrayIn), h.lose("R5", matching.StrayIn)
		called := h.saw(byCall.call("its address and receipt"))
		end := byEnd.id.String()[24:]
		for !strings.ContainsAny(end, "abcdef") {
			byEnd = h.lose("R4", matching.StrayIn)
			end = byEnd.id.String()[24:]
		}
		h.line(byReference.reference.String(), "", "R2", "5 000,00", "XAF", "Done", "C")
		h.line("", strings.ReplaceAll(byID.id.String(), "-", ""), "R3", "5 000,00", "XAF", "Done", "D")
		h.line("", strings.ToUpper(end), "R4", "5 000,00", "XAF", "Done", "C")
		h.line("", byCall.id.String(), "R1", "4 900,00", "XAF", "Done", "C") // what was claimed is not what came
		h.line(back.reference.String(), "", "R5", "5 000,00", "XAF", "Done", "C")
		h.line(back.reference.String(), "", "R5", "5 000,00", "XAF", "Taken back", "C")
		h.line("INVOICE 7", "254712345678", "R6", "5 000,00", "XAF", "Done", "C") // names nothing of our form
		h.line(h.lose("", matching.StrayIn).reference.String(), "", "R7", "5 000,00", "XAF", "Refused", "C")
		tail := h.pay("known", provider.Result{Outcome: provider.Success}) // its receipt was never told
		if end := strings.ToUpper(tail.ID.String()[24:]); strings.ContainsAny(end, "ABCDEF") {
			h.line("", end, "R8", "5 000,00", "XAF", "Done", "C")
		}
		r, found := h.reconcile()
		if n := strings.Count(strings.Join(found, "\n"), "missing_here"); n != 8 {
			t.Errorf("%d lines are missing here: %q", n, found)
		}
		a := h.apply(r)
		if a.Strays != 4 || a.Kept != 0 || a.Refused != 0 {
			t.Fatalf("applied: %+v", a)
		}
		open := h.open()
		receipts := ""
		for _, s := range open {
			receipts += s.Receipt + s.Direction + " "
			if s.ConfirmedAt.IsZero() || !strings.Contains(s.Confirmed, "statement april.csv sha256:") || !strings.Contains(s.Confirmed, "by Anne Ndala") {
				t.Errorf("not confirmed: %+v", s)
			}
		}
		if receipts != "R1in R2in R3out R4in " {
			t.Errorf("the open strays are %s", receipts)
		}
		if got := h.show(called.ID); got.Amount.Minor != 4900 || got.Source != matching.StrayCallback {
			t.Errorf("what the callback told of is %+v", got)
		}
		// A second run changes nothing.
		r, _ = h.reconcile()
		if a := h.apply(r); a.Strays != 0 || a.Kept != 4 || len(h.open()) != 4 {
			t.Errorf("applied again: %+v", a)
		}
		// What is confirmed needs no amount, and takes no other.
		if _, err := h.give(called, h.client); till.ErrorCode(err) != till.CodeValidationFailed {
			t.Errorf("another amount than the statement's: %v", err)
		}
		if done, err := h.give(called, h.client, func(a *books.Attribution) { a.Amount = till.Money{} }); err != nil || done.Wallet.Balance != 9900 {
			t.Errorf("attributed: %+v, %v", done, err)
		}
		h.retry(byReference)
		_, found = h.reconcile()
		all := strings.Join(found, "\n")
		if strings.Count(all, "explained") != 1 || strings.Count(all, "missing_here") != 6 {
			t.Errorf("after an attribution and a retry: %q", found)
		}
	})
}
