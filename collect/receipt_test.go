package collect_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"till"
	"till/collect"
	"till/engine"
	"till/provider"
	"till/store"
	"till/store/matching"
	"till/store/storetest"
)

// receipts is two clients on one connection, whose operator says what a test
// makes it say.
type receipts struct {
	t         *testing.T
	store     *store.Store
	collector *collect.Collector
	clients   [2]*till.Client
}

func inReceipts(t *testing.T, tell func(t *testing.T, w *receipts)) {
	t.Helper()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		tell(t, &receipts{t, s, storetest.NewCollector(t, s), [2]*till.Client{storetest.NewClient(t, s, till.Live), storetest.NewClient(t, s, till.Live)}})
	})
}

func (w *receipts) pay(client int) *till.Payment {
	w.t.Helper()
	return storetest.NewPayment(w.t, w.collector, w.clients[client], storetest.Body{})
}

func (w *receipts) say(p *till.Payment, r provider.Result) *store.PaymentRow {
	w.t.Helper()
	return storetest.Apply(w.t, w.collector, w.store, p, r)
}

func (w *receipts) row(p *till.Payment) *store.PaymentRow {
	w.t.Helper()
	return readPayment(w.t, w.store, store.Ref{Client: p.ClientID, ID: p.ID})
}

func (w *receipts) view(f func(ctx context.Context, tx *store.Tx) error) {
	w.t.Helper()
	storetest.View(w.t, w.store, f)
}

// reused returns the case that a payment's receipt is another's, "" if there
// is none.
func (w *receipts) reused(p *till.Payment) (detail string) {
	w.t.Helper()
	ref := store.Ref{Client: p.ClientID, ID: p.ID}
	w.view(func(ctx context.Context, tx *store.Tx) error {
		found, err := matching.CasesOf(ctx, tx, engine.CaseReceiptReused, []store.Ref{ref})
		if c := found[ref]; c != nil {
			detail = c.Detail
		}
		return err
	})
	return detail
}

// notCredited fails unless a payment is as one is whose receipt another has.
func (w *receipts) notCredited(how string, p *till.Payment) {
	w.t.Helper()
	if row := w.row(p); row.Credited() || row.ProviderReference != "" || w.reused(p) == "" {
		w.t.Errorf("%s: it is %s, credited %v, with receipt %q and case %q", how, row.Status, row.Credited(), row.ProviderReference, w.reused(p))
	}
}

func paidUnder(receipt string) provider.Result {
	return provider.Result{Outcome: provider.Success, Receipt: receipt, Amount: till.Money{Minor: 5000, Currency: "XAF"}}
}

// An operator's receipt is the name of one movement of money, of any client's
// customer.
func TestOneReceiptAtTwoClientsCreditsOne(t *testing.T) {
	t.Parallel()
	inReceipts(t, func(t *testing.T, w *receipts) {
		first := w.pay(0)
		if w.say(first, paidUnder("R1")).Status != till.Success {
			t.Fatal("the first is not credited")
		}
		second := w.pay(1)
		w.say(second, paidUnder("R1"))
		w.notCredited("one after the other", second)

		third := w.pay(1)
		w.say(third, storetest.TimedOut)
		w.say(third, paidUnder("R1"))
		w.notCredited("late money", third)

		answers := make([]*engine.Answer, 2)
		both := []*till.Payment{w.pay(0), w.pay(1)}
		for i, p := range both {
			answers[i] = &engine.Answer{Ref: store.Ref{Client: p.ClientID, ID: p.ID}, Action: engine.Check, Connection: p.Connection,
				Started: w.store.Now(), Ended: w.store.Now(), Result: paidUnder("R2")}
		}
		w.collector.Apply(t.Context(), answers)
		if w.row(both[0]).Status != till.Success {
			t.Errorf("together: the first is %s", w.row(both[0]).Status)
		}
		w.notCredited("together", both[1])

		// One of many does not keep the others from being recorded.
		answers = answers[:0]
		for i, receipt := range []string{"R3", "R1", "R4"} {
			p := w.pay(1)
			both = append(both, p)
			answers = append(answers, &engine.Answer{Ref: store.Ref{Client: p.ClientID, ID: p.ID}, Action: engine.Check, Connection: p.Connection,
				Started: w.store.Now(), Ended: w.store.Now() + till.Time(i), Result: paidUnder(receipt)})
		}
		w.collector.Apply(t.Context(), answers)
		if w.row(both[2]).ProviderReference != "R3" || w.row(both[4]).ProviderReference != "R4" {
			t.Errorf("beside one that is not credited: %s and %s", w.row(both[2]).Status, w.row(both[4]).Status)
		}
		w.notCredited("among others", both[3])
	})
}

// A person, or a statement, brings a receipt that another client's payment has.
func TestAReceiptOfAnotherClientIsRefusedToAPerson(t *testing.T) {
	t.Parallel()
	inReceipts(t, func(t *testing.T, w *receipts) {
		w.say(w.pay(0), paidUnder("R1"))
		p := w.pay(1)
		ref := store.Ref{Client: p.ClientID, ID: p.ID}
		r := engine.Resolution{Success: true, Receipt: "R1", By: "Awa", Evidence: "a statement"}
		if err := w.collector.Resolve(t.Context(), ref, r); till.ErrorCode(err) != till.CodeValidationFailed {
			t.Errorf("resolved: %v", err)
		}
		line := &engine.ResolveItem{Ref: ref, Resolution: r}
		if err := w.collector.ResolveAll(t.Context(), []*engine.ResolveItem{line}); err != nil || line.Changed || till.ErrorCode(line.Err) != till.CodeValidationFailed {
			t.Errorf("applied from a statement: changed %v, refused %v, %v", line.Changed, line.Err, err)
		}
		if w.row(p).Credited() {
			t.Error("it was credited")
		}
	})
}

// Two instances get the same receipt at the same moment.
func TestOneReceiptAtTwoInstancesCreditsOne(t *testing.T) {
	t.Parallel()
	inReceipts(t, func(t *testing.T, w *receipts) {
		other := storetest.NewCollector(t, w.store)
		for n := range 10 {
			receipt := "R" + strings.Repeat("I", n+1)
			pair := []*till.Payment{w.pay(0), w.pay(1)}
			begin := make(chan struct{})
			var telling sync.WaitGroup
			for i, c := range []*collect.Collector{w.collector, other} {
				a := &engine.Answer{Ref: store.Ref{Client: pair[i].ClientID, ID: pair[i].ID}, Action: engine.Check, Connection: pair[i].Connection,
					Started: w.store.Now(), Ended: w.store.Now(), Result: paidUnder(receipt)}
				telling.Go(func() {
					<-begin
					c.Apply(context.Background(), []*engine.Answer{a})
				})
			}
			close(begin)
			telling.Wait()
			if a, b := w.row(pair[0]).Credited(), w.row(pair[1]).Credited(); a == b {
				t.Fatalf("credited: %v and %v", a, b)
			}
			for _, p := range pair {
				if !w.row(p).Credited() {
					w.say(p, paidUnder(receipt)) // it is asked again
					w.notCredited("asked again", p)
				}
			}
		}
	})
}

// A person credits a payment in spite of a case: the operator's same word, after
// that, is no news.
func TestACaseThatAPersonHasSeenIsNotOpenedAgain(t *testing.T) {
	t.Parallel()
	inReceipts(t, func(t *testing.T, w *receipts) {
		w.say(w.pay(0), paidUnder("R1"))
		another := paidUnder("R2")
		another.Amount.Minor = 7000
		for kind, word := range map[string]provider.Result{engine.CaseReceiptReused: paidUnder("R1"), engine.CaseMismatch: another} {
			p := w.pay(1)
			ref := store.Ref{Client: p.ClientID, ID: p.ID}
			w.say(p, word)
			if err := w.collector.Resolve(t.Context(), ref, engine.Resolution{Success: true, By: "Awa", Evidence: "the operator's letter"}); err != nil {
				t.Fatal(err)
			}
			if row := w.say(p, word); !row.Credited() || row.ProviderReference != "" {
				t.Errorf("%s: it is %s with receipt %q", kind, row.Status, row.ProviderReference)
			}
			w.view(func(ctx context.Context, tx *store.Tx) error {
				cases, err := matching.CasesOf(ctx, tx, kind, []store.Ref{ref})
				if c := cases[ref]; c == nil || c.ClosedAt == 0 {
					t.Errorf("%s: the case is %+v", kind, c)
				}
				return err
			})
		}
		// Of one that was credited without a receipt nobody knows yet.
		p := w.pay(1)
		w.say(p, storetest.Succeeded)
		w.say(p, paidUnder("R1"))
		if w.reused(p) == "" || w.row(p).ProviderReference != "" {
			t.Errorf("credited before: receipt %q, case %q", w.row(p).ProviderReference, w.reused(p))
		}
	})
}
