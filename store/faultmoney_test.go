package store_test

import (
	"testing"

	"till"
	"till/books"
	"till/store"
	"till/store/storetest"
)

// F30: an adjustment whose commit nobody answered for is made once, and the
// person is told that it was made.
func TestAnAdjustmentWithAnUnknownCommitAdjustsOnce(t *testing.T) {
	t.Parallel()
	for name, cut := range outcomes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLink(t)
			client := storetest.NewClient(t, l.straight, till.Live)
			a := books.Adjustment{Client: client.ID, ID: till.NewID(l.now()), Amount: till.Money{Minor: 700, Currency: "XAF"}, Reason: "why", By: "Anne"}
			l.proxy.CutNext(cut)
			done, err := books.Adjust(t.Context(), l.through, a)
			if err != nil || done.Before || done.Wallet.Balance != 700 {
				t.Errorf("%+v, %v; want it made", done, err)
			}
			again, err := books.Adjust(t.Context(), l.straight, a)
			if err != nil || !again.Before || again.EntryID != done.EntryID || again.Wallet.LastSequence != 1 {
				t.Errorf("the same again: %+v, %v; want the first", again, err)
			}
			var w int64
			err = l.straight.View(t.Context(), func(tx *store.Tx) error {
				got, err := tx.Wallet(t.Context(), client.ID, "XAF")
				w = got.Balance
				return err
			})
			if err != nil || w != 700 {
				t.Errorf("the wallet has %d, %v; want 700", w, err)
			}
		})
	}
}
