package collect_test

import (
	"context"
	"testing"

	"till"
	"till/engine"
	"till/ledger"
	"till/provider"
	"till/store"
	"till/store/admin"
	"till/store/storetest"
	"till/upkeep"
)

// aside is a payment of 5000 XAF for which the operator reported something else.
type aside struct {
	*receipts
	p *till.Payment
}

func inAside(t *testing.T, reported till.Money, level int, tell func(w *aside)) {
	t.Helper()
	inReceipts(t, func(t *testing.T, w *receipts) {
		install(t, w.store, level)
		a := &aside{w, w.pay(0)}
		if row := a.say(a.p, provider.Result{Outcome: provider.Success, Amount: reported}); row.Status != till.Processing {
			t.Fatalf("it is %s", row.Status)
		}
		a.posted("put aside", reported.Currency, reported.Minor, -reported.Minor, 0)
		tell(a)
		storetest.CheckInvariants(t, w.store)
	})
}

func (w *aside) resolve(success bool) {
	w.t.Helper()
	r := engine.Resolution{Success: success, By: "Awa", Evidence: "a letter"}
	if err := w.collector.Resolve(w.t.Context(), store.Ref{Client: w.p.ClientID, ID: w.p.ID}, r); err != nil {
		w.t.Fatal(err)
	}
}

// posted compares what lies in suspense, with the operator and in the wallet.
func (w *aside) posted(when, currency string, suspense, operator, wallet int64) {
	w.t.Helper()
	w.view(func(ctx context.Context, tx *store.Tx) error {
		var got [3]int64
		for i, account := range []ledger.AccountKind{ledger.SuspenseAccount, ledger.OperatorAccount} {
			n, err := tx.Posted(ctx, w.p.ClientID, account, currency)
			if err != nil {
				return err
			}
			got[i] = n
		}
		purse, err := tx.Wallet(ctx, w.p.ClientID, currency)
		if err != nil {
			return err
		}
		if purse != nil {
			got[2] = purse.Balance
		}
		if want := [3]int64{suspense, operator, wallet}; got != want {
			w.t.Errorf("%s: suspense, operator and wallet have %v %s, want %v", when, got, currency, want)
		}
		sums, err := tx.PutAside(ctx)
		if err != nil {
			return err
		}
		if len(sums) > 1 || (len(sums) == 1) != (suspense != 0) || len(sums) == 1 && (sums[0] != store.Aside{Mode: till.Live, Currency: currency, Minor: suspense, Payments: 1}) {
			w.t.Errorf("%s: put aside are %+v", when, sums)
		}
		left, err := admin.SuspenseSums(ctx, tx)
		if len(left) != len(sums) {
			w.t.Errorf("%s: the gauges show %+v", when, left)
		}
		return err
	})
}

func xaf(minor int64) till.Money { return till.Money{Minor: minor, Currency: "XAF"} }

// Money that came in and was given back outside is in suspense no more; reported again, it does
// not come back; and what comes late is all the operator's.
func TestMoneyThatWasGivenBackLeavesSuspense(t *testing.T) {
	t.Parallel()
	inAside(t, xaf(7000), admin.Level, func(w *aside) {
		w.resolve(false)
		w.posted("given back", "XAF", 0, 0, 0)
		if row := w.row(w.p); row.Status != till.Failed {
			w.t.Errorf("it is %s", row.Status)
		}
		w.resolve(false)
		w.say(w.p, provider.Result{Outcome: provider.Success, Amount: xaf(7000)})
		w.posted("told again", "XAF", 0, 0, 0)
		w.say(w.p, paidUnder("R1"))
		w.posted("paid late", "XAF", 0, -5000, 5000)
	})
}

// Before the level is raised, an older program could take the money out of suspense once
// more. Afterwards, the same word for what had failed gives it back.
func TestMoneyIsGivenBackFromItsLevelOn(t *testing.T) {
	t.Parallel()
	inAside(t, xaf(7000), 2, func(w *aside) {
		w.resolve(false)
		w.posted("before", "XAF", 7000, -7000, 0)
		if _, err := upkeep.RaiseLevel(w.t.Context(), w.store, 3, "Awa"); err != nil {
			w.t.Fatal(err)
		}
		w.resolve(false)
		w.posted("after", "XAF", 0, 0, 0)
	})
}

// Who applies a statement has not looked at each of its lines: a line that calls a payment
// failed gives nothing back that came in for it, and ends nothing.
func TestAStatementGivesNothingBack(t *testing.T) {
	t.Parallel()
	inAside(t, xaf(7000), admin.Level, func(w *aside) {
		line := &engine.Answer{Ref: store.Ref{Client: w.p.ClientID, ID: w.p.ID}, Action: engine.Resolve, Connection: w.p.Connection,
			Started: w.store.Now(), Ended: w.store.Now(), By: "Awa", Evidence: "line 7", UnlessDecided: true, Result: provider.Result{Outcome: provider.Failed}}
		w.collector.Apply(w.t.Context(), []*engine.Answer{line})
		if row := w.row(w.p); line.RecordErr != nil || !line.Unchanged || row.Status.Final() {
			w.t.Errorf("unchanged %t, %v; it is %s", line.Unchanged, line.RecordErr, row.Status)
		}
		w.posted("after the statement", "XAF", 7000, -7000, 0)
	})
}

// What is credited was put aside before: it is taken from there first.
func TestACreditTakesTheMoneyOutOfSuspense(t *testing.T) {
	t.Parallel()
	for name, credit := range map[string]func(w *aside){
		"by the operator":    func(w *aside) { w.say(w.p, paidUnder("R1")) },
		"by a person":        func(w *aside) { w.resolve(true) },
		"by a person, later": func(w *aside) { w.say(w.p, provider.Result{Outcome: provider.Failed}); w.resolve(true) },
		"in one batch with both": func(w *aside) {
			w.collector.Apply(w.t.Context(), append(w.answers(xaf(7000)), w.answers(xaf(5000))...))
		},
		"by the operator, twice ": func(w *aside) { w.say(w.p, paidUnder("R1")); w.say(w.p, paidUnder("R1")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inAside(t, xaf(7000), 1, func(w *aside) { // at every level
				credit(w)
				w.posted("credited", "XAF", 0, -5000, 5000)
			})
		})
	}
	t.Run("of another currency", func(t *testing.T) {
		t.Parallel()
		inAside(t, till.Money{Minor: 7000, Currency: "XOF"}, admin.Level, func(w *aside) {
			w.resolve(true)
			w.posted("credited", "XOF", 0, 0, 0)
			w.posted("credited", "XAF", 0, -5000, 5000)
		})
	})
}

func (w *aside) answers(reported till.Money) []*engine.Answer {
	return []*engine.Answer{{Ref: store.Ref{Client: w.p.ClientID, ID: w.p.ID}, Action: engine.Check, Connection: w.p.Connection,
		Started: w.store.Now(), Ended: w.store.Now(), Result: provider.Result{Outcome: provider.Success, Amount: reported}}}
}
