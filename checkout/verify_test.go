package checkout_test

import (
	"context"
	"testing"
	"time"

	"till/books"
	"till/store"
)

// I24 and I25, each found in a row that was broken by hand.
func TestVerifyFindsBrokenCheckouts(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		if w.store.Shared() {
			return // what is found is read alike on each engine
		}
		ref := w.open(key1, "")
		w.ask(ref, 1, "0002")
		time.Sleep(window)
		w.ask(ref, 2, "4567")
		w.open(key2, "")
		time.Sleep(2 * time.Minute)
		script := func(text string) {
			t.Helper()
			err := w.store.Update(context.Background(), func(tx *store.Tx) error { return tx.DB().Script(context.Background(), text) })
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
		}
		found := func() map[string]bool {
			t.Helper()
			r, err := books.Verify(context.Background(), w.store, books.Options{})
			if err != nil {
				t.Fatal(err)
			}
			all := map[string]bool{}
			for _, p := range r.Problems {
				all[p.Invariant] = true
			}
			return all
		}
		if all := found(); len(all) != 0 {
			t.Fatalf("found in sound books: %v", all)
		}
		script(`DROP TRIGGER checkouts_move; DROP TRIGGER checkouts_fixed; DROP TRIGGER checkout_asks_fixed;
			CREATE TABLE kept AS SELECT * FROM checkouts; CREATE TABLE kept_asks AS SELECT * FROM checkout_asks`)
		for _, c := range []struct{ invariant, name, sql string }{
			{"I24", "an ask less than is counted", `UPDATE checkouts SET asks = 3 WHERE state = 'paid'`},
			{"I24", "a gap", `UPDATE checkout_asks SET n = 3 WHERE n = 2`},
			{"I24", "refused, and paid", `UPDATE checkout_asks SET refused = 'not_sent' WHERE n = 2`},
			{"I24", "a payment that is no ask", `UPDATE checkout_asks SET key = randomblob(16), refused = 'not_sent' WHERE n = 1`},
			{"I24", "asks of no checkout", `UPDATE checkout_asks SET checkout_id = randomblob(16) WHERE n = 1`},
			{"I24", "two live asks", `UPDATE checkout_asks SET key = randomblob(16)`},
			{"I25", "paid, and said to be open", `UPDATE checkouts SET state = 'open', payment_id = NULL, paid_at = NULL`},
			{"I25", "paid by nothing", `UPDATE checkouts SET state = 'paid', payment_id = randomblob(16), paid_at = 1 WHERE state = 'open'`},
			{"I25", "paid by another", `UPDATE checkouts SET payment_id = randomblob(16) WHERE state = 'paid'`},
			{"I25", "overpaid by one", `UPDATE checkouts SET overpaid = 1 WHERE state = 'paid'`},
		} {
			script(c.sql)
			if all := found(); !all[c.invariant] {
				t.Errorf("%s: found %v, want %s", c.name, all, c.invariant)
			}
			script(`DELETE FROM checkouts; DELETE FROM checkout_asks; INSERT INTO checkouts SELECT * FROM kept; INSERT INTO checkout_asks SELECT * FROM kept_asks`)
		}
		script(`DROP TABLE kept; DROP TABLE kept_asks`)
	})
}
