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
			out = append(out, &body{sequence: n})
		}
		return out
	}
	a, b := till.ID{1}, till.ID{2}
	var k bodies
	want := func(client till.ID, after int64, limit int, want string) {
		t.Helper()
		got := k.after(client, after, limit)
		text := "nothing"
		if len(got) > 0 {
			text = fmt.Sprintf("%d to %d", got[0].sequence, got[len(got)-1].sequence)
		}
		expect(t, fmt.Sprintf("after %d", after), text, want)
	}
	want(a, 0, 10, "nothing")
	k.keep(a, stretch(1, 5))
	want(a, 0, 10, "1 to 5")
	want(a, 2, 2, "3 to 4")
	want(a, 5, 10, "nothing")
	want(b, 0, 10, "nothing")
	k.keep(a, stretch(6, 8))
	want(a, 4, 10, "5 to 8")
	k.keep(a, stretch(2, 3)) // known already
	want(a, 0, 10, "1 to 8")
	k.keep(a, stretch(20, 22)) // a gap: only what is newer is worth keeping
	want(a, 7, 10, "nothing")
	want(a, 19, 10, "20 to 22")
	k.keep(a, stretch(3, 4)) // older
	want(a, 2, 10, "nothing")
	k.keep(a, stretch(23, 6000))
	want(a, 5999, 10, "6000 to 6000")
	want(a, 6000-maxKeptPerClient-1, 10, "nothing")
	for n := range maxKept/1000 + 2 {
		k.keep(till.ID{3, byte(n)}, stretch(1, 1000))
	}
	if k.kept > maxKept+2000 || len(k.clients) > 40 {
		t.Errorf("%d bodies of %d clients are kept", k.kept, len(k.clients))
	}
}
