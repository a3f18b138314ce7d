package people

import (
	"strings"
	"testing"

	"till"
	"till/store"
	"till/store/access"
)

// A hash says what it cost. Another cost locks nobody out, and a sign-in renews it.
func TestAnotherCostOfHashesLocksNobodyOut(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		e := w.join(w.client.ID, till.RoleCashier, "brice@shop.example")
		stored := func() (phc string) {
			w.must(w.s.View(w.ctx(), func(tx *store.Tx) error {
				person, err := access.PersonByID(w.ctx(), tx, e.Session.Person.ID)
				phc = person.Password
				return err
			}))
			return phc
		}
		cheap := argon{1 << 10, 1, 2}
		w.must(w.s.Update(w.ctx(), func(tx *store.Tx) error {
			return access.SetPassword(w.ctx(), tx, e.Session.Person.ID, cheap.hash(goodPassword))
		}))
		_, err := w.p.SignIn(w.ctx(), home, "brice@shop.example", otherPassword, false)
		w.want(err, WrongCredentials)
		if !strings.HasPrefix(stored(), cheap.prefix()) {
			t.Error("a wrong password renewed the hash")
		}
		_, err = w.p.SignIn(w.ctx(), home, "brice@shop.example", goodPassword, false)
		w.must(err)
		if !strings.HasPrefix(stored(), costNow.prefix()) {
			t.Errorf("the hash was not renewed: %s", stored())
		}
		_, err = w.p.SignIn(w.ctx(), home, "brice@shop.example", goodPassword, false)
		w.must(err)
	})
	good := costNow.hash("x")
	for name, phc := range map[string]string{
		"nothing": "", "another kind": strings.Replace(good, "argon2id", "argon2i", 1), "another version": strings.Replace(good, "v=19", "v=16", 1),
		"too much memory": strings.Replace(good, "m=19456", "m=4194304", 1), "no passes": strings.Replace(good, "t=2", "t=0", 1),
		"too many passes": strings.Replace(good, "t=2", "t=99", 1), "other spelling": strings.Replace(good, "m=19456", "m=019456", 1), "cut": good[:40],
	} {
		if _, _, ok := costOf(phc); ok || samePassword(phc, "x") {
			t.Errorf("%s: %s is taken", name, phc)
		}
	}
	if !samePassword(good, "x") {
		t.Error("the good one is not")
	}
}
