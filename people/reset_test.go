package people

import (
	"net/netip"
	"testing"
	"time"

	"till"
	"till/store"
	"till/store/access"
	"till/store/storetest"
)

// A link that lets somebody back in gives what its maker could give on the day
// on which it is spent, and nothing that came to the person after it was made.
func TestAResetLinkEndsWithWhatMadeItHarmless(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		after func(w *world, owner, cashier Entry, second *till.Client)
		code  RefusalCode // "": the link works
	}{
		{"nothing happened", func(*world, Entry, Entry, *till.Client) {}, ""},
		{"a role of the house", func(w *world, _, cashier Entry, _ *till.Client) {
			w.accept(cashier, till.House, till.RoleFinance)
		}, LinkWithdrawn},
		{"a role with another merchant", func(w *world, _, cashier Entry, second *till.Client) {
			w.accept(cashier, second.ID, till.RoleViewer)
		}, LinkWithdrawn},
		{"another role", func(w *world, owner, cashier Entry, _ *till.Client) {
			w.must(w.p.SetRole(w.ctx(), owner.Session, w.client, cashier.Session.Person.ID, till.RoleAccountant))
		}, LinkWithdrawn},
		{"no role any more", func(w *world, owner, cashier Entry, _ *till.Client) {
			w.must(w.p.SetRole(w.ctx(), owner.Session, w.client, cashier.Session.Person.ID, ""))
		}, LinkWithdrawn},
		{"a role that the release before gave", func(w *world, _, cashier Entry, second *till.Client) {
			w.pass(time.Second)
			w.must(w.s.Update(w.ctx(), func(tx *store.Tx) error {
				return access.SetMembership(w.ctx(), tx, &till.Membership{Client: second.ID, Person: cashier.Session.Person.ID, Role: till.RoleOwner, GrantedAt: w.clock.Now(), GrantedBy: "cli:root"})
			}))
		}, LinkWithdrawn},
		{"another role that the release before gave", func(w *world, _, cashier Entry, _ *till.Client) {
			w.pass(time.Second)
			w.must(w.s.Update(w.ctx(), func(tx *store.Tx) error {
				return access.SetMembership(w.ctx(), tx, &till.Membership{Client: w.client.ID, Person: cashier.Session.Person.ID, Role: till.RoleOwner, GrantedAt: w.clock.Now(), GrantedBy: "cli:root"})
			}))
		}, LinkWithdrawn},
		{"the maker's role is gone", func(w *world, owner, _ Entry, _ *till.Client) {
			w.must(w.p.SetRoleAs(w.ctx(), "cli:root", w.client.ID, owner.Session.Person.ID, ""))
		}, LinkWithdrawn},
		{"the merchant is suspended", func(w *world, _, _ Entry, _ *till.Client) { w.suspend(true) }, LinkWithdrawn},
		{"the maker is disabled", func(w *world, owner, _ Entry, _ *till.Client) {
			w.must(w.p.SetDisabledAs(w.ctx(), "cli:root", owner.Session.Person.ID, true))
		}, LinkWithdrawn},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) {
				second := storetest.NewClient(w.T, w.s, till.Live)
				owner := w.join(w.client.ID, till.RoleOwner, "awa@shop.example")
				cashier := w.join(w.client.ID, till.RoleCashier, "brice@shop.example")
				owner.Session.FactorMissing = false
				_, token, err := w.p.Reset(w.ctx(), owner.Session, w.client, cashier.Session.Person.ID)
				w.must(err)
				c.after(w, owner, cashier, second)
				_, seen := w.p.Invitation(w.ctx(), home, token)
				_, err = w.p.Join(w.ctx(), away, token, Joining{Language: "fr", Password: otherPassword})
				if c.code == "" {
					w.must(seen)
					w.must(err)
					return
				}
				w.want(seen, c.code)
				w.want(err, c.code)
			})
		})
	}
}

// An invitation is its maker's word: it ends with the right to give it.
func TestAnInvitationEndsWithItsMakersRight(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		owner, _, _ := w.secured(w.client.ID, till.RoleOwner, "awa@shop.example")
		_, token, err := w.p.Invite(w.ctx(), owner.Session, w.client, till.RoleOwner, "Awa again", "")
		w.must(err)
		w.must(w.p.SetRoleAs(w.ctx(), "cli:root", w.client.ID, owner.Session.Person.ID, till.RoleViewer))
		_, err = w.p.Join(w.ctx(), home, token, Joining{Login: "awa2@shop.example", Name: "Awa", Language: "fr", Password: goodPassword})
		w.want(err, LinkWithdrawn)
	})
}

// Behind an open invitation nobody lists who has an account.
func TestLoginsAreNotListedBehindALink(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.join(w.client.ID, till.RoleCashier, "brice@shop.example")
		_, token, err := w.p.InviteAs(w.ctx(), "cli:root", w.client.ID, till.RoleViewer, "Jean", "")
		w.must(err)
		taken, waits := 0, 0
		for i := range 200 {
			v := Visit{Address: netip.AddrFrom4([4]byte{198, 51, 100, byte(i)})} // each from another address
			_, err := w.p.BeginJoin(w.ctx(), v, token, Joining{Login: "brice@shop.example", Name: "Jean", Language: "fr"})
			switch r := RefusalOf(err); {
			case r != nil && r.Code == LoginTaken:
				taken++
			case r != nil && r.Code == WaitFirst:
				waits++
			default:
				t.Fatal(err)
			}
		}
		if taken > 10 || taken+waits != 200 {
			t.Errorf("%d guesses were answered, %d waited", taken, waits)
		}
		_, token, err = w.p.InviteAs(w.ctx(), "cli:root", w.client.ID, till.RoleViewer, "Jean", "")
		w.must(err)
		for range 3 * freeGuesses { // who has a free one is not stopped
			_, err = w.p.BeginJoin(w.ctx(), home, token, Joining{Login: "jean@shop.example", Name: "Jean", Language: "fr"})
			w.must(err)
		}
	})
}

// While a merchant is suspended, its people's links let nobody in. Those of the
// installation's staff do.
func TestLinksOfASuspendedMerchantWait(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		owner, _, _ := w.secured(w.client.ID, till.RoleOwner, "awa@shop.example")
		_, token, err := w.p.Invite(w.ctx(), owner.Session, w.client, till.RoleOwner, "Brice", "")
		w.must(err)
		_, fromHouse, err := w.p.InviteAs(w.ctx(), "cli:root", w.client.ID, till.RoleOwner, "Chantal", "")
		w.must(err)
		join := func(token, login string) error {
			_, err := w.p.Join(w.ctx(), home, token, Joining{Login: login, Name: "Somebody", Language: "fr", Password: goodPassword})
			return err
		}
		w.suspend(true)
		w.want(join(token, "brice@shop.example"), LinkWithdrawn)
		w.must(join(fromHouse, "chantal@shop.example"))
		w.suspend(false)
		w.must(join(token, "brice@shop.example"))
	})
}

// The person sees that somebody could take their place.
func TestThePersonSeesAnOpenReset(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		owner, _, _ := w.secured(w.client.ID, till.RoleOwner, "awa@shop.example")
		cashier := w.join(w.client.ID, till.RoleCashier, "brice@shop.example")
		reset := func() *Invitation {
			got, err := w.p.OpenReset(w.ctx(), cashier.Session.Person.ID)
			w.must(err)
			return got
		}
		if got := reset(); got != nil {
			t.Fatalf("there is none, got %+v", got)
		}
		inv, _, err := w.p.Reset(w.ctx(), owner.Session, w.client, cashier.Session.Person.ID)
		w.must(err)
		if got := reset(); got == nil || got.ID != inv.ID || got.ExpiresAt != inv.ExpiresAt || till.NameOfActor(got.InvitedBy) != "awa" {
			t.Errorf("got %+v", got)
		}
		_, err = w.p.SetPassword(w.ctx(), home, cashier.Session, otherPassword)
		w.must(err)
		if got := reset(); got != nil {
			t.Errorf("a new password left %+v", got)
		}
	})
}

// accept gives somebody a further role by an invitation.
func (w *world) accept(e Entry, client till.ID, role till.Role) {
	w.Helper()
	_, token, err := w.p.InviteAs(w.ctx(), "cli:root", client, role, e.Session.Person.Name, e.Session.Person.Login)
	w.must(err)
	_, err = w.p.Accept(w.ctx(), home, e.Session, token)
	w.must(err)
}

// suspend suspends the merchant, or lets it in again.
func (w *world) suspend(on bool) {
	w.Helper()
	w.must(w.s.Update(w.ctx(), func(tx *store.Tx) error { return tx.SetSuspended(w.ctx(), w.client.ID, on) }))
}
