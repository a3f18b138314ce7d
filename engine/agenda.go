package engine

import (
	"math"
	"sync/atomic"

	"till"
)

// never is when a step that has ended is due again.
const never = till.Time(math.MaxInt64)

// agenda is when the loop will look for due steps by itself. Most calls end
// with a step that is due later than that, and need not wake it.
type agenda struct {
	next atomic.Int64 // 0: whoever ends must wake it
}

// open says that the loop is looking. What it does not see because it came
// too late must wake it.
func (a *agenda) open() { a.next.Store(0) }

// set says when the loop looks next. Only its own turn calls it, after open, and
// not while something waits for a slot to be given back.
func (a *agenda) set(at till.Time) { a.next.Store(int64(at)) }

// misses reports whether the loop must be woken for a step that is due then;
// 0 if that is not known.
func (a *agenda) misses(due till.Time) bool {
	next := till.Time(a.next.Load())
	return due == 0 || next == 0 || due < next
}
