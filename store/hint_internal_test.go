package store

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"till"
)

func ids(n int) []till.ID {
	out := make([]till.ID, n)
	for i := range out {
		out[i] = till.ID{15: byte(i), 14: byte(i >> 8), 0: 1}
	}
	return out
}

func TestAnEarRemembersSoManyClients(t *testing.T) {
	t.Parallel()
	s := &Store{hints: newHints(nil)}
	ear := s.ListenAll()
	defer ear.Close()
	for _, c := range []struct {
		told int
		all  bool
	}{{1, false}, {maxTaken, false}, {maxTaken + 1, true}, {2, false}} {
		for _, id := range ids(c.told) {
			s.hints.tell([]till.ID{id, id}[:1], false)
		}
		<-ear.C()
		if clients, all := ear.Take(); all != c.all || !all && len(clients) != c.told {
			t.Errorf("told of %d clients, it remembers %d, all %t", c.told, len(clients), all)
		}
	}
	if clients, all := ear.Take(); clients != nil || all {
		t.Errorf("what was taken is still there: %v %t", clients, all)
	}
}

// What one instance writes, another reads, within PostgreSQL's bounds.
func TestNotificationsAreBounded(t *testing.T) {
	t.Parallel()
	for n, all := range map[int]bool{1: false, maxNotified: false, maxNotified + 1: true} {
		sender := newPost(newHints(nil), nil)
		sender.started = true // nothing is sent here
		for _, id := range ids(n) {
			sender.put([]till.ID{id})
		}
		payload, _ := sender.take()
		if len(payload) >= 8000 {
			t.Errorf("%d clients are %d bytes", n, len(payload))
		}
		s := &Store{hints: newHints(nil)}
		ear, own := s.ListenOthers(), sender.h.add(&Ear{clients: map[till.ID]bool{}})
		receiver := newPost(s.hints, nil)
		receiver.heard(payload)
		if clients, got := ear.Take(); got != all || !all && len(clients) != n {
			t.Errorf("of %d clients %d arrived, all %t", n, len(clients), got)
		}
		sender.heard(payload)
		if clients, got := own.Take(); clients != nil || got || !sender.h.live.Load() {
			t.Errorf("an own notification told of %v, all %t; it must only show that the way is open", clients, got)
		}
		receiver.heard("0123 what a newer release may say")
		if _, got := ear.Take(); !got {
			t.Error("a word that is not known is not taken for everybody")
		}
		if again, _ := sender.take(); again != "" {
			t.Errorf("it is sent twice: %q", strings.TrimSpace(again))
		}
	}
}

// The file is looked at only while somebody listens, and nothing is left
// running: the bubble would not end.
func TestNobodyListensAndNobodyLooks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(t.Context(), Config{Path: filepath.Join(t.TempDir(), "till.db")})
		if err != nil {
			t.Fatal(err)
		}
		watching := func() bool {
			s.hints.mu.Lock()
			defer s.hints.mu.Unlock()
			return s.hints.watching
		}
		for range 2 { // it can begin again
			if watching() {
				t.Error("the file is watched before anybody listens")
			}
			a, b := s.Listen(till.ID{1}), s.ListenAll()
			time.Sleep(time.Minute)
			a.Close()
			a.Close()
			time.Sleep(time.Minute)
			if !watching() || b.Patience() != trusting {
				t.Error("the file is not watched though somebody listens")
			}
			b.Close()
			time.Sleep(2 * beat)
		}
		if watching() || len(s.hints.narrow)+len(s.hints.wide) > 0 {
			t.Error("the file is watched, or an Ear kept, though nobody listens")
		}
		c := s.ListenAll() // never closed
		s.Close()
		s.Listen(till.ID{1}).Close() // too late, and harmless
		c.Close()
	})
}
