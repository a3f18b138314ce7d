package api

import (
	"context"
	"net/http"
	"strings"
	"time"

	"till"
	"till/account"
	"till/store"
	"till/store/access"
)

// maxListedKeys limits the list of keys, revoked ones included; at most account.MaxKeys of
// them are active.
const maxListedKeys = 1000

// listKeys is GET /api-keys.
func (c keyHandlers) listKeys() error {
	var keys []*till.Key
	err := c.view(func(ctx context.Context, tx *store.Tx) (err error) {
		keys, err = access.Keys(ctx, tx, c.session.Client.ID, maxListedKeys)
		return err
	})
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, listOf(keys, c.keyOf))
}

// keyRequest is the body of POST /api-keys.
type keyRequest struct {
	Name      *string       `json:"name"`
	Scopes    *[]till.Scope `json:"scopes"`
	ExpiresAt *string       `json:"expires_at"`
}

// createKey is POST /api-keys.
func (c keyHandlers) createKey() error {
	var req keyRequest
	if err := c.decode(&req); err != nil {
		return err
	}
	name, scopes, expires, fields := c.readKey(&req)
	if fields != nil {
		return &till.Error{Code: till.CodeValidationFailed, Fields: fields}
	}
	text, key, err := c.s.Accounts.CreateKeyBy(c.auditContext(), c.session, name, scopes, expires)
	if err != nil {
		return err
	}
	return c.newKey(text, key)
}

// readKey returns the key to create, and all mistakes of the request.
func (c keyHandlers) readKey(req *keyRequest) (name string, scopes []till.Scope, expires till.Time, fields []till.FieldError) {
	if req.Name != nil {
		if name = *req.Name; name == "" {
			fields = append(fields, till.FieldError{Pointer: "/name", Code: till.FieldInvalidFormat, Detail: "The name must not be empty."})
		}
	}
	if s := req.ExpiresAt; s != nil {
		var ok bool
		if expires, ok = till.ParseTime(*s); !ok || strings.Contains(*s, " ") {
			fields = append(fields, till.FieldError{Pointer: "/expires_at", Code: till.FieldInvalidFormat, Detail: "The expiry must be an RFC 3339 time in UTC."})
			expires = 0
		}
	}
	scopes = till.DefaultScopes
	if req.Scopes != nil {
		scopes = *req.Scopes
	}
	fields = append(fields, c.s.Accounts.CheckKey(name, scopes, expires)...)
	grant := c.session.CheckGrant(scopes)
	if req.Scopes == nil && grant != nil { // the default scopes were not sent one by one
		grant = grant[:1]
		grant[0].Pointer = "/scopes"
	}
	return name, scopes, expires, append(fields, grant...)
}

// rotateRequest is the body of POST /api-keys/{key_id}/rotate.
type rotateRequest struct {
	OverlapSeconds *int64 `json:"overlap_seconds"`
}

// defaultOverlap is how long a rotated key stays valid by default: a working day and the
// night after it.
const defaultOverlap = 24 * time.Hour

// rotateKey is POST /api-keys/{key_id}/rotate.
func (c keyHandlers) rotateKey() error {
	var req rotateRequest
	if err := c.decode(&req); err != nil {
		return err
	}
	overlap := defaultOverlap
	if n := req.OverlapSeconds; n != nil {
		// Limit it to just outside the bounds, so that the product cannot overflow.
		overlap = time.Duration(max(-1, min(*n, int64(account.MaxOverlap/time.Second)+1))) * time.Second
	}
	id := c.r.PathValue("key_id")
	if err := c.checkRotation(id); err != nil {
		return err
	}
	text, key, err := c.s.Accounts.RotateKeyBy(c.auditContext(), c.session, id, overlap)
	if err != nil {
		return err
	}
	return c.newKey(text, key)
}

// checkRotation rejects the rotation of a key with more scopes than the caller's. The
// answer contains the new key, so the caller would gain those scopes.
func (c keyHandlers) checkRotation(id string) error {
	if id == c.session.Key.ID {
		return nil
	}
	var key *till.Key
	err := c.view(func(ctx context.Context, tx *store.Tx) (err error) {
		key, err = access.Key(ctx, tx, c.session.Client.ID, id)
		return err
	})
	if err != nil {
		return err
	}
	if c.session.CheckGrant(key.Scopes) == nil {
		return nil
	}
	return &till.Error{Code: till.CodeValidationFailed, Fields: []till.FieldError{{
		Code: till.FieldScopeNotGranted, Detail: "The key to be rotated has a scope that the key that asks does not have itself.",
	}}}
}

// newKey answers with a key and, only here, its text.
func (c keyHandlers) newKey(text string, k *till.Key) error {
	made := c.keyOf(k)
	made.Text = text
	return c.answer(http.StatusCreated, made)
}

var revokeQuery = []string{"cascade"}

// revokeKey is DELETE /api-keys/{key_id}. With cascade, the answer lists the keys that it
// also ended. A key may revoke itself, and keys that it made, without the scope, but not
// its replacements.
func (c keyHandlers) revokeKey() error {
	p := c.params()
	cascade := p.choice("cascade", "true", "false")
	if err := p.err(); err != nil {
		return err
	}
	if cascade == "true" && !c.session.Key.Allows(till.KeysManage) {
		return till.Errorf(till.CodeInsufficientScope, "The key lacks the scope %s, which cascade needs.", till.KeysManage)
	}
	id := c.r.PathValue("key_id")
	done, err := c.s.Accounts.RevokeKey(c.auditContext(), c.session.Client.ID, id, cascade == "true", c.session.Actor())
	if err != nil {
		return err
	}
	if cascade == "" {
		return c.empty(http.StatusNoContent)
	}
	return c.answer(http.StatusOK, struct {
		ID    string `json:"id"`
		Ended []key  `json:"ended"`
		Left  []key  `json:"left"`
	}{id, each(done.Ended, c.keyOf), each(done.Left, c.keyOf)})
}

type key struct {
	ID         string       `json:"id"`
	Name       *string      `json:"name"`
	Scopes     []till.Scope `json:"scopes"`
	Mode       till.Mode    `json:"mode"`
	CreatedAt  till.Time    `json:"created_at"`
	ExpiresAt  till.Time    `json:"expires_at"`
	RevokedAt  till.Time    `json:"revoked_at"`
	LastUsedAt till.Time    `json:"last_used_at"`
	ExposedAt  till.Time    `json:"exposed_at"`
	MadeBy     *string      `json:"made_by"`
	Replaces   *string      `json:"replaces"`
	Text       string       `json:"api_key,omitzero"` // only where it was made
}

func (c keyHandlers) keyOf(k *till.Key) key {
	return key{k.ID, orNull(k.Name), k.Scopes, c.session.Client.Mode, k.CreatedAt, k.ExpiresAt, k.RevokedAt, k.LastUsedAt, k.ExposedAt,
		orNull(k.MadeBy), orNull(k.Replaces), ""}
}
