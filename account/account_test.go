package account

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"till"
	"till/store"
	"till/store/access"
	"till/store/auditlog"
)

// newAccounts returns the accounts of an empty database in a file.
func newAccounts(t testing.TB) *Accounts {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{Path: filepath.Join(t.TempDir(), "till.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if _, err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return New(s, nil)
}

func newClient(t testing.TB, a *Accounts, mode till.Mode) (*till.Client, string) {
	t.Helper()
	c, text, err := a.CreateClient(t.Context(), "Shop", mode, "Ada")
	if err != nil {
		t.Fatal(err)
	}
	return c, text
}

// read runs a query on the accounts' database.
func read[T any](t testing.TB, a *Accounts, f func(ctx context.Context, tx *store.Tx) (T, error)) T {
	t.Helper()
	var v T
	err := a.store.View(t.Context(), func(tx *store.Tx) (err error) { v, err = f(t.Context(), tx); return err })
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func wantCode(t testing.TB, err error, want till.Code) {
	t.Helper()
	if got := till.ErrorCode(err); got != want {
		t.Fatalf("got %q (%v), want %q", got, err, want)
	}
}

func actions(t testing.TB, a *Accounts, client till.ID) []string {
	t.Helper()
	rows := read(t, a, func(ctx context.Context, tx *store.Tx) ([]*store.AuditRow, error) {
		return auditlog.Read(ctx, tx, client, 0, 1000)
	})
	var out []string
	for i, r := range rows {
		if r.Sequence != int64(i+1) {
			t.Errorf("audit row %d has sequence %d", i, r.Sequence)
		}
		if r.Actor == "" {
			t.Errorf("audit row %q has no actor", r.Action)
		}
		out = append(out, r.Action)
	}
	return out
}

func TestANewClientCanBeUsedAtOnce(t *testing.T) {
	t.Parallel()
	a := newAccounts(t)
	c, text := newClient(t, a, till.Test)
	s, err := a.Authenticate(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s.Client, c); diff != "" {
		t.Errorf("client (-got +want):\n%s", diff)
	}
	if diff := cmp.Diff(s.Key.Scopes, till.DefaultScopes); diff != "" {
		t.Errorf("scopes (-got +want):\n%s", diff)
	}
	if s.Key.Allows(till.PayoutsWrite) || s.Key.Allows(till.KeysManage) {
		t.Error("a default key moves money out or opens doors")
	}
	for _, m := range till.Methods() {
		if s.Enabled(m.Code) != m.InSandbox() {
			t.Errorf("a test client has %s: %v", m.Code, s.Enabled(m.Code))
		}
	}
	if s.Enabled("none") {
		t.Error("a method that does not exist is enabled")
	}
	got := map[string]bool{}
	for _, id := range read(t, a, func(ctx context.Context, tx *store.Tx) ([]string, error) {
		ws, err := tx.Wallets(ctx, c.ID)
		var out []string
		for _, w := range ws {
			out = append(out, w.Currency)
		}
		return out, err
	}) {
		got[id] = true
	}
	want := map[string]bool{}
	for _, m := range till.Methods() {
		for _, k := range m.Markets {
			if k.Sandbox {
				want[k.Currency] = true
			}
		}
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("wallets (-got +want):\n%s", diff)
	}
	if diff := cmp.Diff(actions(t, a, c.ID), []string{"client.create"}); diff != "" {
		t.Errorf("audit (-got +want):\n%s", diff)
	}
}

func TestALiveClientHasTheMethodsThatWereEnabled(t *testing.T) {
	t.Parallel()
	a := newAccounts(t)
	c, text := newClient(t, a, till.Live)
	wallets := func() int {
		return read(t, a, func(ctx context.Context, tx *store.Tx) (int, error) {
			ws, err := tx.Wallets(ctx, c.ID)
			return len(ws), err
		})
	}
	enabled := func() bool {
		s, err := a.Authenticate(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		return s.Enabled("mpesa")
	}
	if enabled() || wallets() != 0 {
		t.Error("a new live client has methods or wallets")
	}
	if err := a.EnableMethod(t.Context(), c.ID, "mpesa", true, "Ada"); err != nil {
		t.Fatal(err)
	}
	const want = 7 // one for each currency that M-Pesa is served in
	if !enabled() || wallets() != want {
		t.Errorf("enabled %v with %d wallets, want true with %d", enabled(), wallets(), want)
	}
	if err := a.EnableMethod(t.Context(), c.ID, "mpesa", false, "Ada"); err != nil {
		t.Fatal(err)
	}
	if enabled() || wallets() != want {
		t.Errorf("enabled %v with %d wallets after disabling, want false with %d", enabled(), wallets(), want)
	}
	wantCode(t, a.EnableMethod(t.Context(), c.ID, "nope", true, "Ada"), till.CodeValidationFailed)
	wantCode(t, a.EnableMethod(t.Context(), till.ID{1}, "mpesa", true, "Ada"), till.CodeClientNotFound)
	// One that a configuration had, and has no more, can be removed.
	wantCode(t, a.EnableMethod(t.Context(), c.ID, "lost", false, "Ada"), till.CodeValidationFailed)
	err := a.store.Update(t.Context(), func(tx *store.Tx) error { return tx.SetClientMethod(t.Context(), c.ID, "lost", true) })
	if err != nil {
		t.Fatal(err)
	}
	if err := a.EnableMethod(t.Context(), c.ID, "lost", false, "Ada"); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(actions(t, a, c.ID), []string{"client.create", "method.enable", "method.disable", "method.disable"}); diff != "" {
		t.Errorf("audit (-got +want):\n%s", diff)
	}
}

func TestASuspendedClientIsSeenAsSuchAtOnceHere(t *testing.T) {
	t.Parallel()
	a := newAccounts(t)
	c, text := newClient(t, a, till.Test)
	for _, suspended := range []bool{true, false} {
		act := a.Resume
		if suspended {
			act = a.Suspend
		}
		if err := act(t.Context(), c.ID, "Ada"); err != nil {
			t.Fatal(err)
		}
		s, err := a.Authenticate(t.Context(), text)
		if err != nil || s.Client.Suspended != suspended {
			t.Errorf("suspended %v, error %v; want %v", s.Client.Suspended, err, suspended)
		}
	}
	wantCode(t, a.Suspend(t.Context(), till.ID{1}, "Ada"), till.CodeClientNotFound)
}

func TestClientsAreListedByID(t *testing.T) {
	t.Parallel()
	a := newAccounts(t)
	var want []till.ID
	for range 3 {
		c, _ := newClient(t, a, till.Test)
		want = append(want, c.ID)
	}
	var got []till.ID
	var after till.ID
	for {
		page, err := a.Clients(t.Context(), after, 2)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, c := range page {
			got = append(got, c.ID)
		}
		after = got[len(got)-1]
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("clients (-got +want):\n%s", diff)
	}
}

func TestBadClientsAreRefused(t *testing.T) {
	t.Parallel()
	a := newAccounts(t)
	for _, c := range []struct {
		name string
		mode till.Mode
	}{{"", till.Test}, {strings.Repeat("n", maxName+1), till.Test}, {"two\nlines", till.Live}, {"Shop", "demo"}} {
		_, _, err := a.CreateClient(t.Context(), c.name, c.mode, "Ada")
		wantCode(t, err, till.CodeValidationFailed)
	}
}

func TestRevocationIsSeenByAnotherInstanceWithinASecond(t *testing.T) {
	t.Parallel()
	a := newAccounts(t)
	c, text := newClient(t, a, till.Test)
	other := New(a.store, nil)
	clock := time.Now()
	other.now = func() time.Time { return clock }
	s, err := other.Authenticate(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.RevokeKey(t.Context(), c.ID, s.Key.ID, false, "Ada"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Authenticate(t.Context(), text); err == nil {
		t.Error("the key opens its account after it was revoked here")
	}
	_, err = other.AuthenticateNow(t.Context(), text)
	wantCode(t, err, till.CodeInvalidKey)

	late := New(a.store, nil)
	late.now = other.now
	late.cache.put(s.Key.ID, &entry{session: s, readAt: clock})
	clock = clock.Add(maxAge/2 - 1)
	if _, err := late.Authenticate(t.Context(), text); err != nil {
		t.Errorf("a young session was not used: %v", err)
	}
	clock = clock.Add(maxAge / 2)
	if _, err := late.Authenticate(t.Context(), text); err == nil {
		t.Error("a revoked key opens its account after a second")
	}
}

func TestAnExpiredKeyOpensNothing(t *testing.T) {
	t.Parallel()
	a := newAccounts(t)
	c, _ := newClient(t, a, till.Test)
	text, key, err := a.CreateKey(t.Context(), c.ID, "short", nil, a.store.Now().Add(time.Hour), "Ada")
	if err != nil {
		t.Fatal(err)
	}
	s, err := a.Authenticate(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	ended := *s.Key
	ended.ExpiresAt = a.store.Now() - 1
	a.cache.put(key.ID, &entry{session: &Session{Client: s.Client, Key: &ended}, readAt: time.Now()})
	_, err = a.Authenticate(t.Context(), text)
	wantCode(t, err, till.CodeInvalidKey)
}

func TestLastUseIsWrittenToTheMinute(t *testing.T) {
	t.Parallel()
	a := newAccounts(t)
	c, text := newClient(t, a, till.Test)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { a.Run(ctx); close(done) }()
	s, err := a.Authenticate(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	stop()
	<-done
	k := read(t, a, func(ctx context.Context, tx *store.Tx) (*till.Key, error) { return access.Key(ctx, tx, c.ID, s.Key.ID) })
	if k.LastUsedAt.IsZero() || k.LastUsedAt%minute != 0 || a.store.Now()-k.LastUsedAt > 2*minute {
		t.Errorf("last used at %v", k.LastUsedAt)
	}
}
