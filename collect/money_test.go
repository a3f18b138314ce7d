package collect_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"till"
	"till/books"
	"till/engine"
	"till/ledger"
	"till/provider"
	"till/provider/sandbox"
	"till/store"
	"till/store/storetest"
	"till/story"
)

// wallet returns the client's wallet in XAF.
func (w *world) wallet() *ledger.Wallet {
	w.t.Helper()
	var out *ledger.Wallet
	w.view(func(ctx context.Context, tx *store.Tx) (err error) {
		out, err = tx.Wallet(ctx, w.client.ID, "XAF")
		return err
	})
	return out
}

// holds checks what the wallet holds and what is owed.
func (w *world) holds(balance, owed int64) {
	w.t.Helper()
	if got := w.wallet(); got.Balance != balance || got.Owed != owed {
		w.t.Errorf("the wallet holds %d and owes %d, want %d and %d", got.Balance, got.Owed, balance, owed)
	}
	if got := w.posted(ledger.Receivable); got != -owed {
		w.t.Errorf("the receivable account holds %d, want %d", got, -owed)
	}
}

// spend takes money out of the wallet.
func (w *world) spend(amount int64) {
	w.t.Helper()
	_, err := books.Adjust(context.Background(), w.store, books.Adjustment{
		Client: w.client.ID, ID: till.NewID(w.store.Now()), Amount: till.Money{Minor: -amount, Currency: "XAF"}, Reason: "paid by hand", By: "Awa"})
	if err != nil {
		w.t.Fatal(err)
	}
}

// pay makes a payment and waits until its money is there.
func (w *world) pay(digits string) till.ID {
	w.t.Helper()
	id := w.create(digits).ID
	time.Sleep(2 * time.Second)
	if p := w.payment(id); p.Status != till.Success {
		w.t.Fatalf("%s is %s, want success", digits, p.Status)
	}
	return id
}

// lines prints the whole statement, oldest first.
func (w *world) lines() string {
	w.t.Helper()
	var out []string
	w.view(func(ctx context.Context, tx *store.Tx) error {
		ts, _, err := tx.ListTransactions(ctx, w.client.ID, store.TransactionFilter{}, store.Page{Limit: 100, Ascending: true})
		for _, t := range ts {
			sign := "+"
			if t.Direction == "debit" {
				sign = "-"
			}
			out = append(out, fmt.Sprintf("%s %s%s", t.Type, sign, t.Amount.Value()))
		}
		return err
	})
	return strings.Join(out, ", ")
}

func (w *world) want(lines string) {
	w.t.Helper()
	if got := w.lines(); got != lines {
		w.t.Errorf("the statement\n got  %s\n want %s", got, lines)
	}
}

var reversed = provider.Result{Outcome: provider.Reversed, Code: "REVERSED", Amount: till.Money{Minor: 5000, Currency: "XAF"}}

// The story 0021: the operator takes a collection back, which the wallet covers.
func TestACollectionTakenBackIsDebitedOnce(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		id := w.pay("0021")
		w.holds(5000, 0)
		if w.step(id) != nil {
			t.Error("a success is read without a callback")
		}
		time.Sleep(4 * time.Second)
		outcome{"0021", "success", "", "confirmed", 1, "collection_reversal collection", "pending processing success reversed", "reversed"}.check(t, w, id)
		w.holds(0, 0)
		w.want("collection +5000, collection_reversal -5000")
		if w.posted(ledger.OperatorAccount) != 0 || w.step(id) != nil {
			t.Errorf("the operator's account holds %d, the step is %+v; want nothing", w.posted(ledger.OperatorAccount), w.step(id))
		}
		w.view(func(ctx context.Context, tx *store.Tx) error {
			events, err := tx.PaymentEvents(ctx, store.Ref{Client: w.client.ID, ID: id})
			last := events[len(events)-1]
			if body := string(last.AppendJSON(nil)); last.Kind != till.PaymentReversed || !strings.Contains(body, `"status":"success"`) || !strings.Contains(body, `"type":"payment.reversed"`) {
				t.Errorf("the event is %s", body)
			}
			return err
		})
		// Callbacks for it lead nowhere from here on.
		_, before := w.way.counts()
		if err := w.collector.RecordCallback(t.Context(), "", store.Ref{Client: w.client.ID, ID: id}, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if _, after := w.way.counts(); after != before || w.step(id) != nil {
			t.Errorf("%d reads after it was taken back", after-before)
		}
	})
}

func TestWhatTheWalletCannotCoverIsOwedAndRepaidFirst(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		first, second := w.create("4567").ID, w.create("4567").ID
		time.Sleep(2 * time.Second)
		w.spend(7000)
		w.holds(3000, 0)
		w.collector.Apply(t.Context(), answers(w, first, reversed)) // 3000 are there
		w.holds(0, 2000)
		w.collector.Apply(t.Context(), answers(w, second, reversed)) // nothing is: no line, and yet a fact
		w.holds(0, 7000)
		if w.credits(second) != "collection" || w.kinds(second) != "pending processing success reversed" || w.cases(second) != "reversed" {
			t.Errorf("without money: lines %q, events %q, cases %q", w.credits(second), w.kinds(second), w.cases(second))
		}
		w.pay("4567")
		w.holds(0, 2000)
		w.pay("4567")
		w.holds(3000, 0)
		w.pay("4567")
		w.holds(8000, 0)
		w.want("collection +5000, collection +5000, adjustment -7000, collection_reversal -3000, " +
			"collection +5000, adjustment -5000, collection +5000, adjustment -2000, collection +5000")
		w.view(func(ctx context.Context, tx *store.Tx) error {
			ts, _, err := tx.ListTransactions(ctx, w.client.ID, store.TransactionFilter{Reference: ledger.RepaidReference}, store.Page{Limit: 10})
			if len(ts) != 2 || !ts[0].PaymentID.IsZero() {
				t.Errorf("%d lines say that they repay", len(ts))
			}
			return err
		})
		repaid := 0
		if err := books.EachAudit(t.Context(), w.store, w.client.ID, books.AuditFilter{}, func(a *store.AuditRow) error {
			if a.Cause == "repay" && strings.HasSuffix(a.Detail, "debited; "+ledger.RepaidReference) {
				repaid++
			}
			return nil
		}); err != nil || repaid != 2 {
			t.Errorf("%d audit rows say that something was repaid, and why; %v", repaid, err)
		}
	})
}

// A credit by hand, and money that is no longer held for a payout, repay too.
func TestWhateverBecomesAvailableRepaysWhatIsOwed(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		id := w.pay("4567")
		w.spend(4000)
		w.collector.Apply(t.Context(), answers(w, id, reversed))
		w.holds(0, 4000)
		w.spend(-1500)
		w.holds(0, 2500)
		if _, err := books.Adjust(t.Context(), w.store, books.Adjustment{Client: w.client.ID, ID: till.NewID(1),
			Amount: till.Money{Minor: -1, Currency: "XAF"}, Reason: "x", By: "Awa"}); till.ErrorCode(err) != till.CodeValidationFailed {
			t.Errorf("something was taken from a wallet that owes: %v", err)
		}
		w.spend(-3000)
		w.holds(500, 0)
		w.want("collection +5000, adjustment -4000, collection_reversal -1000, adjustment +1500, adjustment -1500, adjustment +3000, adjustment -2500")
	})
}

// D5, D10, D13, D15: however often and however concurrently it is reported, it is
// taken back once.
func TestAReversalToldFiveTimesIsOne(t *testing.T) {
	t.Parallel()
	check := func(t *testing.T, w *world, id till.ID) {
		t.Helper()
		outcome{"4567", "success", "", "confirmed", 1, "collection_reversal collection", "pending processing success reversed", "reversed"}.check(t, w, id)
		w.holds(0, 0)
		w.want("collection +5000, collection_reversal -5000")
	}
	t.Run("in one batch", func(t *testing.T) {
		t.Parallel()
		inWorld(t, func(t *testing.T, w *world) {
			id := w.pay("4567")
			w.collector.Apply(t.Context(), answers(w, id, reversed, reversed, reversed, reversed, reversed))
			check(t, w, id)
		})
	})
	t.Run("at once", func(t *testing.T) {
		t.Parallel()
		inWorld(t, func(t *testing.T, w *world) {
			id := w.pay("4567")
			var wg sync.WaitGroup
			for range 5 {
				wg.Go(func() { w.collector.Apply(t.Context(), answers(w, id, reversed)) })
			}
			wg.Wait()
			check(t, w, id)
		})
	})
	t.Run("by callbacks", func(t *testing.T) {
		t.Parallel()
		inWorld(t, func(t *testing.T, w *world) {
			id := w.pay("4567")
			time.Sleep(time.Minute)
			_, before := w.way.counts()
			w.way.set(nil, func(context.Context, provider.Query, int) (provider.Result, error) { return reversed, nil })
			for range 5 {
				if err := w.collector.RecordCallback(t.Context(), "", store.Ref{Client: w.client.ID, ID: id}, nil); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Minute)
			check(t, w, id)
			if _, after := w.way.counts(); after-before > 2 {
				t.Errorf("five callbacks led to %d reads", after-before)
			}
		})
	})
	t.Run("by a person, and by the operator after that", func(t *testing.T) {
		t.Parallel()
		inWorld(t, func(t *testing.T, w *world) {
			id := w.pay("4567")
			ref := store.Ref{Client: w.client.ID, ID: id}
			word := engine.Resolution{Reversed: true, By: "Awa", Evidence: "a letter"}
			if err := w.collector.Resolve(t.Context(), ref, word); err != nil || w.cases(id) != "" {
				t.Fatalf("%v, cases %q", err, w.cases(id))
			}
			w.collector.Apply(t.Context(), answers(w, id, reversed))
			if err := w.collector.Resolve(t.Context(), ref, word); err != nil {
				t.Errorf("the same word again: %v", err)
			}
			w.holds(0, 0)
			w.want("collection +5000, collection_reversal -5000")
			if err := w.collector.Resolve(t.Context(), ref, engine.Resolution{Success: true, By: "Awa", Evidence: "x"}); till.ErrorCode(err) != till.CodeValidationFailed {
				t.Errorf("what was taken back was credited again: %v", err)
			}
		})
	})
}

// F15 and its neighbours: what is no reversal of this money takes nothing.
func TestWhatIsNoReversalTakesNothingBack(t *testing.T) {
	t.Parallel()
	other := reversed
	other.Amount.Minor = 4000
	foreign := reversed
	foreign.Amount.Currency = "KES"
	declined := provider.Result{Outcome: provider.Failed, Reason: till.CustomerDeclined}
	for name, c := range map[string]struct {
		words []provider.Result
		cases string
	}{
		"failed after success":          {[]provider.Result{declined}, "contradiction"},
		"another amount is taken back":  {[]provider.Result{other}, "mismatch"},
		"another currency":              {[]provider.Result{foreign}, "mismatch"},
		"open after success":            {[]provider.Result{{Outcome: provider.Open}}, ""},
		"an unknown word after success": {[]provider.Result{{Outcome: provider.Unrecognised, Code: "ODD"}}, ""},
		"not found after success":       {[]provider.Result{{Outcome: provider.NotFound}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				id := w.pay("4567")
				w.collector.Apply(t.Context(), answers(w, id, c.words...))
				w.holds(5000, 0)
				if p := w.payment(id); p.Status != till.Success || p.ReversedEvent != 0 || w.cases(id) != c.cases || w.credits(id) != "collection" {
					t.Errorf("%s, cases %q, lines %q", p.Status, w.cases(id), w.credits(id))
				}
			})
		})
	}
	t.Run("before anything was credited", func(t *testing.T) {
		t.Parallel()
		inWorld(t, func(t *testing.T, w *world) {
			open, failed := w.create("0014").ID, w.create("0002").ID
			time.Sleep(2 * time.Second)
			if err := w.collector.Resolve(t.Context(), store.Ref{Client: w.client.ID, ID: open}, engine.Resolution{Reversed: true, By: "Awa", Evidence: "x"}); till.ErrorCode(err) != till.CodeValidationFailed {
				t.Errorf("a person took back what never came: %v", err)
			}
			w.collector.Apply(t.Context(), append(answers(w, open, reversed), answers(w, failed, reversed)...))
			if p := w.payment(open); p.Status != till.Failed || w.kinds(open) != "pending processing failed" || w.cases(open) != "" {
				t.Errorf("%s, events %q", p.Status, w.kinds(open))
			}
			if w.kinds(failed) != "pending processing failed" || w.lines() != "" {
				t.Errorf("events %q, lines %q", w.kinds(failed), w.lines())
			}
		})
	})
	t.Run("money that was put aside", func(t *testing.T) {
		t.Parallel()
		inWorld(t, func(t *testing.T, w *world) {
			id := w.create("0019").ID
			time.Sleep(2 * time.Second)
			w.collector.Apply(t.Context(), answers(w, id, reversed))
			if p := w.payment(id); p.Status != till.Processing || w.cases(id) != "mismatch contradiction" || w.lines() != "" {
				t.Errorf("%s, cases %q, lines %q; want a person to look", p.Status, w.cases(id), w.lines())
			}
		})
	})
}

// A late collection can be taken back like any other.
func TestLateMoneyCanBeTakenBack(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.fees = []till.Fee{{Kind: till.PaymentFee, Method: "mtn_momo", Currency: "XAF", Flat: 100}}
		id := w.create("0013").ID
		time.Sleep(window + 8*time.Second)
		w.holds(4900, 0)
		w.collector.Apply(t.Context(), answers(w, id, reversed))
		w.holds(0, 100)
		outcome{"0013", "expired", "customer_timeout", "confirmed", 1, "collection_reversal fee late_collection",
			"pending processing expired late_success reversed", "late_money reversed"}.check(t, w, id)
	})
}

func TestAFeeIsFixedAtCreationAndPostedWithTheCollection(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.fees = []till.Fee{
			{Kind: till.PaymentFee, Method: "mtn_momo", Currency: "XAF", Flat: 10, BasisPoints: 151},
			{Kind: till.PayoutFee, Method: "mtn_momo", Currency: "XAF", Flat: 999},
		}
		key := till.NewID(w.store.Now()).String()
		made, err := w.collector.Create(t.Context(), w.who(), request(t, key, "4567"))
		if err != nil || made.Payment.Fee != 86 { // 75.5 goes up
			t.Fatalf("a fee of %d, %v; want 86", made.Payment.Fee, err)
		}
		declined := w.create("0002").ID
		w.fees = nil // it was fixed
		time.Sleep(2 * time.Second)
		again, err := w.collector.Create(t.Context(), w.who(), request(t, key, "4567"))
		if err != nil || !again.Replayed || again.Payment.Fee != 86 {
			t.Errorf("the replay has a fee of %d, %v", again.Payment.Fee, err)
		}
		if body := string(w.payment(made.Payment.ID).AppendJSON(nil)); !strings.Contains(body, `"fee":"86","net":"4914"`) {
			t.Errorf("the payment is %s", body)
		}
		if p := w.payment(declined); p.Fee != 86 || w.credits(declined) != "" {
			t.Errorf("a declined payment: fee %d, lines %q", p.Fee, w.credits(declined))
		}
		w.view(func(ctx context.Context, tx *store.Tx) error {
			events, err := tx.EventBodies(ctx, w.client.ID, 0, 100)
			for _, e := range events {
				if body := string(e.AppendJSON(nil)); !strings.Contains(body, `"fee":"86","net":"4914"`) {
					t.Errorf("an event says %s", body)
				}
			}
			return err
		})
		w.pay("4567")
		w.want("collection +5000, fee -86, collection +5000")
		if got := w.posted(ledger.Fees); got != 86 {
			t.Errorf("the account of fees holds %d, want 86", got)
		}
		// The whole amount can be a fee; nothing is left, and nothing is owed.
		w.fees = []till.Fee{{Kind: till.PaymentFee, Method: "mtn_momo", Currency: "XAF", BasisPoints: 10_000}}
		w.pay("4567")
		w.holds(9914, 0)
	})
}

// The fee of a collection that is taken back is kept: what the wallet lacks
// for it is owed.
func TestAReversalKeepsTheFee(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.fees = []till.Fee{{Kind: till.PaymentFee, Method: "mtn_momo", Currency: "XAF", Flat: 100}}
		w.pay("0021")
		w.holds(4900, 0)
		time.Sleep(4 * time.Second)
		w.holds(0, 100)
		w.pay("4567") // its fee comes first, then what is owed
		w.holds(4800, 0)
		w.want("collection +5000, fee -100, collection_reversal -4900, collection +5000, fee -100, adjustment -100")
	})
}

// A process that dies on the way to a reversal leaves it to the next.
func TestAReversalSurvivesACrash(t *testing.T) {
	t.Parallel()
	t.Run("between the callback and the read", func(t *testing.T) {
		t.Parallel()
		inWorld(t, func(t *testing.T, w *world) {
			id := w.pay("4567")
			time.Sleep(time.Minute)
			w.stop()
			w.start(func(c *engine.Config) { c.AcceptOnly = true }) // it takes the callback, and dies
			if err := w.collector.RecordCallback(t.Context(), "", store.Ref{Client: w.client.ID, ID: id}, nil); err != nil {
				t.Fatal(err)
			}
			w.stop()
			w.way.set(nil, func(context.Context, provider.Query, int) (provider.Result, error) { return reversed, nil })
			w.start()
			time.Sleep(time.Second)
			w.holds(0, 0)
		})
	})
	t.Run("with the answer in hand", func(t *testing.T) {
		t.Parallel()
		inWorldWith(t, sandbox.Config{PollInterval: time.Second}, func(t *testing.T, w *world) {
			id := w.pay("4567")
			time.Sleep(time.Minute)
			_, before := w.way.counts()
			w.way.set(nil, func(_ context.Context, _ provider.Query, n int) (provider.Result, error) {
				if n == before+1 {
					runtime.Goexit() // the process dies here: the lease stays, nobody answers
				}
				return reversed, nil
			})
			if err := w.collector.RecordCallback(t.Context(), "", store.Ref{Client: w.client.ID, ID: id}, nil); err != nil {
				t.Fatal(err)
			}
			time.Sleep(engine.Lease - time.Second)
			w.holds(5000, 0)
			time.Sleep(5 * time.Second)
			w.holds(0, 0)
			w.want("collection +5000, collection_reversal -5000")
		})
	})
	t.Run("while the operator is away", func(t *testing.T) {
		t.Parallel()
		inWorld(t, func(t *testing.T, w *world) {
			id := w.pay("4567")
			time.Sleep(time.Minute)
			w.way.set(nil, func(context.Context, provider.Query, int) (provider.Result, error) { return provider.Result{}, errAway })
			if err := w.collector.RecordCallback(t.Context(), "", store.Ref{Client: w.client.ID, ID: id}, nil); err != nil {
				t.Fatal(err)
			}
			time.Sleep(24 * time.Hour)
			if w.step(id) == nil {
				t.Fatal("no read was answered, yet none is scheduled")
			}
			w.way.set(nil, func(context.Context, provider.Query, int) (provider.Result, error) { return reversed, nil })
			time.Sleep(2 * time.Hour)
			w.holds(0, 0)
		})
	})
}

// callbacks returns how often the operator called about a payment.
func (w *world) callbacks(id till.ID) (c store.Callbacks) {
	w.t.Helper()
	w.view(func(ctx context.Context, tx *store.Tx) error {
		s, err := story.ReadStory(ctx, tx, till.SubjectPayment, store.Ref{Client: w.client.ID, ID: id})
		if err == nil {
			c = s.Calls
		}
		return err
	})
	return c
}

// The callbacks of a payment stay known when its step has ended, and are in its
// timeline before what they led to.
func TestCallbacksOutliveTheStep(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		id := w.create("0002").ID
		ref := store.Ref{Client: w.client.ID, ID: id}
		time.Sleep(30 * 24 * time.Hour)
		before := w.callbacks(id)
		came := w.store.Now()
		for range 2 {
			if err := w.collector.RecordCallback(t.Context(), "", ref, nil); err != nil {
				t.Fatal(err)
			}
		}
		if got := w.callbacks(id); got.Count != before.Count+2 || got.Last != came {
			t.Errorf("while they wait: %+v after %+v", got, before)
		}
		time.Sleep(time.Hour)
		got := w.callbacks(id)
		if w.step(id) != nil || got.Count != before.Count+2 || got.Last != came || before.Count > 0 && got.First != before.First {
			t.Errorf("after the step: %+v after %+v", got, before)
		}
		w.view(func(ctx context.Context, tx *store.Tx) error {
			s, err := story.ReadStory(ctx, tx, till.SubjectPayment, ref)
			if err != nil {
				return err
			}
			for _, m := range s.Timeline() {
				if m.Kind == story.MomentCallback {
					if m.At != got.First {
						t.Errorf("the timeline has the callbacks at %s, want %s", m.At, got.First)
					}
					return nil
				}
			}
			t.Error("the timeline has no callback")
			return nil
		})
	})
}

// A callback for a success is a reason to ask once; a flood of them is not a
// reason to ask without end.
func TestCallbacksForASuccessAreReadForAtAPace(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		id := w.pay("4567")
		ref := store.Ref{Client: w.client.ID, ID: id}
		time.Sleep(time.Minute)
		_, before := w.way.counts()
		calls := w.callbacks(id)
		for range 100 { // for ten seconds
			if err := w.collector.RecordCallback(t.Context(), "", ref, nil); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		_, after := w.way.counts()
		if n := after - before; n < 5 || n > 12 {
			t.Errorf("%d reads in ten seconds of callbacks, want about one a second", n)
		}
		if w.step(id) != nil || w.payment(id).Status != till.Success {
			t.Errorf("a step is left: %+v", w.step(id))
		}
		if err := w.collector.RecordCallback(t.Context(), "", ref, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if _, again := w.way.counts(); again != after+1 || w.step(id) != nil {
			t.Errorf("one more callback led to %d reads", again-after)
		}
		// Each is counted, whether it led to a read or not.
		if got := w.callbacks(id); got.Count != calls.Count+101 || got.Last != w.store.Now().Add(-time.Minute) || calls.Count > 0 && got.First != calls.First {
			t.Errorf("the row has %+v after %+v and 101 more", got, calls)
		}
	})
}

// D6 for reversals: what is held for a payout on its way is not taken.
func TestAReversalLeavesWhatIsReserved(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		reserve := func(amount int64) {
			t.Helper()
			err := w.store.Update(t.Context(), func(tx *store.Tx) error {
				v, err := tx.Wallet(t.Context(), w.client.ID, "XAF")
				if err != nil {
					return err
				}
				v.Reserved = amount
				return tx.SaveWallets(t.Context(), []*ledger.Wallet{v})
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		id := w.pay("4567")
		reserve(3000)
		w.collector.Apply(t.Context(), answers(w, id, reversed))
		w.holds(3000, 3000)
		if got := w.wallet(); got.Reserved != 3000 || got.Available() != 0 {
			t.Errorf("the wallet is %+v, want all of it reserved", got)
		}
		reserve(0)
		w.pay("4567")
		w.holds(5000, 0)
	})
}

// Money that was put aside for a payment is the payment's when it is credited after all:
// nothing of it stays in suspense, and the operator's account has what came in, once.
func TestACreditTakesItsMoneyOutOfSuspense(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.way.set(func(context.Context, provider.Request, int) (provider.Result, error) {
			return provider.Result{Outcome: provider.Accepted}, nil
		}, func(context.Context, provider.Query, int) (provider.Result, error) {
			return provider.Result{Outcome: provider.Success, Receipt: "R1", Amount: till.Money{Minor: 4000, Currency: "XAF"}}, nil
		})
		id := w.create("4567").ID
		time.Sleep(3 * time.Second)
		if p := w.payment(id); p.Status == till.Success || w.cases(id) != "mismatch" || w.posted(ledger.SuspenseAccount) != 4000 {
			t.Fatalf("%s with the cases %q, %d in suspense; want an open one, mismatch, 4000", p.Status, w.cases(id), w.posted(ledger.SuspenseAccount))
		}
		ref := store.Ref{Client: w.client.ID, ID: id}
		err := w.collector.Resolve(context.Background(), ref, engine.Resolution{Success: true, Receipt: "R1", By: "Awa", Evidence: "statement.pdf"})
		if err != nil {
			t.Fatal(err)
		}
		if p := w.payment(id); p.Status != till.Success || w.posted(ledger.SuspenseAccount) != 0 {
			t.Errorf("resolved, it is %s with %d in suspense; want success and none", p.Status, w.posted(ledger.SuspenseAccount))
		}
		w.holds(5000, 0)
	})
}

// A line of a statement settles what is open. If the row was decided after the statement was
// read, the line changes nothing, and closes no case: who applies a statement has not
// looked at them. A person who resolves the one payment has.
func TestAStatementClosesNoCaseOfADecidedPayment(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]provider.Result{"credited": storetest.Succeeded, "failed": storetest.Declined} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, func(t *testing.T, s *store.Store) {
				client, c := storetest.NewClient(t, s, till.Test), storetest.NewCollector(t, s)
				p := storetest.NewPayment(t, c, client, storetest.Body{})
				storetest.Apply(t, c, s, p, first)
				if first.Outcome == provider.Success {
					storetest.Apply(t, c, s, p, storetest.Declined)
				} else {
					storetest.Apply(t, c, s, p, storetest.Succeeded) // credited late
				}
				before := readCases(t, s, p.ID)
				if before == "" {
					t.Fatal("there is no case")
				}
				line := &engine.Answer{Ref: store.Ref{Client: client.ID, ID: p.ID}, Action: engine.Resolve, Connection: p.Connection,
					Started: s.Now(), Ended: s.Now(), By: "Awa", Evidence: "line 7", UnlessDecided: true, Result: provider.Result{Outcome: first.Outcome}}
				c.Apply(t.Context(), []*engine.Answer{line})
				if got := readCases(t, s, p.ID); line.RecordErr != nil || !line.Unchanged || got != before {
					t.Errorf("the line: %v, unchanged %t, cases %q; want none, true, %q", line.RecordErr, line.Unchanged, got, before)
				}
				person := *line
				person.UnlessDecided, person.Started = false, line.Started+1
				c.Apply(t.Context(), []*engine.Answer{&person})
				if got := readCases(t, s, p.ID); person.RecordErr != nil || person.Unchanged || got != "" {
					t.Errorf("the person: %v, unchanged %t, cases %q; want none left", person.RecordErr, person.Unchanged, got)
				}
			})
		})
	}
}
