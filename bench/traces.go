package main

import (
	"context"
	"io"
	"net/http"
)

// tracedShare is what the shipped program traces by default.
const tracedShare = "0.01"

// serveCollector takes traces and drops them.
func serveCollector(ctx context.Context, args []string) error {
	return serveUntil(ctx, args, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if r.Method == http.MethodGet { // whether it is ready
			io.WriteString(w, `{"total": 0}`)
		}
	}))
}

// measureTraces loads two servers with creates, in turns: one without traces, and one that
// sends those of tracedShare to a collector in another process.
func measureTraces(ctx context.Context, r *engineRun) error {
	var running processes
	defer running.stop()
	collector, err := running.add(r.in.serveHelper(ctx, "serve-collector"))
	if err != nil {
		return err
	}
	sides := []*contender{{name: "without traces"}, {name: "with traces"}}
	for i, args := range [][]string{nil, {"-otlp", "http://" + collector.addr + "/v1/traces", "-trace-ratio", tracedShare}} {
		bed, err := r.newTestbed(ctx, []string{"untraced", "traced"}[i])
		if err != nil {
			return err
		}
		p, err := running.add(bed.serveOwnTill(ctx, args...))
		if err != nil {
			return err
		}
		sides[i].servers, sides[i].db, sides[i].length = []*process{p}, r.db, r.length()/createTurns
	}
	if err := r.runInTurns(ctx, createTurns*r.rounds, sides...); err != nil {
		return err
	}
	r.record(goalTraces, ratios(sides[1].rates, sides[0].rates))
	for _, s := range sides {
		if err := s.servers[0].checkTotal(ctx, s.sent); err != nil {
			return err
		}
	}
	return nil
}
