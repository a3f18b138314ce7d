package collect_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"till"
	"till/engine"
	"till/provider"
	"till/provider/sandbox"
	"till/store"
	"till/store/storetest"
)

// What operators say may hold what a database refuses: PostgreSQL takes no NUL
// and no broken UTF-8, and no text of any length in an index. The money that
// such an answer is about is credited all the same, and both engines keep the same.
func TestATextThatNoDatabaseTakesIsStillCredited(t *testing.T) {
	t.Parallel()
	money := till.Money{Minor: 5000, Currency: "XAF"}
	success := func(receipt, message string) provider.Result {
		return provider.Result{Outcome: provider.Success, Amount: money, Receipt: receipt, Code: "OK\x00", Message: message, Handle: "H\x00"}
	}
	long := strings.Repeat("long ", 2000)
	for _, c := range []struct {
		name    string
		result  provider.Result
		status  till.Status
		receipt string
		cases   string
	}{
		{"a NUL in the receipt", success("MP\x00123", ""), till.Success, `"MP\x00123"`, ""},
		{"broken UTF-8 in the receipt", success("MP\xff123", ""), till.Success, `"MP\xff123"`, ""},
		{"a line in the receipt", success("MP123\n", ""), till.Success, `"MP123\n"`, ""},
		{"a receipt without an end", success(long, ""), till.Success,
			`"` + long[:63] + "… sha256:52b73dcd3b8083ba34777ab11ee46577", ""},
		{"a NUL in the message", success("R1", "thank\x00you"), till.Success, "R1", ""},
		{"broken UTF-8 in the message", success("R1", "merci\xe9"), till.Success, "R1", ""},
		{"a message without an end", success("R1", long), till.Success, "R1", ""},
		{"words that end it otherwise", provider.Result{Outcome: provider.Failed, Code: "N\x00", Message: "non\x00\xff" + long, Reason: "no\x00"}, till.Failed, "", ""},
		{"a word that is not known", provider.Result{Outcome: provider.Unrecognised, Code: "NEW\x00WORD\xff" + long}, till.Processing, "", "unknown_status"},
		{"a currency that is none", provider.Result{Outcome: provider.Success, Receipt: "R1", Amount: till.Money{Minor: 5000, Currency: "X\x00F" + long}}, till.Processing, "", "mismatch"},
		{"a reference that is none", provider.Result{Outcome: provider.Success, Receipt: "R1", Amount: money, Reference: "\x00" + long}, till.Processing, "", "mismatch"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.way.set(nil, func(context.Context, provider.Query, int) (provider.Result, error) { return c.result, nil })
				id := w.create("0014").ID
				time.Sleep(2 * time.Second)
				p := w.payment(id)
				if p.Status != c.status || p.ProviderReference != c.receipt || w.cases(id) != c.cases {
					t.Errorf("%s, receipt %q, cases %q; want %s, %q, %q", p.Status, p.ProviderReference, w.cases(id), c.status, c.receipt, c.cases)
				}
				if _, checks := w.way.counts(); c.status.Final() && checks != 1 {
					t.Errorf("it was asked about %d times, want once", checks)
				}
				if s := w.step(id); s != nil && s.Handle != "" {
					t.Errorf("the handle %q is kept, which is not the operator's", s.Handle)
				}
			})
		})
	}
}

// inDatabase is inWorldWith for a story that goes past the store.
func inDatabase(t *testing.T, c sandbox.Config, tell func(t *testing.T, w *world, database string)) {
	t.Helper()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			database := e.Config(t)
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, database, c)
				defer func() {
					w.stop()
					storetest.CheckInvariants(t, w.store)
					w.operator.Close()
					w.store.Close()
				}()
				tell(t, w, database.Path)
			})
		})
	}
}

// A success that the database refuses to record is shown to a person, and asked
// about ever more slowly; once it can be recorded, it is credited and the case
// is closed.
func TestAnAnswerThatCannotBeRecordedIsACase(t *testing.T) {
	t.Parallel()
	inDatabase(t, sandbox.Config{}, func(t *testing.T, w *world, database string) {
		id := w.create("0000").ID
		time.Sleep(100 * time.Millisecond)
		storetest.Refuse(t, database, "poison", "INSERT", "transactions", fmt.Sprintf("NEW.payment_id = x'%x'", id[:]))
		w.way.set(nil, w.succeed)
		time.Sleep(window)
		p := w.payment(id)
		if p.Status.Final() || p.Resolution.State != till.NeedsAttention || w.cases(id) != engine.CaseQuarantined {
			t.Fatalf("%s, %s, cases %q; want it open, with somebody's attention", p.Status, p.Resolution.State, w.cases(id))
		}
		w.view(func(ctx context.Context, tx *store.Tx) error {
			cases, err := tx.Cases(ctx, store.CaseFilter{Subject: id, Limit: 1})
			if err == nil && (len(cases) != 1 || !strings.Contains(cases[0].Detail, "poison")) {
				t.Errorf("the case does not say what failed: %+v", cases)
			}
			return err
		})
		_, before := w.way.counts()
		time.Sleep(24 * time.Hour)
		if _, checks := w.way.counts(); checks-before > 100 || checks == before {
			t.Errorf("asked %d times in a day; want it ever more slowly, and for ever", checks-before)
		}
		storetest.Allow(t, database, "poison", "transactions")
		time.Sleep(2 * time.Hour)
		if p = w.payment(id); p.Status != till.Success || w.credits(id) != "collection" || w.cases(id) != "" {
			t.Errorf("once it can be recorded: %s, credits %q, cases %q", p.Status, w.credits(id), w.cases(id))
		}
	})
}

// A send's answer that cannot be recorded leaves its handle nevertheless.
func TestTheHandleOfAnAnswerThatCannotBeRecordedIsKept(t *testing.T) {
	t.Parallel()
	inDatabase(t, sandbox.Config{}, func(t *testing.T, w *world, database string) {
		w.way.set(func(_ context.Context, r provider.Request, _ int) (provider.Result, error) {
			storetest.Refuse(t, database, "poison", "INSERT", "events", fmt.Sprintf("NEW.subject_id = x'%x'", r.ID[:]))
			return provider.Result{Outcome: provider.Accepted, Handle: "H1"}, nil
		}, func(ctx context.Context, q provider.Query, _ int) (provider.Result, error) {
			if q.Handle != "H1" {
				return provider.Result{}, errAway
			}
			return w.succeed(ctx, q, 0)
		})
		id := w.create("4567").ID
		time.Sleep(5 * time.Second)
		if s := w.step(id); s == nil || s.Handle != "H1" || s.Acked || w.cases(id) != engine.CaseQuarantined {
			t.Fatalf("the step is %+v, cases %q; want the handle", s, w.cases(id))
		}
		storetest.Allow(t, database, "poison", "events")
		time.Sleep(time.Hour)
		if p := w.payment(id); p.Status != till.Success || w.cases(id) != "" {
			t.Errorf("once it can be recorded: %s, cases %q", p.Status, w.cases(id))
		}
	})
}

// F44, F10: one payment in a hundred makes the program fail whenever it is taken
// up: its call panics, its step cannot be claimed, its answer cannot be
// recorded, or nothing at all. The others end in their time, and these
// are set aside, each with a reason. What is mended goes on by itself.
func TestOnePoisonedPaymentInAHundredKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	inDatabase(t, sandbox.Config{}, func(t *testing.T, w *world, database string) {
		poisoned := map[till.ID]string{}
		var panics atomic.Value
		w.way.set(nil, func(ctx context.Context, q provider.Query, _ int) (provider.Result, error) {
			if q.ID == panics.Load() {
				panic("an answer that nobody has thought of")
			}
			return w.operator.Check(ctx, q)
		})
		const all, hundred = 400, 100
		var ids []till.ID
		for i := range all {
			id := w.create("0017").ID // no callback: it is found by asking
			ids = append(ids, id)
			if i%hundred != 0 {
				continue
			}
			x := fmt.Sprintf("x'%x'", id[:])
			switch i / hundred {
			case 0:
				panics.Store(id)
				poisoned[id] = "the call panicked, 3 times in a row"
			case 1:
				storetest.Refuse(t, database, "claim", "UPDATE", "steps", "NEW.lease_version > OLD.lease_version AND NEW.subject_id = "+x)
				poisoned[id] = "the step could not be claimed, 3 times in a row"
			case 2:
				storetest.Refuse(t, database, "credit", "INSERT", "transactions", "NEW.payment_id = "+x)
				poisoned[id] = "the answer could not be recorded: "
			case 3:
				storetest.Refuse(t, database, "anything", "INSERT", "attempts", "NEW.subject_id = "+x)
				poisoned[id] = "nothing can be recorded about it: "
			}
		}
		time.Sleep(window)
		for _, id := range ids {
			if p := w.payment(id); poisoned[id] == "" && (p.Status != till.Success || w.cases(id) != "") {
				t.Fatalf("payment %s is %s with cases %q, because of others", id, p.Status, w.cases(id))
			}
		}
		for id, why := range poisoned {
			w.view(func(ctx context.Context, tx *store.Tx) error {
				cases, err := tx.Cases(ctx, store.CaseFilter{Subject: id, Kind: engine.CaseQuarantined, Limit: 2})
				if err == nil && (len(cases) != 1 || !strings.HasPrefix(cases[0].Detail, why)) {
					t.Errorf("cases %+v; want one that says %q", cases, why)
				}
				return err
			})
		}
		_, before := w.way.counts()
		time.Sleep(24 * time.Hour)
		if _, checks := w.way.counts(); checks-before > 400 {
			t.Errorf("four poisoned payments were asked about %d times in a day", checks-before)
		}

		panics.Store(till.ID{})
		for name, table := range map[string]string{"claim": "steps", "credit": "transactions", "anything": "attempts"} {
			storetest.Allow(t, database, name, table)
		}
		time.Sleep(3 * time.Hour)
		for id, why := range poisoned {
			if p := w.payment(id); p.Status != till.Success || w.cases(id) != "" || w.debits(id) != 1 {
				t.Errorf("%q is mended: it is %s, cases %q, %d debits; want success, once", why, p.Status, w.cases(id), w.debits(id))
			}
		}
	})
}

// awayFor makes PostgreSQL say that its disk is full, for the rows of a table for
// which a condition holds.
func awayFor(t *testing.T, database, name, event, table, condition string) {
	t.Helper()
	storetest.Raw(t, database, `CREATE FUNCTION disk_full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100'; END $$`)
	storetest.Raw(t, database, fmt.Sprintf("CREATE TRIGGER %s BEFORE %s ON %s FOR EACH ROW WHEN (%s) EXECUTE FUNCTION disk_full()", name, event, table, condition))
}

// While the answer to a send waits to be recorded, its step is not asked about
// from here, however long its lease is over: that would be to ask without what
// the answer says.
func TestAStepIsNotClaimedWhileItsAnswerWaits(t *testing.T) {
	t.Parallel()
	inDatabase(t, sandbox.Config{PollInterval: time.Second}, func(t *testing.T, w *world, database string) {
		if !store.IsPostgres(database) {
			return // a file cannot be unreachable for one row alone
		}
		w.way.set(func(_ context.Context, r provider.Request, _ int) (provider.Result, error) {
			awayFor(t, database, "away", "UPDATE", "attempts", fmt.Sprintf("NEW.subject_id = x'%x'", r.ID[:]))
			return provider.Result{Outcome: provider.Accepted, Handle: "H1"}, nil
		}, func(ctx context.Context, q provider.Query, _ int) (provider.Result, error) {
			if q.Handle != "H1" {
				t.Error("it was asked about without its handle")
			}
			return w.succeed(ctx, q, 0)
		})
		id := w.create("4567").ID
		time.Sleep(2 * engine.Lease)
		if _, checks := w.way.counts(); checks != 0 || w.cases(id) != "" {
			t.Errorf("it was asked about %d times, cases %q", checks, w.cases(id))
		}
		storetest.Allow(t, database, "away", "attempts")
		time.Sleep(5 * time.Second)
		if p := w.payment(id); p.Status != till.Success {
			t.Errorf("%s, want success", p.Status)
		}
	})
}

// One answer that finds the database unreachable each time, while all others are recorded,
// is at fault itself: the others do not wait for it, and it is set aside.
func TestAnAnswerThatAlwaysFindsTheDatabaseAwayIsSetAside(t *testing.T) {
	t.Parallel()
	inDatabase(t, sandbox.Config{PollInterval: 2 * time.Second}, func(t *testing.T, w *world, database string) {
		if !store.IsPostgres(database) {
			return // a file cannot be unreachable for one row alone
		}
		id := w.create("0017").ID
		awayFor(t, database, "away", "INSERT", "transactions", fmt.Sprintf("NEW.payment_id = x'%x'", id[:]))
		for range 60 {
			beside := w.create("0017").ID
			time.Sleep(5 * time.Second)
			if p := w.payment(beside); p.Status != till.Success {
				t.Errorf("a payment beside it is %s", p.Status)
				break // the database has to come back, or the story never ends
			}
		}
		if sorted(w.cases(id)) != "overdue "+engine.CaseQuarantined { // its window is over by now
			t.Errorf("cases %q, want that it is set aside", w.cases(id))
		}
		storetest.Allow(t, database, "away", "transactions")
		time.Sleep(2 * time.Hour)
		if p := w.payment(id); p.Status != till.Success || w.credits(id) != "collection" || w.cases(id) != "" {
			t.Errorf("once it can be recorded: %s, credits %q, cases %q", p.Status, w.credits(id), w.cases(id))
		}
	})
}

// The first answer that can be recorded ends the quarantine, also one that
// decides nothing, and the pace is as before.
func TestAnAnswerThatCanBeRecordedEndsTheQuarantine(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.way.set(nil, func(_ context.Context, _ provider.Query, n int) (provider.Result, error) {
			if n <= 3 {
				panic("an answer that nobody has thought of")
			}
			return provider.Result{Outcome: provider.Open}, nil
		})
		id := w.create("0014").ID
		for range 100 {
			if _, checks := w.way.counts(); checks == 3 {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Millisecond)
		if w.cases(id) != engine.CaseQuarantined {
			t.Fatalf("cases %q after three panics", w.cases(id))
		}
		time.Sleep(3 * time.Second)
		if s := w.step(id); w.cases(id) != "" || w.payment(id).Status.Final() || s == nil || s.BackoffSteps != 0 {
			t.Errorf("cases %q, %s, step %+v; want it to go on as before", w.cases(id), w.payment(id).Status, s)
		}
	})
}
