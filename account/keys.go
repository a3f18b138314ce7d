package account

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"till"
	"till/store"
	"till/store/access"
)

// Limits of keys.
const (
	maxKeys    = 100 // active keys of a client
	maxKeyName = 64  // characters
	MaxOverlap = 7 * 24 * time.Hour
)

// CreateKey creates a key of a client. No scopes means the default ones; name and expiry
// are optional. The text of the key is returned only here. It returns CodeClientNotFound,
// or CodeValidationFailed for a bad field or a client with maxKeys active keys.
func (a *Accounts) CreateKey(ctx context.Context, client till.ID, name string, scopes []till.Scope, expires till.Time, actor string) (string, *till.Key, error) {
	return a.createKey(ctx, till.Key{ClientID: client, Name: name, Scopes: scopes, ExpiresAt: expires}, actor)
}

// CreateKeyBy is CreateKey by another key: the new key ends no later than that one.
// Session.CheckGrant decides whether it may grant the scopes.
func (a *Accounts) CreateKeyBy(ctx context.Context, by *Session, name string, scopes []till.Scope, expires till.Time) (string, *till.Key, error) {
	return a.createKey(ctx, till.Key{ClientID: by.Client.ID, Name: name, Scopes: scopes, ExpiresAt: expires, MadeBy: by.Key.ID}, by.Actor())
}

// CreateKeyOnce is CreateKey with a key that follows from a seed of at least 32 secret bytes.
// Called again with the same seed it makes nothing, and returns the key that is there; its
// CreatedAt says since when.
func (a *Accounts) CreateKeyOnce(ctx context.Context, seed []byte, client till.ID, name string, scopes []till.Scope, expires till.Time, actor string) (string, *till.Key, error) {
	return a.createSeeded(ctx, seed, till.Key{ClientID: client, Name: name, Scopes: scopes, ExpiresAt: expires}, actor)
}

func (a *Accounts) createKey(ctx context.Context, key till.Key, actor string) (string, *till.Key, error) {
	return a.createSeeded(ctx, nil, key, actor)
}

func (a *Accounts) createSeeded(ctx context.Context, seed []byte, key till.Key, actor string) (string, *till.Key, error) {
	if key.Scopes == nil {
		key.Scopes = till.DefaultScopes
	}
	if fields := a.CheckKey(key.Name, key.Scopes, key.ExpiresAt); fields != nil {
		return "", nil, invalid(fields...)
	}
	key.Scopes = sortScopes(key.Scopes)
	text, before, err := a.generateKey(ctx, &key, seed)
	if err != nil || before != nil {
		return text, before, err
	}
	err = a.commit(ctx, func(tx *store.Tx) error {
		return a.audited(ctx, tx, key.ClientID, actor, func(at till.Time) (auditEntry, error) {
			if err := checkKeyLimit(ctx, tx, key.ClientID); err != nil {
				return auditEntry{}, err
			}
			if err := capExpiryAtMaker(ctx, tx, &key, at); err != nil {
				return auditEntry{}, err
			}
			key.CreatedAt = at
			return auditEntry{action: "key.create", detail: describeKey(&key)}, access.InsertKey(ctx, tx, &key)
		})
	}, func(tx *store.Tx) (bool, error) { return keyExists(ctx, tx, &key) })
	if err != nil {
		return "", nil, err
	}
	return text, &key, nil
}

// generateKey gives a key its id and its secret, in the mode of its client. With a seed
// they follow from it; then it also returns the key that was made with it before, if any.
func (a *Accounts) generateKey(ctx context.Context, key *till.Key, seed []byte) (text string, before *till.Key, err error) {
	draw := randomText
	if seed != nil {
		draw = seededText(seed)
	}
	err = a.store.View(ctx, func(tx *store.Tx) error {
		c, err := tx.Client(ctx, key.ClientID)
		if err != nil {
			return err
		}
		var drawn till.Key
		text, drawn = keyFrom(c.Mode, draw)
		key.ID, key.SecretHash = drawn.ID, drawn.SecretHash
		if seed == nil {
			return nil
		}
		if there, err := keyExists(ctx, tx, key); err != nil || !there {
			return err
		}
		before, err = access.Key(ctx, tx, key.ClientID, key.ID)
		return err
	})
	return text, before, err
}

// capExpiryAtMaker limits a key's expiry to that of the key that creates it. It returns an
// error if that one was revoked since its request was admitted.
func capExpiryAtMaker(ctx context.Context, tx *store.Tx, key *till.Key, at till.Time) error {
	if key.MadeBy == "" {
		return nil
	}
	maker, err := access.Key(ctx, tx, key.ClientID, key.MadeBy)
	if err != nil {
		return err
	}
	if !maker.Active(at) {
		return errInvalidKey
	}
	if end := maker.ExpiresAt; !end.IsZero() && (key.ExpiresAt.IsZero() || end < key.ExpiresAt) {
		key.ExpiresAt = end
	}
	return nil
}

// RotateKey creates a key with the scopes of an active one, and ends the old one after the
// overlap, or at its own expiry if that comes first. The new key keeps the old one's
// expiry, so a rotation extends nobody's access. It returns CodeKeyNotFound if there is no
// such active key. It returns CodeValidationFailed for an overlap outside 0 to MaxOverlap,
// a key that already has an active successor, or a client that would have more than
// maxKeys.
func (a *Accounts) RotateKey(ctx context.Context, client till.ID, keyID string, overlap time.Duration, actor string) (string, *till.Key, error) {
	return a.rotateKey(ctx, till.Key{ClientID: client, Replaces: keyID}, overlap, actor)
}

// RotateKeyOnce is RotateKey with a key that follows from a seed; see CreateKeyOnce.
func (a *Accounts) RotateKeyOnce(ctx context.Context, seed []byte, client till.ID, keyID string, overlap time.Duration, actor string) (string, *till.Key, error) {
	return a.rotateSeeded(ctx, seed, till.Key{ClientID: client, Replaces: keyID}, overlap, actor)
}

// RotateKeyBy is RotateKey by another key: the new key ends no later than that one.
func (a *Accounts) RotateKeyBy(ctx context.Context, by *Session, keyID string, overlap time.Duration) (string, *till.Key, error) {
	return a.rotateKey(ctx, till.Key{ClientID: by.Client.ID, Replaces: keyID, MadeBy: by.Key.ID}, overlap, by.Actor())
}

func (a *Accounts) rotateKey(ctx context.Context, key till.Key, overlap time.Duration, actor string) (string, *till.Key, error) {
	return a.rotateSeeded(ctx, nil, key, overlap, actor)
}

func (a *Accounts) rotateSeeded(ctx context.Context, seed []byte, key till.Key, overlap time.Duration, actor string) (string, *till.Key, error) {
	if overlap < 0 || overlap > MaxOverlap {
		return "", nil, invalid(till.FieldError{
			Pointer: "/overlap_seconds", Code: till.FieldInvalidFormat,
			Detail: "The overlap is from 0 to " + strconv.Itoa(int(MaxOverlap/time.Second)) + " seconds.",
		})
	}
	text, before, err := a.generateKey(ctx, &key, seed)
	if err != nil || before != nil {
		return text, before, err
	}
	defer a.cache.forget(key.ClientID)
	err = a.commit(ctx, func(tx *store.Tx) error {
		return a.audited(ctx, tx, key.ClientID, actor, func(at till.Time) (auditEntry, error) {
			was, err := rotate(ctx, tx, &key, overlap, at)
			return auditEntry{action: "key.rotate", detail: was + " into " + describeKey(&key) + ", overlap " + overlap.String()}, err
		})
	}, func(tx *store.Tx) (bool, error) { return keyExists(ctx, tx, &key) })
	if err != nil {
		return "", nil, err
	}
	return text, &key, nil
}

// rotate writes both keys and describes the old one. With an overlap of 0 the number of
// active keys stays the same, so an emergency rotation is never rejected because of the
// limit.
func rotate(ctx context.Context, tx *store.Tx, key *till.Key, overlap time.Duration, at till.Time) (was string, err error) {
	old, err := access.Key(ctx, tx, key.ClientID, key.Replaces)
	if err != nil {
		return "", err
	}
	if !old.Active(at) {
		return "", till.Errorf(till.CodeKeyNotFound, "There is no such active key.")
	}
	successors, err := access.Successors(ctx, tx, key.ClientID, old.ID)
	if err != nil {
		return "", err
	}
	if len(successors) > 0 {
		return "", invalid(till.FieldError{Code: till.FieldTooMany, Detail: "The key has a successor already, key " + successors[0].ID + ": rotate that one, or revoke it first."})
	}
	if overlap > 0 {
		if err := checkKeyLimit(ctx, tx, key.ClientID); err != nil {
			return "", err
		}
	}
	was = describeKey(old)
	key.Name, key.Scopes, key.CreatedAt, key.ExpiresAt = old.Name, old.Scopes, at, old.ExpiresAt
	if err := capExpiryAtMaker(ctx, tx, key, at); err != nil {
		return "", err
	}
	if end := at.Add(overlap); old.ExpiresAt.IsZero() || end < old.ExpiresAt {
		old.ExpiresAt = end
	}
	if err := access.UpdateKey(ctx, tx, old); err != nil {
		return "", err
	}
	return was, access.InsertKey(ctx, tx, key)
}

// describeKey describes a key in audit rows, with its scopes and expiry.
func describeKey(k *till.Key) string {
	text := "key " + k.ID + ", scopes"
	for _, scope := range k.Scopes {
		text += " " + string(scope)
	}
	if !k.ExpiresAt.IsZero() {
		text += ", expires " + k.ExpiresAt.String()
	}
	return text
}

// Where a key was seen that should not be there; see FlagExposed.
const (
	SeenInURL    = "was seen in a URL"
	SeenInSearch = "was typed into a search"
)

// FlagExposed records that a key was seen where others may read it, so that its owner is
// asked to rotate it. It ignores a text that is not a genuine key: nobody can flag
// another's key. Without an actor, the audit log names the key itself.
func (a *Accounts) FlagExposed(ctx context.Context, text, seen, actor string) (genuine bool, err error) {
	_, id, secret, ok := ParseKey(text)
	if !ok {
		return false, nil
	}
	e, err := a.lookup(ctx, id, secret, false)
	if err != nil || !e.matches(secret) {
		return false, err
	}
	if !e.session.Key.ExposedAt.IsZero() {
		return true, nil
	}
	client := e.session.Client.ID
	defer a.cache.forget(client)
	return true, a.commit(ctx, func(tx *store.Tx) error {
		return a.audited(ctx, tx, client, cmp.Or(actor, e.session.Actor()), func(at till.Time) (auditEntry, error) {
			k, err := access.Key(ctx, tx, client, e.session.Key.ID)
			if err != nil || !k.ExposedAt.IsZero() {
				return auditEntry{}, err
			}
			k.ExposedAt = at
			return auditEntry{action: "key.exposed", detail: "key " + k.ID + " " + seen}, access.UpdateKey(ctx, tx, k)
		})
	}, func(tx *store.Tx) (bool, error) { return false, nil }) // repeating it is harmless
}

func keyExists(ctx context.Context, tx *store.Tx, key *till.Key) (bool, error) {
	k, err := access.Key(ctx, tx, key.ClientID, key.ID)
	if till.ErrorCode(err) == till.CodeKeyNotFound {
		return false, nil
	}
	return err == nil && k.SecretHash == key.SecretHash, err
}

// checkKeyLimit rejects one more key for a client with maxKeys.
func checkKeyLimit(ctx context.Context, tx *store.Tx, client till.ID) error {
	n, err := access.CountActiveKeys(ctx, tx, client)
	if err == nil && n >= maxKeys {
		return invalid(till.FieldError{Code: till.FieldTooMany, Detail: "There are " + strconv.Itoa(maxKeys) + " active keys already; revoke one first."})
	}
	return err
}

// CheckKey returns all mistakes of a key to create, like CreateKey.
func (a *Accounts) CheckKey(name string, scopes []till.Scope, expires till.Time) []till.FieldError {
	var fields []till.FieldError
	if name != "" {
		fields = checkName("/name", name, maxKeyName)
	}
	if len(scopes) == 0 {
		fields = append(fields, till.FieldError{Pointer: "/scopes", Code: till.FieldRequired, Detail: "Name at least one scope, or leave scopes out."})
	}
	if len(scopes) > len(till.Scopes) {
		return append(fields, till.FieldError{Pointer: "/scopes", Code: till.FieldTooMany, Detail: "There are not so many scopes."})
	}
	for i, s := range scopes {
		if !s.Valid() {
			fields = append(fields, till.FieldError{Pointer: scopePointer(i), Code: till.FieldInvalidFormat, Detail: noSuchScope})
		}
	}
	if !expires.IsZero() && expires <= a.store.Now() {
		fields = append(fields, till.FieldError{Pointer: "/expires_at", Code: till.FieldInvalidFormat, Detail: "The expiry must be in the future."})
	}
	return fields
}

var noSuchScope = func() string {
	names := make([]string, len(till.Scopes))
	for i, s := range till.Scopes {
		names[i] = string(s)
	}
	return "There is no such scope; there are " + strings.Join(names, ", ") + "."
}()

func scopePointer(i int) string { return "/scopes/" + strconv.Itoa(i) }

// sortScopes returns the scopes once each, in the order of till.Scopes.
func sortScopes(scopes []till.Scope) []till.Scope {
	out := make([]till.Scope, 0, len(scopes))
	for _, s := range till.Scopes {
		if slices.Contains(scopes, s) {
			out = append(out, s)
		}
	}
	return out
}
