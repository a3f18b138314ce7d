package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"till"
	"till/cmd/till/internal/cli"
	"till/store"
	"till/store/matching"
	"till/store/storetest"
)

// runbook is the page of an alert, followed by the letter in an installation whose trouble is
// real. The alert is evaluated from the shipped rules on what /metrics says.
type runbook struct {
	*saved
	alert, page string
}

func newRunbook(t *testing.T, alert string) *runbook {
	t.Helper()
	_, page, found := strings.Cut(guideText(t, "docs/guide/runbooks.md"), "\n## "+alert+"\n")
	if !found {
		t.Fatalf("there is no page for %s", alert)
	}
	page, _, _ = strings.Cut(page, "\n## ")
	return &runbook{newSaved(t, 20), alert, page}
}

var tillSpan = regexp.MustCompile("`(till [^`]+)`")

// does runs the command of the page that begins so, with what the page leaves to the reader,
// and wants its exit code.
func (w *runbook) does(want int, begins string, reader ...string) string {
	w.t.Helper()
	for _, m := range tillSpan.FindAllStringSubmatch(w.page, -1) {
		if !strings.HasPrefix(m[1], begins) {
			continue
		}
		args := strings.Fields(m[1])[1:]
		for i, word := range args {
			switch word {
			case "NAME":
				args[i] = "Awa"
			case "FILE", "/etc/till/till.toml":
				args[i] = filepath.Join(w.dir, "till.toml")
			case "T":
				args[i] = reader[0]
				reader = reader[1:]
			}
		}
		return w.must(want, append(append(args, "--database", w.database), reader...)...)
	}
	w.t.Fatalf("the page of %s names no command that begins with %q", w.alert, begins)
	return ""
}

// is wants that the alert fires, or that it does not, so long from now.
func (w *runbook) is(firing bool, later time.Duration) {
	w.t.Helper()
	s := scrapeGauges(w.t, w.database)
	s.at = s.at.Add(later)
	if got := fires(w.t, w.alert, s); got != firing {
		w.t.Fatalf("that %s fires is %t, want %t", w.alert, got, firing)
	}
}

// over wants that the alert has ended, and the books are right.
func (w *runbook) over(later time.Duration) {
	w.t.Helper()
	w.is(false, later)
	w.must(0, "verify", "--database", w.database)
}

// TestRunbooksEndTheirAlerts causes the trouble of some pages, follows each by the letter,
// and sees its alert end. TestFullDisk does the same for the pages of full disks.
func TestRunbooksEndTheirAlerts(t *testing.T) {
	t.Parallel()
	for alert, story := range map[string]func(*runbook){
		"TillBooksBroken": (*runbook).brokenBooks, "TillVerifyMissing": (*runbook).missingVerify, "TillBackupMissing": (*runbook).missingBackup,
		"TillPayoutsHeld": (*runbook).heldPayouts, "TillStrayMoney": (*runbook).strayMoney,
		"TillOperatorRefusesUs": (*runbook).refusedCredentials,
	} {
		t.Run(alert, func(t *testing.T) {
			t.Parallel()
			story(newRunbook(t, alert))
		})
	}
}

// config writes the part of till.toml that says where backups go.
func (w *runbook) config() {
	w.t.Helper()
	text := fmt.Sprintf("[backup]\nto = %q\nkeep = \"24h\"\nrecipients = [%q]\n", w.place, w.public)
	if err := os.WriteFile(filepath.Join(w.dir, "till.toml"), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *runbook) brokenBooks() {
	w.config()
	w.must(0, "backup", "--database", w.database, "--config", filepath.Join(w.dir, "till.toml"))
	w.is(false, 0)
	storetest.Raw(w.t, w.database, `UPDATE wallets SET balance = balance + 1 WHERE currency = 'XAF'`)
	if found := w.does(cli.ExitRefused, "till verify"); !strings.Contains(found, "I3") {
		w.t.Errorf("till verify says %s", found)
	}
	w.is(true, 0)
	w.does(0, "till payouts hold")
	w.does(0, "till backup")
	if all, err := filepath.Glob(filepath.Join(w.place, "*.age")); err != nil || len(all) != 2 {
		w.t.Errorf("the good backup is not there: %v", all)
	}
	if held, err := filepath.Glob(filepath.Join(w.place, "*.held")); err != nil || len(held) != 1 {
		w.t.Errorf("the backup of the books as they were is not held: %v", held)
	}
	w.does(0, "till repair wallets", "--yes") // it shows what it does, and asks
	w.does(0, "till verify")
	w.does(0, "till payouts release")
	w.over(0)
}

func (w *runbook) missingVerify() {
	w.is(true, 0)
	w.does(0, "till verify")
	w.over(0)
	w.is(true, 37*time.Hour)
}

func (w *runbook) missingBackup() {
	w.config()
	w.is(true, 0)
	w.does(0, "till backup")
	w.over(0)
	w.is(true, 27*time.Hour)
}

func (w *runbook) heldPayouts() {
	lost := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	w.must(cli.ExitRefused, "restored", "--database", w.database, "--lost-from", lost)
	w.is(false, 0) // a person is at it
	w.is(true, 5*time.Hour)
	w.does(cli.ExitRefused, "till restored --release") // not before the keys were looked at
	w.is(true, 5*time.Hour)
	w.does(0, "till restored --keys-reviewed", lost)
	w.does(0, "till restored --show")
	w.does(0, "till restored --release")
	w.over(5 * time.Hour)
}

func (w *runbook) strayMoney() {
	id := till.NewID(till.TimeOf(time.Now()))
	onStore(w.t, w.database, func(s *store.Store) error {
		return s.Update(w.t.Context(), func(tx *store.Tx) error {
			_, err := matching.InsertStray(w.t.Context(), tx, &matching.Stray{Connection: "mtn-cg", ID: id, Receipt: "R1", Source: matching.StrayCallback, SeenAt: tx.Now(),
				Claimed: "success", Direction: matching.StrayIn, Amount: till.Money{Minor: 5000, Currency: "XAF"}})
			return err
		})
	})
	w.is(true, 0)
	if list := w.does(0, "till strays"); !strings.Contains(list, "5000 XAF") || !strings.Contains(list, id.String()) {
		w.t.Errorf("till strays says %s", list)
	}
	w.does(0, "till strays foreign", id.String(), "--by", "Awa", "--reason", "the letter of the operator")
	w.over(0)
}
