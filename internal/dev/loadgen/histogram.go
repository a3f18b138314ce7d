package loadgen

import (
	"math/bits"
	"time"
)

// subBits sets the precision: each power of two is divided into 1<<subBits equal buckets,
// so a value is known to within 1.6 %.
const (
	subBits   = 6
	bucketSum = (64 - subBits) << subBits
)

// Histogram counts latencies. The zero value is empty. Its size is fixed, so recording
// takes a few instructions and no memory.
type Histogram struct {
	counts [bucketSum]uint32
	N      int64 // how many
	Max    time.Duration
}

// Record adds one latency.
func (h *Histogram) Record(d time.Duration) {
	if d < 0 {
		d = 0
	}
	h.counts[bucketOf(uint64(d))]++
	h.N++
	h.Max = max(h.Max, d)
}

// Merge adds all that o has counted.
func (h *Histogram) Merge(o *Histogram) {
	for i, c := range o.counts {
		h.counts[i] += c
	}
	h.N += o.N
	h.Max = max(h.Max, o.Max)
}

// Quantile returns the latency that a share q of all did not exceed, 0 if there are none.
// It rounds up, but not beyond the largest latency.
func (h *Histogram) Quantile(q float64) time.Duration {
	rank := int64(q * float64(h.N))
	var seen int64
	for i, c := range h.counts {
		seen += int64(c)
		if c > 0 && (seen > rank || seen == h.N) {
			return min(time.Duration(bucketEnd(i)), h.Max)
		}
	}
	return 0
}

// bucketOf returns the bucket of v: v itself while it is small, then its
// leading bits.
func bucketOf(v uint64) int {
	shift := bits.Len64(v) - subBits - 1
	if shift <= 0 {
		return int(v)
	}
	return shift<<subBits + int(v>>shift)
}

// bucketEnd returns the largest value of bucket i.
func bucketEnd(i int) uint64 {
	shift := i>>subBits - 1
	if shift <= 0 {
		return uint64(i)
	}
	lead := uint64(i - shift<<subBits)
	return (lead+1)<<shift - 1
}
