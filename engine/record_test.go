package engine_test

import (
	"context"
	"testing"

	"till/engine"
)

// What an operator that is down leaves behind is recorded in commits that are
// over soon; answers are recorded together, however many there are.
func TestCallsThatBroughtNothingAreRecordedInSmallCommits(t *testing.T) {
	for _, c := range []struct {
		name     string
		failures int
		commits  int
	}{{"answers", 0, 1}, {"few of them failed", 64, 1}, {"many of them failed", 65, 4}, {"all failed", 200, 4}} {
		t.Run(c.name, func(t *testing.T) {
			answers := make([]*engine.Answer, 200)
			for i := range answers {
				answers[i] = &engine.Answer{}
				if i < c.failures {
					answers[i].Err = context.DeadlineExceeded
				}
			}
			var recorded []*engine.Answer
			commits := engine.Commits(answers)
			for _, some := range commits {
				recorded = append(recorded, some...)
			}
			if len(commits) != c.commits {
				t.Errorf("%d commits, want %d", len(commits), c.commits)
			}
			for i, a := range recorded {
				if a != answers[i] {
					t.Fatalf("answer %d is not where it was", i)
				}
			}
			if len(recorded) != len(answers) {
				t.Errorf("%d of %d answers were recorded", len(recorded), len(answers))
			}
		})
	}
}
