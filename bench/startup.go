package main

import "context"

// readyStarts is how often Till is started on the large database.
const readyStarts = 5

// readiness is how Till starts on a large database.
type readiness struct {
	Payments        int64  `json:"payments"`
	ReadyMs         spread `json:"ready_ms"`
	IdleMemoryBytes spread `json:"idle_memory_bytes"`
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
	for range readyStarts {
		p, err := bed.serve(ctx, "till")
		if err != nil {
			return err
		}
		err = p.settle(ctx)
		p.stop()
		if err != nil {
			return err
		}
		r.logf("ready in %.0f ms, %s idle", ms(p.readyIn), megabytes(p.idle))
		times, memory = append(times, ms(p.readyIn)), append(memory, float64(p.idle)/1e6)
	}
	r.record(goalReady, times)
	r.record(goalIdle, memory)
	r.report.Readiness = &readiness{Payments: r.rows, ReadyMs: spreadOf(times), IdleMemoryBytes: spreadOf(memory)}
	return nil
}
