package door

import (
	"cmp"
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

// What is logged about refused and failed requests: every second, one line for each reason,
// address and key, with the count and the ids of the first few. One more line per reason
// counts those beyond the limits.
const (
	logInterval = time.Second
	maxLogKeys  = 1000 // combinations of reason, address and key counted separately in that time
	maxLogLines = 20   // lines per reason: those with the highest counts
	maxLogIDs   = 10   // request ids per line
	maxLogValue = 200  // bytes of a value that a stranger chose
)

// Log collects what is logged about refusals. It writes from a timer of its own, so no
// answer waits for the log.
type Log struct {
	log *slog.Logger

	mu    sync.Mutex
	armed bool
	lines map[lineKey]*line
	rest  map[string]int // those beyond maxLogKeys, by reason
}

// Refusal is one request that was refused.
type Refusal struct {
	Reason string
	From   netip.Addr
	Key    string // the API key's id or the person's; "" if unknown
	Status int
	Client string // "" if unknown
	Route  string // its pattern, never the path, which may hold a token
	Origin string // of a form from elsewhere; "" otherwise
	Warn   bool   // a person should know of it
	Proxy  bool   // X-Forwarded-For was there and was not read, and that may be why
}

type lineKey struct {
	reason string
	from   netip.Addr
	key    string
}

type line struct {
	Refusal
	count int
	ids   []string
}

// NewLog returns a Log that writes to log.
func NewLog(log *slog.Logger) *Log {
	return &Log{log: log, lines: make(map[lineKey]*line), rest: make(map[string]int)}
}

// Add counts a request.
func (l *Log) Add(one Refusal, requestID string) {
	key := lineKey{one.Reason, one.From, one.Key}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.armed {
		l.armed = true
		time.AfterFunc(logInterval, l.Flush)
	}
	at := l.lines[key]
	if at == nil {
		if len(l.lines) >= maxLogKeys {
			l.rest[one.Reason]++
			return
		}
		one.Origin = cut(one.Origin)
		at = &line{Refusal: one}
		l.lines[key] = at
	}
	at.count++
	if len(at.ids) < maxLogIDs {
		at.ids = append(at.ids, requestID)
	}
}

// cut shortens a value that a stranger chose.
func cut(s string) string {
	if len(s) <= maxLogValue {
		return s
	}
	return strings.ToValidUTF8(s[:maxLogValue], "") + "…"
}

// Flush writes what was collected.
func (l *Log) Flush() {
	l.mu.Lock()
	lines, rest := l.lines, l.rest
	l.lines, l.rest, l.armed = make(map[lineKey]*line), make(map[string]int), false
	l.mu.Unlock()

	byReason := make(map[string][]*line)
	for _, one := range lines {
		byReason[one.Reason] = append(byReason[one.Reason], one)
	}
	for reason, all := range byReason {
		slices.SortFunc(all, func(a, b *line) int {
			return cmp.Or(b.count-a.count, a.From.Compare(b.From), strings.Compare(a.Key, b.Key))
		})
		for i, one := range all {
			if i < maxLogLines {
				one.write(l.log)
			} else {
				rest[reason] += one.count
			}
		}
	}
	for reason, n := range rest {
		l.log.Warn("more requests refused", "reason", reason, "count", n)
	}
}

func (l *line) write(log *slog.Logger) {
	level := slog.LevelInfo
	if l.Warn {
		level = slog.LevelWarn
	}
	words := []any{"reason", l.Reason, "status", l.Status, "from", l.From.String(), "count", l.count, "route", l.Route}
	for _, w := range []struct{ name, value string }{{"client", l.Client}, {"key", l.Key}, {"origin", l.Origin}} {
		if w.value != "" {
			words = append(words, w.name, w.value)
		}
	}
	if l.Proxy {
		words = append(words, "hint", ProxyHint)
	}
	log.Log(context.Background(), level, "requests refused", append(words, "request_ids", strings.Join(l.ids, " "))...)
}

// ProxyHint says what to do about a proxy that is not named.
const ProxyHint = "X-Forwarded-For is not read: if this is your proxy, name it in trusted_proxies"
