package reconcile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"time"

	"till"
	"till/store"
	"till/store/matching"
)

// ReconcileOptions says what Reconcile compares.
type Options struct {
	Connection string
	Mapping    Mapping

	// File is the operator's statement. It is read once from its beginning;
	// later, single lines are read again.
	File interface {
		io.Reader
		io.ReaderAt
	}

	// From and To are the time that the statement covers, both included. Zero
	// means the first and the last time in it. Lines outside are only counted.
	From, To till.Time

	// Slack is the largest difference between the operator's clock and ours.
	Slack time.Duration

	// Plan keeps what ApplyStatement needs.
	Plan bool

	// All also passes what matches to Found.
	All bool

	// Found, if set, is called with each line and payment that does not match.
	// The finding is reused for the next call.
	Found func(f *Finding) error

	// Progress, if set, is called from time to time.
	Progress func(p Progress)

	slice      int // rows of one snapshot; 0 means compareSlice
	maxLookups int // 0 means maxLookups
}

// Limits of a comparison.
const (
	compareSlice  = 5_000     // rows that one snapshot covers
	lookupSlice   = 500       // lines that are looked up by key in one snapshot
	maxLookups    = 2_000_000 // lines times clients; above it, all older payments are read instead
	creationSlack = time.Hour // how much earlier than its line a payment is usually created
)

// Progress is the progress of a comparison.
type Progress struct {
	Lines, Claimed int64 // lines of the statement, and those that match a payment or payout
	Rows           int64 // payments and payouts that were compared
	Bytes          int64 // read of the statement
}

// Finding is one line, or one payment or payout without a line.
type Finding struct {
	Class  Class
	Why    string
	Remedy Remedy

	Line                           uint32 // 0: no line
	Reference, ExternalID, Receipt string // as the line says
	Said                           till.Money
	SaidStatus                     string
	SaidAt                         till.Time

	Ours *matching.ReconcileRow // nil: none
}

// ReadCounts counts the lines of the file.
type ReadCounts struct {
	Lines   int64 // after the header
	Ignored int64 // blank, or the mapping ignores them
	Broken  int64
	Outside int64 // before From or after To
	Digest  [32]byte
}

// ClassSum is how often a class was found in a currency, with the sums of both
// sides.
type ClassSum struct {
	Class          Class
	Currency       string
	Count          int64
	Operator, Ours big.Int
}

// ReconcileResult has what Reconcile read and found.
type Result struct {
	ReadCounts
	From, To till.Time
	Rows     int64 // payments and payouts that were compared
	Sums     []*ClassSum

	plan []planned
	file *reconciler
}

// Differences returns how many findings a person has to check.
func (r *Result) Differences() (n int64) {
	for _, s := range r.Sums {
		if s.Class.Difference() {
			n += s.Count
		}
	}
	return n
}

// planned is a remedy for one payment or payout.
type planned struct {
	client, id till.ID
	line       uint32 // 1 + the record; 0: none
	kind       till.SubjectKind
	class      Class
	remedy     Remedy
}

// reconciler is the state of one Reconcile.
type reconciler struct {
	Options
	s       *store.Store
	report  *Result
	parser  *statementFile
	lines   *records
	clients []till.ID
	claimed int64

	first, last till.ID                // the ids that walkCreated reads
	seen        map[store.Ref]struct{} // compared subjects outside of them
	deferred    []store.Ref            // subjects whose receipt is on a line with another reference

	rows    []matching.ReconcileRow
	found   []uint32
	buffer  []byte
	finding Finding
}

// Reconcile compares an operator's statement with the payments, the payouts
// and the ledger of all clients on a connection. It changes nothing.
//
// The file is read once into small records. Then three groups of payments and
// payouts are compared: those created in the statement's time, in the order of
// their ids; those created before and booked in it; and those that unmatched
// lines name.
func Compare(ctx context.Context, s *store.Store, c Options) (*Result, error) {
	layout, err := c.Mapping.layout()
	if err != nil {
		return nil, err
	}
	if c.slice == 0 {
		c.slice = compareSlice
	}
	if c.maxLookups == 0 {
		c.maxLookups = maxLookups
	}
	r := &reconciler{Options: c, s: s, report: &Result{}, parser: &statementFile{layout: layout},
		seen: map[store.Ref]struct{}{}, buffer: make([]byte, maxStatementLine)}
	r.report.file = r
	broken := func(line uint32, why string) error {
		return r.emit(&Finding{Class: BrokenLine, Why: why, Line: line}, "", 0, 0)
	}
	progress := func(n int64) { r.progress(n) }
	if r.lines, err = readStatement(ctx, c.File, r.parser, &r.report.ReadCounts, broken, progress); err != nil {
		return nil, err
	}
	if err := r.setPeriod(); err != nil {
		return nil, err
	}
	for _, f := range []func(context.Context) error{r.listClients, r.walkCreated, r.walkBooked, r.findByLine, r.matchDeferred, r.classifyMissing} {
		if err := f(ctx); err != nil {
			return nil, fmt.Errorf("reconcile: %w", err)
		}
	}
	slices.SortFunc(r.report.Sums, func(a, b *ClassSum) int {
		if d := slices.Index(classes, a.Class) - slices.Index(classes, b.Class); d != 0 {
			return d
		}
		return bytes.Compare([]byte(a.Currency), []byte(b.Currency))
	})
	return r.report, nil
}

func (r *reconciler) progress(bytes int64) {
	if r.Progress != nil {
		r.Progress(Progress{Lines: r.report.Lines, Claimed: r.claimed, Rows: r.report.Rows, Bytes: bytes})
	}
}

// setPeriod sets the time that the statement covers.
func (r *reconciler) setPeriod() error {
	var first, last till.Time
	for i := range uint32(r.lines.n) {
		if at := r.lines.at(i).at; at != 0 {
			if first == 0 || at < first {
				first = at
			}
			last = max(last, at)
		}
	}
	p := r.report
	if p.From, p.To = r.From, r.To; p.From == 0 {
		p.From = first
	}
	if p.To == 0 {
		p.To = last
	}
	if p.From == 0 || p.To == 0 {
		return errors.New("the statement does not say which time it covers: say it with --from and --to")
	}
	if p.From > p.To {
		return fmt.Errorf("the time of the statement ends at %s, before it begins at %s", p.To, p.From)
	}
	for i := range uint32(r.lines.n) {
		if l := r.lines.at(i); l.at != 0 && (l.at < p.From || l.at > p.To) {
			l.flags |= outside
			p.Outside++
		}
	}
	r.first, r.last = till.LastID(max(p.From.Add(-creationSlack), 1)-1), till.LastID(p.To.Add(creationSlack))
	return nil
}

// view runs f on a snapshot, unless it is time to stop.
func (r *reconciler) view(ctx context.Context, f func(tx *store.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return r.s.View(ctx, f)
}

// listClients reads the ids of all clients: a connection's statement has the
// money of all of them.
func (r *reconciler) listClients(ctx context.Context) error {
	for after := (till.ID{}); ; {
		var page []*till.Client
		err := r.view(ctx, func(tx *store.Tx) (err error) {
			page, err = tx.Clients(ctx, after, r.slice)
			return err
		})
		if err != nil || len(page) == 0 {
			return err
		}
		for _, c := range page {
			r.clients = append(r.clients, c.ID)
		}
		after = page[len(page)-1].ID
	}
}

// walkCreated compares what was created in the time of the statement.
func (r *reconciler) walkCreated(ctx context.Context) error {
	for _, client := range r.clients {
		if err := r.walk(ctx, client, r.first, r.last, false); err != nil {
			return err
		}
	}
	return nil
}

// walk compares a client's payments and payouts after one id and up to
// another. Old ones count only if they have a line.
func (r *reconciler) walk(ctx context.Context, client, after, last till.ID, old bool) error {
	for _, kind := range []till.SubjectKind{till.SubjectPayment, till.SubjectPayout} {
		for at := after; ; {
			err := r.view(ctx, func(tx *store.Tx) (err error) {
				r.rows, err = matching.ReconcileRows(ctx, tx, kind, r.Connection, client, at, last, r.slice, r.rows[:0])
				return err
			})
			if err != nil {
				return err
			}
			for i := range r.rows {
				if _, seen := r.seen[store.Ref{Client: client, ID: r.rows[i].ID}]; seen {
					continue
				}
				if err := r.compare(&r.rows[i], old); err != nil {
					return err
				}
			}
			r.progress(0)
			if len(r.rows) < r.slice {
				break
			}
			at = r.rows[len(r.rows)-1].ID
		}
	}
	return nil
}

// walkBooked compares what was created before the time of the statement and
// booked in it.
func (r *reconciler) walkBooked(ctx context.Context) error {
	first, last := till.LastID(r.report.From-1), till.LastID(r.report.To)
	for _, client := range r.clients {
		for at := first; ; {
			var moved []matching.PostedSubject
			err := r.view(ctx, func(tx *store.Tx) (err error) {
				if moved, err = matching.PostedSubjects(ctx, tx, r.Connection, client, at, last, r.slice); err != nil {
					return err
				}
				var refs []store.Ref
				for _, m := range moved {
					refs = append(refs, store.Ref{Client: client, ID: m.Subject})
				}
				r.rows, err = matching.ReconcileRowsByID(ctx, tx, r.Connection, r.unseen(refs), r.rows[:0])
				return err
			})
			if err != nil {
				return err
			}
			if err := r.compareRows(); err != nil {
				return err
			}
			if len(moved) < r.slice {
				break
			}
			at = moved[len(moved)-1].Entry
		}
	}
	return nil
}

// unseen returns those that were not compared yet.
func (r *reconciler) unseen(refs []store.Ref) (out []store.Ref) {
	twice := map[store.Ref]bool{}
	for _, ref := range refs {
		walked := bytes.Compare(ref.ID[:], r.first[:]) > 0 && bytes.Compare(ref.ID[:], r.last[:]) <= 0
		if _, seen := r.seen[ref]; !walked && !seen && !ref.ID.IsZero() && !twice[ref] {
			out, twice[ref] = append(out, ref), true
		}
	}
	return out
}

// compareRows compares the rows that walkCreated does not reach.
func (r *reconciler) compareRows() error {
	for i := range r.rows {
		r.seen[store.Ref{Client: r.rows[i].Client, ID: r.rows[i].ID}] = struct{}{}
		if err := r.compare(&r.rows[i], false); err != nil {
			return err
		}
	}
	return nil
}
