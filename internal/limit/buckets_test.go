package limit

import (
	"net/netip"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 18, 12, 0, 0, 0, time.UTC)

func address(first byte, n int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{first, byte(n >> 16), byte(n >> 8), byte(n)}), 32)
}

// A burst, then one more per refill; what did not fail comes back.
func TestAnAddressHasABurstOfTries(t *testing.T) {
	t.Parallel()
	b, a := NewBuckets[netip.Prefix](3, 2*time.Second), address(10, 1)
	for range 3 {
		if _, ok := b.Take(a, noon); !ok {
			t.Fatal("the burst is not there")
		}
	}
	if wait, ok := b.Take(a, noon); ok || wait != 2*time.Second {
		t.Errorf("%t after %s", ok, wait)
	}
	if left := b.Left(a, noon.Add(time.Second)); left != 0.5 {
		t.Errorf("%v tries are left", left)
	}
	if wait, empty := b.Empty(a, noon.Add(time.Second)); !empty || wait != time.Second {
		t.Errorf("%t after %s", empty, wait)
	}
	if _, ok := b.Take(address(10, 2), noon); !ok {
		t.Error("another address waits")
	}
	if _, ok := b.Take(a, noon.Add(2*time.Second)); !ok {
		t.Error("nothing was refilled")
	}
	b.Return(a, noon.Add(2*time.Second))
	if _, ok := b.Take(a, noon.Add(2*time.Second)); !ok {
		t.Error("what was given back is not there")
	}
}

// Beyond ten thousand callers those go that have tried nothing for a while.
func TestBucketsAreBounded(t *testing.T) {
	t.Parallel()
	b := NewBuckets[netip.Prefix](20, 3*time.Second)
	for n := range maxBuckets - 1 {
		b.of(address(10, n), noon) // full: they say nothing
	}
	for range 20 {
		b.Take(address(11, 0), noon)
	}
	for n := range 2 * maxBuckets / 3 {
		b.of(address(12, n), noon).tries--
	}
	if _, ok := b.Take(address(11, 0), noon); ok {
		t.Error("a bucket in use was dropped while others were full")
	}
	for n := range 2 * maxBuckets {
		b.of(address(13, n), noon).tries--
	}
	if n := len(b.all); n > maxBuckets {
		t.Errorf("%d buckets", n)
	}
	if _, empty := b.Empty(address(14, 0), noon); empty || len(b.all) > maxBuckets {
		t.Error("to ask made a bucket")
	}
}
