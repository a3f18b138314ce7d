package books

import (
	"context"
	"slices"
	"time"

	"till"
	"till/store"
)

// Limits of ReadStatus: how many cases and retries are counted, how many events behind
// are many, and how old the last verification may be.
const (
	maxStatusCounted = 100_000
	manyEventsBehind = 10_000
	verifyEvery      = 7 * 24 * time.Hour
)

// Status is whether everything is well, over all clients.
type Status struct {
	At        till.Time
	Operators []*OperatorStatus
	Open      []store.OpenByAge
	Cases     []store.OpenKind
	Suspense  []store.Aside
	Webhooks  store.WebhookBacklog
	Verified  *store.Verification // nil: never
	Unfilled  bool                // sums are still being filled in
	Live      int64               // clients
	Test      int64
}

// ReadStatus reads it from one snapshot.
func ReadStatus(ctx context.Context, s *store.Store) (*Status, error) {
	st := &Status{}
	err := s.View(ctx, func(tx *store.Tx) (err error) {
		st, err = StatusOf(ctx, tx)
		return err
	})
	return st, err
}

// StatusOf is ReadStatus within a snapshot.
func StatusOf(ctx context.Context, tx *store.Tx) (*Status, error) {
	st := &Status{At: tx.Now()}
	var err error
	if st.Operators, err = ReadOperators(ctx, tx); err != nil {
		return nil, err
	}
	if st.Open, err = tx.OpenByAge(ctx); err != nil {
		return nil, err
	}
	if st.Cases, err = tx.OpenKinds(ctx, maxStatusCounted); err != nil {
		return nil, err
	}
	if st.Suspense, err = tx.PutAside(ctx); err != nil {
		return nil, err
	}
	if st.Webhooks, err = tx.WebhookBacklog(ctx, maxStatusCounted); err != nil {
		return nil, err
	}
	if st.Verified, err = tx.LastVerification(ctx); err != nil {
		return nil, err
	}
	if st.Live, st.Test, err = tx.CountClients(ctx); err != nil {
		return nil, err
	}
	filled, err := tx.SumsFilled(ctx, till.House)
	st.Unfilled = !filled
	return st, err
}

// Trouble is a reason why a person has to look.
type Trouble string

// The troubles.
const (
	TroubleOperator Trouble = "operator" // a connection is stopped, or refuses our credentials
	TroubleOpen     Trouble = "open"     // something waits for an operator's word for more than an hour
	TroubleCases    Trouble = "cases"
	TroubleWebhooks Trouble = "webhooks" // endpoints fail or were disabled, or events wait in thousands
	TroubleVerify   Trouble = "verify"   // the last verification found something
	TroubleUnproven Trouble = "unproven" // there was none in a week
)

// Troubles returns what a person has to look at; none means that all is well.
func (s *Status) Troubles() (out []Trouble) {
	add := func(is bool, t Trouble) {
		if is {
			out = append(out, t)
		}
	}
	add(slices.ContainsFunc(s.Operators, func(o *OperatorStatus) bool { return o.State != store.Passing || o.Case != "" }), TroubleOperator)
	add(slices.ContainsFunc(s.Open, func(o store.OpenByAge) bool { return o.Hour > 0 }), TroubleOpen)
	add(len(s.Cases) > 0, TroubleCases)
	add(s.Webhooks.Failing+s.Webhooks.Disabled > 0 || s.Webhooks.Behind+s.Webhooks.Retries >= manyEventsBehind, TroubleWebhooks)
	add(s.Verified != nil && s.Verified.Problems > 0, TroubleVerify)
	add(s.Live > 0 && (s.Verified == nil || s.At.Sub(s.Verified.At) > verifyEvery), TroubleUnproven)
	return out
}
