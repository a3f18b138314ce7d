package recovery_test

import (
	"errors"
	"testing"

	"till"
	"till/books"
	"till/ledger"
	"till/provider"
	"till/recovery"
	"till/store"
	"till/store/storetest"
)

// TestABrokenWalletIsNotPostedTo: however a wallet differs from its last line, nothing is
// posted to it, and rebuilding it makes the books right.
func TestABrokenWalletIsNotPostedTo(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			config := e.Config(t)
			s := storetest.Open(t, config)
			client := storetest.NewClient(t, s, till.Test)
			c := storetest.NewCollector(t, s)
			for range 2 {
				p := storetest.NewPayment(t, c, client, storetest.Body{})
				storetest.Apply(t, c, s, p, provider.Result{Outcome: provider.Success})
			}
			m := storetest.NewDisburser(t, s)
			storetest.NewPayout(t, m, client, storetest.Body{Value: "100"}, 0)
			for what, change := range map[string]string{
				"too high": `balance = balance + 1`, "too low": `balance = balance - 1`, "a line that it does not know": `last_sequence = last_sequence - 1`,
				"a line that is not there": `last_sequence = last_sequence + 1`, "as if new": `balance = 0, reserved = 0, last_sequence = 0`,
			} {
				storetest.Raw(t, config.Path, `UPDATE wallets SET `+change+` WHERE last_sequence > 0`)
				a := books.Adjustment{Client: client.ID, ID: till.NewID(s.Now()), Amount: till.Money{Minor: 1, Currency: "XAF"}, Reason: "r", By: "Awa"}
				if _, err := books.Adjust(t.Context(), s, a); !errors.Is(err, ledger.ErrBroken) {
					t.Errorf("%s: an adjustment ends with %v", what, err)
				}
				// That the wallet is broken comes before what it seems to have available.
				a.Amount.Minor = -1 << 40
				if _, err := books.Adjust(t.Context(), s, a); !errors.Is(err, ledger.ErrBroken) {
					t.Errorf("%s: a correction of more than it has ends with %v", what, err)
				}
				a.Amount.Minor = 1
				var refused *till.Error
				if _, err := storetest.CreatePayout(t, m, client, storetest.Body{Value: "100"}, 0); !errors.As(err, &refused) || refused.Code != till.CodePayoutsHeld {
					t.Errorf("%s: a payout ends with %v", what, err)
				}
				rebuildAll(t, s, 1)
				if _, err := books.Adjust(t.Context(), s, a); err != nil {
					t.Errorf("%s: once it is rebuilt, an adjustment ends with %v", what, err)
				}
			}
			storetest.Raw(t, config.Path, `UPDATE wallets SET reserved = 0, owed = 5 WHERE last_sequence > 0`)
			rebuildAll(t, s, 1)
			rebuildAll(t, s, 0)
			storetest.CheckInvariants(t, s)
		})
	}
}

// rebuildAll rebuilds all broken wallets, of which there are so many.
func rebuildAll(t *testing.T, s *store.Store, want int) {
	t.Helper()
	all, err := recovery.BrokenWallets(t.Context(), s)
	if err != nil || len(all) != want {
		t.Fatalf("%d wallets are broken, %v; want %d", len(all), err, want)
	}
	for _, r := range all {
		if err := recovery.RepairWallet(t.Context(), s, r, "person:Awa"); err != nil || r.Lines != "" {
			t.Errorf("%s: %s, %v", r, r.Lines, err)
		}
		if err := recovery.RepairWallet(t.Context(), s, r, "person:Awa"); err == nil {
			t.Error("what was shown is repaired a second time")
		}
	}
}
