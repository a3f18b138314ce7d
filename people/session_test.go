package people

import (
	"bytes"
	"encoding/base64"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"till"
	"till/internal/seal"
)

func TestSignIn(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		first, secret, codes := w.secured(w.client.ID, till.RoleOwner, "awa@shop.example")
		if len(codes) != RecoveryCodes || first.Session.FactorMissing || !first.Session.Fresh() {
			t.Fatalf("%d codes, session %+v", len(codes), first.Session)
		}

		// The password alone opens nothing.
		e, err := w.p.SignIn(w.ctx(), away, " AWA@shop.example ", goodPassword, false)
		w.must(err)
		if e.Token != "" || e.Session != nil || e.Step == "" {
			t.Fatalf("the password alone gave %+v", e)
		}
		_, err = w.p.SignInCode(w.ctx(), away, e.Step, "000000")
		w.want(err, WrongCode)
		// The code that set it up was used.
		_, err = w.p.SignInCode(w.ctx(), away, e.Step, w.code(secret))
		w.want(err, WrongCode)
		code := w.nextCode(secret)
		in, err := w.p.SignInCode(w.ctx(), away, e.Step, code[:3]+" "+code[3:])
		w.must(err)
		if in.Session.Person.Login != "awa@shop.example" || in.Session.RoleIn(w.client.ID) != till.RoleOwner || in.Session.May(w.client, KeysManage) != Full {
			t.Fatalf("session %+v", in.Session)
		}
		_, err = w.p.SignInCode(w.ctx(), away, e.Step, code)
		w.want(err, WrongCode)

		// A recovery code works once.
		rescued, err := w.p.SignInCode(w.ctx(), away, e.Step, codes[3])
		w.must(err)
		_, err = w.p.SignInCode(w.ctx(), away, e.Step, codes[3])
		w.want(err, WrongCode)
		if rescued.Session.Person.RecoveryCodes != RecoveryCodes-1 {
			t.Errorf("%d codes are left", rescued.Session.Person.RecoveryCodes)
		}

		all, err := w.p.Sessions(w.ctx(), first.Session.Person.ID)
		w.must(err)
		if len(all) != 3 || all[2].Device != "Firefox, Linux" {
			t.Errorf("%d sessions, the first on %q", len(all), all[len(all)-1].Device)
		}
		w.must(w.p.EndOthers(w.ctx(), rescued.Session))
		_, err = w.again(away, in)
		w.want(err, SessionOver)
		w.must(w.p.SignOut(w.ctx(), rescued.Session))
		_, err = w.again(away, rescued)
		w.want(err, SessionOver)

		got := w.actions(w.client.ID)
		want := []string{"cli:root person.invite", "awa person.join", "awa totp.set", "awa sign_in.refuse", "awa sign_in.refuse", "awa sign_in",
			"awa sign_in.refuse", "awa sign_in", "awa sign_in.refuse", "awa session.end", "awa sign_out"}
		if !slices.Equal(got[len(got)-len(want):], want) {
			t.Errorf("the audit log says %q", got)
		}
	})
}

// A step of one form does not fit another, ends in time, and ends with the
// password it was made with.
func TestSteps(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		owner, secret, _ := w.secured(w.client.ID, till.RoleOwner, "awa@shop.example")
		e, err := w.p.SignIn(w.ctx(), home, "awa@shop.example", goodPassword, false)
		w.must(err)
		_, _, err = w.p.ConfirmTOTP(w.ctx(), home, owner.Session, e.Step, "000000")
		w.want(err, StepOver)
		_, err = w.p.SignInCode(w.ctx(), home, forged(w.T, e.Step), w.nextCode(secret))
		w.want(err, StepOver)
		owner, err = w.p.SetPassword(w.ctx(), home, owner.Session, otherPassword)
		w.must(err)
		_, err = w.p.SignInCode(w.ctx(), home, e.Step, w.nextCode(secret))
		w.want(err, StepOver)
		e, err = w.p.SignIn(w.ctx(), home, "awa@shop.example", otherPassword, false)
		w.must(err)
		w.pass(stepWindow)
		_, err = w.p.SignInCode(w.ctx(), home, e.Step, w.code(secret))
		w.want(err, StepOver)
	})
}

// A form that was sealed with a key of before opens nothing: who has that key
// could write one.
func TestAStepEndsWithTheKeyThatSealedIt(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		keys := map[int][]byte{1: []byte("a secret for tests"), 2: []byte("another secret of tests")}
		ring, err := seal.NewRing(keys, 1, nil)
		w.must(err)
		w.p = w.people(Config{Ring: ring})
		_, secret, _ := w.secured(w.client.ID, till.RoleOwner, "awa@shop.example")
		e, err := w.p.SignIn(w.ctx(), home, "awa@shop.example", goodPassword, false)
		w.must(err)
		w.must(ring.Set(keys, 2, nil))
		_, err = w.p.SignInCode(w.ctx(), home, e.Step, w.nextCode(secret))
		w.want(err, StepOver)
		e, err = w.p.SignIn(w.ctx(), home, "awa@shop.example", goodPassword, false)
		w.must(err)
		w.must(ring.Set(keys, 2, []int{1}))
		_, err = w.p.SignInCode(w.ctx(), home, e.Step, w.nextCode(secret)) // and the app's secret still opens
		w.must(err)
	})
}

// forged returns a step with one bit of its bytes flipped.
func forged(t *testing.T, text string) string {
	t.Helper()
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	sealed[len(sealed)-1] ^= 1
	return base64.RawURLEncoding.EncodeToString(sealed)
}

// respelled returns other texts that a lenient decoder takes for the same bytes.
func respelled(t *testing.T, text string) map[string]string {
	t.Helper()
	out := map[string]string{"a line break behind": text + "\n", "one inside": text[:7] + "\r\n" + text[7:]}
	if spare := len(text) % 4; spare != 0 {
		const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
		last := strings.IndexByte(letters, text[len(text)-1])
		out["spare bits"] = text[:len(text)-1] + string(letters[last^1])
	}
	same, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	for name, other := range out {
		if b, err := base64.RawURLEncoding.DecodeString(other); err != nil || !bytes.Equal(b, same) {
			t.Fatalf("%s: it is another step", name)
		}
	}
	return out
}

func TestSessionLifetimes(t *testing.T) {
	t.Parallel()
	day := 24 * time.Hour
	for _, c := range []struct {
		name        string
		role        till.Role
		house, stay bool
		live        bool
		idle, total time.Duration
	}{
		{"owner", till.RoleOwner, false, true, false, 30 * time.Minute, 12 * time.Hour},
		{"accountant", till.RoleAccountant, false, false, false, 30 * time.Minute, 12 * time.Hour},
		{"support", till.RoleSupport, true, true, false, 30 * time.Minute, 12 * time.Hour},
		{"developer of a live merchant", till.RoleDeveloper, false, true, true, 30 * time.Minute, 12 * time.Hour},
		{"developer", till.RoleDeveloper, false, true, false, 12 * time.Hour, 7 * day},
		{"viewer", till.RoleViewer, false, true, false, 12 * time.Hour, 7 * day},
		{"cashier", till.RoleCashier, false, false, false, 12 * time.Hour, 7 * day},
		{"cashier's phone", till.RoleCashier, false, true, false, 30 * day, 30 * day},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			client := till.NewID(1)
			if c.house {
				client = till.House
			}
			live := func(till.ID) bool { return c.live }
			got := lifetimeOf([]till.Membership{{Client: client, Role: c.role}}, live, c.stay)
			if got != (lifetime{c.idle, c.total}) {
				t.Errorf("got %v", got)
			}
			if mixed := lifetimeOf([]till.Membership{{Client: client, Role: c.role}, {Client: till.NewID(2), Role: till.RoleOwner}}, live, c.stay); mixed != strictLifetime {
				t.Errorf("with an owner's role beside it: %v", mixed)
			}
		})
	}

	inWorld(t, func(w *world) {
		// Idle: a request in time moves it on, up to the whole.
		e, _, _ := w.secured(w.client.ID, till.RoleOwner, "awa@shop.example")
		for range 24 {
			w.pass(29 * time.Minute)
			if _, err := w.again(home, e); err != nil {
				t.Fatal(err)
			}
		}
		w.pass(29 * time.Minute)
		_, err := w.again(home, e)
		w.want(err, SessionOver) // 12 hours and 5 minutes in all

		cashier := w.join(w.client.ID, till.RoleCashier, "brice@shop.example")
		w.pass(11 * time.Hour)
		_, err = w.again(home, cashier)
		w.must(err)
		w.pass(12 * time.Hour)
		_, err = w.again(home, cashier)
		w.want(err, SessionOver)

		stay, err := w.p.SignIn(w.ctx(), home, "brice@shop.example", goodPassword, true)
		w.must(err)
		w.pass(29 * 24 * time.Hour)
		_, err = w.again(home, stay)
		w.must(err)
		w.pass(24 * time.Hour)
		_, err = w.again(home, stay)
		w.want(err, SessionOver)
		w.must(w.p.clean(w.ctx()))
	})
}

// Each new name is a row in the audit logs: they have a rate.
func TestNamesChangeAtARate(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		e := w.join(w.client.ID, till.RoleViewer, "jean@shop.example")
		before, changed := len(w.actions(w.client.ID)), 0
		for i := range 50 {
			s, err := w.again(home, e)
			w.must(err)
			err = w.p.SetProfile(w.ctx(), s, Profile{Name: "Jean " + strings.Repeat("I", i+1), Language: "fr"})
			if err == nil {
				changed++
				continue
			}
			w.want(err, WaitFirst)
			w.must(w.p.SetProfile(w.ctx(), s, Profile{Name: s.Person.Name, Language: "en"})) // the rest is nobody's concern
		}
		if rows := len(w.actions(w.client.ID)) - before; rows != changed || changed > freeGuesses+1 {
			t.Errorf("%d names, %d rows", changed, rows)
		}
	})
}

// A page that asks by itself does not keep a session from idling.
func TestAnOpenPageIdles(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		e, _, _ := w.secured(w.client.ID, till.RoleOwner, "awa@shop.example")
		quiet := home
		quiet.Quiet = true
		for range 14 {
			w.pass(2 * time.Minute)
			_, err := w.again(quiet, e)
			w.must(err)
		}
		w.pass(2 * time.Minute)
		_, err := w.again(quiet, e)
		w.want(err, SessionOver)
	})
}

// A change is seen by the next request, on each instance: no instance remembers
// a session.
func TestAChangeIsSeenAtOnce(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		other := w.people(Config{})
		owner, _, _ := w.secured(w.client.ID, till.RoleOwner, "awa@shop.example")
		seen := func(e Entry) error { _, err := other.Session(w.ctx(), home, e.Token); return err }

		viewer := w.join(w.client.ID, till.RoleViewer, "jean@shop.example")
		w.must(seen(viewer))
		w.must(w.p.SetRole(w.ctx(), owner.Session, w.client, viewer.Session.Person.ID, till.RoleCashier))
		w.want(seen(viewer), SessionOver)
		viewer, err := w.p.SignIn(w.ctx(), home, "jean@shop.example", goodPassword, false)
		w.must(err)
		if viewer.Session.RoleIn(w.client.ID) != till.RoleCashier {
			t.Errorf("the role is %s", viewer.Session.RoleIn(w.client.ID))
		}
		w.must(w.p.EndSessionsOf(w.ctx(), owner.Session, w.client, viewer.Session.Person.ID, viewer.Session.ID))
		w.want(seen(viewer), SessionOver)

		// A new password ends the others, and gives this one another token.
		second, err := w.p.SignIn(w.ctx(), away, "jean@shop.example", goodPassword, false)
		w.must(err)
		third, err := w.p.SignIn(w.ctx(), home, "jean@shop.example", goodPassword, false)
		w.must(err)
		renewed, err := w.p.SetPassword(w.ctx(), home, third.Session, otherPassword)
		w.must(err)
		w.want(seen(second), SessionOver)
		w.want(seen(third), SessionOver)
		w.must(seen(renewed))
		_, err = w.p.SignIn(w.ctx(), home, "jean@shop.example", goodPassword, false)
		w.want(err, WrongCredentials)

		// So does a second factor, and so does being disabled.
		fourth, err := w.p.SignIn(w.ctx(), away, "jean@shop.example", otherPassword, false)
		w.must(err)
		renewed, err = w.p.RemoveTOTP(w.ctx(), home, renewed.Session) // a cashier may
		w.must(err)
		w.want(seen(fourth), SessionOver)
		w.must(w.p.SetDisabledAs(w.ctx(), "cli:root", renewed.Session.Person.ID, true))
		w.want(seen(renewed), SessionOver)
		_, err = w.p.SignIn(w.ctx(), home, "jean@shop.example", otherPassword, false)
		w.want(err, WrongCredentials)
		w.must(w.p.SetDisabledAs(w.ctx(), "cli:root", renewed.Session.Person.ID, false))
		_, err = w.p.SignIn(w.ctx(), home, "jean@shop.example", otherPassword, false)
		w.must(err)
	})
}

// Nobody's own token becomes a session: a token that was not given out by a
// sign-in opens nothing, and each sign-in and proof gives out a new one.
func TestFixation(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		for _, planted := range []string{"", "x", newToken(), string(make([]byte, 1<<20))} {
			_, err := w.p.Session(w.ctx(), home, planted)
			w.want(err, SessionOver)
		}
		one, secret, _ := w.secured(w.client.ID, till.RoleOwner, "awa@shop.example")
		proved, err := w.p.Prove(w.ctx(), home, one.Session, Proof{Code: w.nextCode(secret)})
		w.must(err)
		if proved.Token == one.Token || proved.Session.ID != one.Session.ID {
			t.Error("the proof kept the token, or lost the session")
		}
		_, err = w.again(home, one)
		w.want(err, SessionOver)
		_, err = w.p.Prove(w.ctx(), home, one.Session, Proof{Code: w.nextCode(secret)})
		w.want(err, SessionOver)
		_, err = w.again(home, proved)
		w.must(err)
	})
}

func TestMaxSessions(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		first := w.join(w.client.ID, till.RoleCashier, "brice@shop.example")
		for range maxSessions {
			w.pass(time.Second)
			_, err := w.p.SignIn(w.ctx(), home, "brice@shop.example", goodPassword, false)
			w.must(err)
		}
		_, err := w.again(home, first)
		w.want(err, SessionOver)
		all, err := w.p.Sessions(w.ctx(), first.Session.Person.ID)
		w.must(err)
		if len(all) != maxSessions {
			t.Errorf("%d sessions", len(all))
		}
	})
}

func TestHouseNetworks(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.p = w.people(Config{HouseNetworks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}})
		house, secret, _ := w.secured(till.House, till.RoleAdmin, "grace@house.example")
		_, err := w.again(away, house)
		w.want(err, NotFromHere)
		_, err = w.p.SignIn(w.ctx(), away, "grace@house.example", goodPassword, false)
		w.want(err, NotFromHere)
		_, err = w.p.SignIn(w.ctx(), away, "grace@house.example", otherPassword, false)
		w.want(err, WrongCredentials) // not before the password was right
		e, err := w.p.SignIn(w.ctx(), home, "grace@house.example", goodPassword, false)
		w.must(err)
		_, err = w.p.SignInCode(w.ctx(), away, e.Step, w.nextCode(secret))
		w.want(err, NotFromHere)
		_, err = w.p.SignInCode(w.ctx(), Visit{Address: netip.MustParseAddr("::ffff:192.0.2.8")}, e.Step, w.nextCode(secret))
		w.must(err)
		cashier := w.join(w.client.ID, till.RoleCashier, "brice@shop.example")
		_, err = w.again(away, cashier)
		w.must(err)
	})
}
