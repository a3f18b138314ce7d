package account

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"till"
	"till/store"
	"till/store/access"
)

// Session is a client that has shown a valid key. Requests share it; it never changes.
type Session struct {
	Client *till.Client
	Key    *till.Key

	Stored int64 // bytes that a test client has stored, as far as they are counted

	methods []string // of a live client; a test client has those of the sandbox
	fees    []till.Fee
}

// Enabled reports whether the client may use the method.
func (s *Session) Enabled(code string) bool {
	if s.Client.Mode == till.Test {
		m, ok := till.MethodOf(code)
		return ok && m.InSandbox()
	}
	return slices.Contains(s.methods, code)
}

// Actor returns the name of this key's holder in the audit log.
func (s *Session) Actor() string { return "api:" + s.Key.ID }

// CheckGrant returns a mistake for each scope that the key cannot grant because it lacks
// it.
func (s *Session) CheckGrant(scopes []till.Scope) []till.FieldError {
	var fields []till.FieldError
	for i, scope := range scopes {
		if scope.Valid() && !s.Key.Allows(scope) {
			fields = append(fields, till.FieldError{
				Pointer: scopePointer(i), Code: till.FieldScopeNotGranted,
				Detail: "The key that asks does not have this scope itself.",
			})
		}
	}
	return fields
}

// Accounts opens sessions and changes accounts. It is safe for concurrent use.
type Accounts struct {
	store *store.Store
	log   *slog.Logger
	now   func() time.Time // for the age of cached sessions; tests replace it

	cache     cache
	lastUse   lastUse
	knownKeys knownKeys
	readSlots readSlots
}

// New returns the accounts of a database. A nil log is silent.
func New(s *store.Store, log *slog.Logger) *Accounts {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	a := &Accounts{store: s, log: log, now: time.Now}
	a.cache.init()
	a.lastUse.init()
	a.knownKeys.init()
	a.readSlots.init()
	return a
}

// errInvalidKey is the one answer to an invalid key, whatever is wrong with it.
var errInvalidKey = &till.Error{Code: till.CodeInvalidKey, Detail: "The API key is not valid."}

// endedError is errInvalidKey for a genuine key that was revoked or has expired. The client
// does not see the difference.
type endedError struct{ key *till.Key }

func (*endedError) Error() string { return errInvalidKey.Error() }
func (*endedError) Unwrap() error { return errInvalidKey }

// EndedKey returns the genuine key that has ended, if an error of Authenticate is about
// one. It is for the log, never for an answer.
func EndedKey(err error) (*till.Key, bool) {
	var ended *endedError
	if errors.As(err, &ended) {
		return ended.key, true
	}
	return nil, false
}

// Authenticate returns a key's session, from data that is at most one second old. It
// returns CodeInvalidKey for an invalid key. A suspended client has a session; the caller
// decides what it may do.
func (a *Accounts) Authenticate(ctx context.Context, text string) (*Session, error) {
	return a.authenticate(ctx, text, false)
}

// AuthenticateNow is Authenticate with a read of the database.
func (a *Accounts) AuthenticateNow(ctx context.Context, text string) (*Session, error) {
	return a.authenticate(ctx, text, true)
}

func (a *Accounts) authenticate(ctx context.Context, text string, fresh bool) (*Session, error) {
	mode, id, secret, ok := ParseKey(text)
	if !ok {
		return nil, errInvalidKey
	}
	e, err := a.lookup(ctx, id, secret, fresh)
	if err != nil {
		return nil, err
	}
	now := a.store.Now()
	if !e.matches(secret) || e.session.Client.Mode != mode {
		return nil, errInvalidKey
	}
	if !e.session.Key.Active(now) {
		a.knownKeys.remove(id)
		return nil, &endedError{e.session.Key}
	}
	a.knownKeys.add(e.session.Key)
	a.noteUse(e, now)
	return e.session, nil
}

// noKeyHash is compared with if there is no such key, so that an unknown id takes as long
// as a wrong secret. Nothing hashes to it.
var noKeyHash [32]byte

// matches reports whether the secret belongs to the entry's key.
func (e *entry) matches(secret string) bool {
	want := &noKeyHash
	if e.session != nil {
		want = &e.session.Key.SecretHash
	}
	got := hashSecret(secret)
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1 && e.session != nil
}

// lookup returns what is known about a key id: from the cache unless fresh is
// asked for. One caller in the second half of an entry's life reads it again
// while the others use it, so that a busy key never causes a queue. That caller must
// have the secret: the lookup of an unknown key may take long.
func (a *Accounts) lookup(ctx context.Context, id, secret string, fresh bool) (*entry, error) {
	client, known := a.knownKeys.find(id, secret)
	if !known {
		client = till.ID{}
	}
	if fresh {
		return a.read(ctx, id, client)
	}
	e := a.cache.get(id)
	if e == nil {
		return a.readOnce(ctx, id, client)
	}
	age := a.now().Sub(e.readAt)
	switch {
	case age >= maxAge:
		return a.readOnce(ctx, id, client)
	case age < maxAge/2 || !known || !e.renewing.CompareAndSwap(false, true):
		return e, nil
	}
	newer, err := a.read(ctx, id, client)
	if err != nil {
		return e, nil // still valid for the rest of its second
	}
	return newer, nil
}

// unknownSuffix separates reads of a key id by callers without a known secret from those by
// callers with one.
const unknownSuffix = " unknown"

// readOnce is read for many callers at once: one reads, the others wait for its
// result. Callers with an unknown key share only each other's reads.
func (a *Accounts) readOnce(ctx context.Context, id string, client till.ID) (*entry, error) {
	name := id
	if client.IsZero() {
		name += unknownSuffix
	}
	r, mine := a.cache.shareRead(name)
	if !mine {
		select {
		case <-r.done:
			return r.entry, r.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	defer a.cache.endRead(name, r)
	r.err = errReadAborted // what the others get if read panics
	r.entry, r.err = a.read(ctx, id, client)
	return r.entry, r.err
}

var errReadAborted = errors.New("account: the read of a key was aborted")

// readTimeout is how long a request waits for its key to be read.
const readTimeout = 5 * time.Second

// read reads a key, its client, its methods and its fees in one snapshot. A read that
// began after this call will do instead, so a client with many calls at once causes few
// reads. client is zero if the key has not opened a session here.
func (a *Accounts) read(ctx context.Context, id string, client till.ID) (*entry, error) {
	asked := a.now()
	// Others may wait for this read, so it outlives a caller that disconnects.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
	defer cancel()
	leave, err := a.readSlots.acquire(ctx, client)
	if err != nil {
		return nil, err
	}
	defer leave()
	if e := a.cache.get(id); e != nil && e.readAt.After(asked) {
		return e, nil
	}
	if err := a.store.CheckNode(ctx, client); err != nil {
		return nil, err // a caller on an unreachable node must not keep the others' readers busy
	}
	e := &entry{}
	err = a.store.View(a.store.Brief(ctx), func(tx *store.Tx) error {
		e.readAt, e.session = a.now(), nil
		owner, found, err := access.KeyOwner(ctx, tx, id)
		if err != nil || !found {
			return err
		}
		s := &Session{}
		if s.Key, err = access.Key(ctx, tx, owner, id); err != nil {
			return err
		}
		if err = s.readClient(ctx, tx, owner); err != nil {
			return err
		}
		e.session = s
		return nil
	})
	if err != nil {
		return nil, err
	}
	if e.session != nil {
		e.lastUseMinute.Store(int64(e.session.Key.LastUsedAt))
	}
	a.cache.put(id, e)
	return e, nil
}

// readClient reads a client, its methods and its fees.
func (s *Session) readClient(ctx context.Context, tx *store.Tx, id till.ID) (err error) {
	if s.Client, err = tx.Client(ctx, id); err != nil {
		return err
	}
	if s.Client.Mode == till.Live {
		if s.methods, err = tx.ClientMethods(ctx, id); err != nil {
			return err
		}
	}
	if s.Client.Mode == till.Test {
		if s.Stored, err = tx.Stored(ctx, id); err != nil {
			return err
		}
	}
	s.fees, err = tx.ClientFees(ctx, id)
	return err
}

// Open returns a session of a client without a key, for a person who acts for
// it. It has no Key.
func (a *Accounts) Open(ctx context.Context, client till.ID) (*Session, error) {
	s := &Session{}
	err := a.store.View(ctx, func(tx *store.Tx) error { return s.readClient(ctx, tx, client) })
	return s, err
}

// CheckTestQuota returns the error for a test client that has used up its
// storage, nil for all others; 0 means no limit. Anyone can have a test client,
// and nothing pays for the storage. What exists goes on: payments end, events
// are delivered, replays are answered, and what frees storage is allowed.
func (s *Session) CheckTestQuota(limit int64) error {
	if limit == 0 || s.Client.Mode != till.Test || s.Stored < limit {
		return nil
	}
	return &till.Error{Code: till.CodeValidationFailed, Fields: []till.FieldError{{Code: till.FieldTooMany, Detail: fmt.Sprintf(
		"This test client has stored the %d MiB that it may. Ask whoever runs this service for another one. Payments and payouts that exist go on.", limit>>20)}}}
}
