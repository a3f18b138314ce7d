package people

import (
	"net/netip"
	"testing"
	"time"

	"till"
)

// The demo's people get in by the token of the process, from this machine, and
// in no other way.
func TestDemo(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		local := Visit{Address: netip.MustParseAddr("127.0.0.1")}
		_, err := w.p.EnterDemo(w.ctx(), local, "", till.ID{})
		w.want(err, LinkUnknown)
		token, err := w.p.OpenDemo(w.ctx(), w.client.ID)
		w.must(err)
		people := w.p.DemoPeople()
		if len(people) != 7 || people[0].Name != "Awa" || w.p.DemoToken(away) != "" || w.p.DemoToken(local) != token {
			t.Fatalf("%d people", len(people))
		}
		if any, err := w.p.Any(w.ctx()); err != nil || any {
			t.Errorf("somebody can sign in: %v", err)
		}
		for _, person := range people {
			e, err := w.p.EnterDemo(w.ctx(), local, token, person.ID)
			w.must(err)
			w.pass(ProofWindow)
			s, err := w.again(local, e)
			w.must(err)
			if !s.Fresh() || s.FactorMissing || s.Person.Name != person.Name {
				t.Errorf("%s: %+v", person.Name, s)
			}
		}
		for _, v := range []Visit{home, {}} {
			_, err = w.p.EnterDemo(w.ctx(), v, token, till.ID{})
			w.want(err, LinkUnknown)
		}
		_, err = w.p.EnterDemo(w.ctx(), local, newToken(), till.ID{})
		w.want(err, LinkUnknown)
		brice := w.join(w.client.ID, till.RoleCashier, "brice@shop.example")
		_, err = w.p.EnterDemo(w.ctx(), local, token, brice.Session.Person.ID)
		w.want(err, LinkUnknown)
		for _, password := range []string{"", "demo", goodPassword} {
			_, err = w.p.SignIn(w.ctx(), local, "awa@demo.invalid", password, false)
			w.want(err, WrongCredentials)
		}

		// A second start finds them, and the old token is of no use there.
		second := w.people(Config{})
		fresh, err := second.OpenDemo(w.ctx(), w.client.ID)
		w.must(err)
		if fresh == token || second.DemoPeople()[0].ID != people[0].ID {
			t.Error("a second start made other people, or gave the same token")
		}
		// Where no demo runs, they are people without a factor.
		e, err := w.p.EnterDemo(w.ctx(), local, token, till.ID{})
		w.must(err)
		w.pass(time.Minute)
		served := w.people(Config{})
		if s, err := served.Session(w.ctx(), local, e.Token); err != nil || !s.FactorMissing {
			t.Errorf("%+v, %v", s, err)
		}
	})
}

// One row a day says that the installation's staff viewed a merchant.
func TestLooks(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		e, _, _ := w.secured(till.House, till.RoleSupport, "esther@house.example")
		other := w.people(Config{})
		looks := func() (n int) {
			for _, a := range w.actions(w.client.ID) {
				if a == "esther client.look" {
					n++
				}
			}
			return n
		}
		for _, p := range []*People{w.p, w.p, other, other} {
			w.must(p.NoteLook(w.ctx(), e.Session, w.client))
		}
		if looks() != 1 {
			t.Errorf("%d rows", looks())
		}
		w.pass(24 * time.Hour)
		w.must(other.NoteLook(w.ctx(), e.Session, w.client))
		if looks() != 2 {
			t.Errorf("%d rows after two days", looks())
		}
		w.must(w.p.NoteAct(w.ctx(), e.Session, nil, Act{Action: "page.refuse", Detail: "x"}))
		if log := w.actions(till.House); log[len(log)-1] != "esther page.refuse" {
			t.Errorf("the house's log says %q", log)
		}
	})
}
