package account

import (
	"context"
	"slices"

	"till"
	"till/store"
	"till/store/access"
)

// Revocation is what became of the descendants of a revoked key: the keys that it created,
// that replaced it, and so on.
type Revocation struct {
	Ended []*till.Key // ended with it
	Left  []*till.Key // still valid
}

// RevokeKey ends a key for good, and the keys that it created. Its replacement from a
// rotation stays valid; with cascade all descendants end. Revoking it again ends only what
// is still active. It returns CodeKeyNotFound.
func (a *Accounts) RevokeKey(ctx context.Context, client till.ID, keyID string, cascade bool, actor string) (r Revocation, err error) {
	defer a.cache.forget(client)
	err = a.commit(ctx, func(tx *store.Tx) error {
		return a.audited(ctx, tx, client, actor, func(at till.Time) (what auditEntry, err error) {
			r, what, err = revoke(ctx, tx, client, keyID, cascade, at)
			return what, err
		})
	}, func(tx *store.Tx) (bool, error) {
		k, err := access.Key(ctx, tx, client, keyID)
		if err != nil || k.RevokedAt.IsZero() {
			return false, err
		}
		living, err := access.Descendants(ctx, tx, client, keyID, cascade)
		return len(living) == 0, err
	})
	return r, err
}

// revoke ends the keys, each with an audit row.
func revoke(ctx context.Context, tx *store.Tx, client till.ID, keyID string, cascade bool, at till.Time) (r Revocation, what auditEntry, err error) {
	k, err := access.Key(ctx, tx, client, keyID)
	if err != nil {
		return r, what, err
	}
	if r.Ended, err = access.Descendants(ctx, tx, client, keyID, cascade); err != nil {
		return r, what, err
	}
	all, err := access.Descendants(ctx, tx, client, keyID, true)
	if err != nil {
		return r, what, err
	}
	for _, d := range all {
		if !slices.ContainsFunc(r.Ended, func(e *till.Key) bool { return e.ID == d.ID }) {
			r.Left = append(r.Left, d)
		}
	}
	var acts []auditEntry
	if k.RevokedAt.IsZero() {
		k.RevokedAt = at
		acts = append(acts, auditEntry{action: "key.revoke", detail: describeKey(k)})
		if err := access.UpdateKey(ctx, tx, k); err != nil {
			return r, what, err
		}
	}
	for _, d := range r.Ended {
		d.RevokedAt = at
		acts = append(acts, auditEntry{action: "key.revoke", detail: describeKey(d) + ", which descends from key " + keyID})
		if err := access.UpdateKey(ctx, tx, d); err != nil {
			return r, what, err
		}
	}
	if len(acts) > 0 {
		what = acts[0]
		what.also = acts[1:]
	}
	return r, what, nil
}
