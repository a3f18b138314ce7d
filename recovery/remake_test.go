package recovery_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"till"
	"till/collect"
	"till/engine"
	"till/journal"
	"till/payout"
	"till/privacy"
	"till/recovery"
	"till/store"
	"till/store/access"
	"till/store/storetest"
)

var testSecret = []byte("a secret for tests") // of storetest

// lostDisk is a database that will be lost, one that an old backup was put back to, and the
// journal of the first. Both know one client.
type lostDisk struct {
	t        *testing.T
	lost     *store.Store
	back     *store.Store
	folder   string
	client   *till.Client
	lostFrom till.Time
	writer   *journal.Writer

	pays    *collect.Collector
	payouts *payout.Disburser
	again   *collect.Collector // on the database that is back
	master  *payout.Disburser
}

func newLostDisk(t *testing.T, e storetest.Engine) *lostDisk {
	t.Helper()
	d := &lostDisk{t: t, lost: storetest.Open(t, e.Config(t)), back: storetest.Open(t, e.Config(t)), folder: filepath.Join(t.TempDir(), "journal")}
	ctx := t.Context()
	installed := d.lost.Now()
	for _, s := range []*store.Store{d.lost, d.back} {
		if err := s.Update(ctx, func(tx *store.Tx) error {
			return tx.InsertInstallation(ctx, &store.Installation{LogID: till.NewID(tx.Now()), SecretCheck: []byte("check"), CreatedAt: installed})
		}); err != nil {
			t.Fatal(err)
		}
	}
	d.client = storetest.NewClient(t, d.lost, till.Test)
	if err := d.back.Update(ctx, func(tx *store.Tx) error {
		if err := tx.InsertClient(ctx, d.client); err != nil {
			return err
		}
		return tx.EnsureWallet(ctx, d.client.ID, "XAF", d.client.CreatedAt)
	}); err != nil {
		t.Fatal(err)
	}
	var err error
	if d.writer, err = journal.Open(journal.Config{Folder: d.folder, Secret: testSecret, Installation: installed, Sync: true}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.writer.Close() })
	d.again, d.master = storetest.NewCollector(t, d.back), storetest.NewDisburser(t, d.back)
	d.fund(d.back, d.again, "3000")
	d.fund(d.lost, storetest.NewCollector(t, d.lost), "3000")
	d.lostFrom = d.lost.Now()
	journaled := func(c *engine.Config) { c.Journal = d.writer }
	d.pays, d.payouts = storetest.NewCollector(t, d.lost, journaled), storetest.NewDisburser(t, d.lost, journaled)
	return d
}

func (d *lostDisk) fund(s *store.Store, c *collect.Collector, value string) {
	d.t.Helper()
	storetest.Apply(d.t, c, s, storetest.NewPayment(d.t, c, d.client, storetest.Body{Value: value}), storetest.Succeeded)
}

// restored marks the older database, as 'till restored' does.
func (d *lostDisk) restored() {
	d.t.Helper()
	if _, err := recovery.MarkRestored(d.t.Context(), d.back, recovery.RestoreRequest{Secret: testSecret, LostFrom: d.lostFrom, KeysReviewed: true, By: "Awa"}); err != nil {
		d.t.Fatal(err)
	}
}

func (d *lostDisk) request() recovery.RemakeRequest {
	return recovery.RemakeRequest{Secret: testSecret, Folders: []string{d.folder}, LostFrom: d.lostFrom, By: "Awa"}
}

// remake makes what is lost again, and wants so many payments, payouts and waiting ones.
func (d *lostDisk) remake(payments, payouts, waiting int) *recovery.RemakeResult {
	d.t.Helper()
	got, err := recovery.Remake(d.t.Context(), d.back, d.request())
	if err != nil || got.Payments != payments || got.Payouts != payouts || got.Waiting != waiting {
		d.t.Fatalf("made again %+v, %v; want %d payments, %d payouts, and %d that wait", got, err, payments, payouts, waiting)
	}
	return got
}

func (d *lostDisk) view(f func(tx *store.Tx) error) {
	d.t.Helper()
	if err := d.back.View(d.t.Context(), f); err != nil {
		d.t.Fatal(err)
	}
}

func eachLostDisk(t *testing.T, f func(t *testing.T, d *lostDisk)) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			d := newLostDisk(t, e)
			f(t, d)
			storetest.CheckInvariants(t, d.back)
		})
	}
}

// What was created after the backup is there again under its own id and key, as possibly
// sent; a retry gets its first answer; a payout whose money is lost waits until it is back.
// The books are verified when the test ends.
func TestLostCreatesAreMadeAgain(t *testing.T) {
	eachLostDisk(t, func(t *testing.T, d *lostDisk) {
		ctx := t.Context()
		key := strings.ToUpper(till.NewID(d.lost.Now()).String())
		body := storetest.Body{Key: key, Value: "7000", Phone: "242061230001", Reference: "order 7",
			Rest: `"metadata":{"a":[1,"é"]},"tax":{"inclusive":true,"amount":"1000","rate":"18.00"}`}
		first := storetest.NewPayment(t, d.pays, d.client, body)
		for range 130 { // more than one commit takes
			storetest.NewPayment(t, d.pays, d.client, storetest.Body{})
		}
		if replay, err := storetest.CreatePayment(t, d.pays, d.client, body); err != nil || !replay.Replayed {
			t.Fatalf("%+v, %v", replay, err)
		}
		storetest.Apply(t, d.pays, d.lost, first, storetest.Succeeded)
		covered := storetest.NewPayout(t, d.payouts, d.client, storetest.Body{Value: "2500"}, 100)
		later := storetest.NewPayout(t, d.payouts, d.client, storetest.Body{Value: "6000"}, 0)
		stranger := storetest.NewClient(t, d.lost, till.Live) // made in the lost time, too
		theirs := storetest.NewPayment(t, d.pays, stranger, storetest.Body{})

		d.restored()
		if got := d.remake(132, 1, 1); got.Clients != 1 || got.Retried != 0 || got.Report.Records != 134 || len(got.Report.Cut) > 0 {
			t.Errorf("%+v %+v", got, got.Report)
		}
		d.view(func(tx *store.Tx) error {
			p, err := tx.Payment(ctx, store.Ref{Client: d.client.ID, ID: first.ID})
			if err != nil {
				return err
			}
			if p.Status != till.Pending || p.IdempotencyKey != key || p.Amount != first.Amount || p.Phone != first.Phone || p.Reference != "order 7" || p.CreatedAt != first.CreatedAt ||
				p.ExpiresAt != first.ExpiresAt || !bytes.Equal(p.Document, first.Document) || p.Connection != first.Connection || p.Fingerprint != first.Fingerprint {
				t.Errorf("it is %+v\nwas   %+v", p.Payment, first)
			}
			for _, id := range []till.ID{first.ID, covered.ID} {
				st, err := tx.Step(ctx, store.Ref{Client: d.client.ID, ID: id})
				if err != nil || st == nil || !st.Restored || st.Sends != 1 || engine.Unsent(st) || !strings.HasSuffix(st.Lane, "check") {
					t.Errorf("its step is %+v, %v; want that it is checked", st, err)
				}
			}
			w, err := tx.Wallet(ctx, d.client.ID, "XAF")
			if err == nil && (w.Balance != 3000 || w.Reserved != 2600) {
				t.Errorf("the wallet is %+v", w)
			}
			c, err := tx.Client(ctx, stranger.ID)
			if err == nil && (c.Name != stranger.Name || c.Mode != till.Live) {
				t.Errorf("the lost client is %+v", c)
			}
			if keys, err := access.Keys(ctx, tx, stranger.ID, 10); err != nil || len(keys) != 0 {
				t.Errorf("a client that was made again has keys: %v, %v", keys, err)
			}
			_, err = tx.Payment(ctx, store.Ref{Client: stranger.ID, ID: theirs.ID})
			return err
		})
		if replay, err := storetest.CreatePayment(t, d.again, d.client, body); err != nil || !replay.Replayed || replay.Payment.ID != first.ID {
			t.Errorf("a retry: %+v, %v", replay, err)
		}
		body.Value = "7001"
		body.Rest = ""
		if _, err := storetest.CreatePayment(t, d.again, d.client, body); till.ErrorCode(err) != till.CodeKeyReused {
			t.Errorf("the key with another body: %v", err)
		}
		if _, err := recovery.Release(ctx, d.back, "Awa"); till.ErrorCode(err) != till.CodeValidationFailed || !strings.Contains(err.Error(), "journal") {
			t.Errorf("released while a payout waits: %v", err)
		}
		d.remake(0, 0, 1)
		storetest.Apply(t, d.again, d.back, first, storetest.Succeeded)
		d.remake(0, 1, 0)
		d.remake(0, 0, 0)
		d.view(func(tx *store.Tx) error {
			_, err := tx.Payout(ctx, store.Ref{Client: d.client.ID, ID: later.ID})
			return err
		})
		if _, err := recovery.Release(ctx, d.back, "Awa"); err != nil {
			t.Error(err)
		}
		phones, err := store.NewPhoneKey(testSecret)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		if err := privacy.PersonData(ctx, d.back, phones, body.Phone, func(*privacy.PersonRecord) error { found++; return nil }); err != nil || found != 1 {
			t.Errorf("found %d payments by the phone, %v", found, err)
		}
	})
}

// A client's retry may come before somebody has the journal at hand. It is not sent then:
// what it repeats may have been. And a create whose commit failed has a record, too: the one
// that the client was answered counts.
func TestRetriesAndFailedCommits(t *testing.T) {
	eachLostDisk(t, func(t *testing.T, d *lostDisk) {
		ctx := t.Context()
		retried := storetest.Body{Key: till.NewID(d.lost.Now()).String()}
		original := storetest.NewPayment(t, d.pays, d.client, retried)
		again := storetest.Body{Key: till.NewID(d.lost.Now()).String()}
		// As it is left by a commit that failed after the journal had it.
		failed := storetest.NewPayment(t, storetest.NewCollector(t, d.back), d.client, storetest.Body{})
		var row *store.PaymentRow
		d.view(func(tx *store.Tx) (err error) {
			row, err = tx.Payment(ctx, store.Ref{Client: d.client.ID, ID: failed.ID})
			return err
		})
		phantom := row.Subject()
		phantom.IdempotencyKey = again.Key
		if err := d.writer.Committing(till.SubjectPayment, []engine.JournalEntry{{Client: d.client, Row: phantom}}); err != nil {
			t.Fatal(err)
		}
		answered := storetest.NewPayment(t, d.pays, d.client, again)

		d.restored()
		time.Sleep(2 * time.Microsecond)
		retry := storetest.NewPayment(t, d.again, d.client, retried)
		if got := d.remake(1, 0, 0); got.Retried != 1 {
			t.Errorf("%+v; want one retry", got)
		}
		if got := d.remake(0, 0, 0); got.Retried != 0 {
			t.Errorf("%+v; want that nothing is left", got)
		}
		d.view(func(tx *store.Tx) error {
			st, err := tx.Step(ctx, store.Ref{Client: d.client.ID, ID: retry.ID})
			if err != nil || !st.Restored || engine.Unsent(st) {
				t.Errorf("the retry is %+v, %v; want that it is not sent", st, err)
			}
			if _, err := tx.Payment(ctx, store.Ref{Client: d.client.ID, ID: original.ID}); till.ErrorCode(err) != till.CodePaymentNotFound {
				t.Errorf("a key has two payments: %v", err)
			}
			_, err = tx.Payment(ctx, store.Ref{Client: d.client.ID, ID: answered.ID})
			return err
		})
	})
}

// A damaged journal, and one of another installation, change nothing.
func TestAJournalThatIsNotRight(t *testing.T) {
	eachLostDisk(t, func(t *testing.T, d *lostDisk) {
		ctx := t.Context()
		for range 3 {
			storetest.NewPayment(t, d.pays, d.client, storetest.Body{})
		}
		d.restored()
		r := d.request()
		r.Secret = []byte("a secret of others")
		if _, err := recovery.Remake(ctx, d.back, r); !errors.Is(err, journal.ErrForeign) {
			t.Errorf("with another secret: %v", err)
		}
		segments, err := filepath.Glob(filepath.Join(d.folder, "*"))
		if err != nil || len(segments) != 1 {
			t.Fatal(segments, err)
		}
		b, err := os.ReadFile(segments[0])
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)/2] ^= 1
		if err := os.WriteFile(segments[0], b, 0o600); err != nil {
			t.Fatal(err)
		}
		var damaged *recovery.DamagedError
		if _, err := recovery.Remake(ctx, d.back, d.request()); !errors.As(err, &damaged) || damaged.Report.Records != 2 {
			t.Errorf("damaged: %v", err)
		}
		r = d.request()
		r.SkipDamaged = true
		if got, err := recovery.Remake(ctx, d.back, r); err != nil || got.Payments != 2 || len(got.Report.Damaged) != 1 {
			t.Errorf("%+v, %v; want the two that can be read", got, err)
		}
	})
}
