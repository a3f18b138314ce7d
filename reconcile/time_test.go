package reconcile_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"till"
	"till/bench/seed"
	"till/books"
	"till/reconcile"
	"till/store"
	"till/store/storetest"
)

// sent writes down that a payment's request went out, as the engine does.
func (d *statementTest) sent(p *till.Payment) *till.Payment {
	d.t.Helper()
	err := d.s.Update(d.t.Context(), func(tx *store.Tx) error {
		return tx.InsertSends(d.t.Context(), []*store.Attempt{{ClientID: p.ClientID, SubjectID: p.ID, Connection: p.Connection,
			Reference: d.collector.ReferenceOf(p), StartedAt: d.s.Now(), First: true}})
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return p
}

// What was made or booked at another time than the statement's is found where
// a line names it, and is not called missing where none does.
func TestReconcileAtTheEdgesOfTime(t *testing.T) {
	t.Parallel()
	start := till.TimeOf(time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC))
	storetest.RunAt(t, &start, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		d := newStatementTest(t, s)
		var want []string
		say := func(class reconcile.Class, name string) { want = append(want, string(class)+" "+name) }

		// Ten days before.
		d.pay("booked long ago, by receipt", paidUnder("OLD1"))
		d.sent(d.pay("open for long"))
		d.pay("open for long, by id")
		d.pay("booked in its time, with a line", storetest.Opened)
		d.pay("booked in its time, without one", storetest.Opened)
		d.pay("long over", paidUnder("OLD2"))

		clock.Set(till.TimeOf(time.Date(2026, 11, 10, 23, 30, 0, 0, time.UTC)))
		d.pay("over before it begins", paidUnder("E0"))
		clock.Set(till.TimeOf(time.Date(2026, 11, 11, 0, 0, 30, 0, time.UTC)))
		d.pay("within the slack", paidUnder("E1"))
		clock.Advance(10 * time.Minute)
		d.of(d.payments["booked long ago, by receipt"], "", "5000", "Done")
		d.lines[0] = strings.Replace(d.lines[0], d.collector.ReferenceOf(d.payments["booked long ago, by receipt"]).String()+";;", "nothing of ours;;OLD1", 1)
		say(reconcile.Matched, "booked long ago, by receipt")
		d.of(d.payments["open for long"], "OLD3", "5000", "Done")
		say(reconcile.Late, "open for long")
		d.line("", d.payments["open for long, by id"].ID.String(), "OLD4", "5000", "XAF", "Done", "C")
		say(reconcile.Late, "open for long, by id")
		storetest.Apply(t, d.collector, s, d.payments["booked in its time, with a line"], paidUnder("OLD5"))
		d.of(d.payments["booked in its time, with a line"], "OLD5", "5000", "Done")
		say(reconcile.Matched, "booked in its time, with a line")
		storetest.Apply(t, d.collector, s, d.payments["booked in its time, without one"], paidUnder("OLD6"))
		say(reconcile.Elsewhere, "booked in its time, without one")
		d.pay("missing", paidUnder("E2"))
		say(reconcile.MissingAtOperator, "missing")
		say(reconcile.Elsewhere, "within the slack")
		late := d.pay("booked afterwards", storetest.Opened)
		say(reconcile.Elsewhere, "booked afterwards")
		d.pay("open, and no line")

		clock.Set(till.TimeOf(time.Date(2026, 11, 12, 0, 30, 0, 0, time.UTC)))
		d.of(d.pay("right after", paidUnder("E5")), "E5", "5000", "Done")
		clock.Set(till.TimeOf(time.Date(2026, 11, 12, 8, 0, 0, 0, time.UTC)))
		storetest.Apply(t, d.collector, s, late, paidUnder("E3"))
		d.pay("the day after", paidUnder("E4"))
		d.line("", "", "E4", "5000", "XAF", "Done", "C") // of another day

		slices.Sort(want)
		day := func(c *reconcile.Options) {
			var err1, err2 error
			c.From, err1 = books.ParseMoment("2026-11-11", time.UTC, false)
			c.To, err2 = books.ParseMoment("2026-11-11", time.UTC, true)
			c.Slack = time.Minute
			if err1 != nil || err2 != nil {
				t.Fatal(err1, err2)
			}
		}
		for _, c := range []struct{ slice, seeks int }{{0, 0}, {1, 0}, {2, 1}, {0, 1}} { // by key, or by walking all that is older
			r, found := d.reconcile(day, reconcile.SliceFor(c.slice, c.seeks))
			if diff := cmp.Diff(found, want); diff != "" || r.Outside != 2 {
				t.Errorf("slice %d, %d seeks: %d lines outside (-got +want)\n%s", c.slice, c.seeks, r.Outside, diff)
			}
		}
		// The time of the file is that of its lines.
		r, _ := d.reconcile(func(c *reconcile.Options) { c.From, c.To = 0, 0 })
		if r.From.String() != "2026-11-11T00:10:30.000000Z" || r.To.String() != "2026-11-12T08:00:00.000000Z" {
			t.Errorf("from %s to %s", r.From, r.To)
		}
	})
}

func TestReconcileNeedsATime(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		for _, c := range []struct {
			from, to till.Time
			why      string
		}{{0, 0, "does not say which time it covers"}, {5, 0, "does not say"}, {5, 4, "before it begins"}} {
			_, err := reconcile.Compare(t.Context(), s, reconcile.Options{Connection: "x", File: bytes.NewReader([]byte("receipt,amount,currency\n")), From: c.from, To: c.to})
			if err == nil || !strings.Contains(err.Error(), c.why) {
				t.Errorf("%+v: %v", c, err)
			}
		}
	})
}

// rawPayout makes a payout past the store, with what the ledger has of it.
func rawPayout(t *testing.T, path string, client, id till.ID, at till.Time, status, receipt string, late bool, booked int64) {
	t.Helper()
	hex := func(id till.ID) string { return "x'" + strings.ReplaceAll(id.String(), "-", "") + "'" }
	reason, lateEvent, final, previous := "NULL", "NULL", "3", "'processing'"
	switch status {
	case "failed":
		reason = "'unspecified'"
	case "processing":
		final, previous = "NULL", "'pending'"
	case "cancelled":
		previous = "'pending'"
	}
	if late {
		lateEvent = "4"
	}
	storetest.Raw(t, path, fmt.Sprintf(`INSERT INTO payouts (client_id, id, idempotency_key, body_hash, body_version, status, previous_status, method, amount, fee,
		currency, phone, document, provider_reference, failure_reason, created_at, updated_at, expires_at, send_window, connection, fingerprint,
		pending_event, processing_event, final_event, late_event)
		VALUES (%s, %s, %s, x'%s', 1, '%s', %s, 'mtn_momo', 7000, 0, 'XAF', '242061234567', x'00', nullif('%s', ''), %s, %d, %d, %d, 1, 'silent', 'silent', 1, 2, %s, %s)`,
		hex(client), hex(id), hex(id), strings.Repeat("00", 32), status, previous, receipt, reason, at, at, at, final, lateEvent))
	if booked != 0 {
		entry := till.NewID(at)
		storetest.Raw(t, path, fmt.Sprintf(`INSERT INTO facts (client_id, subject_id, fact, entry_id) VALUES (%s, %s, 'money_out', %s)`, hex(client), hex(id), hex(entry)))
		storetest.Raw(t, path, fmt.Sprintf(`INSERT INTO postings (client_id, entry_id, account, connection, currency, amount, kind, payout_id, created_at)
			VALUES (%s, %s, 'operator', 'silent', 'XAF', %d, 'payout', %s, %d)`, hex(client), hex(entry), booked, hex(id), at))
	}
}

// Payouts, and payments whose ledger is not right: such rows are not made by
// the service, so the books are not checked at the end.
func TestReconcilePayoutsAndLedger(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			config := e.Config(t)
			s := storetest.Open(t, config)
			d := newStatementTest(t, s)
			var want []string
			payout := func(class reconcile.Class, name, status, receipt string, late bool, booked int64) till.ID {
				at := s.Now()
				id := till.NewID(at)
				d.about[id.String()] = name
				want = append(want, string(class)+" "+name)
				rawPayout(t, config.Path, d.client.ID, id, at, status, receipt, late, booked)
				return id
			}
			d.line("", payout(reconcile.Matched, "paid out", "success", "P1", false, 7000).String(), "P1", "7000", "XAF", "Done", "D")
			d.line("", payout(reconcile.MatchedLate, "late", "failed", "P2", true, 7000).String(), "P2", "7000", "XAF", "Done", "D")
			payout(reconcile.MissingAtOperator, "missing", "success", "P3", false, 7000)
			d.line("", payout(reconcile.Late, "open", "processing", "", false, 0).String(), "P4", "7000", "XAF", "Done", "D")
			d.line("", payout(reconcile.StatusDiffers, "cancelled", "cancelled", "", false, 0).String(), "P5", "7000", "XAF", "Done", "D")
			begun := payout(reconcile.Late, "cancelled after a send", "cancelled", "", false, 0)
			storetest.Raw(t, config.Path, fmt.Sprintf(`INSERT INTO attempts (client_id, subject_id, n, kind, connection, reference, outcome, started_at, ended_at, first_send)
				VALUES (x'%x', x'%x', 1, 'submit', 'silent', x'%x', 'error', 1, 2, 1)`, d.client.ID[:], begun[:], begun[:]))
			storetest.Raw(t, config.Path, fmt.Sprintf(`UPDATE payouts SET calls = 1 WHERE id = x'%x'`, begun[:]))
			d.line("", begun.String(), "P11", "7000", "XAF", "Done", "D")
			d.line("", payout(reconcile.AmountDiffers, "another amount", "success", "P6", false, 7000).String(), "P6", "7001", "XAF", "Done", "D")
			d.line("", payout(reconcile.LedgerDiffers, "not in the ledger", "success", "P7", false, 0).String(), "P7", "7000", "XAF", "Done", "D")
			d.line("", payout(reconcile.LedgerDiffers, "of another amount in the ledger", "success", "P8", false, 6999).String(), "P8", "7000", "XAF", "Done", "D")
			payout(reconcile.LedgerDiffers, "not in the ledger, and no line", "success", "P9", false, 0)
			// A line that goes the other way is not about it.
			d.line("", payout(reconcile.MissingAtOperator, "with a line of a payment", "success", "P10", false, 7000).String(), "P10", "7000", "XAF", "Done", "C")
			want = append(want, fmt.Sprintf("missing_here line %d", len(d.lines)+1))

			slices.Sort(want)
			r, found := d.reconcile()
			if diff := cmp.Diff(found, want); diff != "" {
				t.Fatalf("(-got +want)\n%s", diff)
			}
			var said []string
			for _, c := range r.Sums {
				said = append(said, fmt.Sprint(c.Class, " ", c.Currency, " ", c.Count, " ", &c.Operator, " ", &c.Ours))
			}
			if diff := cmp.Diff(said, []string{"matched XAF 1 7000 7000", "matched_late XAF 1 7000 7000", "missing_at_operator XAF 2 0 14000", "missing_here XAF 1 7000 0",
				"amount_differs XAF 1 7001 7000", "late XAF 2 14000 0", "status_differs XAF 1 7000 0", "ledger_differs XAF 3 14000 6999"}); diff != "" {
				t.Errorf("sums (-got +want)\n%s", diff)
			}
			// The open one has no reserve that could be paid out: that is refused, and
			// does not keep the rest from being done. What was cancelled after a send is late
			// money.
			if a := d.apply(r); a.Refused != 1 || a.Settled != 1 || a.Cases != 5 {
				t.Errorf("applied %+v", a)
			}

			// Seeded payments have no ledger at all.
			from := d.from
			client := storetest.NewClient(t, s, till.Test)
			if err := seed.Payments(t.Context(), s, seed.Config{Client: client.ID, Rows: 10, From: from, To: s.Now()}); err != nil {
				t.Fatal(err)
			}
			found[slices.Index(found, "late cancelled after a send")] = "matched_late cancelled after a send"
			slices.Sort(found)
			if _, again := d.reconcile(); !slices.Equal(again, found) {
				t.Errorf("beside payments of another connection: %v", again)
			}
			r, err := reconcile.Compare(t.Context(), s, reconcile.Options{Connection: "seed", From: from, To: s.Now(), File: bytes.NewReader([]byte("receipt,amount,currency\n"))})
			if err != nil || len(r.Sums) == 0 || r.Sums[0].Class != reconcile.LedgerDiffers {
				t.Errorf("payments without a ledger: %v, %+v", err, r)
			}
		})
	}
}

func TestApplyRefuses(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		d := newStatementTest(t, s)
		d.pay("has the receipt", paidUnder("R1")) // and comes by before the one that the line names
		d.of(d.pay("open", storetest.Opened), "R1", "5000", "Done")
		d.lines = append(d.lines, "not a line")
		r, found := d.reconcile()
		if diff := cmp.Diff(found, []string{"broken_line line 3", "late open", "receipt_used_twice has the receipt"}); diff != "" || r.Broken != 1 || r.Differences() != 3 {
			t.Fatalf("found (-got +want)\n%s", diff)
		}
		none := reconcile.ApplyOptions{By: "Anne", Name: "a.csv", Payments: d.collector.ResolveAll}
		if a, err := reconcile.Apply(t.Context(), s, r, none); till.ErrorCode(err) != till.CodeValidationFailed || a != nil || d.status("open") != "processing" {
			t.Errorf("a broken line: %v, %+v, the payment is %s", err, a, d.status("open"))
		}

		// So many contradictions are no mistake of the operator's.
		first := d.lines[0]
		d.lines = slices.Repeat([]string{first}, reconcile.MaxStatementCases+2)
		r, _ = d.reconcile()
		if a, err := reconcile.Apply(t.Context(), s, r, none); till.ErrorCode(err) != till.CodeValidationFailed || a != nil || d.status("open") != "processing" {
			t.Errorf("a thousand contradictions: %v, %+v, the payment is %s", err, a, d.status("open"))
		}

		// One receipt for two payments of a client: the second does not get it.
		d.lines = d.lines[:1]
		r, _ = d.reconcile()
		a := d.apply(r)
		if a.Settled != 0 || a.Refused != 1 || len(a.Refusals) != 1 || !strings.Contains(a.Refusals[0].Why, "another payment has this receipt") || d.status("open") != "processing" {
			t.Errorf("applied %+v, the payment is %s", a, d.status("open"))
		}
	})
}
