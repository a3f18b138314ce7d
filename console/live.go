package console

import (
	"net/http"
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
	next     time.Time     // when the next hint may go
	read     time.Duration // how long a tab's read of its page takes, smoothed
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

// turn returns how long a tab waits with its hint. Tabs take turns, so that many
// of them beside a busy merchant do not take the processor from the payments.
func (s *streams) turn(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next.Before(now) {
		s.next = now
	}
	wait := s.next.Sub(now)
	s.next = s.next.Add(min(max(hintShare*s.read, minSpacing), maxSpacing))
	return wait
}

// readIn takes how long a tab's read of its page took.
func (s *streams) readIn(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read += (d - s.read) / 8
}

// live is GET /c/{client}/live: a stream of hints that something of the
// merchant has changed. It says nothing about what.
func (v *visit) live() error {
	c := http.NewResponseController(v.w)
	v.written = true
	v.w.Header().Set("Content-Type", "text/event-stream")
	v.w.Header().Set("X-Accel-Buffering", "no") // a proxy passes it on at once
	say := func(text string) bool {
		_ = c.SetWriteDeadline(time.Now().Add(streamDeadline)) // not every writer has one
		_, err := v.w.Write([]byte(text))
		return err == nil && c.Flush() == nil
	}
	leave, ok := v.k.streams.enter(v.session.Person.ID)
	if !ok {
		say("event: full\ndata:\n\n")
		return nil
	}
	defer leave()
	if !say("retry: 3000\n\n") {
		return nil
	}
	sub := v.k.Store.Subscribe(v.client.ID)
	defer sub.Close()
	end, check := time.NewTimer(streamLife), time.NewTicker(recheckInterval)
	defer end.Stop()
	defer check.Stop()
	var (
		changed = sub.C()        // nil while a hint waits: it will cover what changes until it goes
		due     <-chan time.Time // when the hint that waits may go
		last    time.Time        // hint
	)
	for {
		select {
		case <-changed:
			changed, due = nil, time.After(max(hintInterval-time.Since(last), v.k.streams.turn(time.Now())))
		case <-due:
			select {
			case <-sub.C(): // the tab will read that too
			default:
			}
			if !say("event: hint\ndata:\n\n") {
				return nil
			}
			changed, due, last = sub.C(), nil, time.Now()
		case <-check.C:
			// A session that has ended, or a role that was taken, ends the stream.
			if v.signIn() != nil || v.enterClient() != nil || !say(":\n\n") {
				return nil
			}
		case <-end.C:
			return nil
		case <-v.k.streams.stopping:
			return nil
		case <-v.r.Context().Done():
			return nil
		}
	}
}
