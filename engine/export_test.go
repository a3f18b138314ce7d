package engine

import (
	"context"

	"till/store"
)

// Commits is which answers are recorded in one commit each.
var Commits = commits

// Once makes an answer one that saw nothing but the first send on record.
func Once(a *Answer) *Answer {
	a.onlyFirstSend = true
	return a
}

// Keep makes an answer one to a job that kept its row.
func Keep(a *Answer, row any) *Answer {
	a.cachedRow = row
	return Once(a)
}

// AroundClaims has the commits of w's claims, and of what searches for claims, run by around.
// Call it before w runs.
func (w *Worker) AroundClaims(around func(commit func() error) error) {
	update := w.update
	w.update = func(ctx context.Context, f func(tx *store.Tx) error) error {
		return around(func() error { return update(ctx, f) })
	}
}
