package engine

import (
	"context"

	"till"
	"till/provider"
	"till/store"
)

// Resolution is the operator's decision, brought by a person.
type Resolution struct {
	Success  bool
	Reversed bool   // the money was credited, and the operator took it back
	Receipt  string // the operator's, if the evidence shows one
	By       string // the person
	Evidence string // a description for the audit log
	Digest   []byte // SHA-256 of it
}

// Resolve ends a row on a person's evidence, by the same Apply as every other answer. It
// returns the table's NotFound, or CodeValidationFailed if the row has ended in a way that
// the evidence cannot change. Late money that was posted is not posted again, nor is a
// reversal. Then only its case is closed.
func (p *Processor[R]) Resolve(ctx context.Context, ref store.Ref, r Resolution) error {
	rows, err := p.read(ctx, []store.Ref{ref})
	if err != nil {
		return err
	}
	row, found := rows[ref]
	if !found {
		return p.table.missing()
	}
	s := row.Subject()
	if r.Success && s.Status == string(till.Success) {
		return till.Errorf(till.CodeValidationFailed, "the %s's money has been %s already", p.table.Name(), p.table.Booked)
	}
	a := p.answerFromPerson(s, r)
	p.Apply(ctx, []*Answer{a})
	return a.RecordErr
}

// read returns the named rows that exist.
func (p *Processor[R]) read(ctx context.Context, refs []store.Ref) (rows map[store.Ref]R, err error) {
	err = p.c.Store.View(ctx, func(tx *store.Tx) (err error) {
		rows, err = p.table.Read(ctx, tx, refs)
		return err
	})
	return rows, err
}

// answerFromPerson returns the answer for a person's resolution of a row.
func (w *Worker) answerFromPerson(p store.Subject, r Resolution) *Answer {
	now := w.c.Store.Now()
	a := &Answer{
		Ref: p.Ref, Action: Resolve, Connection: p.Connection, Reference: w.keys.Reference(p.Ref.Client, p.IdempotencyKey),
		Started: now, Ended: now, By: r.By, Evidence: r.Evidence, Digest: r.Digest,
		Result: provider.Result{Outcome: provider.Failed, Reason: till.Unspecified},
	}
	switch {
	case r.Success:
		a.Result = provider.Result{Outcome: provider.Success, Receipt: r.Receipt}
	case r.Reversed:
		a.Result = provider.Result{Outcome: provider.Reversed}
	}
	a.Result, _ = a.Result.Clean() // like an operator's own answer
	return a
}

// ResolveItem is one of many resolutions, such as a line of an operator's statement that
// settles a payment.
type ResolveItem struct {
	Ref store.Ref
	Resolution

	// Changed and Err are set by ResolveAll: whether it changed the row, and why it could
	// not. Neither is set if the row had already ended the same way.
	Changed bool
	Err     error
}

// ResolveAll ends rows on evidence, in one commit if possible. It leaves a row alone if its
// money has moved already, or if it has ended and is only reported as failed. So a second
// run changes nothing.
func (p *Processor[R]) ResolveAll(ctx context.Context, items []*ResolveItem) error {
	refs := make([]store.Ref, len(items))
	for i, s := range items {
		refs[i] = s.Ref
	}
	rows, err := p.read(ctx, refs)
	if err != nil {
		return err
	}
	var answers []*Answer
	var asked []*ResolveItem
	for _, s := range items {
		s.Changed, s.Err = false, nil
		row, found := rows[s.Ref]
		if !found {
			s.Err = p.table.missing()
			continue
		}
		subject := row.Subject()
		switch success := subject.Status == string(till.Success); {
		case success && !s.Success:
			s.Err = till.Errorf(till.CodeValidationFailed, "the %s has succeeded and stays so", subject.Noun)
		case decided(subject, s.Success):
		default:
			a := p.answerFromPerson(subject, s.Resolution)
			a.UnlessDecided = true // it may be, since it was read
			answers, asked = append(answers, a), append(asked, s)
		}
	}
	if len(answers) == 0 {
		return nil
	}
	p.Apply(ctx, answers)
	for i, a := range answers {
		asked[i].Err, asked[i].Changed = a.RecordErr, a.RecordErr == nil && !a.Unchanged
	}
	return nil
}

// decided reports whether evidence of a success, or of a failure, changes nothing of a row
// any more. It is false for evidence of a failure against a success.
func decided(p store.Subject, success bool) bool {
	if p.Status == string(till.Success) {
		return success
	}
	return *p.LateEvent != 0 || p.Final && !success
}
