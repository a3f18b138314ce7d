package account

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"till"
	"till/store"
	"till/store/access"
)

// maxName is the longest name of a client, in characters.
const maxName = 255

// CreateClient creates a client with its default key and the wallets of its methods. A test
// client has all methods of the sandbox, a live one none yet. The text of the key is
// returned only here. It returns CodeValidationFailed for a bad name or mode.
func (a *Accounts) CreateClient(ctx context.Context, name string, mode till.Mode, actor string) (*till.Client, string, error) {
	if fields := checkName("/name", name, maxName); fields != nil {
		return nil, "", invalid(fields...)
	}
	if mode != till.Test && mode != till.Live {
		return nil, "", invalid(till.FieldError{Pointer: "/mode", Code: till.FieldInvalidFormat, Detail: "The mode is test or live."})
	}
	now := a.store.Now()
	c := &till.Client{ID: till.NewID(now), Name: name, Mode: mode, CreatedAt: now}
	text, key := NewKey(mode)
	key.ClientID, key.Name, key.Scopes = c.ID, "default", till.DefaultScopes

	err := a.commit(ctx, func(tx *store.Tx) error {
		if err := tx.InsertClient(ctx, c); err != nil {
			return err
		}
		return a.audited(ctx, tx, c.ID, actor, func(at till.Time) (auditEntry, error) {
			if mode == till.Test {
				for _, m := range till.Methods() {
					if err := ensureWallets(ctx, tx, c, m, at); err != nil {
						return auditEntry{}, err
					}
				}
			}
			key.CreatedAt = at
			return auditEntry{action: "client.create", detail: string(mode) + " client with " + describeKey(&key)}, access.InsertKey(ctx, tx, &key)
		})
	}, func(tx *store.Tx) (bool, error) { return clientExists(ctx, tx, c.ID) })
	if err != nil {
		return nil, "", err
	}
	return c, text, nil
}

func clientExists(ctx context.Context, tx *store.Tx, id till.ID) (bool, error) {
	_, err := tx.Client(ctx, id)
	if till.ErrorCode(err) == till.CodeClientNotFound {
		return false, nil
	}
	return err == nil, err
}

// Clients returns up to limit clients with ids after the given one, by id.
func (a *Accounts) Clients(ctx context.Context, after till.ID, limit int) (out []*till.Client, err error) {
	err = a.store.View(ctx, func(tx *store.Tx) error {
		out, err = tx.Clients(ctx, after, limit)
		return err
	})
	return out, err
}

// Suspend locks a client out until Resume, and holds its unsent payouts and payments. It
// returns CodeClientNotFound.
func (a *Accounts) Suspend(ctx context.Context, id till.ID, actor string) error {
	return a.setSuspended(ctx, id, true, actor)
}

// Resume readmits a suspended client and releases what Suspend held. It returns
// CodeClientNotFound. It may be repeated.
func (a *Accounts) Resume(ctx context.Context, id till.ID, actor string) error {
	if err := a.setSuspended(ctx, id, false, actor); err != nil {
		return err
	}
	return a.store.HastenHeld(ctx, id)
}

func (a *Accounts) setSuspended(ctx context.Context, id till.ID, suspended bool, actor string) error {
	action := "client.resume"
	if suspended {
		action = "client.suspend"
	}
	defer a.cache.forget(id)
	return a.commit(ctx, func(tx *store.Tx) error {
		return a.audited(ctx, tx, id, actor, func(till.Time) (auditEntry, error) {
			if err := tx.SetSuspended(ctx, id, suspended); err != nil || !suspended {
				return auditEntry{action: action}, errors.Join(err, tx.ReleasePayouts(ctx, id, store.HoldSuspended))
			}
			return auditEntry{action: action}, tx.HoldPayouts(ctx, store.Hold{Client: id, Cause: store.HoldSuspended, By: actor})
		})
	}, func(tx *store.Tx) (bool, error) {
		c, err := tx.Client(ctx, id)
		return err == nil && c.Suspended == suspended, err
	})
}

// EnableMethod enables or disables a method for a client. It creates the wallets of the
// method's currencies before money can come in. It returns CodeClientNotFound, or
// CodeValidationFailed for a method that does not exist or that a test client would lose.
func (a *Accounts) EnableMethod(ctx context.Context, id till.ID, code string, enabled bool, actor string) error {
	m, known := till.MethodOf(code)
	if !known && enabled {
		return invalid(unknownMethod())
	}
	action := "method.disable"
	if enabled {
		action = "method.enable"
	}
	defer a.cache.forget(id)
	return a.commit(ctx, func(tx *store.Tx) error {
		c, err := tx.Client(ctx, id)
		if err != nil {
			return err
		}
		if !known { // perhaps a method that was removed from the configuration
			have, err := tx.ClientMethods(ctx, id)
			if err != nil {
				return err
			}
			if !slices.Contains(have, code) {
				return invalid(unknownMethod())
			}
		}
		if c.Mode == till.Test && !enabled {
			return till.Errorf(till.CodeValidationFailed, "A test client always has every method.")
		}
		return a.audited(ctx, tx, id, actor, func(at till.Time) (auditEntry, error) {
			if enabled {
				if err := ensureWallets(ctx, tx, c, m, at); err != nil {
					return auditEntry{}, err
				}
			}
			return auditEntry{action: action, detail: code}, tx.SetClientMethod(ctx, id, code, enabled)
		})
	}, func(tx *store.Tx) (bool, error) { return false, nil }) // repeating it is harmless
}

// ensureWallets creates the wallets of a method's markets; for a test client, only of those
// that the sandbox serves.
func ensureWallets(ctx context.Context, tx *store.Tx, c *till.Client, m *till.Method, at till.Time) error {
	for _, k := range m.Markets {
		if c.Mode == till.Test && !k.Sandbox {
			continue
		}
		if err := tx.EnsureWallet(ctx, c.ID, k.Currency, at); err != nil {
			return err
		}
	}
	return nil
}

// unknownMethod is the mistake of naming an unknown method.
func unknownMethod() till.FieldError {
	var codes []string
	for _, m := range till.Methods() {
		codes = append(codes, m.Code)
	}
	slices.Sort(codes)
	return till.FieldError{Pointer: "/method", Code: till.FieldUnknownMethod,
		Detail: "There is no such method; there are " + strings.Join(codes, ", ") + ". One that the configuration adds is known where that is read."}
}

// auditEntry is an audit row's action and detail; also has further rows of the
// same change.
type auditEntry struct {
	action, detail string
	also           []auditEntry
}

// audited runs f with the client's head locked and appends the audit rows that f
// returns. It returns CodeClientNotFound if there is no such client.
func (a *Accounts) audited(ctx context.Context, tx *store.Tx, client till.ID, actor string, f func(at till.Time) (auditEntry, error)) error {
	heads, err := tx.LockHeads(ctx, []till.ID{client})
	if err != nil {
		return err
	}
	head := heads[client]
	if head == nil {
		return till.Errorf(till.CodeClientNotFound, "There is no such client.")
	}
	at := head.NextTime()
	what, err := f(at)
	if err != nil || what.action == "" {
		return err
	}
	var rows []*store.AuditRow
	for i, d := range append([]auditEntry{what}, what.also...) {
		if i > 0 {
			at = head.NextTime() // no two rows have the same time
		}
		rows = append(rows, &store.AuditRow{
			ClientID: client, Sequence: head.NextAudit(), At: at,
			Actor: actor, Action: d.action, SubjectID: client, Detail: d.detail,
		})
	}
	if err := tx.InsertAudit(ctx, rows); err != nil {
		return err
	}
	var counts store.CounterDelta
	for _, row := range rows {
		counts.AddStored(client, at, row.Size())
	}
	if err := tx.AddCounts(ctx, &counts); err != nil {
		return err
	}
	return tx.SaveHeads(ctx, heads)
}

// commit runs f. After an unknown commit, done reads whether it happened, and f runs again
// if not.
func (a *Accounts) commit(ctx context.Context, f func(tx *store.Tx) error, done func(tx *store.Tx) (bool, error)) error {
	err := a.store.Update(ctx, f)
	if !errors.Is(err, store.ErrUnknownCommit) {
		return err
	}
	happened := false
	if viewErr := a.store.View(ctx, func(tx *store.Tx) (err error) { happened, err = done(tx); return err }); viewErr != nil {
		return err
	}
	if happened {
		return nil
	}
	return a.store.Update(ctx, f)
}

// invalid returns the error for a body with mistakes.
func invalid(fields ...till.FieldError) *till.Error {
	return &till.Error{Code: till.CodeValidationFailed, Detail: "Some fields are missing or wrong.", Fields: fields}
}

// checkName returns the mistakes of a name of 1 to longest characters.
func checkName(pointer, name string, longest int) []till.FieldError {
	switch {
	case name == "":
		return []till.FieldError{{Pointer: pointer, Code: till.FieldInvalidFormat, Detail: "The name must not be empty."}}
	case utf8.RuneCountInString(name) > longest:
		return []till.FieldError{{Pointer: pointer, Code: till.FieldTooLong, Detail: "The name has at most " + strconv.Itoa(longest) + " characters."}}
	}
	for _, r := range name {
		if !unicode.IsPrint(r) {
			return []till.FieldError{{Pointer: pointer, Code: till.FieldInvalidFormat, Detail: "The name must be plain text on one line."}}
		}
	}
	return nil
}
