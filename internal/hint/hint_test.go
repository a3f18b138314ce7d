package hint

import (
	"context"
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

func TestASubscriptionRemembersSoManyClients(t *testing.T) {
	t.Parallel()
	h := NewHub(nil)
	sub := h.SubscribeAll()
	defer sub.Close()
	for _, c := range []struct {
		told int
		all  bool
	}{{1, false}, {maxDrained, false}, {maxDrained + 1, true}, {2, false}} {
		for _, id := range ids(c.told) {
			h.notify([]till.ID{id, id}[:1], false)
		}
		<-sub.C()
		if clients, all := sub.Drain(); all != c.all || !all && len(clients) != c.told {
			t.Errorf("told of %d clients, it remembers %d, all %t", c.told, len(clients), all)
		}
	}
	if clients, all := sub.Drain(); clients != nil || all {
		t.Errorf("what was taken is still there: %v %t", clients, all)
	}
}

// What one instance writes, another reads, within PostgreSQL's bounds.
func TestNotificationsAreBounded(t *testing.T) {
	t.Parallel()
	for n, all := range map[int]bool{1: false, maxNotified: false, maxNotified + 1: true} {
		sender := newNotifier(NewHub(nil), nil)
		sender.started = true // nothing is sent here
		for _, id := range ids(n) {
			sender.put([]till.ID{id})
		}
		payload, _ := sender.take()
		if len(payload) >= 8000 {
			t.Errorf("%d clients are %d bytes", n, len(payload))
		}
		h := NewHub(nil)
		sub, own := h.SubscribeRemote(), sender.hub.SubscribeAll()
		receiver := newNotifier(h, nil)
		receiver.receive(payload)
		if clients, got := sub.Drain(); got != all || !all && len(clients) != n {
			t.Errorf("of %d clients %d arrived, all %t", n, len(clients), got)
		}
		sender.receive(payload)
		if clients, got := own.Drain(); clients != nil || got || !sender.hub.live.Load() {
			t.Errorf("an own notification told of %v, all %t; it must only show that the way is open", clients, got)
		}
		receiver.receive("0123 what a newer release may say")
		if _, got := sub.Drain(); !got {
			t.Error("a word that is not known is not taken for everybody")
		}
		if again, _ := sender.take(); again != "" {
			t.Errorf("it is sent twice: %q", strings.TrimSpace(again))
		}
	}
}

// The file is read only while somebody subscribes, and nothing is left running: the
// bubble would not end.
func TestTheFileIsReadOnlyWhileSomebodySubscribes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := NewHub(nil)
		h.UseFile(func(context.Context) (int64, error) { return 1, nil })
		watching := func() bool {
			h.mu.Lock()
			defer h.mu.Unlock()
			return h.watching
		}
		for range 2 { // it can begin again
			if watching() {
				t.Error("the file is watched before anybody subscribes")
			}
			a, b := h.Subscribe(till.ID{1}), h.SubscribeAll()
			time.Sleep(time.Minute)
			a.Close()
			a.Close()
			time.Sleep(time.Minute)
			if !watching() || b.MaxWait() != pollWithHints {
				t.Error("the file is not watched though somebody subscribes")
			}
			b.Close()
			time.Sleep(2 * filePollInterval)
		}
		if watching() || len(h.byClient)+len(h.toAll) > 0 {
			t.Error("the file is watched, or a Subscription kept, though nobody subscribes")
		}
		c := h.SubscribeAll() // never closed
		h.StopWatching()
		h.Flush()
		h.Subscribe(till.ID{1}).Close() // too late, and harmless
		c.Close()
	})
}
