package engine

import (
	"context"
	"errors"
	"maps"
	"slices"

	"till"
	"till/ledger"
	"till/provider"
	"till/store"
	"till/store/flows"
)

// maxFailuresPerCommit is how many failed calls are recorded in one commit. When an
// operator goes down, many calls fail at the same moment; one large commit would block all
// other writers.
const maxFailuresPerCommit = 64

// Apply records answers. Besides a payout's cancellation, it is the only place where a
// status changes; a claim that sends again moves the window.
// The whole batch is one commit. If that fails, each answer is recorded alone; if that
// fails too, RecordErr says why.
func (p *Processor[R]) Apply(ctx context.Context, answers []*Answer) {
	for _, some := range commits(answers) {
		applyTogether(some, func(answers []*Answer, reread bool) error { return p.apply(ctx, answers, reread) }, p.Unavailable)
	}
}

// commits groups answers by commit.
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

// applyTogether records answers in one commit, or else each alone. An answer that is
// recorded alone rereads all rows that it depends on.
func applyTogether(answers []*Answer, record func(answers []*Answer, reread bool) error, refuse func(doing string, err error) error) {
	safely := func(answers []*Answer, reread bool) (err error) {
		defer recoverToError(&err) // an answer that panics must not fail the others
		return record(answers, reread)
	}
	err := safely(answers, false)
	if errors.Is(err, store.ErrUnknownCommit) {
		err = safely(answers, false) // again: no status and no money changes; only the call may be counted twice
	}
	var away error
	if errors.Is(err, store.ErrUnavailable) {
		away = refuse("answers not recorded", err)
	}
	for _, a := range answers {
		a.storeErr = nil
		switch {
		case err == nil:
		case away != nil:
			a.storeErr, a.RecordErr = err, away
		default:
			if alone := safely([]*Answer{a}, true); alone != nil {
				a.storeErr, a.RecordErr = alone, refuse("answer not recorded", alone)
			}
		}
	}
}

// Rules is what an answer means to payments, or to payouts.
type Rules[R Subject] interface {
	// Preload reads what only few of the answers need.
	Preload(ctx context.Context, answers []*Answer) error
	// OnSuccess applies the operator's answer that the money moved.
	OnSuccess(ctx context.Context, row R, a *Answer) error
	// OnFailure applies the operator's answer that it did not.
	OnFailure(ctx context.Context, row R, a *Answer) error
	// End ends a row without success.
	End(ctx context.Context, row R, r provider.Result) error
	// OnReversal applies the operator's answer that it took the money back.
	OnReversal(ctx context.Context, row R, a *Answer) error
}

// Begin locks and reads what a change of some rows depends on.
func (p *Processor[R]) Begin(ctx context.Context, tx *store.Tx, refs []store.Ref) (*Recording[R], error) {
	return p.lockRows(ctx, tx, refs, store.Cached{}, nil, nil)
}

// beginRecording is Begin for the rows of answers. Unless it rereads, it assumes that the
// database has just what the answer's claim saw. If that is wrong, the database rejects the
// write.
func (p *Processor[R]) beginRecording(ctx context.Context, tx *store.Tx, answers []*Answer, reread bool) (*Recording[R], error) {
	refs, kept := make([]store.Ref, len(answers)), make(map[store.Ref]R)
	known := store.Cached{FirstSendOnly: make(map[store.Ref]bool, len(answers)), Rows: make(map[store.Ref]bool, len(answers))}
	var calls []*store.Attempt
	noted := make(map[*Answer]bool, len(answers))
	for i, a := range answers {
		refs[i] = a.Ref
		first := !known.FirstSendOnly[a.Ref]
		if a.Action == Submit || a.Action == Check && a.onlyFirstSend && first && !reread {
			calls, noted[a] = append(calls, attemptOf(a)), true
		}
		known.Credits = known.Credits || succeeds(a)
		if reread || !a.onlyFirstSend {
			continue
		}
		known.FirstSendOnly[a.Ref] = true
		if row, ok := a.cachedRow.(R); ok && changesRow(row.Subject(), a) {
			known.Rows[a.Ref], kept[a.Ref] = true, row
		}
	}
	b, err := p.lockRows(ctx, tx, refs, known, kept, calls)
	if err != nil {
		return nil, err
	}
	b.alreadyRecorded, b.answers = noted, answers
	if err := b.readHolds(ctx); err != nil {
		return nil, err
	}
	if err := b.readFlows(ctx); err != nil {
		return nil, err
	}
	return b, b.findStrays(ctx)
}

// changesRow reports whether an answer changes a row, so that the database has to check the
// row's previous state.
func changesRow(p store.Subject, a *Answer) bool {
	switch {
	case a.Err != nil || p.Final || *p.Attention:
		return false
	case a.Result.Outcome == provider.Accepted || a.Result.Outcome == provider.Duplicate || a.Result.Outcome == provider.Open:
		return *p.ProcessingEvent == 0
	}
	return a.Result.Outcome.Final()
}

// lockRows is Begin with the cached rows, and with the calls that can be written at once.
func (p *Processor[R]) lockRows(ctx context.Context, tx *store.Tx, refs []store.Ref, known store.Cached, kept map[store.Ref]R,
	calls []*store.Attempt) (*Recording[R], error) {
	l, err := tx.LockSubjects(ctx, p.table.Kind, refs, known, calls)
	if err != nil {
		return nil, err
	}
	b := &Recording[R]{
		Tx: tx, Rows: p.table.Locked(l), Heads: l.Heads, Steps: l.Steps,
		worker: p.Worker, table: p.table, strays: strays{any: l.Strays}, lastAttempts: l.Attempts, clientWallets: l.Wallets, wallets: make(map[walletKey]*ledger.Wallet), fromCache: make(map[store.Ref]bool, len(kept)),
		flowsChanged: make(map[store.Ref]*flows.Row),
	}
	var moved []store.Ref
	for ref, row := range kept {
		// Each recorded answer and each send is counted in the step; a second send moves
		// the end of the row's window.
		if s := l.Steps[ref]; s == nil || s.Sends > 1 || s.Calls != row.Subject().Resolution.Attempts {
			moved = append(moved, ref)
			continue
		}
		b.Rows[ref], b.fromCache[ref] = p.table.ForUpdate(row), true
	}
	if len(moved) > 0 {
		read, err := p.table.Read(ctx, tx, moved)
		if err != nil {
			return nil, err
		}
		maps.Copy(b.Rows, read)
	}
	for _, row := range b.Rows {
		b.found = append(b.found, b.worker.unsure.happened(row.Subject())...)
	}
	tx.AfterCommit(b.committed)
	tx.AfterUnknownCommit(func() { b.worker.unsure.remember(b.moves) })
	return b, nil
}

// decide applies one answer to the running state: it notes the call, decides what it means,
// and schedules what is next.
func (b *Recording[R]) decide(ctx context.Context, a *Answer, d Rules[R]) error {
	a.RecordErr, b.answer = nil, a
	row, found := b.Rows[a.Ref]
	if !found || b.Heads[a.Ref.Client] == nil {
		a.RecordErr = b.table.missing()
		return nil
	}
	t, _ := b.worker.traits(row.Subject().Connection)
	a = b.withoutForeignHandle(row, a)
	b.recordCall(row, a, t)
	b.noteAccount(a, row.Subject().Connection)
	was := row.Subject()
	if err := b.interpret(ctx, row, a, d); err != nil {
		return err
	}
	b.noteFlow(row, a)
	if !a.Unchanged {
		b.schedule(row, a, t, was)
	}
	return nil
}

// interpret decides what an answer means. A final status needs the operator's answer; the
// one exception is a request that provably never reached the operator.
func (b *Recording[R]) interpret(ctx context.Context, row R, a *Answer, d Rules[R]) error {
	p, s := row.Subject(), b.Steps[a.Ref]
	if a.Unchanged = a.UnlessDecided && decided(p, a.Result.Outcome == provider.Success) && !b.resolvedBy(a); a.Unchanged {
		return nil
	}
	switch t, known := b.worker.traits(p.Connection); {
	case a.Action == Abandon && known && !p.Final && mayAbandon(s, p.ExpiresAt, t, b.Tx.Now()):
		return d.End(ctx, row, provider.Result{Outcome: provider.Failed, Reason: till.ProviderUnavailable, Retryable: true})
	case a.Err != nil || a.Action == Abandon || a.Action == Hold || a.Action == Notice:
		return nil
	}
	switch r := a.Result; r.Outcome {
	case provider.Accepted, provider.Duplicate, provider.Open:
		b.MarkProcessing(row)
	case provider.Unrecognised:
		b.MarkProcessing(row)
		if !p.Final {
			b.OpenCase(row, CaseUnknownStatus, till.Because(till.ReasonUnknownStatus, r.Code))
		}
	case provider.Rejected:
		if !p.Final && rejectionIsFinal(s, a) {
			return d.End(ctx, row, r)
		}
	case provider.Success:
		return d.OnSuccess(ctx, row, a)
	case provider.Failed, provider.Expired:
		return d.OnFailure(ctx, row, a)
	case provider.Reversed:
		return d.OnReversal(ctx, row, a)
	}
	return nil
}
