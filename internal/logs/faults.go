package logs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"till/store"
)

// While the database is unreachable, each request and each loop fails, many times a second, for one
// reason. So lines about the same fault of the database are counted: the first is written
// at once, then one a second for all that came, and one when the fault is over.
const (
	faultInterval = time.Second
	faultOver     = 30 // intervals without the fault
	maxFaultIDs   = 10 // request ids in a line
)

// faultCauses are the faults that are counted, the most exact first. An error of another
// kind has a line each time.
var faultCauses = []struct {
	err  error
	name string
}{
	{store.ErrUnknownCommit, "outcome of commits is unknown"},
	{store.ErrDiskFull, "disk of the database is full"},
	{store.ErrUnavailable, "database is unavailable"},
	{store.ErrBusy, "all readers are busy"},
}

// faultLog is the handler that counts. Only warnings and errors with an error as a value are
// counted: a line that somebody needs for each payment gives its error as text.
type faultLog struct {
	slog.Handler
	faults *faults // shared by all loggers that were made of one
}

// faults are those that are going on, by cause. They write from a timer of their own.
type faults struct {
	plain slog.Handler

	mu    sync.Mutex
	timer *time.Timer // nil: nothing goes on
	all   map[string]*fault
}

// fault is one that is going on.
type fault struct {
	since, until time.Time
	first        string // the line that began it
	total        int

	// What came since the last line about it. kept is the first, with its handler: if it is
	// the only one, it is written as it is.
	count, idle int
	level       slog.Level
	kept        slog.Record
	by          slog.Handler
	lines       map[string]int // by message
	ids         []string
	err         string // the latest
}

// CountFaults returns a logger that writes to log and counts, and a function that writes
// what is counted at the end.
func CountFaults(log *slog.Logger) (counted *slog.Logger, end func()) {
	f := &faults{plain: log.Handler(), all: make(map[string]*fault)}
	return slog.New(&faultLog{f.plain, f}), f.end
}

// WithAttrs implements slog.Handler.
func (l *faultLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &faultLog{l.Handler.WithAttrs(attrs), l.faults}
}

// WithGroup implements slog.Handler.
func (l *faultLog) WithGroup(name string) slog.Handler {
	return &faultLog{l.Handler.WithGroup(name), l.faults}
}

// Handle implements slog.Handler.
func (l *faultLog) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn && l.faults.add(l.Handler, r) {
		return nil
	}
	return l.Handler.Handle(ctx, r)
}

// causeOf returns the fault that a line is about; "" if it is about none.
func causeOf(r slog.Record) (cause, text, requestID string) {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "request_id" {
			requestID = a.Value.String()
		}
		err, is := a.Value.Any().(error)
		if !is {
			return true
		}
		for _, c := range faultCauses {
			if cause == "" && errors.Is(err, c.err) {
				cause, text = c.name, err.Error()
			}
		}
		return true
	})
	return cause, text, requestID
}

// add reports whether the line was counted and must not be written.
func (f *faults) add(by slog.Handler, r slog.Record) bool {
	cause, text, requestID := causeOf(r)
	if cause == "" {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.timer == nil {
		f.timer = time.AfterFunc(faultInterval, f.tick)
	}
	at := f.all[cause]
	if at == nil {
		f.all[cause] = &fault{since: r.Time, until: r.Time, first: r.Message + ": " + text, total: 1, lines: make(map[string]int)}
		return false
	}
	if at.count == 0 {
		at.kept, at.by = r.Clone(), by
	}
	at.until, at.err, at.level = r.Time, text, max(at.level, r.Level)
	at.count, at.total, at.idle = at.count+1, at.total+1, 0
	at.lines[r.Message]++
	if requestID != "" && len(at.ids) < maxFaultIDs {
		at.ids = append(at.ids, requestID)
	}
	return true
}

// tick writes what came in one interval.
func (f *faults) tick() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.timer == nil {
		return // it has ended
	}
	f.write(false)
	if f.timer = nil; len(f.all) > 0 {
		f.timer = time.AfterFunc(faultInterval, f.tick)
	}
}

// end writes what is left when the service stops.
func (f *faults) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.timer != nil {
		f.timer.Stop()
		f.timer = nil
	}
	f.write(true)
}

func (f *faults) write(end bool) {
	for _, cause := range slices.Sorted(maps.Keys(f.all)) {
		at := f.all[cause]
		at.write(f.plain, cause)
		if at.idle++; end || at.idle > faultOver {
			delete(f.all, cause)
			at.writeEnd(f.plain, cause)
		}
	}
}

// write writes the line of one interval, and begins the next.
func (at *fault) write(h slog.Handler, cause string) {
	switch at.count {
	case 0:
		return
	case 1:
		at.by.Handle(context.Background(), at.kept)
	default:
		what := make([]string, 0, len(at.lines))
		for _, message := range slices.Sorted(maps.Keys(at.lines)) {
			what = append(what, fmt.Sprintf("%s %d", message, at.lines[message]))
		}
		r := slog.NewRecord(at.until, at.level, "faults counted", 0)
		r.AddAttrs(slog.String("cause", cause), slog.Int("count", at.count), slog.String("lines", strings.Join(what, ", ")),
			slog.Time("since", at.since), slog.String("first", at.first), slog.String("error", at.err), slog.String("request_ids", strings.Join(at.ids, " ")))
		h.Handle(context.Background(), r)
	}
	at.count, at.level, at.ids = 0, 0, nil
	clear(at.lines)
}

// writeEnd writes that the fault is over. One line that came alone needs no other.
func (at *fault) writeEnd(h slog.Handler, cause string) {
	if at.total == 1 {
		return
	}
	r := slog.NewRecord(time.Now(), slog.LevelInfo, "fault over", 0)
	r.AddAttrs(slog.String("cause", cause), slog.Int("count", at.total), slog.Time("since", at.since), slog.Time("until", at.until), slog.String("first", at.first))
	h.Handle(context.Background(), r)
}
