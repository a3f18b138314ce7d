package engine

import (
	"strings"
	"testing"

	"till"
	"till/provider"
	"till/store"
)

func refOf(n int) store.Ref { return store.Ref{Client: till.ID{1}, ID: till.FirstID(till.Time(n))} }

func stepOf(n int, acked bool) *store.Step {
	ref := refOf(n)
	return &store.Step{ClientID: ref.Client, SubjectID: ref.ID, Acked: acked}
}

// What was sent lately is remembered for asking about it, and for nothing else:
// whether a step that nobody has acknowledged may be sent again depends on what
// changes.
func TestJobsAreRememberedForAsking(t *testing.T) {
	t.Parallel()
	var k recentSends
	first := &Instruction{Ref: refOf(1)}
	k.keep(first)
	k.keep(&Instruction{Ref: refOf(1)}) // sent again
	found, others := k.find([]*store.Step{stepOf(1, true), stepOf(2, true)})
	if found[refOf(1)] != first || len(found) != 1 || len(others) != 1 || others[0] != refOf(2) {
		t.Errorf("found %v, others %v", found, others)
	}
	if found, others = k.find([]*store.Step{stepOf(1, false)}); len(found) != 0 || len(others) != 1 {
		t.Errorf("of a step that nobody has acknowledged: found %v, others %v", found, others)
	}
}

// The oldest are forgotten, so that memory has a bound.
func TestTheOldestJobsAreForgotten(t *testing.T) {
	t.Parallel()
	var k recentSends
	for n := range 3 * maxRecent {
		k.keep(&Instruction{Ref: refOf(n)})
	}
	if len(k.byRef) != maxRecent || k.count != maxRecent {
		t.Fatalf("%d jobs in an order of %d, want %d", len(k.byRef), k.count, maxRecent)
	}
	for n := range 3 * maxRecent {
		if found, _ := k.find([]*store.Step{stepOf(n, true)}); (len(found) == 1) != (n >= 2*maxRecent) {
			t.Fatalf("job %d: found %v", n, found)
		}
	}
}

// Jobs are bounded by what they weigh, of one client and of all, and what is
// forgotten gives its bytes back. A large document is not kept at all.
func TestKeptJobsAreBoundedByBytes(t *testing.T) {
	t.Parallel()
	var k recentSends
	of := func(client byte, n int) *Instruction {
		ref := store.Ref{Client: till.ID{client}, ID: till.FirstID(till.Time(n))}
		return &Instruction{Ref: ref, Request: provider.Request{Description: strings.Repeat("d", 6<<10)}}
	}
	var most int64
	for n := range maxRecent {
		k.keep(of(1, n))
		most = max(most, k.bytes.Held())
	}
	if held := k.bytes.HeldBy(till.ID{1}); held > maxClientRecentBytes || held < maxClientRecentBytes-1<<20 {
		t.Errorf("%d bytes of one client are kept, of %d", held, maxClientRecentBytes)
	}
	if found, _ := k.find([]*store.Step{{ClientID: till.ID{1}, SubjectID: of(1, 0).Ref.ID, Acked: true}}); len(found) != 1 {
		t.Error("a client that may keep no more has lost what it kept")
	}
	for n := range maxRecent {
		k.keep(of(2, n))
		most = max(most, k.bytes.Held())
	}
	if most > maxRecentBytes || k.bytes.HeldBy(till.ID{2}) < maxClientRecentBytes/2 {
		t.Errorf("%d bytes were kept at most, of %d; the second client has %d", most, maxRecentBytes, k.bytes.HeldBy(till.ID{2}))
	}
	for n := range maxRecent {
		k.note(map[store.Ref]any{of(1, n).Ref: nil, of(2, n).Ref: nil})
	}
	if k.bytes.Held() != 0 || len(k.byRef) != 0 {
		t.Errorf("%d bytes of %d jobs are held after all have ended", k.bytes.Held(), len(k.byRef))
	}
}

// That nothing but the first send is on record must never be taken for granted
// wrongly for many at once: each would then be recorded alone.
func TestOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		sends int // with this one
		seen  store.Step
		want  bool
	}{
		{"the first send, in the create", 1, store.Step{}, true},
		{"a send after a try that had no connection", 1, store.Step{Calls: 1}, false},
		{"a send after one that never began", 1, store.Step{Calls: 1, LeaseVersion: 1}, false},
		{"the first question after the send was answered", 1, store.Step{Sends: 1, Calls: 1, LeaseVersion: 1}, true},
		{"the first question after whoever sent has died", 1, store.Step{Sends: 1, LeaseVersion: 1}, false},
		{"the second question after whoever sent has died", 1, store.Step{Sends: 1, Calls: 1, LeaseVersion: 2}, false},
		{"the second question", 1, store.Step{Sends: 1, Calls: 2, LeaseVersion: 2}, false},
		{"the second send", 2, store.Step{Sends: 1, Calls: 3, LeaseVersion: 3}, false},
		{"a question after two sends", 2, store.Step{Sends: 2, Calls: 2, LeaseVersion: 2}, false},
		{"a question that a callback asks for at the end", 1, store.Step{Sends: 1, Calls: 4}, false},
	} {
		task := &Task{Step: c.seen, seen: c.seen}
		task.Step.Sends = c.sends
		if got := task.onlyFirstSend(); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// A job that keeps its row is given the row as it is left; one that does not keep
// it, or is not remembered, is not.
func TestJobsAreToldHowRowsAreLeft(t *testing.T) {
	t.Parallel()
	var k recentSends
	keeps, bare := &Instruction{Ref: refOf(1), Row: "before"}, &Instruction{Ref: refOf(2)}
	k.keep(keeps)
	k.keep(bare)
	k.note(map[store.Ref]any{refOf(1): "after", refOf(2): "after", refOf(3): "after"})
	found, _ := k.find([]*store.Step{stepOf(1, true), stepOf(2, true), stepOf(3, true)})
	if len(found) != 2 || found[refOf(1)].Row != "after" || found[refOf(2)] != bare {
		t.Errorf("found %v", found)
	}
	if keeps.Row != "before" {
		t.Error("a job was changed that a task may be at work with")
	}
	k.note(map[store.Ref]any{refOf(1): nil})
	k.note(map[store.Ref]any{refOf(1): "again"})
	if found, others := k.find([]*store.Step{stepOf(1, true)}); len(found) != 0 || len(others) != 1 {
		t.Errorf("what has ended is kept: %v", found)
	}
}
