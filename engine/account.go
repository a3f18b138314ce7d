package engine

import (
	"context"

	"till"
	"till/provider"
	"till/store"
)

// accountFindings is what answers show about our own account at operators: faults, and that
// it works.
type accountFindings struct {
	faults map[string]string    // by connection
	works  map[string]till.Time // by connection: when the latest success was sent
}

// noteAccount notes what an answer shows about our own account. An operator that says that
// our float is empty, or that we may not do this, will say it again: a person must know.
// The case closes when something that was sent after its opening succeeds. Only payouts
// show such faults.
func (b *Recording[R]) noteAccount(a *Answer, connection string) {
	if a.Err != nil || a.Action == Resolve || a.Action == Abandon {
		return
	}
	name := b.worker.breaker(connection)
	s := b.Steps[a.Ref]
	switch {
	case a.Result.OurFault != "":
		if b.accountFindings.faults == nil {
			b.accountFindings.faults = map[string]string{}
		}
		b.accountFindings.faults[name] = a.Result.OurFault
	case a.Result.Outcome == provider.Success && b.table.Kind == till.SubjectPayout && s != nil:
		if b.accountFindings.works == nil {
			b.accountFindings.works = map[string]till.Time{}
		}
		b.accountFindings.works[name] = max(b.accountFindings.works[name], s.SendStartedAt)
	}
}

// writeAccount opens and closes the operators' cases of a batch. It comes last: another
// commit that opens the same case waits until this one ends.
func (b *Recording[R]) writeAccount(ctx context.Context) error {
	return b.Tx.ChangeOperatorCases(ctx, store.CaseAccount, b.accountFindings.works, b.accountFindings.faults)
}
