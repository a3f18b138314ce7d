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
	"till/provider"
	"till/recovery"
	"till/store"
	"till/store/access"
	"till/store/admin"
	"till/store/lookup"
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
			return admin.InsertInstallation(ctx, tx, &admin.Installation{LogID: till.NewID(tx.Now()), SecretCheck: []byte("check"), CreatedAt: installed})
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
		phones, err := lookup.NewPhoneKey(testSecret)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		if err := privacy.PersonData(ctx, d.back, phones, body.Phone, func(*privacy.PersonRecord) error { found++; return nil }); err != nil || found != 1 {
			t.Errorf("found %d payments by the phone, %v", found, err)
		}
	})
}

// A refund that was lost is made again with its payment, its road and its reason, as possibly
// sent, once the payment is credited; and of two refunds of a payment, the second once the
// first has ended.
func TestLostRefundsAreMadeAgain(t *testing.T) {
	for road, by := range map[till.Road]engine.RefundBy{till.RoadTransfer: engine.RefundByPayout, till.RoadRefund: engine.RefundByOperator} {
		t.Run(string(road), func(t *testing.T) { testLostRefunds(t, road, by) })
	}
}

func testLostRefunds(t *testing.T, road till.Road, by engine.RefundBy) {
	eachLostDisk(t, func(t *testing.T, d *lostDisk) {
		d.payouts = storetest.NewDisburser(t, d.lost, func(c *engine.Config) {
			c.Journal = d.writer
			c.Refunds.Origins = map[string]engine.Origin{storetest.Connection: {Fingerprint: storetest.Connection, Refunds: by}}
		})
		ctx := t.Context()
		for _, s := range []*store.Store{d.lost, d.back} {
			storetest.AllowRefunds(t, s)
		}
		paid := storetest.NewPayment(t, d.pays, d.client, storetest.Body{Value: "7000", Phone: "242061230001"})
		storetest.Apply(t, d.pays, d.lost, paid, storetest.Succeeded)
		failed := provider.Result{Outcome: provider.Failed, Reason: till.RecipientLimitReached}
		first := storetest.NewRefund(t, d.payouts, d.lost, d.client, storetest.RefundBody{PaymentID: paid.ID.String(), Value: "2500"})
		storetest.ApplyPayout(t, d.payouts, d.lost, first, failed)
		second := storetest.NewRefund(t, d.payouts, d.lost, d.client, storetest.RefundBody{PaymentID: paid.ID.String(), Value: "6000", Rest: `"reason":"duplicate","metadata":{"a":1}`, Fee: 10})

		d.restored()
		d.remake(1, 0, 2)
		storetest.Apply(t, d.again, d.back, paid, storetest.Succeeded)
		d.remake(0, 1, 1)
		d.remake(0, 0, 1)
		storetest.ApplyPayout(t, d.master, d.back, first, failed)
		d.remake(0, 1, 0)
		d.remake(0, 0, 0)
		d.view(func(tx *store.Tx) error {
			ref := store.Ref{Client: d.client.ID, ID: second.ID}
			p, err := tx.Payout(ctx, ref)
			if err != nil {
				return err
			}
			if p.PaymentID != paid.ID || p.Road != road || p.Reason != "duplicate" || p.Phone != paid.Phone || p.Amount != second.Amount || p.Fee != 10 ||
				p.CreatedAt != second.CreatedAt || !bytes.Equal(p.Document, second.Document) || p.Connection != second.Connection {
				t.Errorf("it is %+v\nwas   %+v", p.Payout, second)
			}
			st, err := tx.Step(ctx, ref)
			if err != nil || st == nil || !st.Restored || engine.Unsent(st) {
				t.Errorf("its step is %+v, %v; want that it is checked", st, err)
			}
			return nil
		})
		if got := storetest.RefundSums(t, d.back, paid); got != (till.RefundSums{Amount: 7000, Refunding: 6000}) {
			t.Errorf("the sums are %+v", got)
		}
		storetest.ApplyPayout(t, d.master, d.back, second, storetest.Succeeded)
	})
}

// Two refunds of one payment were open one after the other, and both are lost. Together they are
// no more than was paid, but only one may be open: the second is made again when the first has
// ended, and what else the journal has is not held up.
func TestLostRefundsOfOnePaymentAreMadeAgainInTurn(t *testing.T) {
	eachLostDisk(t, func(t *testing.T, d *lostDisk) {
		for _, s := range []*store.Store{d.lost, d.back} {
			storetest.AllowRefunds(t, s)
		}
		pay := func(receipt string) *till.Payment {
			p := storetest.NewPayment(t, d.pays, d.client, storetest.Body{Value: "7000"})
			storetest.Apply(t, d.pays, d.lost, p, provider.Result{Outcome: provider.Success, Receipt: receipt})
			return p
		}
		one, other := pay("R-1"), pay("R-2")
		refund := func(of *till.Payment) *till.Payout {
			return storetest.NewRefund(t, d.payouts, d.lost, d.client, storetest.RefundBody{PaymentID: of.ID.String(), Value: "2000"})
		}
		first := refund(one)
		storetest.ApplyPayout(t, d.payouts, d.lost, first, storetest.Declined)
		refund(one)
		refund(other)

		d.restored()
		d.remake(2, 0, 3)
		storetest.Apply(t, d.again, d.back, one, provider.Result{Outcome: provider.Success, Receipt: "R-1"})
		storetest.Apply(t, d.again, d.back, other, provider.Result{Outcome: provider.Success, Receipt: "R-2"})
		d.remake(0, 2, 1)
		d.remake(0, 0, 1)
		storetest.ApplyPayout(t, d.master, d.back, first, storetest.Declined)
		d.remake(0, 1, 0)
		for _, p := range []*till.Payment{one, other} {
			if got := storetest.RefundSums(t, d.back, p); got != (till.RefundSums{Amount: 7000, Refunding: 2000}) {
				t.Errorf("the sums are %+v", got)
			}
		}
	})
}

// A backup from before the level of refunds was raised: an older program may be put beside it, and
// would take a refund for a payout. So a refund waits until the level is raised again.
func TestLostRefundsWaitForTheLevel(t *testing.T) {
	eachLostDisk(t, func(t *testing.T, d *lostDisk) {
		storetest.AllowRefunds(t, d.lost)
		paid := storetest.NewPayment(t, d.pays, d.client, storetest.Body{Value: "2000"})
		storetest.Apply(t, d.pays, d.lost, paid, storetest.Succeeded)
		storetest.NewRefund(t, d.payouts, d.lost, d.client, storetest.RefundBody{PaymentID: paid.ID.String()})

		d.restored()
		d.remake(1, 0, 1)
		storetest.Apply(t, d.again, d.back, paid, storetest.Succeeded)
		d.remake(0, 0, 1)
		if _, err := recovery.Release(t.Context(), d.back, "Awa"); till.ErrorCode(err) != till.CodeValidationFailed {
			t.Errorf("released while a refund is missing: %v", err)
		}
		storetest.AllowRefunds(t, d.back)
		d.remake(0, 1, 0)
		if got := storetest.RefundSums(t, d.back, paid); got != (till.RefundSums{Amount: 2000, Refunding: 2000}) {
			t.Errorf("the sums are %+v", got)
		}
	})
}

// Sums of refunds that a backup has wrong are made again from the refunds.
func TestSumsOfRefundsAreRebuilt(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "till.db")
	s := storetest.Open(t, store.Config{Path: path})
	storetest.AllowRefunds(t, s)
	c, m, client := storetest.NewCollector(t, s), storetest.NewDisburser(t, s), storetest.NewClient(t, s, till.Live)
	paid := storetest.Apply(t, c, s, storetest.NewPayment(t, c, client, storetest.Body{}), storetest.Succeeded)
	storetest.ApplyPayout(t, m, s, storetest.NewRefund(t, m, s, client, storetest.RefundBody{PaymentID: paid.ID.String(), Value: "2000"}), storetest.Succeeded)
	storetest.NewRefund(t, m, s, client, storetest.RefundBody{PaymentID: paid.ID.String(), Value: "1000"})
	want := till.RefundSums{Amount: 5000, Refunding: 1000, Refunded: 2000}
	if got := storetest.RefundSums(t, s, &paid.Payment); got != want {
		t.Fatalf("the sums are %+v", got)
	}
	storetest.Raw(t, path, `UPDATE refund_sums SET refunding = 7, refunded = 8, late = 9`)
	for range 2 {
		if _, err := recovery.MarkRestored(t.Context(), s, recovery.RestoreRequest{Secret: testSecret, LostFrom: s.Now(), KeysReviewed: true, By: "Awa"}); err != nil {
			t.Fatal(err)
		}
		if got := storetest.RefundSums(t, s, &paid.Payment); got != want {
			t.Errorf("the sums are %+v, want %+v", got, want)
		}
	}
	storetest.CheckInvariants(t, s)
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
