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
	for limit := int64(0); ; {
		if next := memoryLimit(living()); next != limit {
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

// living returns the live bytes of the last collection, with stacks and the
// runtime's own memory.
func living() int64 {
	all := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}, {Name: "/memory/classes/metadata/other:bytes"},
	}
	metrics.Read(all)
	var n int64
	for _, s := range all {
		n += int64(s.Value.Uint64())
	}
	return n
}
