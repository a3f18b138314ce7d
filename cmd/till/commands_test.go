package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"till"
	"till/cmd/till/internal/cli"
	"till/store"
	"till/store/storetest"
	"till/upkeep"
	"till/webhook"
)

// tried is a command as it is tried, or why it is not.
type tried struct {
	line string // after "till", with what the test fills in
	not  string // why it cannot run on this engine, or on none
}

// TestEveryCommandRunsAfterTheDailyWork runs every command once on each engine, on a
// database on which all the daily work was done: rolled up, sealed, verified, turns
// taken, saved and drilled. No command may be unable to run there. A new command is
// added to the table.
func TestEveryCommandRunsAfterTheDailyWork(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "data") // a backup goes elsewhere
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "till.db")
			if e.Name != "sqlite" {
				path = e.Config(t).Path
			}
			b := newBooksOf(t, "awa", dir, path)
			b.doDailyWork(e.Name == "sqlite")
			b.tryAll(b.everyCommand(e.Name))
		})
	}
}

// doDailyWork does what the service and its timers do each day.
func (h *hostileBooks) doDailyWork(file bool) {
	t := h.t
	for name, text := range map[string]string{
		"letter.txt": "evidence", "mapping.toml": "receipt = \"ref\"\nfixed_currency = \"XAF\"\nsuccess = [\"ok\"]\n",
		"statement.csv": "ref,amount,status,time\nr1,5,ok,2026-01-02T00:00:00Z\n", "captured.txt": "webhook-id: e\nwebhook-timestamp: 1\nwebhook-signature: v1,x\n\n{}",
	} {
		if err := os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := storetest.Open(t, store.Config{Path: h.database, Readers: 1})
	storetest.RollUp(t, s)
	turns := &upkeep.Turns{Store: s, Self: till.NewID(s.Now()), Log: slog.New(slog.DiscardHandler), All: []upkeep.Turn{upkeep.NewGaugesTurn(s), upkeep.NewRetentionTurn(s)},
		Changed: func(turn, _, to, why string) { t.Errorf("the turn %s has %s: %s", turn, to, why) }}
	if err := turns.Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	lines := []string{"verify --secret-file SECRET"}
	if file {
		lines = append(lines, "backup --to DIR/../saved", "drill DIR/../saved --secret-file SECRET")
	}
	for _, line := range lines {
		h.try(line)
	}
}

// try runs a command and fails the test if it could not run: its exit code is 2.
func (h *hostileBooks) try(line string) {
	h.t.Helper()
	fill := map[string]string{
		"CLIENT": h.client.String(), "PAYMENT": h.payment.String(), "OPEN": h.open.String(), "PAYOUT": h.payout.String(), "CASE": h.caseID.String(),
		"STRAY": h.stray.String(), "KEY": h.key, "UUID": till.NewID(1).String(),
		"ENDPOINT": till.NewID(2).String(), "WEBHOOKSECRET": webhook.NewSecret().Reveal(), "SECRET": filepath.Join(h.dir, "till.secret"),
	}
	var args []string
	for _, word := range strings.Fields(line) {
		if value, ok := fill[word]; ok {
			word = value
		}
		args = append(args, strings.Replace(word, "DIR", h.dir, 1))
	}
	cmd, _, err := newRoot().Find(args)
	if err != nil {
		h.t.Errorf("till %s: %v", line, err)
		return
	}
	if cmd.Flags().Lookup("database") != nil && !strings.Contains(line, "--database") {
		args = append(args, "--database", h.database)
	}
	var out, errs bytes.Buffer
	if code := run(h.t.Context(), args, &out, &errs); code > cli.ExitRefused {
		h.t.Errorf("till %s ends with %d: %s", line, code, errs.String())
	}
}

// tryAll runs what can run, and fails the test for a command that is not named.
func (h *hostileBooks) tryAll(all []tried) {
	named := map[string]bool{}
	for _, c := range all {
		cmd, _, err := newRoot().Find(strings.Fields(c.line))
		if err != nil {
			h.t.Fatalf("till %s: %v", c.line, err)
		}
		named[cmd.CommandPath()] = true
		if c.not == "" {
			h.try(c.line)
		}
	}
	each(newRoot(), func(cmd *cobra.Command) {
		group := cmd.HasSubCommands() && cmd.Flags().Lookup("database") == nil
		if cmd.Runnable() && !group && !named[cmd.CommandPath()] {
			h.t.Errorf("%s is not tried on a database that works every day; say how, or why not", cmd.CommandPath())
		}
	})
}

// everyCommand is the table, in an order in which one database allows it.
func (h *hostileBooks) everyCommand(engine string) []tried {
	const server, stopped = "it speaks to a server and knows no engine", "it runs until it is stopped"
	file := ""
	if engine != "sqlite" {
		file = "it is for a file; PostgreSQL is saved by its own tools"
	}
	day := time.Now().UTC().Format(time.DateOnly)
	return []tried{
		{"status", ""}, {"status --json", ""},
		{"doctor --secret-file SECRET", ""}, {"doctor --secret-file SECRET --bundle DIR/bundle.zip", ""},
		{"verify --secret-file SECRET --progress", ""}, {"report --test", ""}, {"report --day " + day + " --json", ""},
		{"version", ""}, {"connections", ""}, {"level", ""}, {"migrate", ""},
		{"client list", ""}, {"client create --name Shop", ""}, {"client methods CLIENT --enable mtn_momo", ""},
		{"client fees CLIENT --kind payment --method mtn_momo --currency XAF --flat 5", ""}, {"client suspend CLIENT", ""}, {"client resume CLIENT", ""},
		{"client pay-name CLIENT --set Boulangerie --by Anne", ""},
		{"pages block 242061234567 --by Anne --reason letter --secret-file SECRET", ""}, {"pages unblock 242061234567 --by Anne --reason letter --secret-file SECRET", ""},
		{"pages off --client CLIENT --by Anne --reason poster", ""}, {"pages on --client CLIENT --by Anne --reason poster", ""}, {"pages list", ""},
		{"key list --client CLIENT", ""}, {"key create --client CLIENT --name till", ""}, {"key rotate KEY", ""}, {"key revoke KEY", ""},
		{"person list", ""}, {"person roles awa", ""}, {"person invite --house admin --name Anne", ""}, {"person reset awa", ""}, {"person disable awa", ""},
		{"person-data 242061234567 --secret-file SECRET", ""},
		{"payment show PAYMENT", ""}, {"payout show PAYOUT", ""}, {"refund create PAYMENT --reason duplicate --key UUID --by Anne --secret-file SECRET", ""}, {"payment find --reference awa", ""}, {"payout find --reference awa", ""},
		{"payouts held", ""}, {"payouts hold --by Anne --reason audit", ""}, {"payouts release --by Anne", ""},
		{"cases", ""}, {"cases show CASE", ""}, {"strays", ""}, {"strays show STRAY", ""},
		{"audit --client CLIENT", ""}, {"audit head", ""}, {"statement --client CLIENT", ""},
		{"restored --show", ""},
		{"reconcile --connection awa --statement DIR/statement.csv --mapping DIR/mapping.toml --output DIR/differences.csv --from 2020-01-01 --to 2030-01-01", ""},
		{"cases resolve CASE --by Anne --reason seen --evidence DIR/letter.txt", ""},
		{"adjust --client CLIENT --currency XAF --amount 5 --reason r --by Anne --id UUID", ""},
		{"payment resolve OPEN --as success --by Anne --evidence DIR/letter.txt --secret-file SECRET", ""},
		{"payout resolve PAYOUT --as failed --by Anne --evidence DIR/letter.txt --secret-file SECRET", ""},
		{"payout cancel PAYOUT --by Anne --reason mistake --secret-file SECRET", ""},
		{"strays attribute STRAY --client CLIENT --by Anne --evidence DIR/letter.txt --amount 5 --currency XAF", ""},
		{"strays foreign STRAY --by Anne --reason theirs", ""},
		{"webhook replay ENDPOINT --failed --by Anne", ""}, {"webhook verify DIR/captured.txt --secret WEBHOOKSECRET", ""},
		{"erase --phone 242061234567 --dry-run --secret-file SECRET", ""},
		{"erase --phone 242061234567 --by Anne --reason asked --list DIR/erased.txt --secret-file SECRET", ""},
		{"level raise --by Anne", ""}, {"repair wallets --by Anne", ""},
		{"secret list", ""}, {"secret add --by Anne --secret-file SECRET", ""}, {"secret use 2 --by Anne", ""}, {"secret reseal --secret-file SECRET", ""},
		{"secret retire 1 --by Anne --callbacks-moved --secret-file SECRET", ""},
		{"backup --to DIR/../saved", file}, {"drill DIR/../saved --secret-file SECRET", file},
		{"restore DIR/../saved --secret-file SECRET --database DIR/back/till.db", file},
		{"restored --lost-from 2020-01-01T00:00:00Z --keys-reviewed --secret-file SECRET", ""}, {"restored --release --by Anne --yes", ""},
		{"status", ""},
		{"health", server}, {"top --once", server}, {"listen", server}, {"trigger", server}, {"bench", server}, {"webhook check", server},
		{"dev", stopped}, {"serve", stopped}, {"simulate", stopped}, {"proxy", stopped},
	}
}
