package payout_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"till"
	"till/engine"
	"till/provider"
	"till/store"
	"till/store/storetest"
)

// D12, D17, D24, F22: a key that a hundred calls bring at once, to two
// instances, makes one payout although the wallet would have enough for all of
// them; and a later call with it gets the same.
func TestAHundredCreatesWithOneKeyMakeOnePayout(t *testing.T) {
	t.Parallel()
	onTwins(t, func(t *testing.T, w *twins) {
		const calls = 100
		client := storetest.NewClient(t, w.stores[0], till.Test)
		fund(t, w.stores[0], client, 1_000_000)
		for round := range rounds() {
			key := till.NewID(till.TimeOf(time.Now())).String()
			var mu sync.Mutex
			made, fresh := map[till.ID]int{}, 0
			create := func(i int) {
				c, err := w.masters[i%2].Create(t.Context(), anyMethod(client), request(t, key, "4567", "100"))
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err != nil:
					t.Errorf("round %d: %v", round, err)
				case c.Replayed:
					made[c.Payout.ID]++
				default:
					made[c.Payout.ID]++
					fresh++
				}
			}
			begin := make(chan struct{})
			var asking sync.WaitGroup
			for i := range calls {
				asking.Go(func() { <-begin; create(i) })
			}
			close(begin)
			asking.Wait()
			create(0)
			create(1)
			if len(made) != 1 || fresh != 1 {
				t.Fatalf("round %d: %d payouts were made, %d of them fresh", round, len(made), fresh)
			}
			_, err := w.masters[0].Create(t.Context(), anyMethod(client), request(t, key, "4567", "101"))
			if till.ErrorCode(err) != till.CodeKeyReused {
				t.Fatalf("round %d: the key with another body: %v", round, err)
			}
		}
		w.settled(t, client.ID)
		paid := w.paid(t)
		for id, times := range paid {
			if times != 1 {
				t.Errorf("payout %s was paid %d times", id, times)
			}
		}
		err := w.stores[1].View(t.Context(), func(tx *store.Tx) error {
			l, err := tx.Wallet(t.Context(), client.ID, "XAF")
			if err == nil && (len(paid) != rounds() || l.Balance != 1_000_000-100*int64(rounds()) || l.Reserved != 0) {
				t.Errorf("%d were paid in %d rounds, and the wallet has %d with %d reserved", len(paid), rounds(), l.Balance, l.Reserved)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// D8, D13, D15: however often and however concurrently a payout's end is reported,
// its reserve is used or given back once, and what is held for others stays
// held.
func TestAnEndToldAtOnceIsOne(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		says   provider.Result
		status till.PayoutStatus
		kinds  string
		lines  string
		spent  int64
	}{
		{"a success", provider.Result{Outcome: provider.Success}, till.PayoutSuccess, "pending processing success", "fee debit, payout debit", 1100},
		{"a failure", provider.Result{Outcome: provider.Failed, Reason: till.ProviderError}, till.PayoutFailed, "pending processing failed", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.fee = 100
				w.create("0014")
				w.create("0014")
				for round := range int64(10) {
					told := w.create("0014").ID
					time.Sleep(time.Second)
					w.wantWallet(t, round*c.spent, 3300, 0)
					r := c.says
					if r.Outcome == provider.Success {
						r.Receipt = told.String()
					}
					w.sayAtOnce(told, r, 10)
					if p := w.payout(told); p.Status != c.status || w.kinds(told) != c.kinds || w.lines(told) != c.lines || w.cases(told) != "" {
						t.Errorf("%s, %s, lines %q, cases %q", p.Status, w.kinds(told), w.lines(told), w.cases(told))
					}
					w.wantWallet(t, (round+1)*c.spent, 2200, 0)
				}
			})
		})
	}
}

// D23: a payout that nobody could send runs out once. An instance that finds that out
// again, from what was true before, changes nothing and gives nothing back.
func TestAPayoutRunsOutOnce(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.stop()
		accepts, stopAccepting := w.start(onlyAccepts)
		w.master = accepts
		id := w.create("4567").ID
		time.Sleep(window + time.Second) // nobody works
		stopAccepting()
		w.restart()
		time.Sleep(time.Second)
		w.create("0014") // what is held for this one stays held
		time.Sleep(time.Second)
		w.wantWallet(t, 0, 1000, 0)
		before := *w.payout(id)
		for range 3 {
			now := w.store.Now()
			a := &engine.Answer{Ref: w.ref(id), Action: engine.Abandon, Connection: "sandbox", LeaseVersion: w.step(id).LeaseVersion, Started: now, Ended: now}
			w.master.Apply(context.Background(), []*engine.Answer{a})
			if a.RecordErr != nil {
				t.Errorf("it is refused: %v", a.RecordErr)
			}
		}
		if after := *w.payout(id); after.Status != till.PayoutFailed || after.FinalEvent != before.FinalEvent || after.UpdatedAt != before.UpdatedAt || w.kinds(id) != "pending failed" {
			t.Errorf("it was %+v and is %+v, %s", before, after, w.kinds(id))
		}
		w.wantWallet(t, 0, 1000, 0)
	})
}

// D5: a person's word that is refused leaves nothing behind, neither money nor
// a line.
func TestARefusedResolutionLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.fee = 100
		paid, open, cancelled := w.create("0014").ID, w.create("0014").ID, w.create("0020").ID
		time.Sleep(time.Second)
		w.say(paid, provider.Result{Outcome: provider.Success, Receipt: "ONE"})
		ctx := context.Background()
		if _, err := w.master.Cancel(ctx, w.ref(cancelled), "api:test"); err != nil {
			t.Fatal(err)
		}
		state := func() (all string) {
			for _, id := range []till.ID{paid, open, cancelled} {
				p := w.payout(id)
				all += fmt.Sprintf("%s %s %q %v: %s; %s; %s\n", p.Status, p.FailureReason, p.ProviderReference, p.Attention, w.kinds(id), w.lines(id), w.cases(id))
			}
			return all
		}
		before := state()
		for name, c := range map[string]struct {
			id   till.ID
			word engine.Resolution
		}{
			"a receipt that another has":   {open, engine.Resolution{Success: true, Receipt: "ONE"}},
			"a success once more":          {paid, engine.Resolution{Success: true, Receipt: "TWO"}},
			"a failure after a success":    {paid, engine.Resolution{}},
			"a success of what was undone": {cancelled, engine.Resolution{Success: true, Receipt: "TWO"}},
			"a failure of what was undone": {cancelled, engine.Resolution{}},
		} {
			c.word.By, c.word.Evidence = "Ada", "a letter"
			if err := w.master.Resolve(ctx, w.ref(c.id), c.word); till.ErrorCode(err) != till.CodeValidationFailed {
				t.Errorf("%s: %v", name, err)
			}
			if after := state(); after != before {
				t.Errorf("%s: it was\n%sand is\n%s", name, before, after)
			}
			w.wantWallet(t, 1100, 1100, 0)
		}
	})
}

// D6: a late payout takes what is available. What is held for another is not.
func TestALatePayoutLeavesWhatIsReserved(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		late := w.create("0014").ID
		time.Sleep(time.Second)
		w.say(late, provider.Result{Outcome: provider.Failed, Reason: till.ProviderError})
		if _, err := w.try("0014", w.funds-300); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		a := w.say(late, provider.Result{Outcome: provider.Success, Receipt: "LATE"})
		if a.RecordErr != nil || w.lines(late) != "late_payout debit" || w.cases(late) != "late_money" {
			t.Errorf("%v, lines %q, cases %q", a.RecordErr, w.lines(late), w.cases(late))
		}
		w.wantWallet(t, 300, w.funds-300, 700)
	})
}

// sayAtOnce brings an operator's word so many times at once.
func (w *world) sayAtOnce(id till.ID, r provider.Result, times int) {
	w.t.Helper()
	now, version := w.store.Now(), w.step(id).LeaseVersion
	begin := make(chan struct{})
	var telling sync.WaitGroup
	for range times {
		a := &engine.Answer{Ref: w.ref(id), Action: engine.Check, Connection: "sandbox", LeaseVersion: version, Started: now, Ended: now, Result: r}
		telling.Go(func() {
			<-begin
			w.master.Apply(context.Background(), []*engine.Answer{a})
			if a.RecordErr != nil {
				w.t.Errorf("it is refused: %v", a.RecordErr)
			}
		})
	}
	close(begin)
	telling.Wait()
}
