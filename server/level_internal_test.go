package server

import (
	"testing"
	"time"

	"till"
	"till/books"
	"till/store"
)

// The wait of a day begins anew whenever an older instance was seen.
func TestTheWaitForTheLevel(t *testing.T) {
	t.Parallel()
	noon := till.Time(1_900_000_000_000_000)
	levels := func(at till.Time, level int, seen ...int64) *books.Levels {
		l := &books.Levels{Level: level, Program: 2, At: at}
		for _, of := range seen {
			l.Instances = append(l.Instances, &store.Instance{Level: of, SeenAt: at})
		}
		return l
	}
	later := noon.Add(time.Hour)
	waiting := levelSeen{Since: noon, Level: 2}
	for name, c := range map[string]struct {
		before levelSeen
		now    *books.Levels
		want   levelSeen
	}{
		"it begins":                  {levelSeen{}, levels(noon, 1, 2, 2), waiting},
		"it goes on":                 {waiting, levels(later, 1, 2, 3), waiting},
		"an older instance":          {waiting, levels(later, 1, 2, 0), levelSeen{}},
		"nothing to raise":           {waiting, levels(later, 2, 2), levelSeen{}},
		"the clock was set back":     {levelSeen{Since: later, Level: 2}, levels(noon, 1, 2), waiting},
		"it waited for another one":  {levelSeen{Since: noon, Level: 1}, levels(later, 1, 2), levelSeen{Since: later, Level: 2}},
		"an older one that has gone": {waiting, &books.Levels{Level: 1, Program: 2, At: later, Instances: []*store.Instance{{Level: 0, SeenAt: noon}}}, waiting},
	} {
		if got := nextLevelSeen(c.before, c.now); got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}
