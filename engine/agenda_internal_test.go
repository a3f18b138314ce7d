package engine

import (
	"testing"

	"till"
	"till/internal/loop"
)

// A call that ends wakes the loop only if the loop would else come too late: for
// a step that is due before it looks again, for one of which nobody knows when
// it is due, for one that it may just have missed, and for whoever waits for the
// slot.
func TestACallThatEndsWakesTheLoopOnlyIfItMust(t *testing.T) {
	t.Parallel()
	const planned = till.Time(1000)
	for _, c := range []struct {
		name string
		due  till.Time
		tell func(e *Engine)
		want bool
	}{
		{"due later", planned + 1, func(*Engine) {}, false},
		{"due at the same time", planned, func(*Engine) {}, false},
		{"ended", never, func(*Engine) {}, false},
		{"due before", planned - 1, func(*Engine) {}, true},
		{"not known", 0, func(*Engine) {}, true},
		{"while it looks", planned + 1, func(e *Engine) { e.agenda.open() }, true},
	} {
		e := &Engine{slots: slots{size: 2, used: 1, by: map[string]int{"post": 1}, back: map[string]int64{}}, waker: loop.NewWaker()}
		e.agenda.set(planned)
		c.tell(e)
		e.release(&Task{Job: &Job{Connection: "post"}}, c.due)
		select {
		case <-e.waker.C():
			if !c.want {
				t.Errorf("%s: the loop was woken", c.name)
			}
		default:
			if c.want {
				t.Errorf("%s: the loop was not woken", c.name)
			}
		}
	}
}

// While something waits for a slot the agenda stays open: whoever gives one back
// wakes the loop.
func TestStarved(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		e    *Engine
		want bool
	}{
		{"nothing waits", &Engine{slots: slots{size: 2, used: 1}, waits: map[string]wait{"post submit": {}}}, false},
		{"none is free", &Engine{slots: slots{size: 2, used: 2}}, true},
		{"a lane waits for one of its connection", &Engine{slots: slots{size: 2}, waits: map[string]wait{"post submit": {slot: &fullness{}}}}, true},
	} {
		if got := c.e.starved(); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
