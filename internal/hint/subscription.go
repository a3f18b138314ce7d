package hint

import (
	"sync"
	"time"

	"till"
)

// How long a subscriber may wait for a hint before it polls.
const (
	pollWithHints    = 5 * time.Second        // other processes' hints arrive
	pollWithoutHints = 250 * time.Millisecond // they may not
)

// maxDrained is how many clients a Subscription remembers between two Drains; beyond it,
// all of them may have changed.
const maxDrained = 1000

// Subscription gets a hint when event logs have grown. Close it.
type Subscription struct {
	hub    *Hub
	client till.ID // whose log; zero: every client's
	remote bool    // only other processes' commits
	c      chan struct{}

	mu      sync.Mutex
	clients map[till.ID]bool // since the last Drain; nil in a subscription to one client
	all     bool
}

// C returns a channel that holds one value while there are hints that were not received.
func (s *Subscription) C() <-chan struct{} { return s.c }

// Drain returns the clients whose logs have grown since the last Drain; all says that it
// may be any client. It is for a subscription to every client.
func (s *Subscription) Drain() (clients []till.ID, all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if all = s.all; !all {
		for id := range s.clients {
			clients = append(clients, id)
		}
	}
	clear(s.clients)
	s.all = false
	return clients, all
}

// MaxWait returns how long to wait for a hint before polling. It changes when other
// processes' hints begin or cease to arrive, and then the subscription gets a hint. So call
// it before each wait.
func (s *Subscription) MaxWait() time.Duration {
	if s.hub.live.Load() {
		return pollWithHints
	}
	return pollWithoutHints
}

// Close ends the subscription. C is never closed.
func (s *Subscription) Close() { s.hub.remove(s) }

// notify notes clients, nil for all. It never blocks.
func (s *Subscription) notify(clients []till.ID) {
	if s.clients != nil {
		s.mu.Lock()
		s.all = s.all || clients == nil || len(s.clients)+len(clients) > maxDrained
		for _, id := range clients {
			if !s.all {
				s.clients[id] = true
			}
		}
		s.mu.Unlock()
	}
	select {
	case s.c <- struct{}{}:
	default:
	}
}
