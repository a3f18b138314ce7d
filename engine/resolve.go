package engine

import (
	"context"

	"till"
	"till/provider"
	"till/store"
)

// Resolution is the operator's word brought by a person.
type Resolution struct {
	Success  bool
	Reversed bool   // the money was credited, and the operator took it back
	Receipt  string // the operator's, where the evidence shows one
	By       string // who says so
	Evidence string // what it rests on, in words for the audit log
	Digest   []byte // SHA-256 of it
}

// AnswerOf makes an answer of what a person says about a row.
func (e *Worker) AnswerOf(p store.Subject, r Resolution) *Answer {
	now := e.c.Store.Now()
	a := &Answer{
		Ref: p.Ref, Action: Resolve, Connection: p.Connection, Reference: e.Keys.Reference(p.Ref.Client, p.IdempotencyKey),
		Started: now, Ended: now, By: r.By, Evidence: r.Evidence, Digest: r.Digest,
		Result: provider.Result{Outcome: provider.Failed, Reason: till.Unspecified},
	}
	switch {
	case r.Success:
		a.Result = provider.Result{Outcome: provider.Success, Receipt: r.Receipt}
	case r.Reversed:
		a.Result = provider.Result{Outcome: provider.Reversed}
	}
	a.Result, _ = a.Result.Clean() // as the operator's own answer would be
	return a
}

// Settlement is a resolution among many, such as a line of an operator's
// statement that settles a payment.
type Settlement struct {
	Ref store.Ref
	Resolution

	// Changed and Refused are set by ResolveAll: whether the row was settled
	// by it, and why it could not be. Neither is set if the row had come to the
	// same end already.
	Changed bool
	Refused error
}

// ResolveAll ends rows on evidence through apply, all in one commit where that
// works. A row whose money has moved already, or that has ended and is only
// said to have failed, is left as it is: a second run changes nothing.
func ResolveAll[R Subject](ctx context.Context, e *Worker, noun *Table[R], settlements []*Settlement, apply func(ctx context.Context, answers []*Answer)) error {
	refs := make([]store.Ref, len(settlements))
	for i, s := range settlements {
		refs[i] = s.Ref
	}
	var rows map[store.Ref]R
	err := e.c.Store.View(ctx, func(tx *store.Tx) (err error) {
		rows, err = noun.Read(ctx, tx, refs)
		return err
	})
	if err != nil {
		return err
	}
	var answers []*Answer
	var asked []*Settlement
	for _, s := range settlements {
		s.Changed, s.Refused = false, nil
		row, found := rows[s.Ref]
		if !found {
			s.Refused = till.Errorf(noun.NotFound, "there is no such %s", noun.Name)
			continue
		}
		p := row.Subject()
		switch success := p.Status == string(till.Success); {
		case success && !s.Success:
			s.Refused = till.Errorf(till.CodeValidationFailed, "the %s has succeeded and stays so", noun.Name)
		case success, *p.LateEvent != 0, p.Final && !s.Success:
		default:
			answers, asked = append(answers, e.AnswerOf(p, s.Resolution)), append(asked, s)
		}
	}
	if len(answers) == 0 {
		return nil
	}
	apply(ctx, answers)
	for i, a := range answers {
		asked[i].Refused, asked[i].Changed = a.Refused, a.Refused == nil
	}
	return nil
}
