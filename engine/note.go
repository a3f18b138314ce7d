package engine

import (
	"context"
	"errors"

	"till/provider"
	"till/store"
)

// attemptOf is what is written down of a call.
func attemptOf(a *Answer) *store.Attempt {
	at := &store.Attempt{
		ClientID: a.Ref.Client, SubjectID: a.Ref.ID, Kind: string(a.Action),
		Connection: a.Connection, Reference: a.Reference,
		Outcome: string(a.Result.Outcome), Code: a.Result.Code, Detail: a.Result.Message, StartedAt: a.Started, EndedAt: a.Ended,
	}
	_, refused := errors.AsType[*provider.Refusal](a.Err)
	switch {
	case refused:
		at.Outcome, at.Code, at.Detail = "error", "", "refused before it was taken"
	case errors.Is(a.Err, errHeld):
		at.Outcome, at.Code, at.Detail = "error", "", "payouts are held: it was not sent"
	case faultOf(a.Err) != "":
		at.Outcome, at.Code, at.Detail = "error", "", faultOf(a.Err)
	case errors.Is(a.Err, context.DeadlineExceeded):
		at.Outcome, at.Code, at.Detail = "error", "", "no answer in time"
	case a.Err != nil: // its text may hold what only the operator should know
		at.Outcome, at.Code, at.Detail = "error", "", "no answer"
	}
	return at
}

// recordCall records the call itself, before anything is made of its answer.
func (b *Recording[R]) recordCall(row R, a *Answer, t provider.Traits) {
	if !a.Action.calls() {
		return // nobody was called; a resolution is recorded once it is accepted
	}
	p := row.Subject()
	if !b.alreadyRecorded[a] {
		at := attemptOf(a)
		at.Connection, at.Reference = p.Connection, b.worker.keys.Reference(p.Ref.Client, p.IdempotencyKey)
		b.attempts = append(b.attempts, at)
	}
	if s := b.Steps[a.Ref]; s != nil {
		b.learnHandle(p, s, a)
		NoteAnswer(s, a, t, b.Tx.Now())
		p.Resolution.LastCheckedAt, p.Resolution.Attempts = s.CheckedAt, s.Calls
	}
}
