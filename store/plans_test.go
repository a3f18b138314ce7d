package store_test

import (
	"strings"
	"testing"

	"till"
	"till/store"
	"till/store/storetest"
)

// The main reads can be explained on each engine, their plans hold no value of a row, and
// the tables' sizes are those of all tables.
func TestPlansAndSizes(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		storetest.NewClient(t, s, till.Test)
		plans, err := s.Plans(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(plans) < 10 {
			t.Errorf("%d plans", len(plans))
		}
		for _, p := range plans {
			text := strings.ToLower(strings.Join(p.Lines, "\n"))
			if !strings.Contains(text, "scan") && !strings.Contains(text, "search") {
				t.Errorf("the plan of %s is %q", p.Name, text)
			}
		}
		if again, err := s.Plans(t.Context()); err != nil || len(again) != len(plans) {
			t.Errorf("the second time: %d plans, %v", len(again), err)
		}
		sizes, err := s.TableSizes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		bytes := map[string]int64{}
		for _, z := range sizes {
			bytes[z.Table] = z.Bytes
		}
		if len(sizes) < 40 || bytes["clients"] == 0 || bytes["payments"] == 0 {
			t.Errorf("%d tables: %v", len(sizes), bytes)
		}
	})
}
