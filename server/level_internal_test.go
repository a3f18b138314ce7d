package server

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"till"
	"till/store"
	"till/store/admin"
	"till/store/storetest"
	"till/upkeep"
)

// The wait of a day begins anew whenever an older instance was seen.
func TestTheWaitForTheLevel(t *testing.T) {
	t.Parallel()
	noon := till.Time(1_900_000_000_000_000)
	levels := func(at till.Time, level int, seen ...int64) *upkeep.Levels {
		l := &upkeep.Levels{Level: level, Program: 2, At: at}
		for _, of := range seen {
			l.Instances = append(l.Instances, &admin.Instance{Level: of, SeenAt: at})
		}
		return l
	}
	later := noon.Add(time.Hour)
	waiting := levelSeen{Since: noon, Level: 2}
	for name, c := range map[string]struct {
		before levelSeen
		now    *upkeep.Levels
		want   levelSeen
	}{
		"it begins":                  {levelSeen{}, levels(noon, 1, 2, 2), waiting},
		"it goes on":                 {waiting, levels(later, 1, 2, 3), waiting},
		"an older instance":          {waiting, levels(later, 1, 2, 0), levelSeen{}},
		"nothing to raise":           {waiting, levels(later, 2, 2), levelSeen{}},
		"the clock was set back":     {levelSeen{Since: later, Level: 2}, levels(noon, 1, 2), waiting},
		"it waited for another one":  {levelSeen{Since: noon, Level: 1}, levels(later, 1, 2), levelSeen{Since: later, Level: 2}},
		"an older one that has gone": {waiting, &upkeep.Levels{Level: 1, Program: 2, At: later, Instances: []*admin.Instance{{Level: 0, SeenAt: noon}}}, waiting},
	} {
		if got := nextLevelSeen(c.before, c.now); got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}

// The level is raised after a day in which no older program was seen, and not before.
func TestTheLevelIsRaisedAfterADay(t *testing.T) {
	t.Parallel()
	noon := till.Time(1_900_000_000_000_000)
	storetest.RunAt(t, &noon, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		w := &levelWatch{store: s, level: admin.Level + 1}
		ts := &upkeep.Turns{Store: s, Self: till.NewID(noon), Log: slog.New(slog.DiscardHandler), All: []upkeep.Turn{w.turn()}}
		err := s.Update(t.Context(), func(tx *store.Tx) error {
			return admin.InsertInstallation(t.Context(), tx, &admin.Installation{LogID: till.NewID(noon), SecretCheck: []byte("x"), CreatedAt: noon})
		})
		if err != nil {
			t.Fatal(err)
		}
		look := func(at till.Time, seen int) {
			t.Helper()
			clock.Set(at)
			err := s.Update(t.Context(), func(tx *store.Tx) error {
				return admin.PulseInstance(t.Context(), tx, &admin.Instance{ID: till.NewID(noon), Version: fmt.Sprint(seen), Level: int64(seen), Role: "all", StartedAt: noon})
			})
			if err == nil {
				err = ts.Once(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		is := func(want int) {
			t.Helper()
			if l, err := upkeep.ReadLevels(t.Context(), s); err != nil || l.Level != want {
				t.Fatalf("the level is %d, %v, want %d", l.Level, err, want)
			}
		}
		look(noon, w.level)
		look(noon.Add(23*time.Hour), admin.Level) // somebody went back
		look(noon.Add(25*time.Hour), w.level)     // the day begins anew
		is(1)
		look(noon.Add(48*time.Hour), w.level)
		is(1)
		look(noon.Add(49*time.Hour), w.level)
		is(w.level)
	})
}
