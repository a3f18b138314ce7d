package webhook

import (
	"fmt"
	"testing"

	"till"
)

func TestBodiesAreKeptAsOneStretch(t *testing.T) {
	t.Parallel()
	stretch := func(from, to int64) (out []*body) {
		for n := from; n <= to; n++ {
			out = append(out, &body{sequence: n, weight: 2 << 10})
		}
		return out
	}
	a, b := till.ID{1}, till.ID{2}
	var k bodyCache
	want := func(client till.ID, after int64, limit int, want string) {
		t.Helper()
		got := k.after(client, after, limit, 1<<40)
		text := "nothing"
		if len(got) > 0 {
			text = fmt.Sprintf("%d to %d", got[0].sequence, got[len(got)-1].sequence)
		}
		expect(t, fmt.Sprintf("after %d", after), text, want)
	}
	want(a, 0, 10, "nothing")
	k.add(a, stretch(1, 5))
	want(a, 0, 10, "1 to 5")
	want(a, 2, 2, "3 to 4")
	want(a, 5, 10, "nothing")
	want(b, 0, 10, "nothing")
	k.add(a, stretch(6, 8))
	want(a, 4, 10, "5 to 8")
	k.add(a, stretch(2, 3)) // known already
	want(a, 0, 10, "1 to 8")
	k.add(a, stretch(20, 22)) // a gap: only what is newer is worth keeping
	want(a, 7, 10, "nothing")
	want(a, 19, 10, "20 to 22")
	k.add(a, stretch(3, 4)) // older
	want(a, 2, 10, "nothing")
	k.add(a, stretch(23, 6000))
	want(a, 5999, 10, "6000 to 6000")
	want(a, 6000-maxClientCacheBytes/(2<<10)-1, 10, "nothing")
	want(a, 6000-maxClientCacheBytes/(2<<10), 1, fmt.Sprintf("%d to %[1]d", 6000-maxClientCacheBytes/(2<<10)+1))
	for n := range 40 {
		k.add(till.ID{3, byte(n)}, stretch(1, 1000))
		if k.bytes > maxCacheBytes {
			t.Fatalf("%d bytes of %d clients are kept, of %d", k.bytes, len(k.clients), maxCacheBytes)
		}
	}
}

// A body can be as large as a client likes: what is kept, and what is read for
// one window, is bounded by bytes.
func TestKeptBodiesAreBoundedByBytes(t *testing.T) {
	t.Parallel()
	var k bodyCache
	client := till.ID{1}
	for n := range int64(4000) {
		k.add(client, []*body{{sequence: n + 1, weight: 48 << 10}})
		if s := k.clients[client]; k.bytes > maxClientCacheBytes || s.weight != k.bytes || weightOf(s.all) != k.bytes {
			t.Fatalf("after %d: %d bytes are kept, %d of the client, %d in its bodies, of %d", n+1, k.bytes, s.weight, weightOf(s.all), maxClientCacheBytes)
		}
	}
	if got := k.after(client, 3990, 100, 100<<10); len(got) != 3 {
		t.Errorf("a window of 100 KB has %d bodies of 48 KB", len(got))
	}
	if got := k.after(client, 3990, 100, 0); len(got) != 1 {
		t.Errorf("without room there are %d bodies, want one: else nothing would ever be sent", len(got))
	}
	k.forget(client)
	if k.bytes != 0 {
		t.Errorf("%d bytes are kept of nobody", k.bytes)
	}
}
