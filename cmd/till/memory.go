package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// How much the collector lets pile up. What lives is mostly small, a few MB, and
// what is thrown away is much: at Go's own pace it would run dozens of times a
// second for little. But large bodies make what lives larger, and then five times
// that would be a lot.
const (
	gcPercent   = 400
	softMemory  = 96 << 20 // up to here it runs at gcPercent
	memoryPause = time.Second
)

// setGCPercent sets how often the collector runs, unless the environment says.
func setGCPercent() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}

// boundMemory keeps the memory of a server at softMemory, or at twice what
// lives where that is more, until ctx ends: a limit below what lives would keep
// the collector running for nothing.
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

// memoryLimit returns the limit for so many bytes that live, in steps: to set it
// stops everybody for a moment.
func memoryLimit(living int64) int64 {
	const step = 16 << 20
	return max(softMemory, (2*living+step-1)/step*step)
}

// living returns how many bytes were in use when the collector ran last, with
// the stacks, and with what it needs for itself.
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
