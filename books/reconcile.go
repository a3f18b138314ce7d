package books

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
)

// ReconcileOptions is what Reconcile is asked to compare.
type ReconcileOptions struct {
	Connection string
	Mapping    Mapping

	// File is the operator's statement: read once from its beginning, and then
	// here and there.
	File interface {
		io.Reader
		io.ReaderAt
	}

	// From and To bound the time that the statement covers, both included;
	// zero means the first and the last time in it. A line outside is counted
	// and left alone.
	From, To till.Time

	// Slack is how far the operator's clock may be from ours.
	Slack time.Duration

	// Plan keeps what ApplyStatement needs.
	Plan bool

	// All tells Found about what matches, too.
	All bool

	// Found, if set, is told about every line and payment that does not match.
	// The finding is used again for the next.
	Found func(f *Finding) error

	// Progress, if set, is called now and then.
	Progress func(p Progress)

	slice      int // rows of one snapshot; 0 means compareSlice
	maxLookups int // 0 means maxLookups
}

// Limits of a comparison.
const (
	compareSlice  = 5_000     // rows that one snapshot covers
	lookupSlice   = 500       // lines that are looked up by key in one snapshot
	maxLookups    = 2_000_000 // lines times clients that are looked up by key; beyond it, all payments are walked
	creationSlack = time.Hour // how much earlier than its line a payment usually is
)

// Progress is how far a comparison has come.
type Progress struct {
	Lines, Claimed int64 // of the statement; those that something of ours was found for
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

	Ours *store.Compared // nil: nothing of ours
}

// ReadCounts is what was met in the file.
type ReadCounts struct {
	Lines   int64 // after the header
	Ignored int64 // blank, or the mapping ignores them
	Broken  int64
	Outside int64 // before From or after To
	Digest  [32]byte
}

// ClassSum is how often a class was found in a currency, and what the two
// sides sum to.
type ClassSum struct {
	Class          Class
	Currency       string
	Count          int64
	Operator, Ours big.Int
}

// ReconcileResult is what Reconcile read and found.
type ReconcileResult struct {
	ReadCounts
	From, To till.Time
	Rows     int64 // payments and payouts that were compared
	Sums     []*ClassSum

	plan []planned
	file *reconciler
}

// Differences returns how many findings somebody has to look at.
func (r *ReconcileResult) Differences() (n int64) {
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
	kind       string
	class      Class
	remedy     Remedy
}

// reconciler is a comparison on its way.
type reconciler struct {
	ReconcileOptions
	s       *store.Store
	report  *ReconcileResult
	parser  *statementFile
	lines   *records
	clients []till.ID
	claimed int64

	first, last till.ID                // the payments that are walked: made in the time of the statement
	seen        map[store.Ref]struct{} // those compared that are not in between
	deferred    []store.Ref            // those whose receipt fits a line with another's reference

	rows    []store.Compared
	found   []uint32
	buffer  []byte
	finding Finding
}

// Reconcile compares an operator's statement with the payments, the payouts
// and the ledger of all clients on a connection. It changes nothing.
//
// The file is read once into small records. Then the payments and payouts made
// in its time are walked, in the order of their ids; those made before whose
// money was booked in it; and those that lines still without an owner name.
func Reconcile(ctx context.Context, s *store.Store, c ReconcileOptions) (*ReconcileResult, error) {
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
	r := &reconciler{ReconcileOptions: c, s: s, report: &ReconcileResult{}, parser: &statementFile{layout: layout},
		seen: map[store.Ref]struct{}{}, buffer: make([]byte, MaxStatementLine)}
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
		if d := slices.Index(Classes, a.Class) - slices.Index(Classes, b.Class); d != 0 {
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

// setPeriod decides which time the statement covers.
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

// listClients reads the ids of all clients: a statement of a connection holds
// the money of all of them.
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

// walkCreated compares what was made in the time of the statement.
func (r *reconciler) walkCreated(ctx context.Context) error {
	for _, client := range r.clients {
		if err := r.walk(ctx, client, r.first, r.last, false); err != nil {
			return err
		}
	}
	return nil
}

// walk compares the payments and payouts of a client beyond one id and up to
// another. Of old ones only those that have a line are of interest.
func (r *reconciler) walk(ctx context.Context, client, after, last till.ID, old bool) error {
	for _, kind := range []string{store.ComparedPayment, store.ComparedPayout} {
		for at := after; ; {
			err := r.view(ctx, func(tx *store.Tx) (err error) {
				r.rows, err = tx.Compare(ctx, kind, r.Connection, client, at, last, r.slice, r.rows[:0])
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

// walkBooked compares what was made before and booked in the time of the
// statement.
func (r *reconciler) walkBooked(ctx context.Context) error {
	first, last := till.LastID(r.report.From-1), till.LastID(r.report.To)
	for _, client := range r.clients {
		for at := first; ; {
			var moved []store.Moved
			err := r.view(ctx, func(tx *store.Tx) (err error) {
				if moved, err = tx.Moved(ctx, r.Connection, client, at, last, r.slice); err != nil {
					return err
				}
				var refs []store.Ref
				for _, m := range moved {
					refs = append(refs, store.Ref{Client: client, ID: m.Subject})
				}
				r.rows, err = tx.ComparedByID(ctx, r.Connection, r.unseen(refs), r.rows[:0])
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

// compareRows compares rows that are not walked.
func (r *reconciler) compareRows() error {
	for i := range r.rows {
		r.seen[store.Ref{Client: r.rows[i].Client, ID: r.rows[i].ID}] = struct{}{}
		if err := r.compare(&r.rows[i], false); err != nil {
			return err
		}
	}
	return nil
}
