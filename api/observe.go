package api

import (
	"cmp"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"till"
	"till/account"
	"till/meter"
)

// counts is what the API counts.
type counts struct {
	inFlight atomic.Int64
	routes   map[*Route]*meter.Route // nil counts nothing
	none     *meter.Route            // requests that no route answers
	slow     lineLimit
}

func newCounts(s *server) *counts {
	c := &counts{routes: map[*Route]*meter.Route{}, none: s.Meter.NewRoute(meter.NoRoute)}
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

// served counts a request that has ended, and writes its line: at debug, or at warn if it
// was slow. All fields are always there; a golden test holds the
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
	c.trace(took)

	level, others := slog.LevelDebug, int64(0)
	if took > slowRequest && !c.waited && c.status < http.StatusBadRequest { // an error has its line already
		ok := false
		if others, ok = c.s.counts.slow.allow(time.Now()); ok {
			level = slog.LevelWarn
		}
	}
	ctx := c.r.Context()
	if !c.s.Log.Enabled(ctx, level) {
		return
	}
	client := ""
	if !c.client.IsZero() {
		client = c.client.String()
	}
	c.s.Log.LogAttrs(ctx, level, "request",
		slog.String("request_id", c.id), slog.String("route", cmp.Or(c.name(), meter.NoRoute)), slog.Int("status", c.status), slog.String("code", string(c.code)),
		slog.String("client", client), slog.String("key", c.keyID), slog.String("from", c.peer().String()), slog.Duration("took", took),
		slog.Bool("waited", c.waited), slog.Int("bytes_in", c.received), slog.Int("bytes_out", c.sent), slog.Bool("replayed", c.Header()["Idempotent-Replayed"] != nil), slog.Int64("others", others))
}

// countRefusal counts an answer that refuses a key or a client.
func (c *exchange) countRefusal(e *till.Error) {
	m := c.s.Meter
	switch {
	case c.reason == string(till.CodeRateLimited):
		m.RateLimited()
	case c.reason == string(till.CodeMissingKey):
		m.AuthRefused("missing")
	case c.reason == refusedUnknown:
		if _, _, _, whole := account.ParseKey(c.r.Header.Get("X-Api-Key")); !whole {
			m.AuthRefused("malformed")
		} else {
			m.AuthRefused("unknown")
		}
	case c.reason == refusedEnded:
		m.AuthRefused("ended")
	case c.reason == refusedAddress:
		m.AuthRefused("address")
	case c.reason == string(till.CodeKeyInURL):
		m.AuthRefused("in_url")
	case e.Code == till.CodeClientSuspended:
		m.AuthRefused("suspended")
	}
}

// lineLimit lets maxSlowLines pass in a second.
type lineLimit struct {
	mu      sync.Mutex
	since   time.Time
	written int
	skipped int64
}

// allow reports whether a line may be written, and how many were not since the last one.
func (l *lineLimit) allow(now time.Time) (skipped int64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.since) >= time.Second {
		l.since, l.written = now, 0
	}
	if l.written == maxSlowLines {
		l.skipped++
		return 0, false
	}
	l.written++
	skipped, l.skipped = l.skipped, 0
	return skipped, true
}
