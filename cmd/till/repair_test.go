package main

import (
	"strings"
	"testing"

	"till"
	"till/cmd/till/internal/cli"
	"till/store"
	"till/store/storetest"
)

// TestABrokenWalletIsRebuilt: who follows the runbook is never worse off. A correction of
// a wallet that differs from its lines is refused, because its line would make the
// difference permanent; the repair asks first, is audited, and leaves the books right.
func TestABrokenWalletIsRebuilt(t *testing.T) {
	t.Parallel()
	b := newSaved(t, 20)
	var client string
	err := cli.WithDatabase(t.Context(), b.database, func(s *store.Store) error {
		return s.EachClient(t.Context(), func(c *till.Client) (bool, error) { client = c.ID.String(); return true, nil })
	})
	if err != nil {
		t.Fatal(err)
	}
	adjust := []string{"adjust", "--database", b.database, "--client", client, "--currency", "XAF", "--amount", "-1", "--reason", "r", "--by", "Awa",
		"--id", till.NewID(1).String()}
	repair := []string{"repair", "wallets", "--database", b.database, "--by", "Awa"}
	storetest.Raw(t, b.database, `UPDATE wallets SET balance = balance + 1, reserved = 1 WHERE currency = 'XAF'`)
	if out := b.must(cli.ExitRefused, adjust...); !strings.Contains(out, "till repair wallets") {
		t.Errorf("an adjustment is refused with %s", out)
	}
	if out := b.must(cli.ExitRefused, repair...); !strings.Contains(out, "Rebuild 1 wallet? [y/N]") || !strings.Contains(out, "nothing was done") {
		t.Errorf("the repair asks %s", out)
	}
	b.must(cli.ExitRefused, "verify", "--database", b.database)
	b.must(0, append(repair, "--yes")...)
	b.must(0, adjust...)
	b.must(0, "verify", "--database", b.database)
	if out := b.must(0, append(repair, "--yes")...); !strings.Contains(out, "Every wallet is what its lines say") {
		t.Errorf("with nothing to repair it says %s", out)
	}
	if out := b.must(0, "audit", "--database", b.database, "--client", client); strings.Count(out, "wallet.rebuild") != 1 || !strings.Contains(out, "person:Awa") {
		t.Errorf("the audit log is %s", out)
	}
}
