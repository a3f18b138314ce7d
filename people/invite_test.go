package people

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"till"
	"till/store"
	"till/store/access"
	"till/store/auditlog"
	"till/store/storetest"
)

// A chat's preview opens the link first, many times: nothing is spent. Then it
// works once.
func TestALinkIsSpentByJoiningOnly(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		inv, token, err := w.p.InviteAs(w.ctx(), "cli:root", w.client.ID, till.RoleViewer, "Jean", "")
		w.must(err)
		for range 30 {
			seen, err := w.p.Invitation(w.ctx(), away, token)
			w.must(err)
			if seen.ID != inv.ID || seen.Role != till.RoleViewer || seen.ClientName != w.client.Name || seen.InvitedBy != "cli:root" {
				t.Fatalf("the link says %+v", seen)
			}
		}
		good := Joining{Login: "jean@shop.example", Name: "Jean K.", Language: "fr", Zone: "Africa/Brazzaville", Password: goodPassword}
		for _, c := range []struct {
			change func(j *Joining)
			code   RefusalCode
		}{
			{func(j *Joining) { j.Login = "jean" }, LoginInvalid},
			{func(j *Joining) { j.Login = "061234567" }, LoginInvalid},
			{func(j *Joining) { j.Name = "engine" }, NameInvalid},
			{func(j *Joining) { j.Name = "a:b" }, NameInvalid},
			{func(j *Joining) { j.Language = "de" }, ValueInvalid},
			{func(j *Joining) { j.Zone = "Nowhere/City" }, ValueInvalid},
			{func(j *Joining) { j.Password = "short" }, PasswordShort},
			{func(j *Joining) { j.Password = "motdepasse2026!" }, PasswordCommon},
		} {
			j := good
			c.change(&j)
			_, err := w.p.Join(w.ctx(), home, token, j)
			w.want(err, c.code)
		}
		e, err := w.p.Join(w.ctx(), home, token, good)
		w.must(err)
		if p := e.Session.Person; p.Name != "Jean K." || p.Zone != "Africa/Brazzaville" || e.Session.RoleIn(w.client.ID) != till.RoleViewer || e.Session.FactorMissing {
			t.Errorf("the person is %+v", p)
		}
		_, err = w.p.Join(w.ctx(), home, token, good)
		w.want(err, LinkUsed)
		_, err = w.p.Invitation(w.ctx(), home, token)
		w.want(err, LinkUsed)
		_, err = w.p.Accept(w.ctx(), home, e.Session, token)
		w.want(err, LinkUsed)
	})
}

// Two who press at the same moment: one joins.
func TestALinkIsSpentOnce(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		_, token, err := w.p.InviteAs(w.ctx(), "cli:root", w.client.ID, till.RoleViewer, "Jean", "")
		w.must(err)
		var all sync.WaitGroup
		errs := make([]error, 2)
		for n, login := range []string{"one@shop.example", "two@shop.example"} {
			all.Go(func() {
				_, errs[n] = w.p.Join(w.ctx(), home, token, Joining{Login: login, Name: "Jean", Language: "en", Password: goodPassword})
			})
		}
		all.Wait()
		if (errs[0] == nil) == (errs[1] == nil) {
			t.Fatalf("got %v and %v", errs[0], errs[1])
		}
		for _, err := range errs {
			if err != nil {
				w.want(err, LinkUsed)
			}
		}
		list, err := w.p.Colleagues(w.ctx(), w.client)
		w.must(err)
		if len(list) != 1 {
			t.Errorf("%d people", len(list))
		}
	})
}

func TestLinksEnd(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		owner, _, _ := w.secured(w.client.ID, till.RoleOwner, "awa@shop.example")
		_, old, err := w.p.Invite(w.ctx(), owner.Session, w.client, till.RoleCashier, "Brice", "")
		w.must(err)
		inv, withdrawn, err := w.p.Invite(w.ctx(), owner.Session, w.client, till.RoleCashier, "Brice", "")
		w.must(err)
		open, err := w.p.Invitations(w.ctx(), w.client)
		w.must(err)
		if len(open) != 2 || till.NameOfActor(open[0].InvitedBy) != "awa" {
			t.Errorf("%d are open", len(open))
		}
		w.must(w.p.Withdraw(w.ctx(), owner.Session, w.client, inv.ID))
		_, err = w.p.Invitation(w.ctx(), home, withdrawn)
		w.want(err, LinkWithdrawn)
		_, err = w.p.Join(w.ctx(), home, withdrawn, Joining{})
		w.want(err, LinkWithdrawn)
		w.pass(joinWindow - time.Second)
		_, err = w.p.Invitation(w.ctx(), home, old)
		w.must(err)
		w.pass(time.Second)
		_, err = w.p.Invitation(w.ctx(), home, old)
		w.want(err, LinkExpired)
		_, err = w.p.Join(w.ctx(), home, old, Joining{})
		w.want(err, LinkExpired)
		_, err = w.p.Invitation(w.ctx(), home, "x")
		w.want(err, LinkUnknown)
	})
}

// Somebody who has a login already signs in and takes the role with it.
func TestAccept(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		second := storetest.NewClient(t, w.s, till.Test)
		brice := w.join(w.client.ID, till.RoleCashier, "brice@shop.example")
		_, token, err := w.p.InviteAs(w.ctx(), "cli:root", second.ID, till.RoleOwner, "Brice", "")
		w.must(err)
		_, err = w.p.Join(w.ctx(), home, token, Joining{Login: "BRICE@shop.example", Name: "Brice", Language: "fr", Password: goodPassword})
		w.want(err, LoginTaken)
		e, err := w.p.Accept(w.ctx(), home, brice.Session, token)
		w.must(err)
		if e.Token == brice.Token || e.Session.RoleIn(second.ID) != till.RoleOwner || !e.Session.FactorMissing {
			t.Errorf("session %+v", e.Session)
		}
		if left := e.Session.ExpiresAt.Sub(e.Session.StartedAt); left > strictLifetime.total {
			t.Errorf("an owner's session lasts %s", left)
		}
		clients, err := w.p.Clients(w.ctx(), e.Session)
		w.must(err)
		if len(clients) != 2 {
			t.Errorf("%d clients", len(clients))
		}
		_, token, err = w.p.InviteAs(w.ctx(), "cli:root", second.ID, till.RoleViewer, "Brice", "")
		w.must(err)
		_, err = w.p.Accept(w.ctx(), home, e.Session, token)
		w.want(err, AlreadyMember)
		_, _, err = w.p.InviteAs(w.ctx(), "cli:root", second.ID, till.RoleViewer, "Brice", "brice@shop.example")
		w.want(err, AlreadyMember)
		_, token, err = w.p.InviteAs(w.ctx(), "cli:root", till.House, till.RoleSupport, "Didier", "didier@house.example")
		w.must(err)
		_, err = w.p.Accept(w.ctx(), home, e.Session, token)
		w.want(err, LinkForOther)
	})
}

func TestReset(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		owner, _, _ := w.secured(w.client.ID, till.RoleOwner, "awa@shop.example")
		lost, _, codes := w.secured(w.client.ID, till.RoleAccountant, "chantal@shop.example")
		_, first, err := w.p.Reset(w.ctx(), owner.Session, w.client, lost.Session.Person.ID)
		w.must(err)
		_, token, err := w.p.Reset(w.ctx(), owner.Session, w.client, lost.Session.Person.ID)
		w.must(err)
		_, err = w.p.Invitation(w.ctx(), home, first)
		w.want(err, LinkWithdrawn)
		if _, err := w.again(home, lost); err != nil {
			t.Errorf("a link that was not used ended a session: %v", err)
		}
		e, err := w.p.Join(w.ctx(), away, token, Joining{Login: "mallory@shop.example", Name: "Mallory", Language: "fr", Password: otherPassword})
		w.must(err)
		if p := e.Session.Person; p.Login != "chantal@shop.example" || p.Name != "chantal" || p.HasTOTP || p.RecoveryCodes != 0 || !e.Session.FactorMissing {
			t.Errorf("the person is %+v", p)
		}
		_, err = w.again(home, lost)
		w.want(err, SessionOver)
		_, err = w.p.SignIn(w.ctx(), home, "chantal@shop.example", goodPassword, false)
		w.want(err, WrongCredentials)
		_ = codes

		_, token, err = w.p.Reset(w.ctx(), owner.Session, w.client, lost.Session.Person.ID)
		w.must(err)
		w.pass(resetWindow)
		_, err = w.p.Join(w.ctx(), home, token, Joining{Language: "fr", Password: goodPassword})
		w.want(err, LinkExpired)
	})
}

// An owner rules over the merchant's people, and over nobody else's access.
func TestWhoMayManage(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		second := storetest.NewClient(t, w.s, till.Live)
		owner, _, _ := w.secured(w.client.ID, till.RoleOwner, "awa@shop.example")
		admin, _, _ := w.secured(till.House, till.RoleAdmin, "grace@house.example")
		cashier := w.join(w.client.ID, till.RoleCashier, "brice@shop.example")
		both := w.join(w.client.ID, till.RoleViewer, "felix@house.example")
		_, token, err := w.p.InviteAs(w.ctx(), "cli:root", till.House, till.RoleFinance, "felix", "felix@house.example")
		w.must(err)
		_, err = w.p.Accept(w.ctx(), home, both.Session, token)
		w.must(err)
		invite := func(s *Session, c *till.Client, role till.Role) error {
			_, _, err := w.p.Invite(w.ctx(), s, c, role, "Jean", "")
			return err
		}
		w.want(invite(cashier.Session, w.client, till.RoleViewer), NotAllowed)
		w.want(invite(owner.Session, second, till.RoleViewer), NotAllowed)
		w.want(invite(owner.Session, nil, till.RoleAdmin), NotAllowed)
		w.want(invite(owner.Session, w.client, till.RoleAdmin), ValueInvalid)
		w.want(invite(admin.Session, w.client, till.RoleCashier), NotAllowed) // the installation's staff invite owners
		w.must(invite(admin.Session, w.client, till.RoleOwner))
		w.must(invite(admin.Session, nil, till.RoleSupport))
		w.want(w.p.SetRole(w.ctx(), owner.Session, w.client, owner.Session.Person.ID, till.RoleViewer), NotYourself)
		w.want(w.p.SetRole(w.ctx(), owner.Session, w.client, admin.Session.Person.ID, till.RoleViewer), PersonUnknown)
		w.want(w.p.SetRole(w.ctx(), cashier.Session, w.client, owner.Session.Person.ID, till.RoleViewer), NotAllowed)
		w.want(w.p.SetDisabled(w.ctx(), owner.Session, cashier.Session.Person.ID, true), NotAllowed)
		w.want(w.p.SetDisabled(w.ctx(), admin.Session, admin.Session.Person.ID, true), NotYourself)
		_, _, err = w.p.Reset(w.ctx(), owner.Session, w.client, both.Session.Person.ID)
		w.want(err, NotAllowed) // felix has more than a merchant can give
		_, _, err = w.p.Reset(w.ctx(), owner.Session, w.client, admin.Session.Person.ID)
		w.want(err, NotAllowed)
		w.must(w.p.SetDisabled(w.ctx(), admin.Session, both.Session.Person.ID, true))

		// Without fresh proof, nothing of it.
		w.pass(ProofWindow)
		stale, err := w.again(home, owner)
		w.must(err)
		w.want(invite(stale, w.client, till.RoleViewer), ProofNeeded)
		w.want(w.p.SetRole(w.ctx(), stale, w.client, cashier.Session.Person.ID, ""), ProofNeeded)
		w.want(w.p.SetRequireFactor(w.ctx(), stale, w.client, true), ProofNeeded)
		_, err = w.p.SetPassword(w.ctx(), home, stale, otherPassword)
		w.want(err, ProofNeeded)

		refused := 0
		for _, a := range append(w.actions(w.client.ID), w.actions(till.House)...) {
			if strings.HasSuffix(a, ".refuse") {
				refused++
			}
		}
		if refused != 7 {
			t.Errorf("%d refusals are in the logs: %q %q", refused, w.actions(w.client.ID), w.actions(till.House))
		}
	})
}

// Secrets are in no table as they are, and in no log.
func TestNoSecretIsKept(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		var log bytes.Buffer
		w.p = w.people(Config{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
		_, invitation, err := w.p.InviteAs(w.ctx(), "cli:root", w.client.ID, till.RoleViewer, "Jean", "")
		w.must(err)
		owner, secret, codes := w.secured(w.client.ID, till.RoleOwner, "awa@shop.example")
		e, err := w.p.SignIn(w.ctx(), home, "awa@shop.example", goodPassword, false)
		w.must(err)
		_, err = w.p.SignInCode(w.ctx(), home, e.Step, "000000")
		w.want(err, WrongCode)
		_, err = w.p.SignInPasskey(w.ctx(), home, "x", []byte(`{"canary": true}`), false)
		w.want(err, StepOver)
		kept := log.String()
		w.must(w.s.View(w.ctx(), func(tx *store.Tx) error {
			for _, client := range []till.ID{w.client.ID, till.House} {
				rows, err := auditlog.Read(w.ctx(), tx, client, 0, 1000)
				if err != nil {
					return err
				}
				for _, a := range rows {
					kept += a.Actor + a.Action + a.Detail + a.Cause
				}
			}
			person, err := access.PersonByID(w.ctx(), tx, owner.Session.Person.ID)
			kept += person.Password + string(person.TOTP)
			return err
		}))
		canaries := append([]string{invitation, owner.Token, goodPassword, string(secret), base32Text.EncodeToString(secret), e.Step}, codes...)
		for i, canary := range canaries {
			if strings.Contains(kept, canary) {
				t.Errorf("secret %d is kept as it is", i)
			}
		}
	})
}
