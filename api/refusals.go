package api

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"till"
	"till/internal/door"
)

// Reasons in the log that are not the code of the answer.
const (
	refusedUnknown = "unknown_key"
	refusedEnded   = "ended_key" // revoked or expired
	refusedAddress = "address_limited"
	refusedLookup  = "keys_waiting" // too many unknown keys wait for a lookup
	refusedToken   = "callback_token"
	refusedNetwork = "callback_network"
	refusedReaders = "readers_busy" // too many reads of the database
)

// What is logged about refused and failed requests: every second, one line for each reason,
// address and key, with the count and the ids of the first few. One more line per reason
// counts those beyond the limits.
const (
	refusalLogInterval = time.Second
	maxRefusalKeys     = 1000 // combinations of reason, address and key counted separately in that time
	maxRefusalLines    = 20   // lines per reason: those with the highest counts
	maxRefusalIDs      = 10   // request ids per line
)

// warnReasons are the reasons that a person should know of; others are mistakes of
// programs.
var warnReasons = []string{
	refusedUnknown, refusedEnded, refusedAddress, refusedToken, refusedNetwork,
	string(till.CodeInsufficientScope), string(till.CodeRateLimited), string(till.CodeKeyInURL), string(till.CodeClientSuspended),
}

// refusalLog collects what is logged. It writes from a timer of its own, so no answer waits
// for the log.
type refusalLog struct {
	log *slog.Logger

	mu    sync.Mutex
	armed bool
	lines map[refusalKey]*refusalLine
	rest  map[string]int // those beyond maxRefusalKeys, by reason
}

type refusalKey struct {
	reason string
	from   netip.Addr
	key    string
}

type refusalLine struct {
	refusalKey
	status           int
	client           till.ID
	route            string
	ignoresForwarded bool // X-Forwarded-For was there and is not trusted
	count            int
	ids              []string
}

func newRefusalLog(log *slog.Logger) *refusalLog {
	return &refusalLog{log: log, lines: make(map[refusalKey]*refusalLine), rest: make(map[string]int)}
}

// add counts a request.
func (r *refusalLog) add(one refusalLine, requestID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.armed {
		r.armed = true
		time.AfterFunc(refusalLogInterval, r.flush)
	}
	l := r.lines[one.refusalKey]
	if l == nil {
		if len(r.lines) >= maxRefusalKeys {
			r.rest[one.reason]++
			return
		}
		l = &one
		r.lines[one.refusalKey] = l
	}
	l.count++
	if len(l.ids) < maxRefusalIDs {
		l.ids = append(l.ids, requestID)
	}
}

// flush writes what was collected.
func (r *refusalLog) flush() {
	r.mu.Lock()
	lines, rest := r.lines, r.rest
	r.lines, r.rest, r.armed = make(map[refusalKey]*refusalLine), make(map[string]int), false
	r.mu.Unlock()

	byReason := make(map[string][]*refusalLine)
	for _, l := range lines {
		byReason[l.reason] = append(byReason[l.reason], l)
	}
	for reason, all := range byReason {
		slices.SortFunc(all, func(a, b *refusalLine) int {
			return cmp.Or(b.count-a.count, a.from.Compare(b.from), strings.Compare(a.key, b.key))
		})
		for i, l := range all {
			if i < maxRefusalLines {
				l.write(r.log)
			} else {
				rest[reason] += l.count
			}
		}
	}
	for reason, n := range rest {
		r.log.Warn("more requests refused", "reason", reason, "count", n)
	}
}

func (l *refusalLine) write(log *slog.Logger) {
	level := slog.LevelInfo
	if l.status >= http.StatusInternalServerError || slices.Contains(warnReasons, l.reason) {
		level = slog.LevelWarn
	}
	words := []any{"reason", l.reason, "status", l.status, "from", l.from.String(), "count", l.count, "route", l.route}
	if !l.client.IsZero() {
		words = append(words, "client", l.client.String())
	}
	if l.key != "" {
		words = append(words, "key", l.key)
	}
	if l.ignoresForwarded && l.reason == refusedAddress {
		words = append(words, "hint", "X-Forwarded-For is not read: if this is your proxy, name it in trusted_proxies")
	}
	log.Log(context.Background(), level, "requests refused", append(words, "request_ids", strings.Join(l.ids, " "))...)
}

// logRefusal logs the exchange's answer, if it is an error without a log line yet.
func (c *exchange) logRefusal(e *till.Error, status int) {
	if c.logged {
		return
	}
	who := refusalKey{reason: cmp.Or(c.reason, string(e.Code)), from: c.peer(), key: c.keyID}
	c.s.refusalLog.add(refusalLine{refusalKey: who, status: status, client: c.client, route: c.name(), ignoresForwarded: door.IgnoresForwarded(c.r, c.s.TrustedProxies)}, c.id)
}

// refuse returns err for a request that is not admitted, and notes why.
func (c *exchange) refuse(reason string, err error) error {
	c.reason, c.mayDelay = reason, true
	return err
}

// A client that is refused and repeats its request at once would take the CPU from all
// others. So only so many refusals are answered at once, and others are delayed a little. A
// client that follows Retry-After does not notice.
const (
	promptRefusals = 200 // a second, on this instance
	promptBurst    = 400
	maxDelayed     = 5000 // delayed at once; more are answered immediately

	// A random delay between these, so that requests that came together do not come
	// together again.
	minRefusalDelay = 1 * time.Second
	maxRefusalDelay = 4 * time.Second
)

// delays limits how fast refusals are answered.
type delays struct {
	prompt  *rate.Limiter
	waiting atomic.Int64
}

func newDelays() *delays { return &delays{prompt: rate.NewLimiter(promptRefusals, promptBurst)} }

// delay waits before a refusal is answered, if there are too many.
func (c *exchange) delay() {
	d := c.s.delays
	if d.prompt.Allow() {
		return
	}
	defer d.waiting.Add(-1)
	if d.waiting.Add(1) > maxDelayed {
		return
	}
	t := time.NewTimer(minRefusalDelay + rand.N(maxRefusalDelay-minRefusalDelay))
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.r.Context().Done():
	case <-c.s.polls.stopping:
	}
}
