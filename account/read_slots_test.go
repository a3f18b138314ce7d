package account

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"till"
)

// A known key does not wait for reads on behalf of others, not even for one of the
// same key id with a wrong secret, and not when it has to be read again.
func TestKnownKeysNeverWaitBehindUnknownOnes(t *testing.T) {
	t.Parallel()
	a := newAccounts(t)
	_, good := newClient(t, a, till.Test)
	if _, err := a.Authenticate(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	_, id, secret, _ := ParseKey(good)
	stuck, _ := a.cache.shareRead(id + unknownSuffix) // a read that does not end
	defer a.cache.endRead(id+unknownSuffix, stuck)
	a.now = func() time.Time { return time.Now().Add(time.Minute) } // what was read is too old
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for name, open := range map[string]func(context.Context, string) (*Session, error){"cached": a.Authenticate, "now": a.AuthenticateNow} {
		if _, err := open(ctx, good); err != nil {
			t.Errorf("a known key, %s, behind invented ones: %v", name, err)
		}
	}
	// A stranger that knows the public id joins no read of the owner, nor the
	// other way round.
	if _, known := a.knownKeys.find(id, strings.Repeat("A", secretLen)); known {
		t.Error("a wrong secret counts as known")
	}
	if _, known := a.knownKeys.find(id, secret); !known {
		t.Error("a key that opened a session is a stranger")
	}
}

// A client whose slot does not become free in time gets 503, in words that do not
// blame the database.
func TestAClientWhoseSlotDoesNotBecomeFreeBlamesNobody(t *testing.T) {
	t.Parallel()
	a := newAccounts(t)
	leave, err := a.readSlots.acquire(t.Context(), till.ID{1})
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.readSlots.acquire(ctx, till.ID{1}); till.ErrorCode(err) != till.CodeServiceUnavailable {
		t.Errorf("got %v", err)
	}
}

// One client that has its key read again and again has one read under way,
// and others go past it.
func TestOneClientsFreshReadsDoNotSlowAnothers(t *testing.T) {
	t.Parallel()
	a := newAccounts(t)
	c, flood := newClient(t, a, till.Test)
	_, good := newClient(t, a, till.Test)
	for _, key := range []string{flood, good} {
		if _, err := a.AuthenticateNow(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	leave, err := a.readSlots.acquire(t.Context(), c.ID) // a read of the flood that takes long
	if err != nil {
		t.Fatal(err)
	}
	var others sync.WaitGroup
	errs := make(chan error, 50)
	for range 50 {
		others.Go(func() { _, err := a.AuthenticateNow(t.Context(), flood); errs <- err })
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 20 {
		if _, err := a.AuthenticateNow(ctx, good); err != nil {
			t.Fatal("behind another client's reads: ", err)
		}
	}
	leave()
	others.Wait()
	for range 50 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if n := a.readSlots.clients.Len(); n != 0 {
		t.Errorf("%d turns are kept of nobody", n)
	}
}

// A key that has ended is a stranger from its first refusal on.
func TestAnEndedKeyIsAStranger(t *testing.T) {
	t.Parallel()
	a := newAccounts(t)
	c, text := newClient(t, a, till.Test)
	if _, err := a.Authenticate(t.Context(), text); err != nil {
		t.Fatal(err)
	}
	client, id, known := a.KnownKey(text)
	if !known || client != c.ID {
		t.Fatal("a key that opened a session is not known")
	}
	if _, err := a.RevokeKey(t.Context(), c.ID, id, false, "a test"); err != nil {
		t.Fatal(err)
	}
	_, err := a.Authenticate(t.Context(), text)
	if k, ended := EndedKey(err); !ended || k.ID != id || till.ErrorCode(err) != till.CodeInvalidKey || err.Error() != errInvalidKey.Error() {
		t.Errorf("got %v", err)
	}
	if _, _, known := a.KnownKey(text); known {
		t.Error("it is still known")
	}
	if _, err := a.Authenticate(t.Context(), forge(till.Test, id, strings.Repeat("A", secretLen))); err != errInvalidKey {
		t.Errorf("a wrong secret of an ended key: %v", err)
	}
}

func TestSeenKeysAreBounded(t *testing.T) {
	t.Parallel()
	var s knownKeys
	s.init()
	for n := range 2 * maxKnownKeys {
		s.add(&till.Key{ID: fmt.Sprint(n)})
	}
	if n := len(s.keys); n != maxKnownKeys {
		t.Errorf("%d keys are held", n)
	}
}
