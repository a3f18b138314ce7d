package account

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"till"
	"till/store"
	"till/store/access"
	"till/store/storetest"
)

// line is a client whose keys descend from each other.
type line struct {
	t *testing.T
	a *Accounts
	c *till.Client
	// texts are the keys by the names that the test gives them.
	texts map[string]string
}

func newLine(t *testing.T, s *store.Store) *line {
	l := &line{t: t, a: New(s, nil), texts: map[string]string{}}
	l.c, _ = newClient(t, l.a, till.Test)
	l.made("root", 0)
	return l
}

func (l *line) session(name string) *Session {
	l.t.Helper()
	s, err := l.a.AuthenticateNow(l.t.Context(), l.texts[name])
	if err != nil {
		l.t.Fatalf("%s: %v", name, err)
	}
	return s
}

// made makes a key by command.
func (l *line) made(name string, expires till.Time) {
	l.t.Helper()
	text, _, err := l.a.CreateKey(l.t.Context(), l.c.ID, name, till.Scopes, expires, "Ada")
	if err != nil {
		l.t.Fatal(err)
	}
	l.texts[name] = text
}

// makes has one key make another.
func (l *line) makes(maker, name string, expires till.Time) *till.Key {
	l.t.Helper()
	text, key, err := l.a.CreateKeyBy(l.t.Context(), l.session(maker), name, till.Scopes, expires)
	if err != nil {
		l.t.Fatal(err)
	}
	l.texts[name] = text
	return key
}

// rotates has one key rotate another.
func (l *line) rotates(by, old, name string) *till.Key {
	l.t.Helper()
	text, key, err := l.a.RotateKeyBy(l.t.Context(), l.session(by), l.session(old).Key.ID, MaxOverlap)
	if err != nil {
		l.t.Fatal(err)
	}
	l.texts[name] = text
	return key
}

// ends revokes a key and returns the names of those that ended with it, and of
// those that go on although they descend from it.
func (l *line) ends(name string, cascade bool) (ended, left string) {
	l.t.Helper()
	_, id, _, _ := ParseKey(l.texts[name])
	done, err := l.a.RevokeKey(l.t.Context(), l.c.ID, id, cascade, "Ada")
	if err != nil {
		l.t.Fatal(err)
	}
	return l.names(done.Ended), l.names(done.Left)
}

func (l *line) names(keys []*till.Key) string {
	var out []string
	for name, text := range l.texts {
		if slices.ContainsFunc(keys, func(k *till.Key) bool { return strings.Contains(text, "_"+k.ID+"_") }) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// living returns the names of the keys that open something.
func (l *line) living() string {
	var out []string
	for name, text := range l.texts {
		if _, err := l.a.AuthenticateNow(l.t.Context(), text); err == nil {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func (l *line) want(what, got, want string) {
	l.t.Helper()
	if got != want {
		l.t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// grow makes: root → child → grandchild; child rotated itself, root another's
// key and itself; the successor made a key of its own. A command rotated what
// root had made.
func (l *line) grow() {
	l.made("stranger", 0)
	l.makes("root", "child", 0)
	l.makes("child", "grandchild", 0)
	l.rotates("child", "child", "child2")
	l.rotates("root", "stranger", "stranger2")
	l.makes("root", "service", 0)
	text, _, err := l.a.RotateKey(l.t.Context(), l.c.ID, l.session("service").Key.ID, MaxOverlap, "Ada")
	if err != nil {
		l.t.Fatal(err)
	}
	l.texts["service2"] = text
	l.rotates("root", "root", "root2")
	l.makes("root2", "late", 0)
}

func TestTheKeysThatARevokedKeyMadeEndWithIt(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		l := newLine(t, s)
		l.grow()
		ended, left := l.ends("root", false)
		l.want("ended", ended, "child child2 grandchild service stranger2")
		l.want("left", left, "late root2 service2")
		l.want("living", l.living(), "late root2 service2 stranger")
		ended, left = l.ends("root", false)
		l.want("ended by doing it again", ended+left, "late root2 service2")

		ended, left = l.ends("root", true) // it is found out that it had leaked
		l.want("ended later, with cascade", ended, "late root2 service2")
		l.want("left later", left, "")
		l.want("living later", l.living(), "stranger")
		acts := actions(t, l.a, l.c.ID)
		revoked := slices.DeleteFunc(acts, func(a string) bool { return a != "key.revoke" })
		if len(revoked) != 9 {
			t.Errorf("%d audit rows for 9 keys that ended", len(revoked))
		}
	})
}

func TestCascadeEndsAllThatDescendsFromAKey(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		l := newLine(t, s)
		l.grow()
		ended, left := l.ends("root", true)
		l.want("ended", ended, "child child2 grandchild late root2 service service2 stranger2")
		l.want("left", left, "")
		l.want("living", l.living(), "stranger")
	})
}

func TestAKeyHasOneLivingSuccessor(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		l := newLine(t, s)
		root := l.session("root")
		second := l.rotates("root", "root", "root2")
		if second.MadeBy != root.Key.ID || second.Replaces != root.Key.ID {
			t.Errorf("made by %q, replaces %q", second.MadeBy, second.Replaces)
		}
		_, _, err := l.a.RotateKeyBy(t.Context(), root, root.Key.ID, 0)
		wantCode(t, err, till.CodeValidationFailed)
		_, _, err = l.a.RotateKey(t.Context(), l.c.ID, root.Key.ID, MaxOverlap, "Ada")
		wantCode(t, err, till.CodeValidationFailed)
		l.rotates("root2", "root2", "root3") // a line may be as long as it likes
		l.ends("root2", true)
		l.rotates("root", "root", "root4")
		l.want("living", l.living(), "root root4")
	})
}

func TestAKeyNeverOutlivesItsMakersExpiry(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		l := newLine(t, s)
		end := s.Now().Add(time.Hour)
		l.made("short", end)
		for name, asked := range map[string]till.Time{"no end": 0, "a later end": end.Add(time.Hour), "the same end": end} {
			if k := l.makes("short", name, asked); k.ExpiresAt != end || k.MadeBy != l.session("short").Key.ID {
				t.Errorf("%s: ends at %v, made by %q, want %v", name, k.ExpiresAt, k.MadeBy, end)
			}
		}
		if k := l.makes("short", "sooner", end.Add(-30*time.Minute)); k.ExpiresAt != end.Add(-30*time.Minute) {
			t.Errorf("a sooner end became %v", k.ExpiresAt)
		}
		if k := l.rotates("short", "root", "root2"); k.ExpiresAt != end {
			t.Errorf("what it rotated ends at %v, want %v", k.ExpiresAt, end)
		}
		stored := read(t, l.a, func(ctx context.Context, tx *store.Tx) (*till.Key, error) {
			_, id, _, _ := ParseKey(l.texts["no end"])
			return access.Key(ctx, tx, l.c.ID, id)
		})
		if stored.ExpiresAt != end || stored.MadeBy == "" || stored.Replaces != "" {
			t.Errorf("stored %+v", stored)
		}
	})
}

// A key that is revoked between its authentication and the commit makes nothing.
func TestARevokedKeyMakesNoKeyAnyMore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		l := newLine(t, s)
		l.made("stranger", 0)
		root, stranger := l.session("root"), l.session("stranger")
		l.ends("root", false)
		_, _, err := l.a.CreateKeyBy(t.Context(), root, "late", nil, 0)
		wantCode(t, err, till.CodeInvalidKey)
		_, _, err = l.a.RotateKeyBy(t.Context(), root, stranger.Key.ID, 0)
		wantCode(t, err, till.CodeInvalidKey)
		l.want("living", l.living(), "stranger")
	})
}
