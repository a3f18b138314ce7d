package backup

import (
	"io"
	"maps"
	"slices"
	"testing"
	"time"

	"till"
)

// TestNoBackupIsDeletedThatMayBeTheLastGoodOne: whatever Keep says, a backup goes only if
// it is old, nobody holds it, no restore has lost its time, and a newer one was drilled.
func TestNoBackupIsDeletedThatMayBeTheLastGoodOne(t *testing.T) {
	t.Parallel()
	now := till.TimeOf(time.Date(2026, 11, 17, 13, 30, 0, 0, time.UTC))
	at := func(hours int) Name {
		return Name{Installation: "0123456789ab", Taken: now.Add(-time.Duration(hours) * time.Hour)}
	}
	for what, c := range map[string]struct {
		drilled, held []int // hours of age
		guard         Guard
		gone          []int
		stayed        map[Why]int
		stop          string
	}{
		"a drilled one lets all older ones go":     {drilled: []int{1}, gone: []int{50, 60, 70}, stayed: map[Why]int{WhyYoung: 2}},
		"the database knows a drilled one":         {guard: Guard{Drilled: at(1).Taken + 999}, gone: []int{50, 60, 70}, stayed: map[Why]int{WhyYoung: 2}},
		"the database's drill is in another place": {guard: Guard{Drilled: at(2).Taken}, stayed: map[Why]int{WhyYoung: 2, WhyUndrilled: 3}},
		"none was drilled":                         {stayed: map[Why]int{WhyYoung: 2, WhyUndrilled: 3}},
		"those since the last drill stay":          {drilled: []int{60, 70}, gone: []int{70}, stayed: map[Why]int{WhyYoung: 2, WhyUndrilled: 2}},
		"a held one stays":                         {drilled: []int{1}, held: []int{60}, gone: []int{50, 70}, stayed: map[Why]int{WhyYoung: 2, WhyHeld: 1}},
		"a lost time stays":                        {drilled: []int{1}, guard: Guard{Lost: []Span{{at(60).Taken, at(50).Taken}}}, gone: []int{60, 70}, stayed: map[Why]int{WhyYoung: 2, WhyLost: 1}},
		"something is wrong with the database":     {drilled: []int{1}, guard: Guard{Stop: "broken"}, stop: "broken"},
	} {
		place, ctx := folder(t.TempDir()), t.Context()
		ages := []int{0, 1, 47, 50, 60, 70}
		for _, h := range ages {
			if _, err := place.Put(ctx, at(h).String(), func(w io.Writer) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		for mark, hours := range map[Mark][]int{Drilled: c.drilled, Held: c.held} {
			for _, h := range hours {
				if err := SetMark(ctx, place, at(h), mark, "x"); err != nil {
					t.Fatal(err)
				}
			}
		}
		c.guard.Now = now
		got, err := (Keep{Hours: 1}).Prune(ctx, place, "0123456789ab", c.guard)
		left, _ := names(ctx, place, "")
		var gone []int
		for _, h := range ages {
			if !slices.Contains(left, at(h)) {
				gone = append(gone, h)
			}
		}
		if err != nil || !slices.Equal(gone, c.gone) || len(got.Removed) != len(gone) || !maps.Equal(got.Stayed, c.stayed) || got.Stop != c.stop {
			t.Errorf("%s: %v went, and %v stayed (%q, %v)", what, gone, got.Stayed, got.Stop, err)
		}
		list, _ := place.List(ctx)
		for mark := range marksIn(list) {
			if !slices.Contains(list, mark[:len(mark)-len(Drilled)]) && !slices.Contains(list, mark[:len(mark)-len(Held)]) {
				t.Errorf("%s: %s is left without its backup", what, mark)
			}
		}
	}
}
