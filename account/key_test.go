package account

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"till"
	"till/store"
	"till/store/access"
)

func TestKeyText(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 1000 {
		for _, mode := range []till.Mode{till.Test, till.Live} {
			text, key := NewKey(mode)
			gotMode, id, secret, ok := ParseKey(text)
			if !ok || gotMode != mode || id != key.ID || hashSecret(secret) != key.SecretHash {
				t.Fatalf("ParseKey(%s) = %s %s %v", text, gotMode, id, ok)
			}
			if !strings.HasPrefix(text, "till_"+string(mode)+"_") || len(id) != 12 || len(secret) != 43 {
				t.Fatalf("the form of %s", text)
			}
			if seen[id] || seen[secret] {
				t.Fatal("drawn twice")
			}
			seen[id], seen[secret] = true, true
		}
	}
}

func TestChecksumIsCRC32(t *testing.T) {
	t.Parallel()
	text, _ := NewKey(till.Live)
	body, sum := text[:len(text)-6], text[len(text)-6:]
	var n uint64
	for i := range len(sum) {
		n = n*62 + uint64(strings.IndexByte(base62, sum[i]))
	}
	if want := uint64(crc32.ChecksumIEEE([]byte(body))); n != want {
		t.Errorf("got %d, want %d", n, want)
	}
}

func TestTextsThatAreNoKeys(t *testing.T) {
	t.Parallel()
	text, _ := NewKey(till.Test)
	bad := []string{
		"", "till_test_", text[:len(text)-1], text + "0", " " + text, strings.ToUpper(text),
		strings.Replace(text, "test", "live", 1), // the checksum covers the mode
		strings.Replace(text, "till_", "tall_", 1),
		strings.Repeat("0", len(text)),
	}
	for i := range len(text) { // any one character changed
		c := byte('0')
		if text[i] == '0' {
			c = '1'
		}
		bad = append(bad, text[:i]+string(c)+text[i+1:])
	}
	for _, s := range bad {
		if _, _, _, ok := ParseKey(s); ok {
			t.Errorf("ParseKey(%q) is a key", s)
		}
	}
}

// forge returns a key with a right checksum that nobody gave out.
func forge(mode till.Mode, id, secret string) string {
	body := "till_" + string(mode) + "_" + id + "_" + secret
	return body + checksum(body)
}

func TestAllBadKeysGetOneAnswer(t *testing.T) {
	t.Parallel()
	a := newAccounts(t)
	_, text := newClient(t, a, till.Test)
	_, id, secret, _ := ParseKey(text)
	for name, key := range map[string]string{
		"nonsense":    "nonsense",
		"unknown id":  forge(till.Test, strings.Repeat("A", idLen), secret),
		"wrong":       forge(till.Test, id, strings.Repeat("A", secretLen)),
		"other mode":  forge(till.Live, id, secret),
		"all nothing": forge(till.Test, strings.Repeat("0", idLen), strings.Repeat("0", secretLen)),
	} {
		for range 2 { // from the database, then from the cache
			_, err := a.Authenticate(t.Context(), key)
			if !errors.Is(err, errInvalidKey) {
				t.Errorf("%s: got %v", name, err)
			}
		}
	}
}

func TestOneReadServesManyCallers(t *testing.T) {
	t.Parallel()
	a := newAccounts(t)
	_, text := newClient(t, a, till.Test)
	var wg sync.WaitGroup
	sessions := make([]*Session, 64)
	for i := range sessions {
		wg.Go(func() {
			s, err := a.Authenticate(t.Context(), text)
			if err != nil {
				t.Error(err)
			}
			sessions[i] = s
		})
	}
	wg.Wait()
	distinct := map[*Session]bool{}
	for _, s := range sessions {
		distinct[s] = true
	}
	if len(distinct) > 4 {
		t.Errorf("%d reads for 64 callers", len(distinct))
	}
}

func TestTheCacheIsBoundedAndKeepsRealKeys(t *testing.T) {
	t.Parallel()
	var c cache
	c.init()
	now := time.Now()
	genuine := &Session{Client: &till.Client{}, Key: &till.Key{}}
	c.put("real", &entry{session: genuine, readAt: now})
	for i := range 3 * maxEntries {
		c.put(fmt.Sprintf("%c%d", base62[i%62], i), &entry{readAt: now})
	}
	if n := size(&c); n > maxEntries {
		t.Errorf("%d entries", n)
	}
	if c.get("real") == nil {
		t.Error("invented keys pushed a real one out")
	}
	for i := range 3 * maxEntries {
		c.put(fmt.Sprintf("%c%d", base62[i%62], i), &entry{session: genuine, readAt: now})
	}
	if n := size(&c); n > maxEntries {
		t.Errorf("%d entries", n)
	}
	c.put("rlate", &entry{readAt: now.Add(2 * maxAge)})
	if c.get("rlate") == nil {
		t.Error("old entries were not dropped for a new one")
	}
}

func size(c *cache) (n int) {
	for i := range c.shards {
		n += len(c.shards[i].entries)
	}
	return n
}

func TestRotation(t *testing.T) {
	t.Parallel()
	a := newAccounts(t)
	c, oldText := newClient(t, a, till.Test)
	old, err := a.Authenticate(t.Context(), oldText)
	if err != nil {
		t.Fatal(err)
	}
	newText, key, err := a.RotateKey(t.Context(), c.ID, old.Key.ID, time.Hour, old.Actor())
	if err != nil {
		t.Fatal(err)
	}
	if key.Name != old.Key.Name || !cmp.Equal(key.Scopes, old.Key.Scopes) || !key.ExpiresAt.IsZero() {
		t.Errorf("the new key is %+v", key)
	}
	for name, text := range map[string]string{"old": oldText, "new": newText} {
		if _, err := a.AuthenticateNow(t.Context(), text); err != nil {
			t.Errorf("the %s key during the overlap: %v", name, err)
		}
	}
	stored := read(t, a, func(ctx context.Context, tx *store.Tx) (*till.Key, error) {
		return access.Key(ctx, tx, c.ID, old.Key.ID)
	})
	if left := stored.ExpiresAt.Sub(a.store.Now()); left > time.Hour || left < 59*time.Minute {
		t.Errorf("the old key ends in %v", left)
	}

	// After a leak: the old one ends at once, whatever overlap it had. It has
	// a successor, so it is not rotated a second time.
	_, _, err = a.RotateKey(t.Context(), c.ID, old.Key.ID, 0, "Ada")
	wantCode(t, err, till.CodeValidationFailed)
	if _, err := a.RevokeKey(t.Context(), c.ID, old.Key.ID, false, "Ada"); err != nil {
		t.Fatal(err)
	}
	_, err = a.Authenticate(t.Context(), oldText)
	wantCode(t, err, till.CodeInvalidKey)
	_, _, err = a.RotateKey(t.Context(), c.ID, old.Key.ID, 0, "Ada")
	wantCode(t, err, till.CodeKeyNotFound)

	_, _, err = a.RotateKey(t.Context(), c.ID, key.ID, MaxOverlap+1, "Ada")
	wantCode(t, err, till.CodeValidationFailed)
	_, _, err = a.RotateKey(t.Context(), c.ID, key.ID, -1, "Ada")
	wantCode(t, err, till.CodeValidationFailed)
	_, _, err = a.RotateKey(t.Context(), c.ID, "nobodysKey00", 0, "Ada")
	wantCode(t, err, till.CodeKeyNotFound)
	if diff := cmp.Diff(actions(t, a, c.ID), []string{"client.create", "key.rotate", "key.revoke"}); diff != "" {
		t.Errorf("audit (-got +want):\n%s", diff)
	}
}

func TestRotationLengthensNobodysAccess(t *testing.T) {
	t.Parallel()
	a := newAccounts(t)
	c, _ := newClient(t, a, till.Test)
	end := a.store.Now().Add(time.Hour)
	_, k, err := a.CreateKey(t.Context(), c.ID, "", []till.Scope{till.PaymentsRead}, end, "Ada")
	if err != nil {
		t.Fatal(err)
	}
	_, newer, err := a.RotateKey(t.Context(), c.ID, k.ID, MaxOverlap, "Ada")
	if err != nil {
		t.Fatal(err)
	}
	stored := read(t, a, func(ctx context.Context, tx *store.Tx) (*till.Key, error) { return access.Key(ctx, tx, c.ID, k.ID) })
	if newer.ExpiresAt != end || stored.ExpiresAt != end {
		t.Errorf("old ends %v, new ends %v, want both %v", stored.ExpiresAt, newer.ExpiresAt, end)
	}
}

func TestAnotherClientsKeyIsNotFound(t *testing.T) {
	t.Parallel()
	a := newAccounts(t)
	mine, _ := newClient(t, a, till.Test)
	_, text := newClient(t, a, till.Test)
	s, err := a.Authenticate(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.RevokeKey(t.Context(), mine.ID, s.Key.ID, false, "Ada")
	wantCode(t, err, till.CodeKeyNotFound)
	_, _, err = a.RotateKey(t.Context(), mine.ID, s.Key.ID, 0, "Ada")
	wantCode(t, err, till.CodeKeyNotFound)
	if _, err := a.AuthenticateNow(t.Context(), text); err != nil {
		t.Errorf("another client's key was touched: %v", err)
	}
}

func TestRevokingTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	a := newAccounts(t)
	c, _ := newClient(t, a, till.Test)
	_, k, err := a.CreateKey(t.Context(), c.ID, "", nil, 0, "Ada")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := a.RevokeKey(t.Context(), c.ID, k.ID, false, "Ada"); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(actions(t, a, c.ID), []string{"client.create", "key.create", "key.revoke"}); diff != "" {
		t.Errorf("audit (-got +want):\n%s", diff)
	}
}

func TestBadKeysAreRefused(t *testing.T) {
	t.Parallel()
	a := newAccounts(t)
	c, _ := newClient(t, a, till.Test)
	for name, k := range map[string]struct {
		name    string
		scopes  []till.Scope
		expires till.Time
		want    till.FieldError
	}{
		"a long name":      {strings.Repeat("n", maxKeyName+1), nil, 0, till.FieldError{Pointer: "/name", Code: till.FieldTooLong}},
		"a name with NUL":  {"a\x00b", nil, 0, till.FieldError{Pointer: "/name", Code: till.FieldInvalidFormat}},
		"no scope":         {"", []till.Scope{}, 0, till.FieldError{Pointer: "/scopes", Code: till.FieldRequired}},
		"an unknown scope": {"", []till.Scope{till.PaymentsRead, "payments:all"}, 0, till.FieldError{Pointer: "/scopes/1", Code: till.FieldInvalidFormat}},
		"many scopes":      {"", make([]till.Scope, 100), 0, till.FieldError{Pointer: "/scopes", Code: till.FieldTooMany}},
		"a past expiry":    {"", nil, 1, till.FieldError{Pointer: "/expires_at", Code: till.FieldInvalidFormat}},
	} {
		_, _, err := a.CreateKey(t.Context(), c.ID, k.name, k.scopes, k.expires, "Ada")
		var e *till.Error
		if !errors.As(err, &e) || len(e.Fields) != 1 || e.Fields[0].Pointer != k.want.Pointer || e.Fields[0].Code != k.want.Code {
			t.Errorf("%s: got %v %+v", name, err, e)
		}
	}
	_, _, err := a.CreateKey(t.Context(), till.ID{1}, "", nil, 0, "Ada")
	wantCode(t, err, till.CodeClientNotFound)
}

func TestAClientHasABoundedNumberOfKeys(t *testing.T) {
	t.Parallel()
	a := newAccounts(t)
	c, _ := newClient(t, a, till.Test)
	var last *till.Key
	for range maxKeys - 1 {
		_, k, err := a.CreateKey(t.Context(), c.ID, "", nil, 0, "Ada")
		if err != nil {
			t.Fatal(err)
		}
		last = k
	}
	_, _, err := a.CreateKey(t.Context(), c.ID, "", nil, 0, "Ada")
	var e *till.Error
	if !errors.As(err, &e) || len(e.Fields) != 1 || e.Fields[0].Code != till.FieldTooMany {
		t.Fatalf("got %v", err)
	}
	_, _, err = a.RotateKey(t.Context(), c.ID, last.ID, time.Hour, "Ada")
	wantCode(t, err, till.CodeValidationFailed)
	if _, _, err := a.RotateKey(t.Context(), c.ID, last.ID, 0, "Ada"); err != nil {
		t.Errorf("an emergency rotation was refused: %v", err)
	}
	if _, err := a.RevokeKey(t.Context(), c.ID, last.ID, false, "Ada"); err != nil {
		t.Fatal(err)
	}
}

func TestAKeyGrantsOnlyScopesItHas(t *testing.T) {
	t.Parallel()
	s := &Session{Key: &till.Key{Scopes: []till.Scope{till.KeysManage, till.PaymentsRead}}}
	if got := s.CheckGrant([]till.Scope{till.PaymentsRead, till.KeysManage}); got != nil {
		t.Error(got)
	}
	got := s.CheckGrant([]till.Scope{till.PaymentsRead, till.PaymentsWrite, "nonsense"})
	if len(got) != 1 || got[0].Pointer != "/scopes/1" || got[0].Code != till.FieldScopeNotGranted {
		t.Errorf("got %v", got)
	}
}

func TestOnlyAGenuineKeyIsFlagged(t *testing.T) {
	t.Parallel()
	a := newAccounts(t)
	c, text := newClient(t, a, till.Test)
	_, id, _, _ := ParseKey(text)
	for _, s := range []string{"till_test_x", forge(till.Test, id, strings.Repeat("x", secretLen)), text, text} {
		if genuine, err := a.FlagExposed(t.Context(), s, SeenInURL, ""); err != nil || genuine != (s == text) {
			t.Fatal(genuine, err)
		}
		k := read(t, a, func(ctx context.Context, tx *store.Tx) (*till.Key, error) { return access.Key(ctx, tx, c.ID, id) })
		if flagged := !k.ExposedAt.IsZero(); flagged != (s == text) {
			t.Errorf("flagged %v", flagged)
		}
	}
	if diff := cmp.Diff(actions(t, a, c.ID), []string{"client.create", "key.exposed"}); diff != "" {
		t.Errorf("audit (-got +want):\n%s", diff)
	}
}

func BenchmarkAuthenticate(b *testing.B) {
	a := newAccounts(b)
	_, text := newClient(b, a, till.Test)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := a.Authenticate(b.Context(), text); err != nil {
				b.Fatal(err)
			}
		}
	})
}
