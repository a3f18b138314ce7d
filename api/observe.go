package api

import (
	"cmp"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"till"
	"till/internal/limit"
	"till/internal/trace"
	"till/meter"
)

// counts is what the API counts.
type counts struct {
	inFlight atomic.Int64
	routes   map[*Route]*meter.Route // nil counts nothing
	none     *meter.Route            // requests that no route answers
	slow     limit.Lines
}

func newCounts(s *server) *counts {
	c := &counts{routes: map[*Route]*meter.Route{}, none: s.Meter.NewRoute(meter.NoRoute), slow: limit.Lines{Most: maxSlowLines}}
	for i := range Routes {
		rt := &Routes[i]
		c.routes[rt] = s.Meter.NewRoute(rt.Method + " " + rt.Path)
	}
	s.Meter.Gauge("http_in_flight", func() float64 { return float64(c.inFlight.Load()) })
	s.Meter.Gauge("polls_waiting", func() float64 { return float64(s.polls.places.Held() + s.waits.places.Held()) })
	s.Meter.Gauge("exports_running", func() float64 { return float64(s.exports.places.Held()) })
	return c
}

// slowRequest is from when on a request has a line of its own; maxSlowLines is how many
// of these lines are written in a second.
const (
	slowRequest  = time.Second
	maxSlowLines = 10
)

// served reports a request that has ended to the meter, the trace and the log. Its line is
// at debug, or at warn if it was slow. All fields are always there; a golden test holds the
// list.
func (c *exchange) served() {
	took := time.Since(c.start)
	route := c.s.counts.none
	if c.route != nil {
		route = c.s.counts.routes[c.route]
	}
	status := c.status
	if c.code == till.CodeMethodUnavailable || c.code == till.CodePayoutsHeld {
		status = meter.Closed
	}
	route.Served(status, took, c.waited)
	if c.caller.Asks() {
		c.trace(took)
	}

	level, others := slog.LevelDebug, int64(0)
	if took > slowRequest && !c.waited && c.status < http.StatusBadRequest { // an error has its line already
		ok := false
		if others, ok = c.s.counts.slow.Allow(time.Now()); ok {
			level = slog.LevelWarn
		}
	}
	ctx := c.r.Context()
	if !c.s.Log.Enabled(ctx, level) {
		return
	}
	c.s.Log.LogAttrs(ctx, level, "request",
		slog.String("request_id", c.id), slog.String("route", cmp.Or(c.name(), meter.NoRoute)), slog.Int("status", c.status), slog.String("code", string(c.code)),
		slog.String("client", c.clientName()), slog.String("key", c.keyID), slog.String("from", c.peer().String()), slog.Duration("took", took),
		slog.Bool("waited", c.waited), slog.Int("bytes_in", c.received), slog.Int("bytes_out", c.sent), slog.Bool("replayed", c.Header()["Idempotent-Replayed"] != nil), slog.Int64("others", others))
}

// clientName returns the key's client for the log, "" if it is unknown.
func (c *exchange) clientName() string {
	if c.client.IsZero() {
		return ""
	}
	return c.client.String()
}

// trace records the span of a request whose caller asks for it: in the caller's trace, with
// a link to the payment or payout.
func (c *exchange) trace(took time.Duration) {
	now := c.s.Store.Now()
	span := trace.Span{
		Trace: c.caller.Trace, ID: c.caller.Span, Parent: c.caller.Parent, Name: c.name(), Kind: trace.Server,
		Start: now.Add(-took), End: now, Failed: c.status >= http.StatusInternalServerError,
	}
	if !c.subject.IsZero() {
		span.Link = trace.Link{Trace: c.subject, Span: trace.RootID(c.subject)}
	}
	span.Text("http.request.method", c.route.Method)
	span.Text("http.route", "/v1"+c.route.Path)
	span.Int("http.response.status_code", int64(c.status))
	span.Text("till.code", string(c.code))
	span.Text("till.request_id", c.id)
	c.s.Tracer.Record(&span)
}
