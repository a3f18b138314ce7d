package console

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"till"
	"till/console/shell"
	"till/people"
	"till/store"
	"till/store/access"
	"till/store/storetest"
	"till/store/webhooks"
)

// Who takes a role away sees the keys and endpoints that the person made, and ends
// them with a tick. Without it they go on, and what others made goes on anyway.
func TestWhoGoesLeavesNoKeysBehind(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, e)
			owner := w.visitor
			w.newEndpoint("http://127.0.0.1:65001/owners")
			form := func(act string) url.Values {
				return url.Values{"act": {act}, "name": {"a shop's"}, "scopes": {"payments:read"}, "url": {"http://127.0.0.1:65001/" + act}}
			}
			developer := w.member(till.RoleDeveloper, "dev@shop.example")
			for _, path := range []string{"/keys", "/webhooks"} {
				if a := w.do(request(http.MethodPost, w.path(path), form(till.NewID(w.store.Now()).String()))); a.Code != http.StatusOK {
					t.Fatalf("%s: %d %s", path, a.Code, a.Header().Get("Location"))
				}
			}
			w.visitor = owner
			if page := w.get(w.path("/people")); strings.Contains(page, `id="remove"`) || strings.Contains(page, `<option value="">no`) {
				t.Error("the page of people asks about a removal that nobody wants, or hides it among the roles")
			}
			if page := w.get(w.path("/people?remove=" + developer.String())); !strings.Contains(page, "the keys (1) and switch off the endpoints (1)") {
				t.Errorf("the page of people does not show what they made:\n%s", page)
			}
			left := func() (keys, hooks int) {
				err := w.store.View(context.Background(), func(tx *store.Tx) error {
					all, err := access.Keys(context.Background(), tx, w.client.ID, 100)
					keys, hooks = 0, 0
					for _, k := range all {
						if k.Active(tx.Now()) {
							keys++
						}
					}
					if err != nil {
						return err
					}
					ends, err := webhooks.Endpoints(context.Background(), tx, w.client.ID, 100)
					for _, e := range ends {
						if e.Enabled {
							hooks++
						}
					}
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
				return keys, hooks
			}
			post := func(act string, form url.Values) (done string) {
				t.Helper()
				form.Set("person", developer.String())
				a := w.do(request(http.MethodPost, w.path("/people/"+act), form))
				_, done, ok := strings.Cut(a.Header().Get("Location"), "?done=")
				if a.Code != http.StatusSeeOther || !ok {
					t.Fatalf("%d %s", a.Code, a.Header().Get("Location"))
				}
				return done
			}
			if a := w.do(request(http.MethodPost, w.path("/people/role"), url.Values{"person": {developer.String()}, "role": {""}})); !strings.Contains(a.Header().Get("Location"), "refused=") {
				t.Errorf("no role as a role: %d %s", a.Code, a.Header().Get("Location"))
			}
			post("role", url.Values{"role": {"viewer"}})
			if keys, hooks := left(); keys != 2 || hooks != 2 {
				t.Errorf("with another role %d keys and %d endpoints are left, of 2 and 2", keys, hooks)
			}
			if done := post("remove", url.Values{}); done != "removed_kept" {
				t.Errorf("removed without the tick: %s", done)
			}
			if keys, hooks := left(); keys != 2 || hooks != 2 {
				t.Errorf("without the tick %d keys and %d endpoints are left, of 2 and 2", keys, hooks)
			}
			w.setRole(developer, till.RoleViewer)
			if done := post("remove", url.Values{"made": {"1"}}); done != "removed_made" {
				t.Errorf("removed with the tick: %s", done)
			}
			if page := w.get(w.path("/people")); strings.Contains(page, "dev@shop.example") {
				t.Error("who was removed is still listed")
			}
			if keys, hooks := left(); keys != 1 || hooks != 1 {
				t.Errorf("with the tick %d keys and %d endpoints are left, want the others' one each", keys, hooks)
			}
		})
	}
}

// member makes the visitor a person of the client who is in the database.
func (w *world) member(role till.Role, login string) till.ID {
	w.t.Helper()
	w.be(role, "en")
	p := &w.visitor.Person
	p.Login, p.CreatedAt = login, w.store.Now()
	err := w.store.Update(context.Background(), func(tx *store.Tx) error {
		if err := access.InsertPerson(context.Background(), tx, &access.Person{Person: *p}); err != nil {
			return err
		}
		return access.SetMembership(context.Background(), tx, &till.Membership{Client: w.client.ID, Person: p.ID, Role: role, GrantedAt: p.CreatedAt, GrantedBy: "a test"})
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return p.ID
}

// setRole gives a role of the client to somebody who is in the database.
func (w *world) setRole(person till.ID, role till.Role) {
	w.t.Helper()
	err := w.store.Update(context.Background(), func(tx *store.Tx) error {
		return access.SetMembership(context.Background(), tx, &till.Membership{Client: w.client.ID, Person: person, Role: role, GrantedAt: w.store.Now(), GrantedBy: "a test"})
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// The page of roles does not promise what keys undo.
func TestThePageOfRolesSaysWhatKeysGive(t *testing.T) {
	t.Parallel()
	for _, p := range []people.Permission{people.PhonesSee, people.WalletsSee} {
		for _, role := range till.StaffRoles {
			if got, want := people.ByKeys(p, role), role == till.RoleDeveloper; got != want {
				t.Errorf("%s as %s: %v", p, role, got)
			}
		}
	}
	w := newWorld(t, sqlite())
	if page := w.get(shell.Prefix + "/roles"); strings.Count(page, "only by keys") != 2 {
		t.Errorf("the page says it %d times", strings.Count(page, "only by keys"))
	}
}
