package store_test

import (
	"testing"
	"time"

	"till"
	"till/store"
	"till/store/admin"
	"till/store/storetest"
)

func TestATurnIsTakenByOneOfTwo(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		swap := func(row admin.Turn) (won bool) {
			update(t, s, func(tx *store.Tx) (err error) { won, err = admin.SwapTurn(t.Context(), tx, &row); return err })
			return won
		}
		row := admin.Turn{Name: "gauges", LeaseUntil: 7, Owner: till.NewID(1)}
		if !swap(row) || swap(row) {
			t.Fatal("the first write is one instance's")
		}
		row.Version, row.LeaseUntil, row.RanAt, row.Result = 1, 0, 9, `{"n":1}`
		if !swap(row) || swap(row) {
			t.Fatal("a version was used twice")
		}
		update(t, s, func(tx *store.Tx) error {
			all, err := admin.Turns(t.Context(), tx)
			row.Version = 2
			if len(all) != 1 || *all["gauges"] != row {
				t.Errorf("got %+v, want %+v", all["gauges"], row)
			}
			return err
		})
	})
}

func TestInstancesAreSeenAndForgotten(t *testing.T) {
	t.Parallel()
	storetest.RunAt(t, &noon, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		pulse := func(id till.ID, version string) {
			update(t, s, func(tx *store.Tx) error {
				return admin.PulseInstance(t.Context(), tx, &admin.Instance{ID: id, Version: version, Role: "all", StartedAt: noon})
			})
		}
		seen := func() (all []*admin.Instance) {
			update(t, s, func(tx *store.Tx) (err error) { all, err = admin.Instances(t.Context(), tx); return err })
			return all
		}
		a, b := till.NewID(noon), till.NewID(noon+1)
		pulse(a, "v1")
		clock.Set(noon.Add(time.Minute))
		pulse(a, "v1")
		pulse(b, "v2")
		if all := seen(); len(all) != 2 || all[0].SeenAt != noon.Add(time.Minute) || all[1].Version != "v2" {
			t.Fatalf("got %+v", all)
		}
		clock.Set(noon.Add(time.Hour + 2*time.Minute))
		pulse(b, "v2")
		if all := seen(); len(all) != 1 || all[0].ID != b {
			t.Errorf("an instance without a pulse for an hour is still there: %+v", all)
		}
		update(t, s, func(tx *store.Tx) error { return admin.DeleteInstance(t.Context(), tx, b) })
		if all := seen(); len(all) != 0 {
			t.Errorf("an instance that stopped is still there: %+v", all)
		}
	})
}
