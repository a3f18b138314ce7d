package upkeep_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"till"
	"till/store"
	"till/store/admin"
	"till/store/storetest"
	"till/upkeep"
)

// turnsOf returns the turns of one instance with one piece of work.
func turnsOf(s *store.Store, run func(context.Context) (string, error)) (*upkeep.Turns, map[string]string) {
	seen := map[string]string{}
	return &upkeep.Turns{
		Store: s, Self: till.NewID(s.Now()), Log: slog.New(slog.DiscardHandler),
		All:  []upkeep.Turn{{Name: "gauges", Every: time.Minute, Lease: 30 * time.Second, Run: run}},
		Seen: func(t *admin.Turn) { seen[t.Name] = t.Result },
	}, seen
}

func TestATurnIsDoneByOneInstanceAndReadByAll(t *testing.T) {
	t.Parallel()
	noon := till.TimeOf(time.Date(2026, 11, 17, 12, 0, 0, 0, time.UTC))
	storetest.RunAt(t, &noon, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		runs := 0
		work := func(context.Context) (string, error) { runs++; return `{"n":1}`, nil }
		one, seenByOne := turnsOf(s, work)
		two, seenByTwo := turnsOf(s, work)
		once := func(ts *upkeep.Turns) {
			if err := ts.Once(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		once(one)
		once(two)
		once(one)
		if runs != 1 || seenByOne["gauges"] != `{"n":1}` || seenByTwo["gauges"] != `{"n":1}` {
			t.Fatalf("%d runs, seen %v and %v", runs, seenByOne, seenByTwo)
		}
		clock.Set(noon.Add(time.Minute))
		once(two)
		once(one)
		if runs != 2 {
			t.Errorf("a minute later it was done %d times", runs)
		}
		clock.Set(noon.Add(-time.Hour)) // the clock was set back
		once(one)
		if runs != 3 {
			t.Error("a clock that was set back stops the work")
		}
	})
}

// A run that fails leaves the last result, and another instance tries again after a
// pause. One that outlives its lease does not overwrite what came after it.
func TestATurnThatFailsIsTakenAgain(t *testing.T) {
	t.Parallel()
	noon := till.TimeOf(time.Date(2026, 11, 17, 12, 0, 0, 0, time.UTC))
	storetest.RunAt(t, &noon, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		var err error
		runs, result := 0, "1"
		during := func() {}
		work := func(context.Context) (string, error) { runs++; r := result; during(); return r, err }
		one, seen := turnsOf(s, work)
		two, _ := turnsOf(s, work)
		var changes []string
		for name, ts := range map[string]*upkeep.Turns{"one": one, "two": two} {
			ts.Changed = func(turn, from, to, why string) {
				changes = append(changes, strings.NewReplacer(one.Self.String(), "one", two.Self.String(), "two").Replace(name+" says "+turn+" "+from+" "+to))
			}
		}
		once := func(ts *upkeep.Turns) { ts.Once(t.Context()) }
		once(one)
		clock.Set(noon.Add(time.Minute))
		err = errors.New("no")
		once(one)
		once(two)
		if runs != 2 || seen["gauges"] != "1" {
			t.Fatalf("after a failure: %d runs, %v", runs, seen)
		}
		err = nil
		clock.Set(noon.Add(2 * time.Minute))
		during = func() { panic("no") }
		once(two)
		clock.Set(noon.Add(3 * time.Minute))
		result, during = "slow", func() {
			during, result = func() {}, "fast"
			clock.Set(noon.Add(4 * time.Minute)) // its lease is over
			once(two)
		}
		once(one)
		once(one)
		if runs != 5 || seen["gauges"] != "fast" {
			t.Errorf("a run that lost its lease was recorded: %d runs, %v", runs, seen)
		}
		result = strings.Repeat("x", 1<<20)
		clock.Set(noon.Add(5 * time.Minute))
		once(one)
		once(one)
		if seen["gauges"] != "fast" {
			t.Error("a result without a limit was stored")
		}
		want := []string{
			"one says gauges done failed", // the first failure
			"two says gauges one two", "two says gauges done failed",
			"one says gauges two one", "two says gauges one two", "two says gauges failed done",
			// The run of one that lost its lease, and the one that is too long, only go on failing.
		}
		if !slices.Equal(changes, want) {
			t.Errorf("it told %q, want %q", changes, want)
		}
	})
}
