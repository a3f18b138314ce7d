package collect_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"till"
	"till/engine"
	"till/provider/sandbox"
	"till/recovery"
	"till/store"
	"till/store/storetest"
)

// TestMoneyForABrokenWalletWaits: an operator's answer about a wallet that differs from its
// lines is not posted and not dropped. It waits as a case, other clients go on, and it is
// recorded as soon as the wallet is rebuilt.
func TestMoneyForABrokenWalletWaits(t *testing.T) {
	t.Parallel()
	inDatabase(t, sandbox.Config{}, func(t *testing.T, w *world, database string) {
		w.pay("4567")
		storetest.Raw(t, database, `UPDATE wallets SET balance = balance + 1 WHERE last_sequence > 0`)
		broken, id := w.client, w.create("4567").ID
		w.client = storetest.NewClient(t, w.store, till.Test)
		w.pay("4567")
		w.client = broken
		time.Sleep(5 * time.Second)
		if p := w.payment(id); p.Status.Final() || w.cases(id) != engine.CaseQuarantined {
			t.Fatalf("%s, cases %q; want it open, as a case", p.Status, w.cases(id))
		}
		w.view(func(ctx context.Context, tx *store.Tx) error {
			cases, err := tx.Cases(ctx, store.CaseFilter{Subject: id, Limit: 1})
			if err == nil && (!strings.Contains(cases[0].Detail, "the operator says success") || !strings.Contains(cases[0].Detail, "till repair wallets")) {
				t.Errorf("the case says %q", cases[0].Detail)
			}
			return err
		})
		all, err := recovery.BrokenWallets(t.Context(), w.store)
		if err != nil || len(all) != 1 {
			t.Fatalf("%d wallets are broken, %v", len(all), err)
		}
		if err := recovery.RepairWallet(t.Context(), w.store, all[0], "person:Awa"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if p := w.payment(id); p.Status != till.Success || w.credits(id) != "collection" || w.cases(id) != "" {
			t.Errorf("once it is rebuilt: %s, credits %q, cases %q", p.Status, w.credits(id), w.cases(id))
		}
		w.holds(10_000, 0)
	})
}
