package people

import (
	"context"
	"encoding/base32"
	"net/netip"
	"strings"
	"testing"
	"time"

	"till"
	"till/store"
	"till/store/auditlog"
	"till/store/storetest"
)

// world is an installation with a client and an owner.
type world struct {
	*testing.T
	s      *store.Store
	clock  *storetest.Clock
	p      *People
	client *till.Client

	path    string             // of the database
	intrude storetest.Intruder // see rows
}

const (
	goodPassword  = "onze lapins dorment"
	otherPassword = "seize tortues chantent"
	origin        = "https://pay.example.com"
)

var (
	home = Visit{Address: netip.MustParseAddr("192.0.2.7"), Device: "Firefox, Linux"}
	away = Visit{Address: netip.MustParseAddr("198.51.100.9"), Device: "Chrome, Android"}
)

// inWorld runs a test on each engine, at a time that only the test moves.
func inWorld(t *testing.T, f func(w *world)) {
	t.Helper()
	start := till.TimeOf(time.Date(2026, 11, 14, 13, 0, 0, 0, time.UTC))
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			config, clock := e.Config(t), storetest.NewClock(start)
			config.Now = clock.Now
			w := &world{T: t, s: storetest.Open(t, config), clock: clock, path: config.Path}
			t.Cleanup(func() { storetest.CheckInvariants(t, w.s) })
			w.p = w.people(Config{})
			w.client = storetest.NewClient(t, w.s, till.Live)
			f(w)
		})
	}
}

// people returns one more instance.
func (w *world) people(c Config) *People {
	w.Helper()
	c.Store, c.Secret, c.Now = w.s, []byte("a secret for tests"), w.clock.Now
	if c.Origin == "" {
		c.Origin = origin
	}
	p, err := New(c)
	if err != nil {
		w.Fatal(err)
	}
	return p
}

func (w *world) ctx() context.Context { return store.WithCause(w.Context(), "console test") }

func (w *world) pass(d time.Duration) { w.clock.Set(w.clock.Now().Add(d)) }

// rows returns how many rows there are of counts and marks.
func (w *world) rows() (n int64) {
	w.Helper()
	if w.intrude == nil {
		w.intrude = storetest.NewIntruder(w.T, w.path)
	}
	for _, table := range []string{"guesses", "used_once"} {
		rows, err := w.intrude("DELETE FROM " + table) // which is taken back
		w.must(err)
		n += rows
	}
	return n
}

// must fails the test if there is an error, and want if there is another
// refusal.
func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) want(err error, code RefusalCode) {
	w.Helper()
	if r := RefusalOf(err); r == nil || r.Code != code {
		w.Fatalf("got %v, want %s", err, code)
	}
}

// join brings somebody in by an invitation and a password.
func (w *world) join(client till.ID, role till.Role, login string) Entry {
	w.Helper()
	name, _, _ := strings.Cut(login, "@")
	_, token, err := w.p.InviteAs(w.ctx(), "cli:root", client, role, name, login)
	w.must(err)
	e, err := w.p.Join(w.ctx(), home, token, Joining{Name: name, Language: "fr", Password: goodPassword})
	w.must(err)
	return e
}

// secured is join with TOTP set up; it returns the app's secret as well.
func (w *world) secured(client till.ID, role till.Role, login string) (Entry, []byte, []string) {
	w.Helper()
	e := w.join(client, role, login)
	setup, err := w.p.BeginTOTP(w.ctx(), e.Session)
	w.must(err)
	secret, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(strings.ReplaceAll(setup.Secret, " ", ""))
	w.must(err)
	e, codes, err := w.p.ConfirmTOTP(w.ctx(), home, e.Session, setup.Step, w.code(secret))
	w.must(err)
	return e, secret, codes
}

// code is what the app shows now.
func (w *world) code(secret []byte) string {
	return totpCode(secret, w.clock.Now().Std().Unix()/30)
}

// nextCode waits for the app's next code.
func (w *world) nextCode(secret []byte) string {
	w.pass(30 * time.Second)
	return w.code(secret)
}

func (w *world) again(v Visit, e Entry) (*Session, error) {
	return w.p.Session(w.ctx(), v, e.Token)
}

// actions returns what an audit log says, oldest first.
func (w *world) actions(client till.ID) (out []string) {
	w.Helper()
	w.must(w.s.View(w.ctx(), func(tx *store.Tx) error {
		rows, err := auditlog.Read(w.ctx(), tx, client, 0, 1000)
		out = nil
		for _, a := range rows {
			name := till.NameOfActor(a.Actor)
			out = append(out, name+" "+a.Action)
			if a.Cause != "console test" && a.Action != "client.create" {
				w.Errorf("%s has the cause %q", a.Action, a.Cause)
			}
		}
		return err
	}))
	return out
}
