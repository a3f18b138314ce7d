package store_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"till"
	"till/store"
	"till/store/storetest"
	"till/store/webhooks"
)

// The one question about all lanes says what the questions about each lane say.
func TestWhatIsDueInAllLanes(t *testing.T) {
	t.Parallel()
	storetest.RunAt(t, &noon, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		refs := newSteps(t, s, clock, 3)
		lanes := []store.LaneView{{Lane: "nobody's " + store.OpCheck}}
		for range 20 { // more than one question names
			lanes = append(lanes, store.LaneView{Lane: "nobody's either"})
		}
		lanes = append(lanes, store.LaneView{Lane: store.Lane(storetest.Connection, store.OpSubmit)})
		check := func(name string, horizon time.Duration, found bool) {
			t.Helper()
			all, now, err := s.DueLanes(t.Context(), lanes, horizon)
			if err != nil {
				t.Fatal(err)
			}
			_, next := due(t, s, 10)
			got := all[len(all)-1]
			if !found {
				next = 0
			}
			if got.Next != next || got.Earliest.IsZero() == found || all[0] != (store.LaneDue{}) || now != clock.Now() {
				t.Errorf("%s: %v and %v at %s, want %s", name, got, all[0], now, next)
			}
		}
		check("all are free", time.Second, true)
		for _, ref := range refs {
			claim(t, s, ref, 0, clock.Now().Add(20*time.Second))
		}
		check("all are leased", time.Second, true)
		clock.Advance(-time.Hour)
		check("none is due before the horizon", time.Second, false)
		check("the horizon is far", 2*time.Hour, true)
	})
}

// While a node is away, each part of a table is asked by itself. If all answer, that finds
// the same.
func TestPartsAnswerWhatTheWholeAnswers(t *testing.T) {
	t.Parallel()
	storetest.RunAt(t, &noon, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		if !s.Distributed() {
			return // there are no parts
		}
		var clients []till.ID
		for range 6 {
			refs := newSteps(t, s, clock, 3)
			claim(t, s, refs[0], 0, clock.Now().Add(time.Hour))
			newEndpoint(t, s, refs[0].Client, func(*webhooks.Endpoint) {})
			clients = append(clients, refs[0].Client)
		}
		lanes := []store.LaneView{{Lane: "it's 100 % nobody's"}, {Lane: store.Lane(storetest.Connection, store.OpSubmit)}}
		read := func() (out []till.ID) {
			steps, err := s.DueSteps(t.Context(), lanes, []int{5, 10})
			if err != nil {
				t.Fatal(err)
			}
			for _, st := range steps {
				out = append(out, st.SubjectID)
			}
			endpoints, err := webhooks.FindDueEndpoints(t.Context(), s, store.Ref{}, 4)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range endpoints {
				out = append(out, e.ID)
			}
			return out
		}
		whole := read()
		store.SetAway(s) // another one
		parts := read()
		if !slices.Equal(whole, parts) || len(whole) < 10 {
			t.Errorf("the whole answers %v, the parts %v", whole, parts)
		}
		if s.CheckNode(t.Context(), clients[0]) != nil {
			t.Error("a node that answers counts as away")
		}
	})
}

func TestALaneCannotForgeACommand(t *testing.T) {
	t.Parallel()
	text := store.DueStepsCommand([]store.LaneView{{Lane: `a' %s; DROP`}}, []int{1}, 1)
	if !strings.Contains(text, `('a'' %%s; DROP', 0::bigint, 1)`) || strings.Count(text, "%s") != 2 {
		t.Error(text)
	}
}
