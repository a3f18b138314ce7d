package reconcile

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"till"
	"till/engine"
	"till/store"
	"till/store/matching"
)

// CaseStatement is the kind of a case that a statement opens because it
// contradicts our books.
const CaseStatement = "statement_differs"

// Limits of applying a statement.
const (
	applyBatch = 100 // payments or payouts in one commit; a server may run beside it
	// MaxStatementCases is how many cases a statement opens at most. If there
	// are more, the mapping is wrong.
	MaxStatementCases = 1_000
	// MaxApplyRefused is how many refusals are listed.
	MaxApplyRefused = 100
)

// ApplyOptions says how a statement is applied.
type ApplyOptions struct {
	By   string // the person
	Name string // of the file, for the audit log

	// Payments and Payouts resolve subjects on the evidence of lines.
	Payments, Payouts func(ctx context.Context, s []*engine.ResolveItem) error

	// Progress, if set, is called after every commit.
	Progress func(done, total int)
}

// ApplyResult counts what was done about the differences.
type ApplyResult struct {
	Settled   int64 // payments and payouts that a line settled
	Unchanged int64 // that already had the same outcome
	Cases     int64 // that were opened
	Known     int64 // differences that have their case already
	Strays    int64 // lines that were kept as strays, or that confirmed one
	Kept      int64 // lines whose stray is confirmed already
	Beyond    int64 // lines that were not recorded, because too many strays are open
	Refused   int64
	Refusals  []Refusal // the first of them

	settled map[Class]int64 // differences that are none any more
}

// Refusal is a line that could not be applied.
type Refusal struct {
	Line uint32
	ID   till.ID
	Why  string
}

var (
	errBrokenLines = till.Errorf(till.CodeValidationFailed, "there are lines that cannot be read: nothing was applied; correct the mapping, or get the statement anew")
	errManyCases   = till.Errorf(till.CodeValidationFailed, "the statement contradicts our books in more than %d places: nothing was applied; look at the mapping first", MaxStatementCases)
)

// ApplyStatement settles open payments and payouts, and those that ended
// although their money moved, by the lines of a statement. It opens a case for
// each contradiction, and records a line of our form that matches nothing as a
// stray. Money moves only through Apply of collect and payout. It commits in
// small batches and does nothing twice, so it may be stopped and repeated.
// Nothing is applied if a line could not be read.
func Apply(ctx context.Context, s *store.Store, r *Result, a ApplyOptions) (*ApplyResult, error) {
	if r.Broken > 0 {
		return nil, errBrokenLines
	}
	var settle, cases, strays []planned
	for _, p := range r.plan {
		switch p.remedy {
		case openACase:
			cases = append(cases, p)
		case keepStray:
			strays = append(strays, p)
		default:
			settle = append(settle, p)
		}
	}
	if len(cases) > MaxStatementCases {
		return nil, errManyCases
	}
	out := &ApplyResult{settled: map[Class]int64{}}
	x := &applier{ApplyOptions: a, s: s, r: r, out: out, total: len(settle) + len(cases) + len(strays)}
	for _, kind := range []till.SubjectKind{till.SubjectPayment, till.SubjectPayout} {
		of := slices.DeleteFunc(slices.Clone(settle), func(p planned) bool { return p.kind != kind })
		for batch := range slices.Chunk(of, applyBatch) {
			if err := x.settle(ctx, kind, batch); err != nil {
				return out, err
			}
		}
	}
	for batch := range slices.Chunk(cases, applyBatch) {
		if err := x.openCases(ctx, batch); err != nil {
			return out, err
		}
	}
	for batch := range slices.Chunk(strays, applyBatch) {
		if err := x.recordStrays(ctx, batch); err != nil {
			return out, err
		}
	}
	return out, nil
}

// applier is the state of one ApplyStatement.
type applier struct {
	ApplyOptions
	s           *store.Store
	r           *Result
	out         *ApplyResult
	done, total int
}

// evidence returns a line's name in the audit log.
func (x *applier) evidence(p *planned) string {
	if line := x.lineOf(p); line != "" {
		return x.statement() + " line " + line
	}
	return x.statement()
}

// why says why a case is opened about a difference.
func (x *applier) why(p *planned) till.Reason {
	if line := x.lineOf(p); line != "" {
		return till.Because(till.ReasonStatementLine, string(p.class), x.statement(), line)
	}
	return till.Because(till.ReasonStatement, string(p.class), x.statement())
}

func (x *applier) statement() string { return "statement " + x.Name + " " + x.digest() }

// lineOf returns the number of the line that a difference is in, "" if it is in none.
func (x *applier) lineOf(p *planned) string {
	if p.line == 0 {
		return ""
	}
	return fmt.Sprint(x.r.file.lines.at(p.line - 1).number)
}

func (x *applier) digest() string { return "sha256:" + hex.EncodeToString(x.r.Digest[:]) }

func (x *applier) step(ctx context.Context, n int) error {
	if x.done += n; x.Progress != nil {
		x.Progress(x.done, x.total)
	}
	return ctx.Err()
}

// settle resolves one batch through collect or payout.
func (x *applier) settle(ctx context.Context, kind till.SubjectKind, batch []planned) error {
	apply := x.Payments
	if kind == till.SubjectPayout {
		apply = x.Payouts
	}
	f := x.r.file
	all := make([]*engine.ResolveItem, len(batch))
	for i := range batch {
		p := &batch[i]
		line, err := f.parser.reread(f.File, f.lines.at(p.line-1), f.buffer)
		if err != nil {
			return err
		}
		all[i] = &engine.ResolveItem{Ref: store.Ref{Client: p.client, ID: p.id},
			Resolution: engine.Resolution{Success: p.remedy == settleSuccess, By: x.By, Evidence: x.evidence(p), Digest: x.r.Digest[:]}}
		if p.remedy == settleSuccess {
			all[i].Receipt = line.receipt
		}
	}
	if err := apply(ctx, all); err != nil {
		return err
	}
	for i, s := range all {
		switch {
		case s.Err != nil:
			x.reject(f.lines.at(batch[i].line-1).number, batch[i].id, s.Err)
		case s.Changed:
			x.out.Settled++
			x.out.settled[batch[i].class]++
		default:
			x.out.Unchanged++
			x.out.settled[batch[i].class]++
		}
	}
	return x.step(ctx, len(batch))
}

func (x *applier) reject(line uint32, id till.ID, why error) {
	if x.out.Refused++; len(x.out.Refusals) < MaxApplyRefused {
		text := why.Error()
		var refused *till.Error
		if errors.As(why, &refused) {
			text = refused.Detail
		}
		x.out.Refusals = append(x.out.Refusals, Refusal{line, id, text})
	}
}

// openCases opens the cases of one batch, each with an audit row. A case that
// the same statement opened before is not opened again, even if it was closed.
func (x *applier) openCases(ctx context.Context, batch []planned) error {
	var opened, known int64
	_, err := store.RetryUnknown(ctx, x.s.UpdateBackground, func(tx *store.Tx, _ bool) (err error) {
		opened, known, err = x.openCasesIn(ctx, tx, batch)
		return err
	})
	if err != nil {
		return err
	}
	x.out.Cases += opened
	x.out.Known += known
	return x.step(ctx, len(batch))
}

func (x *applier) openCasesIn(ctx context.Context, tx *store.Tx, batch []planned) (opened, known int64, err error) {
	var clients []till.ID
	var refs []store.Ref
	for i := range batch {
		clients = append(clients, batch[i].client)
		refs = append(refs, store.Ref{Client: batch[i].client, ID: batch[i].id})
	}
	heads, err := tx.LockHeads(ctx, clients)
	if err != nil {
		return 0, 0, err
	}
	there, err := matching.CasesOf(ctx, tx, CaseStatement, refs)
	if err != nil {
		return 0, 0, err
	}
	digest := x.digest()
	var cases []*store.Case
	var audit []*store.AuditRow
	for i := range batch {
		p := &batch[i]
		why := x.why(p)
		c, h := there[refs[i]], heads[p.client]
		if h == nil || c != nil && (c.ClosedAt.IsZero() || strings.Contains(c.Detail, digest)) {
			known++
			continue
		}
		at := h.NextTime()
		c = &store.Case{ClientID: p.client, ID: till.NewID(at), SubjectID: p.id, Kind: CaseStatement, Why: why, Detail: why.String(), OpenedAt: at}
		there[refs[i]] = c // one case for all differences of a payment
		cases = append(cases, c)
		audit = append(audit, &store.AuditRow{ClientID: p.client, Sequence: h.NextAudit(), At: at, Actor: x.By, Action: "open_case",
			SubjectID: p.id, Detail: why.String(), Evidence: x.r.Digest[:]})
		opened++
	}
	if err := tx.OpenCases(ctx, cases); err != nil {
		return 0, 0, err
	}
	if err := tx.InsertAudit(ctx, audit); err != nil {
		return 0, 0, err
	}
	return opened, known, tx.SaveHeads(ctx, heads)
}
