package engine

import (
	"context"
	"time"

	"till"
	"till/store"
)

// After an old database was put back, a new payment may be the retry of one that
// was lost. Where the operator knows our references that does no harm: it notices.
// Where it does not, the customer would be asked a second time for money that may
// have been paid. So until a person has released the restore, such payments are
// taken in and held: nothing is sent, their time does not run out, and each is on
// the attention list, where whoever reads the operator's statement finds it.

// holdPause is how often it is looked whether what is held is released. The
// release itself makes it due.
const holdPause = time.Minute

// restoring answers whether a restore is open that any of the steps has to wait
// for. It is read in the transaction of the claim, and only if it matters.
func (e *Engine) restoring(ctx context.Context, tx *store.Tx, steps []*store.Step, jobs map[store.Ref]*Job) (bool, error) {
	for _, s := range steps {
		j := jobs[store.Ref{Client: s.ClientID, ID: s.SubjectID}]
		if j != nil && e.unnoticing[j.Connection] && maybeLost(s, j) {
			return tx.Restoring(ctx)
		}
	}
	return false, nil
}

// maybeLost answers whether the first send of a step, to an operator that would
// not notice it twice, may be the second of something that was lost.
func maybeLost(s *store.Step, j *Job) bool { return !j.Final && unsent(s) }

// hold puts a row that must not be sent yet on the attention list, and gives the
// lease on its step back.
func (b *Change[R]) hold(row R, a *Answer, s *store.Step, now till.Time) {
	if a.Version == s.LeaseVersion {
		s.LeaseUntil, s.DueAt = 0, now.Add(holdPause)
	}
	if unsent(s) {
		b.Again(row, CaseHeld, "an old database was put back, and this may be the retry of a "+b.noun.Name+
			" that was lost with it: it is not sent until that is known", *row.Alike().Attention)
		b.Attend(row)
	}
}

// overdue says why a person should look at a row that is open for too long.
func overdue(s *store.Step) string {
	if s.Restored && !s.Acked {
		return "an old database was put back while it was open: it may have been sent, and the operator has not told"
	}
	return "its time is over and the operator has not decided"
}
