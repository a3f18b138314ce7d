package reconcile_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"till"
	"till/books"
	"till/collect"
	"till/engine"
	"till/payout"
	"till/provider"
	"till/reconcile"
	"till/store"
	"till/store/auditlog"
	"till/store/storetest"
	"till/upkeep"
)

// desk is somebody who compares statements: a store with clients and the
// operator's side of each of their payments, as lines.
type statementTest struct {
	t         *testing.T
	s         *store.Store
	collector *collect.Collector
	master    *payout.Disburser
	client    *till.Client
	from      till.Time
	lines     []string
	about     map[string]string // the name of a payment or payout, by its id
	payments  map[string]*till.Payment
	payouts   map[string]*till.Payout
}

const testHeader = "Time;Our Ref;Ext;Receipt No;Amount;Curr;State;Way"

// testMapping reads the lines of a desk: nothing of it is the default.
var testMapping = reconcile.Mapping{
	Delimiter: ";", Time: "Time", Reference: "our ref", ExternalID: "#3", Receipt: "Receipt No", Amount: "AMOUNT", Currency: "Curr", Status: "State", Direction: "Way",
	Success: []string{"Done"}, Failed: []string{"Refused"}, Reversed: []string{"Taken back"}, Pending: []string{"Waiting"},
	Incoming: []string{"C"}, Outgoing: []string{"D"}, Ignored: []string{"F"},
	DecimalMark: ",", Thousands: " ", TimeLayout: "DD/MM/YYYY hh:mm:ss", TimeZone: "+01:00",
}

func newStatementTest(t *testing.T, s *store.Store) *statementTest {
	t.Helper()
	d := &statementTest{t: t, s: s, collector: storetest.NewCollector(t, s), master: storetest.NewDisburser(t, s), client: storetest.NewClient(t, s, till.Test),
		about: map[string]string{}, payments: map[string]*till.Payment{}, payouts: map[string]*till.Payout{}}
	d.from = s.Now().Add(-time.Second)
	return d
}

// pay makes a payment of 5000 XAF to which the operator says words.
func (d *statementTest) pay(name string, words ...provider.Result) *till.Payment {
	d.t.Helper()
	p := storetest.NewPayment(d.t, d.collector, d.client, storetest.Body{Reference: name})
	for _, w := range words {
		storetest.Apply(d.t, d.collector, d.s, p, w)
	}
	d.about[p.ID.String()], d.payments[name] = name, p
	return p
}

// payOut makes a payout of 5000 XAF and a fee of 50 to which the operator says
// words.
func (d *statementTest) payOut(name string, words ...provider.Result) *till.Payout {
	d.t.Helper()
	p := storetest.NewPayout(d.t, d.master, d.client, storetest.Body{Reference: name}, 50)
	for _, w := range words {
		storetest.ApplyPayout(d.t, d.master, d.s, p, w)
	}
	d.about[p.ID.String()], d.payouts[name] = name, p
	return p
}

func paidUnder(receipt string) provider.Result {
	return provider.Result{Outcome: provider.Success, Receipt: receipt}
}

// line writes a line of the operator's.
func (d *statementTest) line(reference, external, receipt, amount, currency, state, way string) {
	at := d.s.Now().Std().In(time.FixedZone("", 3600)).Format("02/01/2006 15:04:05")
	d.lines = append(d.lines, strings.Join([]string{at, reference, external, receipt, `"` + amount + `"`, currency, state, way}, ";"))
}

// of writes a line about a payment.
func (d *statementTest) of(p *till.Payment, receipt, amount, state string) {
	d.line(d.collector.ReferenceOf(p).String(), "", receipt, amount, "XAF", state, "C")
}

// out writes a line about a payout.
func (d *statementTest) out(p *till.Payout, receipt, amount, state string) {
	d.line(d.master.ReferenceOf(p).String(), "", receipt, amount, "XAF", state, "D")
}

func (d *statementTest) file() *bytes.Reader {
	return bytes.NewReader([]byte(testHeader + "\r\n" + strings.Join(d.lines, "\r\n") + "\r\n"))
}

func (d *statementTest) comparison() reconcile.Options {
	return reconcile.Options{Connection: storetest.Connection, Mapping: testMapping, File: d.file(), From: d.from, To: d.s.Now().Add(time.Second), Plan: true, All: true}
}

// reconcile compares, and returns what was found of whom: "class name", or the
// number of a line that is about nobody.
func (d *statementTest) reconcile(change ...func(c *reconcile.Options)) (*reconcile.Result, []string) {
	d.t.Helper()
	c := d.comparison()
	var found []string
	c.Found = func(f *reconcile.Finding) error {
		name := fmt.Sprintf("line %d", f.Line)
		if f.Ours != nil {
			name = d.about[f.Ours.ID.String()]
		}
		found = append(found, string(f.Class)+" "+name)
		if f.Class != reconcile.Matched && f.Why == "" {
			d.t.Errorf("%s %s is not explained", f.Class, name)
		}
		return nil
	}
	for _, f := range change {
		f(&c)
	}
	r, err := reconcile.Compare(d.t.Context(), d.s, c)
	if err != nil {
		d.t.Fatal(err)
	}
	slices.Sort(found)
	return r, found
}

func (d *statementTest) apply(r *reconcile.Result) *reconcile.ApplyResult {
	d.t.Helper()
	a, err := reconcile.Apply(d.t.Context(), d.s, r, reconcile.ApplyOptions{By: "Anne Ndala", Name: "april.csv", Payments: d.collector.ResolveAll, Payouts: d.master.ResolveAll})
	if err != nil {
		d.t.Fatal(err)
	}
	return a
}

// status returns how a payment or payout stands: its status, and whether its
// money moved late.
// checkNoted records what a comparison has left, and compares it with the gauges.
func (d *statementTest) checkNoted(r *reconcile.Result, a *reconcile.ApplyResult) {
	d.t.Helper()
	if err := reconcile.Note(d.t.Context(), d.s, storetest.Connection, r, a); err != nil {
		d.t.Fatal(err)
	}
	want := float64(r.Differences())
	if a != nil {
		want -= float64(a.Settled + a.Unchanged)
	}
	got := 0.0
	g := map[string]float64{}
	storetest.View(d.t, d.s, func(ctx context.Context, tx *store.Tx) error {
		all, err := upkeep.ReadGauges(ctx, tx)
		for _, v := range all {
			g[v.Name+"{"+strings.Join(v.Labels, ",")+"}"] = v.Value
		}
		return err
	})
	for name, n := range g {
		if strings.HasPrefix(name, "statement_differences{"+storetest.Connection+",") {
			got += n
		}
	}
	if until := g["statement_until_timestamp_seconds{"+storetest.Connection+"}"]; got != want || until != float64(r.To)/1e6 {
		d.t.Errorf("%v differences are shown until %v, want %v", got, until, want)
	}
}

func (d *statementTest) status(name string) string {
	d.t.Helper()
	var row store.Subject
	err := d.s.View(d.t.Context(), func(tx *store.Tx) error {
		if p := d.payouts[name]; p != nil {
			out, err := tx.Payout(d.t.Context(), store.Ref{Client: p.ClientID, ID: p.ID})
			if err == nil {
				row = out.Subject()
			}
			return err
		}
		p := d.payments[name]
		in, err := tx.Payment(d.t.Context(), store.Ref{Client: p.ClientID, ID: p.ID})
		if err == nil {
			row = in.Subject()
		}
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
	if *row.LateEvent != 0 {
		return row.Status + " late"
	}
	return row.Status
}

// linesOf returns the wallet's lines of a payout, as "type amount".
func (d *statementTest) linesOf(name string) (out []string) {
	d.t.Helper()
	err := d.s.View(d.t.Context(), func(tx *store.Tx) error {
		lines, _, err := tx.ListTransactions(d.t.Context(), d.client.ID, store.TransactionFilter{PayoutID: d.payouts[name].ID}, store.Page{Limit: 10, Ascending: true})
		for _, l := range lines {
			out = append(out, fmt.Sprint(l.Type, " ", l.Amount.Minor))
		}
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return out
}

// audit returns the client's audit log after a number of rows.
func (d *statementTest) audit(after int64) (out []*store.AuditRow) {
	d.t.Helper()
	err := d.s.View(d.t.Context(), func(tx *store.Tx) (err error) {
		out, err = auditlog.Read(d.t.Context(), tx, d.client.ID, after, 1000)
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return out
}

func (d *statementTest) cases() map[string]string {
	d.t.Helper()
	out := map[string]string{}
	cases, err := books.Cases(d.t.Context(), d.s, store.CaseFilter{All: true, Limit: 1000})
	if err != nil {
		d.t.Fatal(err)
	}
	for _, c := range cases {
		if c.Kind == reconcile.CaseStatement {
			class, _, _ := strings.Cut(c.Detail, ":")
			out[d.about[c.SubjectID.String()]] = class
		}
	}
	return out
}

// closeCases closes the case of every payment and payout.
func (d *statementTest) closeCases() {
	d.t.Helper()
	err := d.s.Update(d.t.Context(), func(tx *store.Tx) error {
		var closings []store.CaseClosure
		for text := range d.about {
			id, err := till.ParseID(text)
			if err != nil {
				return err
			}
			closings = append(closings, store.CaseClosure{Ref: store.Ref{Client: d.client.ID, ID: id}, By: "Anne", At: d.s.Now(), Kinds: []string{reconcile.CaseStatement}})
		}
		return tx.CloseCases(d.t.Context(), closings)
	})
	if err != nil {
		d.t.Fatal(err)
	}
}

// fill makes every kind of difference.
func (d *statementTest) fill() (want []string) {
	say := func(class reconcile.Class, names ...string) {
		for _, n := range names {
			want = append(want, string(class)+" "+n)
		}
	}
	d.of(d.pay("matched", paidUnder("R1")), "R1", "5 000,00", "Done")
	say(reconcile.Matched, "matched")
	d.line("", d.pay("by id", paidUnder("R2")).ID.String(), "R2", "5000", "XAF", "done", "C")
	say(reconcile.Matched, "by id")
	bare := hex.EncodeToString(d.collector.ReferenceOf(d.pay("without dashes", paidUnder("R3"))).Bytes())
	d.line(strings.ToUpper(bare), "", "", "5000", "xaf", "Done", "C")
	say(reconcile.Matched, "without dashes")
	d.pay("by receipt", paidUnder("R4"))
	d.line("ORDER 17", "", "R4", "5000", "XAF", "Done", "C")
	say(reconcile.Matched, "by receipt")
	d.pay("by receipt beside a reference", paidUnder("R5"))
	d.line(till.NewID(1).String(), "", "R5", "5000", "XAF", "Done", "C")
	say(reconcile.Matched, "by receipt beside a reference")
	d.of(d.pay("late already", storetest.TimedOut, paidUnder("R6")), "R6", "5000", "Done")
	say(reconcile.MatchedLate, "late already")
	d.pay("missing", paidUnder("R7"))
	say(reconcile.MissingAtOperator, "missing")
	d.line(till.NewID(2).String(), "", "R8", "5000", "XAF", "Done", "C")
	say(reconcile.MissingHere, fmt.Sprintf("line %d", len(d.lines)+1))
	d.of(d.pay("another amount", paidUnder("R9")), "R9", "4 999", "Done")
	say(reconcile.AmountDiffers, "another amount")
	p := d.pay("another currency", paidUnder("R10"))
	d.line(d.collector.ReferenceOf(p).String(), "", "R10", "5000", "XOF", "Done", "C")
	say(reconcile.AmountDiffers, "another currency")
	d.of(d.pay("open", storetest.Opened), "R11", "5000", "Done")
	say(reconcile.Late, "open")
	d.of(d.pay("declined", storetest.Declined), "R12", "5000", "Done")
	say(reconcile.Late, "declined")
	d.of(d.pay("open, refused there", storetest.Opened), "", "5000", "Refused")
	say(reconcile.OpenHere, "open, refused there")
	d.of(d.pay("declined by both", storetest.Declined), "", "5000", "Refused")
	d.of(d.pay("open on both sides", storetest.Opened), "", "5000", "Waiting")
	say(reconcile.NoMoney, "declined by both", "open on both sides")
	d.of(d.pay("refused there only", paidUnder("R13")), "R13", "5000", "Refused")
	d.of(d.pay("taken back there only", paidUnder("R14")), "R14", "5000", "Taken back")
	say(reconcile.StatusDiffers, "refused there only", "taken back there only")
	// One receipt under two references: the first has it, the second wants it.
	d.of(d.pay("has the receipt", paidUnder("R15")), "R15", "5000", "Done")
	d.of(d.pay("wants the receipt", storetest.Opened), "R15", "5000", "Done")
	say(reconcile.Matched, "has the receipt")
	say(reconcile.ReceiptUsedTwice, "wants the receipt")
	twice := d.pay("a line twice", storetest.Opened)
	d.of(twice, "R16", "5000", "Done")
	d.of(twice, "R16", "5000", "Done")
	say(reconcile.Late, "a line twice")
	say(reconcile.ReceiptUsedTwice, "a line twice")
	again := d.pay("paid twice", paidUnder("R17"))
	d.of(again, "R17", "5000", "Done")
	d.of(again, "R18", "5000", "Done")
	say(reconcile.Matched, "paid twice")
	say(reconcile.PaidTwice, "paid twice")
	both := d.pay("came and went", storetest.Opened)
	d.of(both, "R19", "5000", "Done")
	d.of(both, "R19", "5000", "Taken back")
	say(reconcile.NoMoney, "came and went")
	say(reconcile.StatusDiffers, "came and went")
	d.of(d.pay("another receipt", paidUnder("R20")), "R21", "5000", "Done")
	say(reconcile.ReceiptDiffers, "another receipt")
	d.line("", "", "", "12,00", "XAF", "Done", "F") // the operator's own fee
	d.lines = append(d.lines, "")
	want = append(want, d.fillPayouts()...)
	slices.Sort(want)
	return want
}

// fillPayouts makes the differences that payouts can have, from the money that
// came in.
func (d *statementTest) fillPayouts() (want []string) {
	say := func(class reconcile.Class, p *till.Payout) *till.Payout {
		want = append(want, string(class)+" "+d.about[p.ID.String()])
		return p
	}
	refused := provider.Result{Outcome: provider.Failed, Reason: till.RecipientNotFound}
	d.out(say(reconcile.Matched, d.payOut("paid out", paidUnder("P1"))), "P1", "5000", "Done")
	d.out(say(reconcile.Late, d.payOut("payout open", storetest.Opened)), "P2", "5000", "Done")
	d.out(say(reconcile.Late, d.payOut("payout failed", refused)), "P3", "5000", "Done")
	d.out(say(reconcile.OpenHere, d.payOut("payout refused there", storetest.Opened)), "", "5000", "Refused")
	d.out(say(reconcile.AmountDiffers, d.payOut("payout of another amount", paidUnder("P4"))), "P4", "4999", "Done")
	say(reconcile.MissingAtOperator, d.payOut("payout missing", paidUnder("P5")))
	// What was never sent has no reference that the operator could name.
	held := say(reconcile.StatusDiffers, d.payOut("payout cancelled"))
	if _, err := d.master.Cancel(d.t.Context(), store.Ref{Client: d.client.ID, ID: held.ID}, "a test"); err != nil {
		d.t.Fatal(err)
	}
	d.line("", held.ID.String(), "P6", "5000", "XAF", "Done", "D")
	return want
}

func TestReconcileStory(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		d := newStatementTest(t, s)
		want := d.fill()
		other := storetest.NewPayment(t, d.collector, storetest.NewClient(t, s, till.Test), storetest.Body{})
		storetest.Apply(t, d.collector, s, other, paidUnder("RX"))
		d.about[other.ID.String()] = "of another client"
		d.of(other, "", "5000", "Done")
		want = append(want, "matched of another client")
		slices.Sort(want)
		before := d.audit(0)

		r, found := d.reconcile()
		if diff := cmp.Diff(found, want); diff != "" {
			t.Fatalf("(-got +want)\n%s", diff)
		}
		if r.Lines != int64(len(d.lines)) || r.Ignored != 2 || r.Broken != 0 || r.Rows != int64(len(d.about)) {
			t.Errorf("read %+v, %d rows", r.ReadCounts, r.Rows)
		}
		if got := len(d.audit(0)); got != len(before) || len(d.cases()) != 0 {
			t.Errorf("a comparison wrote %d audit rows and %v", got-len(before), d.cases())
		}
		// However rows and lines are cut into slices, the same is found.
		for slice := 1; slice < 4; slice++ {
			_, again := d.reconcile(reconcile.SliceFor(slice, 0))
			if diff := cmp.Diff(again, want); diff != "" {
				t.Errorf("slice %d (-got +want)\n%s", slice, diff)
			}
		}

		d.checkNoted(r, nil)
		a := d.apply(r)
		d.checkNoted(r, a)
		if a.Settled != 7 || a.Unchanged != 0 || a.Refused != 0 {
			t.Errorf("applied %+v", a)
		}
		for name, status := range map[string]string{
			"open": "success", "declined": "failed late", "open, refused there": "failed", "a line twice": "success",
			"wants the receipt": "processing", "came and went": "processing", "refused there only": "success", "another amount": "success",
			"payout open": "success", "payout failed": "failed late", "payout refused there": "failed", "payout cancelled": "cancelled",
		} {
			if got := d.status(name); got != status {
				t.Errorf("%s is %s, want %s", name, got, status)
			}
		}
		for name, lines := range map[string][]string{
			"payout open": {"payout 5000", "fee 50"}, "payout failed": {"late_payout 5000"}, "payout refused there": nil, "payout cancelled": nil,
		} {
			if diff := cmp.Diff(d.linesOf(name), lines); diff != "" {
				t.Errorf("money of %s (-got +want)\n%s", name, diff)
			}
		}
		wantCases := map[string]string{"payout of another amount": "amount_differs", "payout cancelled": "status_differs",
			"another amount": "amount_differs", "another currency": "amount_differs", "refused there only": "status_differs",
			"taken back there only": "status_differs", "wants the receipt": "receipt_used_twice", "a line twice": "receipt_used_twice",
			"paid twice": "paid_twice", "came and went": "status_differs"}
		if diff := cmp.Diff(d.cases(), wantCases); diff != "" || a.Cases != int64(len(wantCases)) {
			t.Errorf("%d cases (-got +want)\n%s", a.Cases, diff)
		}
		d.checkEvidence(before, r)

		// The second time nothing is left to settle, and no case is new.
		log := len(d.audit(0))
		r2, _ := d.reconcile()
		a2 := d.apply(r2)
		d.checkNoted(r2, a2)
		if a2.Settled+a2.Unchanged+a2.Cases+a2.Refused != 0 || a2.Known != a.Cases || len(d.audit(0)) != log {
			t.Errorf("the second time %+v, %d audit rows", a2, len(d.audit(0))-log)
		}
		// Neither is a case new that a person has closed.
		d.closeCases()
		if a := d.apply(r2); a.Cases != 0 || len(d.audit(0)) != log {
			t.Errorf("after the cases were closed: %+v", a)
		}
		// What was planned before, and has happened since, is not done again.
		if a3 := d.apply(r); a3.Settled != 0 || a3.Unchanged != 7 || a3.Cases != 0 || len(d.audit(0)) != log {
			t.Errorf("the old plan once more: %+v, %d audit rows", a3, len(d.audit(0))-log)
		}
	})
}

// checkEvidence looks for the line, the file and the person behind each act.
func (d *statementTest) checkEvidence(before []*store.AuditRow, r *reconcile.Result) {
	d.t.Helper()
	acts := map[string]int{}
	for _, row := range d.audit(int64(len(before))) {
		if !bytes.Equal(row.Evidence, r.Digest[:]) {
			d.t.Errorf("%s by %s: the evidence is %x, not the file", row.Action, row.Actor, row.Evidence)
		}
		if row.Actor != "Anne Ndala" {
			continue
		}
		acts[row.Action]++
		digest := hex.EncodeToString(r.Digest[:])
		if !strings.Contains(row.Detail, "statement april.csv sha256:"+digest+" line ") {
			d.t.Errorf("%s rests on %q", row.Action, row.Detail)
		}
	}
	if diff := cmp.Diff(acts, map[string]int{"resolve": 7, "open_case": 10}); diff != "" {
		d.t.Errorf("acts of the person (-got +want)\n%s", diff)
	}
}

// A run that is ended half way has done a part, and the next does the rest.
func TestReconcileGoesOnAfterAnInterrupt(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		d := newStatementTest(t, s)
		const n = 230
		for i := range n {
			name := fmt.Sprint("p", i)
			d.of(d.pay(name, storetest.Opened), fmt.Sprint("R", i), "5000", "Done")
		}
		r, _ := d.reconcile()
		ctx, cancel := context.WithCancel(t.Context())
		commits := 0
		a, err := reconcile.Apply(ctx, s, r, reconcile.ApplyOptions{By: "Anne", Name: "a.csv",
			Payments: func(ctx context.Context, all []*engine.ResolveItem) error {
				if commits++; len(all) > 100 {
					t.Errorf("%d payments in one commit", len(all))
				}
				return d.collector.ResolveAll(ctx, all)
			},
			Progress: func(done, total int) {
				if total != n {
					t.Errorf("%d of %d", done, total)
				}
				cancel()
			}})
		if err == nil || a.Settled != 100 || commits != 1 {
			t.Fatalf("interrupted: %v, %+v, %d commits", err, a, commits)
		}
		r, _ = d.reconcile()
		if a := d.apply(r); a.Settled != n-100 {
			t.Errorf("the rest: %+v", a)
		}
		_, found := d.reconcile()
		if len(slices.Compact(slices.Sorted(maps.Values(classesOf(found))))) != 1 || len(found) != n || !strings.HasPrefix(found[0], "matched ") {
			t.Errorf("after both: %v", found)
		}
	})
}

func classesOf(found []string) map[int]string {
	out := map[int]string{}
	for i, f := range found {
		out[i], _, _ = strings.Cut(f, " ")
	}
	return out
}
