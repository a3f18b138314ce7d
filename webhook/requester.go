package webhook

import (
	"context"
	"slices"
	"strings"

	"till"
	"till/store"
	"till/store/webhooks"
)

// Requester is who requests a delivery: the name for the audit log, and the scopes of the
// key. A key can have only those events sent that it may read.
type Requester struct {
	Actor  string
	Scopes []till.Scope
}

// mayRead reports whether the requester may read a kind of event.
func (a *Requester) mayRead(k till.EventKind) bool { return slices.Contains(a.Scopes, k.Scope()) }

// allKinds returns what "*" means for the requester: nil, all kinds including future ones,
// if its scopes cover every kind. Otherwise it returns today's kinds that its scopes cover.
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

// check returns CodeInsufficientScope if the requester's scopes do not cover one of the
// kinds.
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

// checkEndpoint checks all that may be sent to an endpoint: the kinds it is subscribed to,
// and the kinds of its pending deliveries from before a change.
func (a *Requester) checkEndpoint(ctx context.Context, tx *store.Tx, e *webhooks.Endpoint) error {
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
	waiting, err := webhooks.UndeliveredKinds(ctx, tx, e.Ref())
	if err != nil {
		return err
	}
	return a.check(waiting)
}
