package loadgen

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestBuckets(t *testing.T) {
	t.Run("every value lies in its bucket, and buckets touch", func(t *testing.T) {
		for i := 1; i < bucketSum-1; i++ {
			low, high := bucketEnd(i-1)+1, bucketEnd(i)
			if low > high {
				t.Fatalf("bucket %d is empty: %d to %d", i, low, high)
			}
			if bucketOf(low) != i || bucketOf(high) != i {
				t.Fatalf("bucket %d: its ends %d, %d are in %d, %d", i, low, high, bucketOf(low), bucketOf(high))
			}
		}
	})
	t.Run("the largest duration has a bucket", func(t *testing.T) {
		if got := bucketOf(1<<63 - 1); got >= bucketSum {
			t.Fatalf("bucket %d of %d", got, bucketSum)
		}
	})
}

func TestQuantile(t *testing.T) {
	t.Run("of nothing is zero", func(t *testing.T) {
		var h Histogram
		if got := h.Quantile(0.99); got != 0 {
			t.Fatalf("got %v", got)
		}
	})
	t.Run("is within the precision of the exact one, after a merge too", func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		var parts [4]Histogram
		var all []time.Duration
		for i := range 20_000 {
			d := time.Duration(r.ExpFloat64() * float64(3*time.Millisecond))
			parts[i%len(parts)].Record(d)
			all = append(all, d)
		}
		var h Histogram
		for i := range parts {
			h.Merge(&parts[i])
		}
		slices.Sort(all)
		if h.N != int64(len(all)) || h.Max != all[len(all)-1] {
			t.Fatalf("got %d, max %v; want %d, %v", h.N, h.Max, len(all), all[len(all)-1])
		}
		for _, q := range []float64{0, 0.5, 0.9, 0.99, 0.999, 1} {
			exact := all[min(int(q*float64(len(all))), len(all)-1)]
			got := h.Quantile(q)
			if got < exact || float64(got) > float64(exact)*1.02+1 {
				t.Errorf("quantile %v: got %v, want %v", q, got, exact)
			}
		}
	})
}
