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

// Status is whether everything is well, over all clients. Test money is apart: it is no
// trouble, whatever becomes of it.
type Status struct {
	At         till.Time
	Live, Test Part
	Verified   *store.Verification // nil: never
	Unfilled   bool                // sums are still being filled in
}

// Part is what clients of one mode have with us.
type Part struct {
	Clients   int64
	Operators []*OperatorStatus
	Open      []store.OpenByAge
	Cases     []store.OpenKind
	Suspense  []store.Aside
	Webhooks  store.WebhookBacklog
}

// Of returns the part of a mode.
func (s *Status) Of(mode till.Mode) *Part {
	if mode == till.Test {
		return &s.Test
	}
	return &s.Live
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
	s := &Status{At: tx.Now()}
	for _, read := range []func(context.Context, *store.Tx) error{s.readOperators, s.readOpen, s.readCases, s.readWebhooks} {
		if err := read(ctx, tx); err != nil {
			return nil, err
		}
	}
	var err error
	if s.Verified, err = tx.LastVerification(ctx); err != nil {
		return nil, err
	}
	if s.Live.Clients, s.Test.Clients, err = tx.CountClients(ctx); err != nil {
		return nil, err
	}
	filled, err := tx.SumsFilled(ctx, till.House)
	s.Unfilled = !filled
	return s, err
}

func (s *Status) readOperators(ctx context.Context, tx *store.Tx) error {
	all, err := ReadOperators(ctx, tx)
	for _, o := range all {
		p := s.Of(till.ModeOf(o.Connection))
		p.Operators = append(p.Operators, o)
	}
	return err
}

func (s *Status) readOpen(ctx context.Context, tx *store.Tx) error {
	open, err := tx.OpenByAge(ctx)
	if err != nil {
		return err
	}
	for _, o := range open {
		p := s.Of(o.Mode)
		p.Open = append(p.Open, o)
	}
	aside, err := tx.PutAside(ctx)
	for _, a := range aside {
		p := s.Of(a.Mode)
		p.Suspense = append(p.Suspense, a)
	}
	return err
}

func (s *Status) readCases(ctx context.Context, tx *store.Tx) error {
	cases, err := tx.OpenKinds(ctx, maxStatusCounted)
	for _, c := range cases {
		p := s.Of(c.Mode)
		p.Cases = append(p.Cases, c)
	}
	return err
}

func (s *Status) readWebhooks(ctx context.Context, tx *store.Tx) (err error) {
	for _, mode := range []till.Mode{till.Live, till.Test} {
		if s.Of(mode).Webhooks, err = tx.WebhookBacklog(ctx, mode, maxStatusCounted); err != nil {
			return err
		}
	}
	return nil
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
	live := &s.Live
	add(slices.ContainsFunc(live.Operators, func(o *OperatorStatus) bool { return o.State != store.Passing || o.Case != "" }), TroubleOperator)
	add(slices.ContainsFunc(live.Open, func(o store.OpenByAge) bool { return o.Hour > 0 }), TroubleOpen)
	add(len(live.Cases) > 0, TroubleCases)
	add(live.Webhooks.Failing+live.Webhooks.Disabled > 0 || live.Webhooks.Behind+live.Webhooks.Retries >= manyEventsBehind, TroubleWebhooks)
	add(s.Verified != nil && s.Verified.Problems > 0, TroubleVerify)
	add(live.Clients > 0 && (s.Verified == nil || s.At.Sub(s.Verified.At) > verifyEvery), TroubleUnproven)
	return out
}
