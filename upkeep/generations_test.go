package upkeep_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"till"
	"till/collect"
	"till/store"
	"till/store/access"
	"till/store/admin"
	"till/store/auditlog"
	"till/store/storetest"
	"till/upkeep"
)

// A rotation goes by its order only: the level first, then a generation that every running
// instance holds, and an end when nothing needs the old one. Each step has its row in the
// audit log.
func TestGenerationsGoByTheirOrder(t *testing.T) {
	t.Parallel()
	start := till.Time(1_900_000_000_000_000)
	storetest.RunAt(t, &start, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		ctx, by := t.Context(), "person:Anne"
		update := func(f func(tx *store.Tx) error) {
			t.Helper()
			if err := s.Update(ctx, f); err != nil {
				t.Fatal(err)
			}
		}
		add := func(number int, check string) (bool, error) {
			return upkeep.AddGeneration(ctx, s, number, []byte(check), []byte("check 1"), by)
		}
		refused := func(what string, err error, want string) {
			t.Helper()
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want an error that says %q", what, err, want)
			}
		}
		done := func(what string, changed bool, err error, want bool) {
			t.Helper()
			if err != nil || changed != want {
				t.Errorf("%s: %v, %v", what, changed, err)
			}
		}
		update(func(tx *store.Tx) error {
			return admin.InsertInstallation(ctx, tx, &admin.Installation{LogID: till.NewID(start), SecretCheck: []byte("x"), CreatedAt: start})
		})
		_, err := add(2, "check 2")
		if !errors.Is(err, upkeep.ErrGenerationLevel) {
			t.Errorf("before the level: %v", err)
		}
		if _, err := upkeep.RaiseLevel(ctx, s, admin.Level, by); err != nil {
			t.Fatal(err)
		}
		changed, err := add(2, "check 2")
		done("add", changed, err, true)
		changed, err = add(2, "check 2")
		done("add again", changed, err, false)
		_, err = add(2, "another")
		refused("another key of the same number", err, "another key")
		_, err = add(256, "check")
		refused("a number too high", err, "from 2 to 255")

		one, two := till.NewID(start), till.NewID(start+1)
		pulse := func(id till.ID, holds string, sealing int) {
			update(func(tx *store.Tx) error {
				return admin.PulseInstance(ctx, tx, &admin.Instance{ID: id, Level: admin.Level, Role: "all", StartedAt: start, Generations: holds, Sealing: sealing})
			})
		}
		pulse(one, "1,2", 1)
		pulse(two, "1", 1)
		_, err = upkeep.UseGeneration(ctx, s, 2, by)
		refused("an instance lacks it", err, two.String())
		_, err = upkeep.UseGeneration(ctx, s, 3, by)
		refused("nobody knows it", err, "no such generation")
		pulse(two, "1,2", 1)
		_, err = upkeep.RetireGeneration(ctx, s, 1, by)
		refused("it seals", err, "seals")
		clock.Set(start - 1) // the clock is set back
		changed, err = upkeep.UseGeneration(ctx, s, 2, by)
		done("use", changed, err, true)
		changed, err = upkeep.UseGeneration(ctx, s, 2, by)
		done("use again", changed, err, false)
		clock.Set(start)

		pulse(one, "1,2", 2)
		_, err = upkeep.RetireGeneration(ctx, s, 1, by)
		refused("an instance seals with it", err, two.String())
		pulse(two, "1,2", 2)
		update(func(tx *store.Tx) error {
			return admin.PutCertificate(ctx, tx, "pay.example.com", []byte("\x01sealed"), false)
		})
		_, err = upkeep.RetireGeneration(ctx, s, 1, by)
		refused("a value needs it", err, "values that it sealed: 1")
		update(func(tx *store.Tx) error {
			return admin.PutCertificate(ctx, tx, "pay.example.com", []byte("\x02sealed"), false)
		})
		reach := func(want bool, when string) {
			t.Helper()
			err := s.View(ctx, func(tx *store.Tx) error {
				session, _, _, _, err := access.SessionByHash(ctx, tx, [32]byte{1})
				if err != nil {
					return err
				}
				link, err := access.InvitationByHash(ctx, tx, [32]byte{2})
				if err == nil && ((session != nil) != want || link.WithdrawnAt.IsZero() != want) {
					t.Errorf("%s: the session is there: %v; the link: %+v", when, session != nil, link)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		person := till.NewID(start)
		update(func(tx *store.Tx) error {
			return errors.Join(
				access.InsertPerson(ctx, tx, &access.Person{Person: till.Person{ID: person, Login: "awa@shop.example", Name: "Awa", Language: "en", CreatedAt: start}}),
				access.InsertSession(ctx, tx, &access.Session{TokenHash: [32]byte{1}, ID: till.NewID(start), Person: person, StartedAt: start, SeenAt: start, ExpiresAt: start.Add(time.Hour), Idle: time.Hour}),
				access.InsertInvitation(ctx, tx, &access.Invitation{TokenHash: [32]byte{2}, ID: till.NewID(start), Kind: "join", Role: till.RoleAdmin, Name: "Jean", InvitedBy: by, CreatedAt: start, ExpiresAt: start.Add(time.Hour)}))
		})
		reach(true, "before the end of a generation")
		collector := storetest.NewCollector(t, s)
		open := sentPayment(t, s, collector, storetest.NewClient(t, s, till.Test))
		_, err = upkeep.RetireGeneration(ctx, s, 1, by)
		refused("a payment is open whose operator may call an address of that time", err, "sent while generation 1 was in use: 1")
		reach(true, "after a refusal")
		storetest.Apply(t, collector, s, open, storetest.Succeeded)
		changed, err = upkeep.RetireGeneration(ctx, s, 1, by)
		done("retire", changed, err, true)
		reach(false, "after it")
		changed, err = upkeep.RetireGeneration(ctx, s, 1, by)
		done("retire again", changed, err, false)
		_, err = upkeep.UseGeneration(ctx, s, 1, by)
		if !errors.Is(err, upkeep.ErrGenerationRetired) {
			t.Errorf("a retired one is used again: %v", err)
		}
		// One that was never used is given up at any time.
		changed, err = add(3, "check 3")
		done("add another", changed, err, true)
		changed, err = upkeep.RetireGeneration(ctx, s, 3, by)
		done("give it up", changed, err, true)
		_, err = add(3, "check 3")
		if !errors.Is(err, upkeep.ErrGenerationRetired) {
			t.Errorf("a number comes again: %v", err)
		}

		g, err := upkeep.ReadGenerations(ctx, s)
		if err != nil || g.Used() != 2 || len(g.All) != 3 || g.SealedBy(2) != 1 || g.SealedBy(1) != 0 {
			t.Errorf("got %+v, %v", g, err)
		}
		var acts []string
		err = s.View(ctx, func(tx *store.Tx) error {
			rows, err := auditlog.Read(ctx, tx, till.House, 0, 20)
			for _, r := range rows {
				acts = append(acts, r.Action+" "+r.Detail)
			}
			return err
		})
		want := []string{fmt.Sprintf("level.raise from level 1 to %d", admin.Level), "secret.add generation 2", "secret.use from generation 1 to 2", "secret.retire generation 1", "secret.add generation 3", "secret.retire generation 3"}
		slices.Sort(acts)
		slices.Sort(want)
		if err != nil || !slices.Equal(acts, want) {
			t.Errorf("the audit log has %q, %v", acts, err)
		}
	})
}

// sentPayment is an open payment whose send may have begun.
func sentPayment(t *testing.T, s *store.Store, c *collect.Collector, client *till.Client) *till.Payment {
	t.Helper()
	p := storetest.NewPayment(t, c, client, storetest.Body{})
	err := s.Update(t.Context(), func(tx *store.Tx) error {
		seen, err := tx.Step(t.Context(), store.Ref{Client: client.ID, ID: p.ID})
		if err != nil {
			return err
		}
		sent := *seen
		sent.Sends, sent.SendStartedAt = 1, tx.Now()
		won, err := tx.ClaimSteps(t.Context(), []*store.Claim{{Step: sent, Seen: *seen}})
		if err == nil && !won[0] {
			err = errors.New("the step was not taken")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}
