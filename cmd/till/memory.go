package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// How much garbage may pile up. Live memory is mostly small, a few MB, and garbage
// is much: by default the collector would run dozens of times a second. But large
// bodies make live memory large, and five times that would be too much.
const (
	gcPercent   = 400
	softMemory  = 96 << 20 // up to here it runs at gcPercent
	memoryPause = time.Second
)

// A process that allocates less than quietRate in a pause is idle. Its garbage would stay
// until there are 16 MB of it; an idle process gives back what is more than idleGarbage.
const (
	quietRate   = 1 << 20
	idleGarbage = 4 << 20
)

// setGCPercent sets how often the garbage collector runs, unless the
// environment sets it.
func setGCPercent() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}

// boundMemory keeps a server's memory at softMemory, or at twice its live
// memory if that is more, until ctx ends. A limit below the live memory would
// keep the collector running for nothing.
func boundMemory(ctx context.Context) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	tick := time.NewTicker(memoryPause)
	defer tick.Stop()
	limit, last := int64(0), readMemory()
	for {
		now := readMemory()
		if now.wasteful(last) {
			debug.FreeOSMemory()
			now = readMemory()
		}
		last = now
		if next := memoryLimit(now.living); next != limit {
			limit = next
			debug.SetMemoryLimit(limit)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// memoryLimit returns the limit for an amount of live memory, in steps:
// setting it stops all goroutines for a moment.
func memoryLimit(living int64) int64 {
	const step = 16 << 20
	return max(softMemory, (2*living+step-1)/step*step)
}

// memory is what the runtime says of itself, in bytes.
type memory struct {
	living    int64 // live at the last collection, with stacks and the runtime's own memory
	garbage   int64 // of the heap, held beside what lives
	allocated int64 // since the start
}

func readMemory() memory {
	all := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}, {Name: "/memory/classes/metadata/other:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
		{Name: "/gc/heap/allocs:bytes"},
	}
	metrics.Read(all)
	n := make([]int64, len(all))
	for i, s := range all {
		n[i] = int64(s.Value.Uint64())
	}
	return memory{living: n[0] + n[1] + n[2], garbage: n[3] + n[4] + n[5] - n[0], allocated: n[6]}
}

// wasteful reports whether the process did little since last, and holds garbage.
func (m memory) wasteful(last memory) bool {
	return m.allocated-last.allocated < quietRate && m.garbage > idleGarbage
}
