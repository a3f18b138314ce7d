package webhook

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"till"
	"till/store"
	"till/store/webhooks"
)

// auditEntry describes an action for the audit log. The zero value says that nothing was
// done.
type auditEntry struct {
	action  string
	subject till.ID
	detail  string
}

// audited runs f with the client's head locked and appends the audit row that f returns.
// After an unknown commit, done reads whether it happened, and f runs again if not. Without
// done, f must be harmless to repeat.
func (s *Endpoints) audited(ctx context.Context, client till.ID, actor string,
	f func(ctx context.Context, tx *store.Tx, h *store.Head, at till.Time) (auditEntry, error),
	done func(ctx context.Context, tx *store.Tx) (bool, error)) error {
	try := func() error {
		return s.Store.Update(ctx, func(tx *store.Tx) error {
			heads, err := tx.LockHeads(ctx, []till.ID{client})
			if err != nil {
				return err
			}
			h := heads[client]
			if h == nil {
				return till.Errorf(till.CodeClientNotFound, "There is no such client.")
			}
			at := h.NextTime()
			what, err := f(ctx, tx, h, at)
			if err != nil || what.action == "" {
				return err
			}
			row := &store.AuditRow{ClientID: client, Sequence: h.NextAudit(), At: at, Actor: actor, Action: what.action, SubjectID: what.subject, Detail: what.detail}
			if err := tx.InsertAudit(ctx, []*store.AuditRow{row}); err != nil {
				return err
			}
			var counts store.CounterDelta
			counts.AddStored(client, at, row.Size())
			if err := tx.AddCounts(ctx, &counts); err != nil {
				return err
			}
			return tx.SaveHeads(ctx, heads)
		})
	}
	err := try()
	if errors.Is(err, store.ErrUnknownCommit) {
		happened := false
		if done != nil {
			viewErr := s.Store.View(ctx, func(tx *store.Tx) (err error) { happened, err = done(ctx, tx); return err })
			if viewErr != nil {
				return err
			}
		}
		if err = nil; !happened {
			err = try()
		}
	}
	if err == nil && s.Wake != nil {
		s.Wake(ctx, client)
	}
	return err
}

// auditedEndpoint is audited for an endpoint, which is locked. It returns
// CodeEndpointNotFound if there is none.
func (s *Endpoints) auditedEndpoint(ctx context.Context, client, id till.ID, actor string,
	f func(ctx context.Context, tx *store.Tx, e *webhooks.Endpoint, h *store.Head, at till.Time) (auditEntry, error)) error {
	ref := store.Ref{Client: client, ID: id}
	return s.audited(ctx, client, actor, func(ctx context.Context, tx *store.Tx, h *store.Head, at till.Time) (auditEntry, error) {
		locked, _, err := webhooks.LockEndpoints(ctx, tx, []store.Ref{ref}, nil)
		if err != nil {
			return auditEntry{}, err
		}
		e := locked[ref]
		if e == nil {
			return auditEntry{}, errNoEndpoint
		}
		e.LastEvent = h.LastEvent
		return f(ctx, tx, e, h, at)
	}, nil)
}

// describeEndpoint describes an endpoint in audit rows.
func describeEndpoint(e *webhooks.Endpoint) string {
	return "url " + maskURL(e.URL) + ", events " + strings.Join(e.Kinds(), " ")
}

// maskURL returns an address without the parts that hold credentials.
func maskURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "…"
	}
	masked := u.Scheme + "://" + u.Host + u.EscapedPath()
	if u.User != nil {
		masked = u.Scheme + "://…@" + u.Host + u.EscapedPath()
	}
	if u.RawQuery != "" {
		masked += "?…"
	}
	return masked
}
