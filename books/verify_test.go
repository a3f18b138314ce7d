package books_test

import (
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"till"
	"till/bench/seed"
	"till/books"
	"till/collect"
	"till/provider"
	"till/store"
	"till/store/storetest"
	"till/store/webhooks"
	"till/upkeep"
)

// taxed is a charge and a tax that add up to 5000.
const taxed = `"charge":{"items":[{"name":"Rice","quantity":1.5,"unit_price":"2000","total":"3000"},` +
	`{"name":"Oil","quantity":1,"unit_price":"1500","total":"1500"}],"subtotal":"4500"},` +
	`"tax":{"inclusive":false,"amount":"500","rate":"11.11","type":"VAT"}`

// newBooks fills a store with payments in every state, for two clients, and
// seals the audit logs. Payments are referred to by their reference.
func newBooks(t *testing.T, path string) *store.Store {
	t.Helper()
	s := storetest.Open(t, store.Config{Path: path})
	c := storetest.NewCollector(t, s)
	for range 2 {
		fillBooks(t, s, c, storetest.NewClient(t, s, till.Test))
	}
	if _, err := books.ExtendChains(t.Context(), s, storetest.ChainKey); err != nil {
		t.Fatal(err)
	}
	storetest.RollUp(t, s)
	return s
}

func fillBooks(t *testing.T, s *store.Store, c *collect.Collector, client *till.Client) {
	t.Helper()
	other := provider.Result{Outcome: provider.Success, Receipt: "R-" + client.ID.String(), Amount: till.Money{Minor: 7000, Currency: "XAF"}}
	for _, p := range []struct {
		reference string
		words     []provider.Result
	}{
		{"pending", nil},
		{"processing", []provider.Result{storetest.Opened}},
		{"first", []provider.Result{storetest.Opened, storetest.Succeeded}},
		{"second", []provider.Result{storetest.Succeeded}},
		{"failed", []provider.Result{storetest.Opened, storetest.Declined}},
		{"expired", []provider.Result{storetest.TimedOut}},
		{"late", []provider.Result{storetest.TimedOut, storetest.Succeeded}},
		{"aside", []provider.Result{other}},
		{"third", []provider.Result{storetest.Succeeded}},
	} {
		made := storetest.NewPayment(t, c, client, storetest.Body{Reference: p.reference, Rest: taxed})
		for _, w := range p.words {
			storetest.Apply(t, c, s, made, w)
		}
		if p.reference == "second" { // one link, and another for the rest
			if _, err := books.ExtendChains(t.Context(), s, storetest.ChainKey); err != nil {
				t.Error(err)
			}
		}
	}
	addEndpoints(t, s, client.ID)
}

// addEndpoints makes an endpoint that is behind, with a row and a stretch of
// each sort, and one that is switched off.
func addEndpoints(t *testing.T, s *store.Store, client till.ID) {
	t.Helper()
	ctx := t.Context()
	err := s.Update(ctx, func(tx *store.Tx) error {
		at := tx.Now()
		on := &webhooks.Endpoint{Endpoint: till.Endpoint{ClientID: client, ID: till.NewID(at), URL: "https://on.example/", Enabled: true, CreatedAt: at, UpdatedAt: at},
			Secret: []byte("sealed"), Start: 1, EventsListedFrom: 1, Cursor: 10, NextRetry: at, ReplayAt: at}
		off := &webhooks.Endpoint{Endpoint: till.Endpoint{ClientID: client, ID: till.NewID(at), URL: "https://off.example/", CreatedAt: at, UpdatedAt: at,
			DisabledAt: at, DisableReason: till.DisabledByClient}, Secret: []byte("sealed")}
		for _, e := range []*webhooks.Endpoint{on, off} {
			if err := webhooks.InsertEndpoint(ctx, tx, e); err != nil {
				return err
			}
		}
		events, err := tx.Events(ctx, client, 1, 3)
		if err != nil {
			return err
		}
		rows := make([]*webhooks.Delivery, len(events)) // of the payments processing, processing and first, as it was created
		for i, status := range []webhooks.DeliveryStatus{webhooks.DeliverySuperseded, webhooks.DeliveryPending, webhooks.DeliveryDelivered} {
			rows[i] = &webhooks.Delivery{ClientID: client, EndpointID: on.ID, Sequence: events[i].Sequence, Kind: webhooks.DeliverEvent, ID: till.NewID(at),
				SubjectID: events[i].SubjectID, Status: status, Attempts: 1, DueAt: at, CreatedAt: at, UpdatedAt: at}
		}
		return errors.Join(webhooks.SaveDeliveries(ctx, tx, rows),
			webhooks.InsertRange(ctx, tx, &webhooks.LogRange{ClientID: client, EndpointID: on.ID, ID: till.NewID(at), Why: webhooks.RangeReplay, From: 2, Next: 3, To: 5, CreatedAt: at}),
			webhooks.InsertRange(ctx, tx, &webhooks.LogRange{ClientID: client, EndpointID: on.ID, ID: till.NewID(at), Why: webhooks.RangeDisabled, From: 6, Next: 6, To: 7, CreatedAt: at}))
	})
	if err != nil {
		t.Fatal(err)
	}
}

func verify(t *testing.T, s *store.Store, o books.Options) books.Report {
	t.Helper()
	o.Key = storetest.ChainKey
	r, err := books.Verify(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestVerifyReadsEverything(t *testing.T) {
	t.Parallel()
	s := newBooks(t, filepath.Join(t.TempDir(), "till.db"))
	for _, slice := range []int{1, 2, 3, 10_000} {
		r := verify(t, s, books.Options{Slice: slice})
		for _, p := range r.Problems {
			t.Errorf("slice %d: %+v", slice, p)
		}
		got := [...]int64{r.Clients, r.Payments, r.Events, r.Endpoints, r.Transactions, r.Entries, r.Audit, r.ChainLinks}
		// Per client: 9 payments; their events 1+2+3+2+3+2+3+2+2; 4 credits and
		// one entry put aside, each of them audited.
		if want := [...]int64{2, 18, 42, 4, 8, 10, 10, 10}; got != want {
			t.Errorf("slice %d: read %v, want %v", slice, got, want)
		}
	}
}

// of names a payment of the first client in the statements below.
func of(reference string) string {
	return `(SELECT id FROM payments WHERE reference = '` + reference + `' AND client_id = (SELECT min(client_id) FROM clients))`
}

const firstClient = `(SELECT min(client_id) FROM clients)`

func TestVerifyFindsWhatIsBroken(t *testing.T) {
	t.Parallel()
	template := filepath.Join(t.TempDir(), "template.db")
	newBooks(t, template)

	for _, c := range []struct{ invariant, name, sql string }{
		{"I1", "a posting's amount changed", `UPDATE postings SET amount = amount - 1 WHERE account = 'operator' AND payment_id = ` + of("first")},
		{"I1", "a collection without its other side", `DELETE FROM postings WHERE payment_id = ` + of("first")},
		{"I1", "money put aside from nowhere", `DELETE FROM postings WHERE account = 'operator' AND payment_id = ` + of("aside")},
		{"I1", "an entry in two currencies", `UPDATE postings SET currency = 'XOF' WHERE account = 'operator' AND payment_id = ` + of("aside")},
		{"I1", "a side of another kind", `UPDATE postings SET kind = 'fee' WHERE payment_id = ` + of("first")},
		{"I1", "a side at another time", `UPDATE postings SET created_at = created_at + 1 WHERE payment_id = ` + of("first")},

		{"I2", "a success without a collection", `DELETE FROM transactions WHERE payment_id = ` + of("third")},
		{"I2", "a late success without a late collection", `DELETE FROM transactions WHERE payment_id = ` + of("late")},
		{"I2", "a collection of another amount", `UPDATE transactions SET amount = amount + 1 WHERE payment_id = ` + of("first")},
		{"I2", "a late collection of a success", `UPDATE transactions SET type = 'late_collection' WHERE payment_id = ` + of("first")},
		{"I2", "a collection of a failed payment", `UPDATE transactions SET payment_id = ` + of("failed") + ` WHERE payment_id = ` + of("first")},
		{"I2", "a collection for no payment", `UPDATE transactions SET payment_id = NULL WHERE payment_id = ` + of("first")},
		{"I2", "a credit in another currency", `UPDATE transactions SET currency = 'XOF' WHERE payment_id = ` + of("first")},

		{"I3", "a balance that is not its transactions", `UPDATE wallets SET balance = balance + 1 WHERE currency = 'XAF' AND client_id = ` + firstClient},
		{"I3", "a balance without transactions", `UPDATE wallets SET balance = 1 WHERE currency = 'KES' AND client_id = ` + firstClient},
		{"I3", "more reserved than there is", `UPDATE wallets SET reserved = balance + 1 WHERE currency = 'XAF' AND client_id = ` + firstClient},
		{"I3", "a last sequence that is not there", `UPDATE wallets SET last_sequence = 9 WHERE currency = 'XAF' AND client_id = ` + firstClient},
		{"I3", "a gap in the statement", `UPDATE transactions SET sequence = sequence + 100 WHERE payment_id = ` + of("third")},
		{"I3", "a balance after that does not follow", `UPDATE transactions SET balance_after = balance_after + 1 WHERE payment_id = ` + of("first")},
		{"I3", "a line in no wallet", `UPDATE transactions SET wallet_id = x'00' WHERE payment_id = ` + of("first")},

		{"I4", "a move that does not exist", `UPDATE payments SET previous_status = 'failed' WHERE id = ` + of("first")},
		{"I4", "a status that does not exist", `UPDATE payments SET status = 'refunded' WHERE id = ` + of("processing")},
		{"I4", "an update before the creation", `UPDATE payments SET updated_at = created_at - 1 WHERE id = ` + of("first")},
		{"I4", "an id of another time", `UPDATE payments SET created_at = created_at - 1 WHERE id = ` + of("pending")},
		{"I4", "a time that was never given out", `UPDATE client_heads SET last_time = 1 WHERE client_id = ` + firstClient},

		{"I6", "a missing event", `DELETE FROM events WHERE kind = 'payment.success' AND subject_id = ` + of("first")},
		{"I6", "the last event missing", `DELETE FROM events WHERE client_id = ` + firstClient + ` AND sequence = 20`},
		{"I6", "an event of another state", `UPDATE events SET status = 'pending' WHERE kind = 'payment.processing' AND subject_id = ` + of("first")},
		{"I6", "an event of another kind", `UPDATE events SET kind = 'payment.expired' WHERE kind = 'payment.failed' AND subject_id = ` + of("failed")},
		{"I6", "an event about another payment", `UPDATE events SET subject_id = ` + of("second") + ` WHERE kind = 'payment.success' AND subject_id = ` + of("first")},
		{"I6", "an event of another time", `UPDATE events SET created_at = created_at + 1 WHERE kind = 'payment.failed' AND subject_id = ` + of("failed")},
		{"I6", "an event with another reason", `UPDATE events SET failure_reason = 'wrong_pin' WHERE kind = 'payment.failed' AND subject_id = ` + of("failed")},
		{"I6", "an event with another receipt", `UPDATE events SET provider_reference = 'X' WHERE kind = 'payment.success' AND subject_id = ` + of("first")},
		{"I6", "a creation with another window", `UPDATE events SET expires_at = expires_at + 1 WHERE kind = 'payment.pending' AND subject_id = ` + of("first")},
		{"I6", "an end with another window", `UPDATE events SET expires_at = expires_at + 1 WHERE kind = 'payment.success' AND subject_id = ` + of("first")},
		{"I6", "an end that is not decided", `UPDATE events SET resolution = 'querying' WHERE kind = 'payment.success' AND subject_id = ` + of("first")},
		{"I6", "a creation that knows more", `UPDATE events SET calls = 1 WHERE kind = 'payment.pending' AND subject_id = ` + of("first")},
		{"I6", "a log shorter than its head", `UPDATE client_heads SET last_event = last_event + 1 WHERE client_id = ` + firstClient},
		{"I6", "a final state without its event", `UPDATE payments SET final_event = NULL WHERE id = ` + of("failed")},
		{"I6", "a processing that was skipped over", `UPDATE payments SET processing_event = NULL WHERE id = ` + of("first")},
		{"I6", "a transition told twice", `UPDATE client_heads SET last_event = 22 WHERE client_id = ` + firstClient + `;
			INSERT INTO events (client_id, sequence, kind, subject_id, created_at, status, expires_at, resolution)
			SELECT client_id, 22, kind, subject_id, created_at + 3600000000, status, expires_at, resolution FROM events WHERE kind = 'payment.success' AND subject_id = ` + of("first")},

		{"I6", "an event about attention that nothing names", `DELETE FROM attention_events WHERE client_id = ` + firstClient},
		{"I6", "an event about attention of another kind", `UPDATE events SET kind = 'payment.processing' WHERE kind = 'payment.needs_attention' AND client_id = ` + firstClient},
		{"I6", "an event about attention that says otherwise", `UPDATE events SET resolution = 'waiting' WHERE kind = 'payment.needs_attention' AND client_id = ` + firstClient},
		{"I7", "a cursor beyond the log", `UPDATE webhook_endpoints SET cursor_sequence = 22 WHERE enabled = 1 AND client_id = ` + firstClient},
		{"I7", "a cursor before its start", `UPDATE webhook_endpoints SET start_sequence = 11 WHERE enabled = 1 AND client_id = ` + firstClient},
		{"I7", "a delivery that is never looked at", `UPDATE webhook_endpoints SET next_retry = NULL WHERE enabled = 1 AND client_id = ` + firstClient},
		{"I7", "a delivery that is looked at too late", `UPDATE webhook_endpoints SET next_retry = next_retry + 1 WHERE enabled = 1 AND client_id = ` + firstClient},
		{"I7", "a delivery of a disabled endpoint", `UPDATE webhook_endpoints SET enabled = 0, disabled_at = 1, disabled_why = 'client' WHERE enabled = 1 AND client_id = ` + firstClient},
		{"I7", "a delivery that is sent for ever", `UPDATE webhook_deliveries SET lease_until = 1 WHERE status = 'delivered' AND client_id = ` + firstClient},
		{"I7", "a delivery ahead of the cursor", `UPDATE webhook_deliveries SET sequence = 11 WHERE status = 'delivered' AND client_id = ` + firstClient},
		{"I7", "a delivery from before the endpoint", `UPDATE webhook_deliveries SET sequence = 1 WHERE status = 'delivered' AND client_id = ` + firstClient},
		{"I7", "the newest state superseded", `UPDATE webhook_deliveries SET status = 'superseded' WHERE status = 'pending' AND client_id = ` + firstClient},
		{"I7", "a replay that nobody goes on with", `UPDATE webhook_endpoints SET replay_at = NULL WHERE enabled = 1 AND client_id = ` + firstClient},
		{"I7", "a replay that is none", `UPDATE webhook_endpoints SET replay_at = 1 WHERE enabled = 0 AND client_id = ` + firstClient},
		{"I7", "a stretch beyond the log", `UPDATE webhook_spans SET to_sequence = 22 WHERE why = 'disabled' AND client_id = ` + firstClient},
		{"I7", "an endpoint disabled without a word", `UPDATE webhook_endpoints SET disabled_why = 'gone' WHERE enabled = 0 AND client_id = ` + firstClient},

		{"I9", "a pending payment that nobody asks about", `DELETE FROM steps WHERE subject_id = ` + of("pending")},
		{"I9", "a processing payment that nobody asks about", `DELETE FROM steps WHERE subject_id = ` + of("processing")},
		{"I9", "a failed payment that is owed late reads", `DELETE FROM steps WHERE subject_id = ` + of("failed")},
		{"I9", "a case that was closed too early", `DELETE FROM steps WHERE subject_id = ` + of("aside") + `; UPDATE cases SET closed_at = 1 WHERE subject_id = ` + of("aside")},
		{"I9", "a step of no payment", `UPDATE steps SET subject_id = x'01' WHERE subject_id = ` + of("failed")},

		{"I10", "a counter of all time", `UPDATE counters SET n = n + 1 WHERE width = 0 AND noun = 'payment' AND b = 'pending' AND client_id = ` + firstClient},
		{"I10", "a counter of a month", `UPDATE counters SET n = n + 1 WHERE width = 1 AND noun = 'payment' AND b = 'pending' AND client_id = ` + firstClient},
		{"I10", "a counter of a day", `UPDATE counters SET n = n + 1 WHERE width = 2 AND noun = 'payment' AND b = 'pending' AND client_id = ` + firstClient},
		{"I10", "a counter of an hour", `UPDATE counters SET n = n + 1 WHERE width = 3 AND noun = 'payment' AND b = 'pending' AND client_id = ` + firstClient},
		{"I10", "a counter of transactions", `UPDATE counters SET n = n - 1 WHERE width = 3 AND noun = 'transaction' AND client_id = ` + firstClient},
		{"I10", "a counter that is missing", `DELETE FROM counters WHERE width = 3 AND noun = 'payment' AND b = 'success' AND client_id = ` + firstClient},
		{"I10", "a tally of nothing", `INSERT INTO tallies SELECT client_id, noun, bucket, a, b, 1, 0 FROM counters WHERE width = 3 AND noun = 'payment' AND b = 'pending' AND client_id = ` + firstClient},
		{"I10", "a tally of an hour without rows", `INSERT INTO tallies SELECT client_id, noun, 1, a, b, 1, 0 FROM counters WHERE width = 3 AND noun = 'payment' AND b = 'pending' AND client_id = ` + firstClient},
		{"I10", "a counter of an hour without rows", `INSERT INTO counters SELECT client_id, noun, width, 1, a, b, n, sum FROM counters WHERE width = 3 AND b = 'pending' AND client_id = ` + firstClient},
		{"I10", "a sum of an hour", `UPDATE counters SET sum = sum + 1 WHERE width = 3 AND noun = 'money_in' AND client_id = ` + firstClient},
		{"I10", "a sum of a day", `UPDATE counters SET sum = sum + 1 WHERE width = 2 AND noun = 'money_in' AND client_id = ` + firstClient},
		{"I10", "a sum of a month", `UPDATE counters SET sum = sum - 1 WHERE width = 1 AND noun = 'approval' AND client_id = ` + firstClient},
		{"I10", "a sum of all time", `UPDATE counters SET sum = sum + 1 WHERE width = 0 AND noun = 'money_in' AND client_id = ` + firstClient},
		{"I10", "a sum that is missing", `DELETE FROM counters WHERE width = 3 AND noun = 'approval' AND client_id = ` + firstClient},
		{"I10", "a sum of another bucket", `UPDATE counters SET b = '300' WHERE noun = 'approval' AND client_id = ` + firstClient},
		{"I10", "a sum of nothing", `INSERT INTO tallies SELECT client_id, 'money_out', 1, a, b, 1, 5 FROM counters WHERE width = 0 AND noun = 'money_in' AND client_id = ` + firstClient},
		{"I10", "a sum of the house", `UPDATE counters SET sum = sum + 1 WHERE width = 3 AND noun = 'test money_in' AND client_id = zeroblob(16)`},
		{"I10", "a day of the house", `UPDATE counters SET n = n + 1 WHERE width = 2 AND noun = 'test payment' AND client_id = zeroblob(16)`},
		{"I10", "a sum of a year that the house never had", `INSERT INTO counters SELECT client_id, noun, width, 1, a, b, n, sum FROM counters WHERE width = 2 AND noun = 'test money_in' AND client_id = zeroblob(16)`},
		{"I10", "a payment that moved uncounted", `UPDATE payments SET status = 'processing', previous_status = 'pending' WHERE id = ` + of("pending")},

		{"I11", "a row of a client that is not there", `UPDATE steps SET client_id = x'FF' WHERE subject_id = ` + of("failed")},

		{"I14", "an audit row that was changed", `UPDATE audit SET detail = 'nothing to see' WHERE sequence = 2 AND client_id = ` + firstClient},
		{"I14", "a cause that was changed", `UPDATE audit SET cause = 'a whim' WHERE sequence = 2 AND client_id = ` + firstClient},
		{"I14", "evidence that was changed", `UPDATE audit SET evidence = x'00' WHERE sequence = 2 AND client_id = ` + firstClient},
		{"I14", "evidence that is gone", `UPDATE audit SET evidence = NULL WHERE sequence = 2 AND client_id = ` + firstClient},
		{"I14", "an audit row that is gone", `DELETE FROM audit WHERE sequence = 2 AND client_id = ` + firstClient},
		{"I14", "an audit log cut short", `DELETE FROM audit WHERE sequence = 5 AND client_id = ` + firstClient + `; UPDATE client_heads SET last_audit = 4 WHERE client_id = ` + firstClient},
		{"I14", "an audit log shorter than its head", `UPDATE client_heads SET last_audit = 6 WHERE client_id = ` + firstClient},
		{"I14", "a chain with a gap", `DELETE FROM audit_seals WHERE sequence = 2 AND client_id = ` + firstClient},
		{"I14", "a link that was changed", `UPDATE audit_seals SET hash = x'00' WHERE sequence = 2 AND client_id = ` + firstClient},
		{"I14", "a credit that nobody decided", `DELETE FROM audit_seals WHERE client_id = ` + firstClient + `;
			UPDATE audit SET action = 'fee' WHERE sequence = 1 AND client_id = ` + firstClient},
		{"I14", "money put aside that nobody decided", `DELETE FROM audit_seals WHERE client_id = ` + firstClient + `;
			UPDATE audit SET at = at + 1 WHERE action = 'suspense' AND client_id = ` + firstClient},

		{"I15", "a tax that does not add up", `UPDATE payments SET document = CAST(replace(CAST(document AS TEXT), '"500"', '"501"') AS BLOB) WHERE id = ` + of("first")},
		{"I15", "a line that does not multiply", `UPDATE payments SET document = CAST(replace(CAST(document AS TEXT), '1.5', '1.6') AS BLOB) WHERE id = ` + of("first")},
		{"I15", "a document that cannot be read", `UPDATE payments SET document = x'7b' WHERE id = ` + of("first")},
	} {
		t.Run(c.invariant+" "+c.name, func(t *testing.T) {
			t.Parallel()
			s, client := broken(t, template, c.sql)
			r := verify(t, s, books.Options{Slice: 4})
			found := false
			for _, p := range r.Problems {
				found = found || p.Invariant == c.invariant
				house := p.Invariant == "I10" && p.Client == till.House                             // it adds up what clients have
				if p.Client != client && !house && p.Invariant != "I11" && p.Invariant != "pages" { // pages are no client's
					t.Errorf("a fault was reported at a client that has none: %+v", p)
				}
			}
			if !found {
				t.Errorf("got %+v, want %s", r.Problems, c.invariant)
			}
		})
	}
}

// broken copies the template and breaks it: with its triggers, foreign keys
// and checks out of the way, as a fault of the disk or of a person would.
func broken(t *testing.T, template, statements string) (*store.Store, till.ID) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "till.db")
	storetest.Exec(t, storetest.OpenRaw(t, template), `VACUUM INTO ?`, path)
	raw := storetest.OpenRaw(t, path)
	storetest.Exec(t, raw, `PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON`)
	rows, err := raw.QueryContext(t.Context(), `SELECT name FROM sqlite_master WHERE type = 'trigger'`)
	if err != nil {
		t.Fatal(err)
	}
	var triggers []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		triggers = append(triggers, name)
	}
	rows.Close()
	for _, name := range triggers {
		storetest.Exec(t, raw, `DROP TRIGGER `+name)
	}
	for _, q := range strings.Split(statements, ";") {
		result, err := raw.ExecContext(t.Context(), q)
		if err != nil {
			t.Fatalf("%s: %v", q, err)
		}
		if n, _ := result.RowsAffected(); n == 0 {
			t.Fatalf("%s: nothing was broken", q)
		}
	}
	var client till.ID
	var b []byte
	if err := raw.QueryRowContext(t.Context(), `SELECT min(client_id) FROM clients`).Scan(&b); err != nil {
		t.Fatal(err)
	}
	copy(client[:], b)
	s, err := store.Open(t.Context(), store.Config{Path: path, Readers: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, client
}

// I5: the index that forbids it cannot be dropped, so the table is made anew.
func TestVerifyFindsAKeyUsedTwice(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	template, path := filepath.Join(dir, "template.db"), filepath.Join(dir, "till.db")
	newBooks(t, template)
	storetest.Exec(t, storetest.OpenRaw(t, template), `VACUUM INTO ?`, path)
	raw := storetest.OpenRaw(t, path)
	for _, q := range []string{
		`PRAGMA foreign_keys = OFF`, `CREATE TABLE copied AS SELECT * FROM payments`, `DROP TABLE payments`, `ALTER TABLE copied RENAME TO payments`,
		`UPDATE payments SET idempotency_key = (SELECT idempotency_key FROM payments WHERE id = ` + of("first") + `) WHERE id = ` + of("second"),
	} {
		storetest.Exec(t, raw, q)
	}
	s, err := store.Open(t.Context(), store.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r := verify(t, s, books.Options{})
	if len(r.Problems) != 1 || r.Problems[0].Invariant != "I5" {
		t.Errorf("got %+v, want one problem with I5", r.Problems)
	}
}

func TestAReportIsBounded(t *testing.T) {
	t.Parallel()
	template := filepath.Join(t.TempDir(), "template.db")
	newBooks(t, template)
	s, _ := broken(t, template, `DELETE FROM steps`)
	r := verify(t, s, books.Options{MaxProblems: 3})
	if len(r.Problems) != 3 || r.Omitted == 0 || r.Clean() {
		t.Errorf("got %d problems and %d omitted, want 3 and more", len(r.Problems), r.Omitted)
	}
}

// Verify runs beside a server: what happens while it reads is no fault.
func TestVerifyRaisesNoFalseAlarmWhileOthersWrite(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		c := storetest.NewCollector(t, s)
		done := make(chan struct{})
		var writers, readers sync.WaitGroup
		for range 2 {
			client := storetest.NewClient(t, s, till.Test)
			writers.Go(func() {
				for range 2 {
					fillBooks(t, s, c, client)
				}
			})
		}
		for _, slice := range []int{1, 50} {
			readers.Go(func() {
				for alive := true; alive; {
					select {
					case <-done:
						alive = false
					default:
					}
					if _, err := books.ExtendChains(t.Context(), s, storetest.ChainKey); err != nil {
						t.Error(err)
						return
					}
					if slice > 1 {
						storetest.RollUp(t, s)
					}
					r, err := books.Verify(t.Context(), s, books.Options{Slice: slice, Key: storetest.ChainKey})
					if err != nil || !r.Clean() {
						t.Errorf("slice %d: %v %+v", slice, err, r.Problems)
						return
					}
				}
			})
		}
		writers.Wait()
		close(done)
		readers.Wait()
	})
}

// A day that has too many rows for one snapshot is counted by the hour.
func TestVerifyCountsLargeDaysByTheHour(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("makes a large day")
	}
	template := filepath.Join(t.TempDir(), "template.db")
	s := storetest.Open(t, store.Config{Path: template})
	seeded(t, s, 200)
	if r := verify(t, s, books.Options{Slice: 1}); !r.Clean() {
		t.Fatalf("got %+v, want none", r.Problems)
	}
	for _, sql := range []string{
		`UPDATE counters SET n = n + 1 WHERE noun = 'payment' AND width = 3 AND bucket = (SELECT max(bucket) FROM counters WHERE noun = 'payment' AND width = 3)`,
		`UPDATE counters SET n = n + 1 WHERE noun = 'transaction' AND width = 2 AND bucket = (SELECT max(bucket) FROM counters WHERE noun = 'transaction' AND width = 2)`,
		`DELETE FROM counters WHERE noun = 'transaction' AND width = 3 AND bucket = (SELECT max(bucket) FROM counters WHERE noun = 'transaction' AND width = 3)`,
	} {
		b, _ := broken(t, template, sql)
		if r := verify(t, b, books.Options{Slice: 1}); len(r.Problems) == 0 || r.Problems[0].Invariant != "I10" {
			t.Errorf("%s: got %+v, want I10", sql, r.Problems)
		}
	}
}

// What the parts of a busy hour say is compared with the rows, and so is where they
// end.
func TestVerifyCountsTheParts(t *testing.T) {
	t.Parallel()
	template := filepath.Join(t.TempDir(), "template.db")
	s := storetest.Open(t, store.Config{Path: template, PartRows: 10})
	client := storetest.NewClient(t, s, till.Test)
	from := till.TimeOf(s.Now().Std().Truncate(time.Hour)).Add(-3 * time.Hour)
	if err := seed.Payments(t.Context(), s, seed.Config{Client: client.ID, Rows: 120, From: from, To: from.Add(time.Hour), Books: true}); err != nil {
		t.Fatal(err)
	}
	if err := upkeep.SplitOldHours(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if _, err := books.ExtendChains(t.Context(), s, storetest.ChainKey); err != nil {
		t.Fatal(err)
	}
	if r := verify(t, s, books.Options{}); !r.Clean() {
		t.Fatalf("got %+v, want none", r.Problems)
	}
	const third = ` WHERE noun = 'payment' AND until = (SELECT until FROM hour_parts WHERE noun = 'payment' ORDER BY until LIMIT 1 OFFSET 2)`
	for _, sql := range []string{
		`UPDATE hour_parts SET counts = replace(counts, 'success ', 'success 1')` + third,
		`UPDATE hour_parts SET counts = replace(counts, 'success', 'failed')` + third,
		`UPDATE hour_parts SET counts = replace(counts, 'success ', 'success x')` + third,
		`UPDATE hour_parts SET until = until + 1000000 * 60` + third,
		`UPDATE hour_parts SET until = until - 1` + third,
		`UPDATE hour_parts SET hour = hour + 1` + third,
		`DELETE FROM hour_parts` + third,
		`UPDATE hour_parts SET counts = replace(counts, 'XAF ', 'XAF 1') WHERE noun = 'transaction'`,
	} {
		b, _ := broken(t, template, sql)
		if r := verify(t, b, books.Options{}); len(r.Problems) == 0 || r.Problems[0].Invariant != "I10" {
			t.Errorf("%s: got %+v, want I10", sql, r.Problems)
		}
	}
}
