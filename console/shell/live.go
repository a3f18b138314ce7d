package shell

import (
	"net/http"
	"slices"
	"sync"
	"time"

	"till"
)

// Limits of streams. A browser that is given none asks at intervals.
const (
	maxStreams       = 500 // of an instance
	maxPersonStreams = 4
	streamLife       = 5 * time.Minute
	hintInterval     = time.Second // at most one hint to a tab in it
	recheckInterval  = 15 * time.Second
	streamDeadline   = 10 * time.Second // for one write
)

// Hints to the tabs of an instance are at least minSpacing apart, because each makes a tab
// read its page again. If such reads take long, hints are hintShare times as far apart as a
// read takes, so that open tabs take about a thirtieth of one processor from the payments.
const (
	minSpacing = 100 * time.Millisecond
	maxSpacing = time.Second
	hintShare  = 30
)

// streams counts the tabs that listen.
type streams struct {
	stopping chan struct{}
	stop     func()

	mu       sync.Mutex
	all      int
	byPerson map[till.ID]int
	queue    []chan struct{} // of tabs that wait for their turn, each closed when it comes
	next     time.Time       // when the next hint may go
	read     time.Duration   // how long a tab's read of its page takes, smoothed
}

func newStreams() *streams {
	s := &streams{stopping: make(chan struct{}), byPerson: map[till.ID]int{}}
	s.stop = sync.OnceFunc(func() { close(s.stopping) })
	return s
}

// enter takes a place, which leave gives back; false: there is none.
func (s *streams) enter(person till.ID) (leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all >= maxStreams || s.byPerson[person] >= maxPersonStreams {
		return nil, false
	}
	s.all++
	s.byPerson[person]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all--
		if s.byPerson[person]--; s.byPerson[person] == 0 {
			delete(s.byPerson, person)
		}
	}, true
}

// lineUp joins the queue for hints. Tabs take turns, so that many of them beside a busy
// merchant do not take the processor from the payments. The channel is closed when the
// tab's turn has come.
func (s *streams) lineUp() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	turn := make(chan struct{})
	s.queue = append(s.queue, turn)
	if len(s.queue) == 1 {
		time.AfterFunc(time.Until(s.next), s.callNext)
	}
	return turn
}

// stepOut leaves the queue, so that nobody waits for a tab that is closed.
func (s *streams) stepOut(turn <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = slices.DeleteFunc(s.queue, func(c chan struct{}) bool { return c == turn })
}

// callNext gives the first of the queue its turn.
func (s *streams) callNext() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 || time.Until(s.next) > 0 {
		return // the queue was empty for a while, and began again with another timer
	}
	close(s.queue[0])
	s.queue = slices.Delete(s.queue, 0, 1)
	spacing := min(max(hintShare*s.read, minSpacing), maxSpacing)
	s.next = time.Now().Add(spacing)
	if len(s.queue) > 0 {
		time.AfterFunc(spacing, s.callNext)
	}
}

// readIn takes how long a tab's read of its page took.
func (s *streams) readIn(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read += (d - s.read) / 8
}

// Live is GET /c/{client}/live: a stream of hints that something of the
// merchant has changed. It says nothing about what.
func (v *Visit) Live() error {
	c := http.NewResponseController(v.W)
	v.Written = true
	v.W.Header().Set("Content-Type", "text/event-stream")
	v.W.Header().Set("X-Accel-Buffering", "no") // a proxy passes it on at once
	say := func(text string) bool {
		_ = c.SetWriteDeadline(time.Now().Add(streamDeadline)) // not every writer has one
		_, err := v.W.Write([]byte(text))
		return err == nil && c.Flush() == nil
	}
	leave, ok := v.Console.streams.enter(v.Session.Person.ID)
	if !ok {
		say("event: full\ndata:\n\n")
		return nil
	}
	defer leave()
	if !say("retry: 3000\n\n") {
		return nil
	}
	sub := v.Console.Store.Subscribe(v.Client.ID)
	defer sub.Close()
	end, check := time.NewTimer(streamLife), time.NewTicker(recheckInterval)
	defer end.Stop()
	defer check.Stop()
	var (
		changed = sub.C()        // nil while a hint waits: it will cover what changes until it goes
		due     <-chan time.Time // when the tab may ask for its turn
		turn    <-chan struct{}  // when the hint that waits may go
		last    time.Time        // hint
	)
	defer func() { v.Console.streams.stepOut(turn) }()
	for {
		select {
		case <-changed:
			changed, due = nil, time.After(hintInterval-time.Since(last))
		case <-due:
			due, turn = nil, v.Console.streams.lineUp()
		case <-turn:
			select {
			case <-sub.C(): // the tab will read that too
			default:
			}
			if !say("event: hint\ndata:\n\n") {
				return nil
			}
			changed, turn, last = sub.C(), nil, time.Now()
		case <-check.C:
			// A session that has ended, or a role that was taken, ends the stream.
			if v.SignIn() != nil || v.EnterClient() != nil || !say(":\n\n") {
				return nil
			}
		case <-end.C:
			return nil
		case <-v.Console.streams.stopping:
			return nil
		case <-v.R.Context().Done():
			return nil
		}
	}
}
