package engine

import (
	"context"
	"errors"
	"slices"

	"till/store"
)

// maxFailuresPerCommit is how many calls that brought no answer are recorded in one
// commit. An operator that is down ends many at the same moment; as one commit
// they would keep everybody else from writing for as long as it takes.
const maxFailuresPerCommit = 64

// Apply records answers. With a cancellation it is the only place where a row
// changes. The whole batch is one commit; if that fails, each answer is
// recorded alone, and what cannot be recorded even then is in its Refused.
func (p *Processor[R]) Apply(ctx context.Context, answers []*Answer) {
	for _, some := range commits(answers) {
		applyTogether(some, func(answers []*Answer, reread bool) error { return p.apply(ctx, answers, reread) }, p.Unavailable)
	}
}

// commits returns which answers are recorded in one commit each.
func commits(answers []*Answer) [][]*Answer {
	failures := 0
	for _, a := range answers {
		if a.Err != nil {
			failures++
		}
	}
	if failures <= maxFailuresPerCommit {
		return [][]*Answer{answers}
	}
	return slices.Collect(slices.Chunk(answers, maxFailuresPerCommit))
}

// apply is the one commit of a batch of answers.
func (p *Processor[R]) apply(ctx context.Context, answers []*Answer, reread bool) error {
	return p.c.Store.UpdateBackground(ctx, func(tx *store.Tx) error {
		b, err := p.beginRecording(ctx, tx, answers, reread)
		if err != nil {
			return err
		}
		rules := p.rules(b)
		if err := rules.Preload(ctx, answers); err != nil {
			return err
		}
		if err := b.owners(ctx, answers, reread); err != nil {
			return err
		}
		for _, a := range answers {
			if err := b.decide(ctx, a, rules); err != nil {
				return err
			}
		}
		return b.Write(ctx)
	})
}

// applyTogether records answers in one commit, or else each alone. record is
// careful when it runs for one alone.
func applyTogether(answers []*Answer, record func(answers []*Answer, reread bool) error, refuse func(doing string, err error) error) {
	safely := func(answers []*Answer, reread bool) (err error) {
		defer recoverToError(&err) // one that makes us panic must not take the others along
		return record(answers, reread)
	}
	err := safely(answers, false)
	if errors.Is(err, store.ErrUnknownCommit) {
		err = safely(answers, false) // what is recorded already is a no-op
	}
	var away error
	if errors.Is(err, store.ErrUnavailable) {
		away = refuse("record answers", err)
	}
	for _, a := range answers {
		a.storeErr = nil
		switch {
		case err == nil:
		case away != nil:
			a.storeErr, a.RecordErr = err, away
		default:
			if alone := safely([]*Answer{a}, true); alone != nil {
				a.storeErr, a.RecordErr = alone, refuse("record an answer", alone)
			}
		}
	}
}
