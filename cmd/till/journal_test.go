package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"till"
	"till/cmd/till/internal/cli"
	"till/journal"
	"till/provider/sandbox"
	"till/secret"
	"till/store"
	"till/store/admin"
)

// F36 with a journal: the disk of the database is lost at a moment when payments and payouts
// are under way, an old backup is put back, and the journal on another disk makes again what
// was answered since: under the ids that the client knows, paid once, with nothing lost.
func TestLossOfTheDisk(t *testing.T) {
	t.Parallel()
	for name, engine := range backups() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := engine(t)
			l := &lostDisk{fullDisk: newFullDisk(t, b.database), folder: filepath.Join(t.TempDir(), "journal"), payouts: map[string]string{}}
			var made struct {
				Key string `json:"api_key"`
			}
			l.till(&made, "key", "create", "--client", l.clientID(), "--name", "all", "--scopes", "payments:write,payments:read,payouts:write,payouts:read,refunds:write", "--database", l.database, "--json")
			l.key = made.Key

			// In the backup: money for one of the payouts that come later.
			l.createMany(12)
			l.settle()
			l.end(l.server, syscall.SIGTERM)
			b.take()
			lostFrom, kept := l.now(), l.paid(0)

			l.server = l.start("--journal", l.folder, "--journal-sync")
			l.createMany(25)
			l.settle()
			have := l.balance()
			l.payOut("4567", 1000)
			l.payOut("0011", 1000)      // the operator's answer is lost
			l.payOut("4567", have-5000) // more than the backup has
			l.giveBack(kept)
			l.giveBack(l.paid(lostFrom)) // its payment is not credited in the backup
			l.createMany(15)             // under way when the disk dies
			l.end(l.server, syscall.SIGKILL)
			b.putBack()

			first := l.restored(lostFrom)
			if first.Payments != 40 || first.Payouts != 3 || first.Waiting != 2 || len(first.Damaged) > 0 {
				t.Errorf("made again: %+v; want all 40 payments, the two payouts that the wallet has money for, and the refund whose payment was not lost", first)
			}
			if lost := l.lost(); len(lost) > 0 {
				t.Errorf("%d payments were answered and are not there", len(lost))
			}
			if said := l.refused("restored", "--release", "--by", "Awa", "--yes"); !strings.Contains(said, "--journal") {
				t.Errorf("released while a payout is missing: %s", said)
			}
			l.server = l.start("--journal", l.folder, "--journal-sync")
			l.retryBodies()
			l.settle()
			if again := l.restored(lostFrom); again.Payments != 0 || again.Payouts != 2 || again.Waiting != 0 {
				t.Errorf("with the money back: %+v; want the last payout and the refund of what is paid again", again)
			}
			l.await("the payouts are decided", func() bool { return l.openPayouts() == 0 })
			l.till(nil, "restored", "--release", "--by", "Awa", "--yes", "--database", l.database)
			l.end(l.server, syscall.SIGTERM)
			l.verify()
			l.compareByReference()
			l.comparePayouts()
		})
	}
}

// lostDisk is a service with a journal whose database is lost.
type lostDisk struct {
	*fullDisk
	folder  string
	payouts map[string]string // id by key
}

func (l *lostDisk) clientID() (id string) {
	l.view(func(_ *store.Tx, client till.ID) error { id = client.String(); return nil })
	return id
}

// now is the time of the database.
func (l *lostDisk) now() (now till.Time) {
	l.view(func(tx *store.Tx, _ till.ID) error { now = tx.Now(); return nil })
	return now
}

func (l *lostDisk) balance() (minor int64) {
	l.view(func(tx *store.Tx, client till.ID) error {
		w, err := tx.Wallet(context.Background(), client, "XAF")
		minor = w.Available()
		return err
	})
	return minor
}

// paid returns a payment that is paid, of which not all went back, and that was created after a time.
func (l *lostDisk) paid(after till.Time) (id string) {
	l.t.Helper()
	l.view(func(tx *store.Tx, client till.ID) error {
		rows, _, err := tx.ListPayments(context.Background(), client, store.PaymentFilter{Status: till.Success, From: after}, store.Page{Limit: 1, Ascending: after == 0})
		if err == nil && len(rows) == 0 {
			l.t.Fatal("no payment is paid")
		}
		id = rows[0].ID.String()
		return err
	})
	return id
}

// giveBack gives a part of a payment back.
func (l *lostDisk) giveBack(payment string) {
	l.t.Helper()
	l.out("/refunds", `{"payment_id":"`+payment+`","amount":{"value":"100","currency":"XAF"},"idempotency_key":"%s"}`)
}

func (l *lostDisk) payOut(story string, minor int64) {
	l.t.Helper()
	l.out("/payouts", fmt.Sprintf(`{"method":"mtn_momo","country":"CG","amount":{"value":"%d","currency":"XAF"},"idempotency_key":"%%s","recipient":{"phone":"24206123%s"}}`, minor, story))
}

// out makes a payout or a refund with a key of its own.
func (l *lostDisk) out(path, form string) {
	l.t.Helper()
	key := newUUID().String()
	body := fmt.Sprintf(form, key)
	req, _ := http.NewRequest("POST", l.base()+path, strings.NewReader(body))
	req.Header.Set("X-Api-Key", l.key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		l.t.Fatal(err)
	}
	defer resp.Body.Close()
	var p struct {
		ID string `json:"id"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&p); err != nil || resp.StatusCode != http.StatusAccepted {
		l.t.Fatalf("%s is answered %d, %v", body, resp.StatusCode, err)
	}
	l.payouts[key] = p.ID
}

// remadeRows is what 'till restored --journal --json' says.
type remadeRows struct {
	Payments, Payouts, Waiting int
	Damaged                    []string
}

func (l *lostDisk) restored(lostFrom till.Time) remadeRows {
	l.t.Helper()
	var told struct {
		Journal remadeRows `json:"journal"`
	}
	l.till(&told, "restored", "--database", l.database, "--secret-file", filepath.Join(l.dir, "till.secret"), "--lost-from", lostFrom.String(), "--keys-reviewed", "--journal", l.folder, "--json")
	return told.Journal
}

// refused runs a command that must be refused and returns what it says.
func (l *lostDisk) refused(args ...string) string {
	l.t.Helper()
	var out, errs bytes.Buffer
	if code := run(context.Background(), append(args, "--database", l.database), &out, &errs); code != cli.ExitRefused {
		l.t.Errorf("till %s ends with %d: %s%s", strings.Join(args, " "), code, &out, &errs)
	}
	return errs.String()
}

// retryBodies sends every create again: send compares the id with the first answer's.
func (l *lostDisk) retryBodies() {
	l.t.Helper()
	for key := range l.answered {
		if !l.send(context.Background(), l.bodies[key], key) {
			l.t.Error("a retry got no answer")
		}
	}
}

func (l *lostDisk) openPayouts() (open int) {
	l.view(func(tx *store.Tx, client till.ID) error {
		for _, id := range l.payouts {
			parsed, _ := till.ParseID(id)
			p, err := tx.Payout(context.Background(), store.Ref{Client: client, ID: parsed})
			if err != nil {
				return err
			}
			if !p.Status.Final() {
				open++
			}
		}
		return nil
	})
	return open
}

// comparePayouts holds the payouts against the operator's book (I8): all were sent before the
// disk was lost or not at all, and none twice.
func (l *lostDisk) comparePayouts() {
	l.t.Helper()
	ctx := context.Background()
	o, err := sandbox.Open(ctx, sandbox.Config{Path: l.book})
	if err != nil {
		l.t.Fatal(err)
	}
	defer o.Close()
	credits, err := o.Credits(ctx)
	if err != nil {
		l.t.Fatal(err)
	}
	l.view(func(tx *store.Tx, client till.ID) error {
		for _, id := range l.payouts {
			parsed, _ := till.ParseID(id)
			p, err := tx.Payout(ctx, store.Ref{Client: client, ID: parsed})
			if err != nil {
				return err
			}
			n := 0
			for _, c := range credits {
				if c.Payout == parsed {
					n++
				}
			}
			if want := map[bool]int{true: 1}[p.Status == till.PayoutSuccess || p.LateEvent != 0]; n != want {
				l.t.Errorf("payout %s is %s and was paid %d times", id, p.Status, n)
			}
		}
		return nil
	})
}

// journalOnAFullDisk fills the disk of a synchronous journal: creates are refused as on a full
// disk of the database, nothing of them is sent, and what was answered is in the journal.
func journalOnAFullDisk(t *testing.T) {
	folder := t.TempDir()
	fill, free := mount(t, folder, 1<<20)
	d := newFullDisk(t, filepath.Join(t.TempDir(), "till.db"), "--journal", folder, "--journal-sync")
	d.otherFault, d.alert = true, "TillJournalFails"
	d.reason = "the journal cannot be written, and creates wait for it"
	d.run(fill, free)
	secret, err := secret.Read(filepath.Join(d.dir, "till.secret"))
	if err != nil {
		t.Fatal(err)
	}
	var installed till.Time
	d.view(func(tx *store.Tx, _ till.ID) error {
		i, err := admin.ReadInstallation(t.Context(), tx)
		installed = i.CreatedAt
		return err
	})
	recorded := map[string]bool{}
	report, err := journal.Read([]string{folder}, secret, installed, func(r *journal.Record) error { recorded[r.Row.Ref.ID.String()] = true; return nil })
	if err != nil || len(report.Damaged) > 0 {
		t.Errorf("the journal after a full disk: %+v, %v", report, err)
	}
	for _, id := range d.answered {
		if !recorded[id] {
			t.Errorf("%s was answered and is not in the journal", id)
		}
	}
}
