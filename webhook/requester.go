package webhook

import (
	"context"
	"slices"
	"strings"

	"till"
	"till/store"
)

// Requester is who asks for something to be sent: the name in the audit log, and
// the scopes of the key. Events are shown to an endpoint on the word of the
// key that asks, so a key can have sent only what it may read.
type Requester struct {
	Actor  string
	Scopes []till.Scope
}

// mayRead reports whether the asker may be told about a kind of events.
func (a *Requester) mayRead(k till.EventKind) bool { return slices.Contains(a.Scopes, k.Scope()) }

// allKinds returns what "*" means when the asker says it: nil, every kind, also
// those to come, if no kind is beyond its scopes; else those that are not, as
// they are today.
func (a *Requester) allKinds() (kinds []till.EventKind) {
	if a.mayReadAll() {
		return nil
	}
	for _, k := range till.EventKinds {
		if a.mayRead(k) {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

func (a *Requester) mayReadAll() bool {
	return !slices.ContainsFunc(till.EventScopes, func(s till.Scope) bool { return !slices.Contains(a.Scopes, s) })
}

// check returns CodeInsufficientScope if one of the kinds is beyond the
// asker's scopes.
func (a *Requester) check(kinds []till.EventKind) error {
	var lacks []string
	for _, k := range kinds {
		if s := string(k.Scope()); !a.mayRead(k) && !slices.Contains(lacks, s) {
			lacks = append(lacks, s)
		}
	}
	switch len(lacks) {
	case 0:
		return nil
	case 1:
		return till.Errorf(till.CodeInsufficientScope, "The key lacks the scope %s, which these events need.", lacks[0])
	}
	return till.Errorf(till.CodeInsufficientScope, "The key lacks the scopes %s, which these events need.", strings.Join(lacks, ", "))
}

// checkEndpoint is check on all that may go out to an endpoint: the kinds that
// it is told about, and what waits for it from before they were changed.
func (a *Requester) checkEndpoint(ctx context.Context, tx *store.Tx, e *store.Endpoint) error {
	if a.mayReadAll() {
		return nil
	}
	kinds := e.Events
	if kinds == nil {
		kinds = till.EventKinds
	}
	if err := a.check(kinds); err != nil {
		return err
	}
	waiting, err := tx.UndeliveredKinds(ctx, e.Ref())
	if err != nil {
		return err
	}
	return a.check(waiting)
}
