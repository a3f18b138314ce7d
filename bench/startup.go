package main

import (
	"bytes"
	"context"
	"fmt"
	"time"
)

const (
	readyStarts = 5                // how often Till is started on the large database
	restAfter   = 15 * time.Second // after which the work of the last start is over, too
)

// readiness is how Till starts on a large database.
type readiness struct {
	Payments        int64    `json:"payments"`
	ReadyMs         spread   `json:"ready_ms"`
	IdleMemoryBytes spread   `json:"idle_memory_bytes"`
	Memory          []atRest `json:"memory"`
}

// atRest is the memory of an idle process at a moment, in bytes. What is not its own are
// pages of the program's file, which the system may drop and processes share.
type atRest struct {
	When     string `json:"when"`
	Resident int64  `json:"resident_bytes"`
	Own      int64  `json:"own_bytes"`
}

func (p *process) atRest(when string) atRest {
	return atRest{when, p.memory("VmRSS"), p.memory("RssAnon")}
}

// measureStartup measures how long Till takes from the start of its process to
// its first good answer to a request with a key, and how much memory it holds
// when idle.
func measureStartup(ctx context.Context, r *engineRun) error {
	bed, err := r.largeTestbed(ctx)
	if err != nil {
		return err
	}
	var times, memory []float64
	var rests []atRest
	for n := range readyStarts {
		p, err := bed.serve(ctx, "till")
		if err != nil {
			return err
		}
		err = p.settle(ctx)
		if err == nil && n == readyStarts-1 {
			rests = []atRest{p.atRest("half a second after the first answer"), {}}
			select {
			case <-ctx.Done():
				err = ctx.Err()
			case <-time.After(restAfter):
				rests[1] = p.atRest("15 seconds later")
			}
		}
		p.stop()
		if err != nil {
			return err
		}
		r.logf("ready in %.0f ms, %s idle", ms(p.readyIn), megabytes(p.idle))
		times, memory = append(times, ms(p.readyIn)), append(memory, float64(p.idle)/1e6)
	}
	r.record(goalReady, times)
	r.record(goalIdle, memory)
	r.report.Readiness = &readiness{Payments: r.rows, ReadyMs: spreadOf(times), IdleMemoryBytes: spreadOf(memory), Memory: rests}
	return nil
}

// print renders the memory of the last start.
func (a *readiness) print(b *bytes.Buffer) {
	fmt.Fprintf(b, "### Memory of an idle instance\n\nOf the last of %d starts on %d payments. What is not its own are pages of the program's file, which the system may drop and processes share.\n\n"+
		"| | resident | its own |\n|---|---|---|\n", readyStarts, a.Payments)
	for _, m := range a.Memory {
		fmt.Fprintf(b, "| %s | %s | %s |\n", m.When, megabytes(m.Resident), megabytes(m.Own))
	}
	fmt.Fprintln(b)
}
