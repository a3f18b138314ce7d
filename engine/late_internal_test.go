package engine

import (
	"testing"

	"till"
	"till/provider"
	"till/store"
)

// An answer that is recorded late, after that of a later call, fills a gap and
// replaces nothing: the handle of M-Pesa's payouts is what was learned so far.
func TestALateAnswerReplacesNoNewerHandle(t *testing.T) {
	for _, c := range []struct {
		name, had, brings, want string
		ended                   till.Time
	}{
		{"nothing is known", "", "A", "A", 50},
		{"it is the newest", "A", "B", "B", 150},
		{"it is older", "B", "A", "B", 50},
		{"it brings none", "B", "", "B", 150},
	} {
		s := &store.Step{Handle: c.had, CheckedAt: 100, Sends: 1}
		noteAnswer(s, &Answer{Action: Submit, Ended: c.ended, Result: provider.Result{Outcome: provider.Accepted, Handle: c.brings}}, provider.Traits{}, 200)
		if s.Handle != c.want || !s.Acked || s.CheckedAt != max(100, c.ended) {
			t.Errorf("%s: %+v, want the handle %q", c.name, s, c.want)
		}
	}
}

// A call that panicked may have left something on its way: that nothing leaves
// us any more is not taken from it, as it is from one that ended.
func TestASendThatPanickedMayStillBeOnItsWay(t *testing.T) {
	for err, want := range map[error]till.Time{errPanicked: 500, provider.ErrCredentials: 200} {
		s := &store.Step{Sends: 1, SendDeadline: 500}
		noteAnswer(s, &Answer{Action: Submit, Err: err}, provider.Traits{}, 200)
		if s.SendDeadline != want || s.Sends != 1 {
			t.Errorf("%v: the send may last until %d, want %d", err, s.SendDeadline, want)
		}
	}
}
