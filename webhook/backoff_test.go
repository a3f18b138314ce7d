package webhook

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"till"
	"till/store/webhooks"
)

const noon = till.Time(1_000_000_000_000_000)

func TestRetries(t *testing.T) {
	t.Parallel()
	s, m, h := time.Second, time.Minute, time.Hour
	want := []time.Duration{5 * s, 30 * s, 2 * m, 10 * m, 30 * m, 2 * h, 5 * h, 10 * h, 14 * h, 20 * h, 24 * h}
	total := time.Duration(0)
	for i, pause := range want {
		for _, j := range []float64{-1, 0, 1} {
			due, exhausted := retryAt(noon, i+1, 0, j)
			if got := due.Sub(noon); exhausted || got != pause+time.Duration(j*float64(pause)/10) {
				t.Errorf("after %d attempts, jitter %v: %s, %v; want %s", i+1, j, got, exhausted, pause)
			}
		}
		total += pause
	}
	if total < 72*h {
		t.Errorf("the attempts are over after %s, want more than three days", total)
	}
	if _, exhausted := retryAt(noon, 12, 0, 0); !exhausted || MaxAttempts != 12 {
		t.Error("there are more than 12 attempts")
	}
	for _, c := range []struct{ after, want time.Duration }{{time.Second, 5 * s}, {time.Minute, m}, {48 * h, 24 * h}} {
		if due, _ := retryAt(noon, 1, c.after, 0); due.Sub(noon) != c.want {
			t.Errorf("Retry-After %s: due after %s, want %s", c.after, due.Sub(noon), c.want)
		}
	}
}

func TestProbes(t *testing.T) {
	t.Parallel()
	want := []time.Duration{0, 0, 0, 5 * time.Second, 30 * time.Second, 2 * time.Minute, 5 * time.Minute, 5 * time.Minute}
	for n, pause := range want {
		if got := probePause(n, 0); got != pause {
			t.Errorf("after %d failures: %s, want %s", n, got, pause)
		}
	}
	if got := probePause(1000, 1); got != 5*time.Minute {
		t.Errorf("after very many: %s", got)
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	ok, bad, gone := Response{Status: 200}, Response{Status: 500}, Response{Status: 410}
	busy := Response{Status: http.StatusTooManyRequests, RetryAfter: time.Hour}
	const day = 24 * time.Hour
	for _, c := range []struct {
		name     string
		failures int
		since    time.Duration // before noon; 0: it is well
		answers  []Response
		ours     bool
		again    bool

		want      int
		failing   bool
		blocked   time.Duration
		recovered bool
		disable   till.DisableReason
	}{
		{"success", 0, 0, []Response{ok}, false, false, 0, false, 0, false, ""},
		{"one failure", 0, 0, []Response{bad}, false, false, 1, true, 0, false, ""},
		{"two failures", 1, time.Hour, []Response{bad}, false, false, 2, true, 0, false, ""},
		{"the third", 2, time.Hour, []Response{bad}, false, false, 3, true, 5 * time.Second, false, ""},
		{"a burst is one reason to wait", 0, 0, slices.Repeat([]Response{bad}, 16), false, false, 3, true, 5 * time.Second, false, ""},
		{"a failed probe", 3, time.Hour, []Response{bad}, false, false, 4, true, 30 * time.Second, false, ""},
		{"many failed probes", 50, day, []Response{bad}, false, false, 51, true, 5 * time.Minute, false, ""},
		{"a success between", 2, time.Hour, []Response{bad, ok, bad}, false, false, 1, true, 0, false, ""},
		{"success at the end", 2, time.Hour, []Response{bad, bad, ok}, false, false, 0, false, 0, false, ""},
		{"recovery", 9, day, []Response{ok}, false, false, 0, false, 0, true, ""},
		{"back for a moment", 9, day, []Response{ok, bad, bad, bad}, false, false, 3, true, 5 * time.Second, false, ""},
		{"a pause was asked for", 0, 0, []Response{busy}, false, false, 1, true, time.Hour, false, ""},
		{"and is over with a success", 0, 0, []Response{busy, ok}, false, false, 0, false, 0, false, ""},
		{"gone", 0, 0, []Response{gone}, false, false, 1, true, 0, false, till.DisabledAsGone},
		{"almost five days", 60, 5*day - time.Second, []Response{bad}, false, false, 61, true, 5 * time.Minute, false, ""},
		{"five days", 60, 5 * day, []Response{bad}, false, false, 61, true, 5 * time.Minute, false, till.DisabledAsFailing},
		{"five days and a success", 60, 5 * day, []Response{ok}, false, false, 0, false, 0, true, ""},
		{"our own fault", 2, time.Hour, []Response{bad, bad}, true, false, 2, true, 0, false, ""},
		{"an event that fails again", 2, time.Hour, []Response{bad, bad}, false, true, 2, true, 0, false, ""},
		{"a probe that fails again", 3, time.Hour, []Response{bad}, false, true, 4, true, 30 * time.Second, false, ""},
		{"again, and a pause", 0, time.Hour, []Response{busy}, false, true, 0, true, time.Hour, false, ""},
		{"again, after five days", 1, 5 * day, []Response{bad}, false, true, 1, true, 0, false, till.DisabledAsFailing},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := &webhooks.Endpoint{Endpoint: till.Endpoint{Enabled: true, Failures: c.failures}}
			if c.since > 0 {
				e.FailingSince = noon.Add(-c.since)
			}
			var outcomes []attemptOutcome
			for _, a := range c.answers {
				outcomes = append(outcomes, attemptOutcome{a, noon, c.ours, c.again, ""})
			}
			recovered, disable := evaluate(e, outcomes, noon, 0)
			blocked := max(0, e.BlockedUntil.Sub(noon))
			if e.BlockedUntil.IsZero() {
				blocked = 0
			}
			if e.Failures != c.want || e.FailingSince.IsZero() == c.failing || blocked != c.blocked || recovered != c.recovered || disable != c.disable {
				t.Errorf("got %d failures, since %s, blocked %s, recovered %v, disable %q", e.Failures, e.FailingSince, blocked, recovered, disable)
			}
		})
	}
}

// scene is a window described in words: what is there, what is sent, what is left.
type scene struct {
	name     string
	cursor   int64
	due      string // rows "sequence:payment", due now; a trailing ! is one asked for by hand
	open     string // further pending rows, not due; "sequence:payment~" is being sent
	events   string // beyond the cursor; a trailing - is of a kind that is not sent, a trailing ^ is a late receipt
	logRange string // "from:to"; its events are of payments of their own
	limit    int
	sent     string // "sequence=" and 2 delivered, 5 failed, ~ under way; what is missing did not begin

	lanes string // sequences, lanes separated by |
	rows  string // what is left, "sequence status attempts"
	after int64  // the cursor
	next  int64  // of the range
}

func TestWindows(t *testing.T) {
	t.Parallel()
	for _, c := range []scene{
		{name: "all delivered", events: "1:a 2:b 3:a", sent: "1=2 2=2 3=2", lanes: "1 3|2", after: 3},
		{name: "not told about", events: "1:a- 2:b 3:c-", sent: "2=2", lanes: "2", after: 3},
		{name: "one fails", events: "1:a 2:b", sent: "1=5 2=2", lanes: "1|2", rows: "1 pending 1", after: 2},
		{name: "a newer state is sent after a failure", events: "1:a 2:a", sent: "1=5 2=2", lanes: "1 2", rows: "1 superseded 1", after: 2},
		{name: "both fail", events: "1:a 2:a", sent: "1=5 2=5", lanes: "1 2", rows: "1 superseded 1, 2 pending 1", after: 2},
		{name: "a late receipt supersedes nothing", events: "1:a 2:a^", sent: "1=5 2=2", lanes: "1 2", rows: "1 pending 1", after: 2},
		{name: "and is superseded", events: "1:a 2:a^ 3:a", sent: "1=2 2=5 3=2", lanes: "1 2 3", rows: "2 superseded 1", after: 3},
		{name: "not begun stays beyond the cursor", events: "1:a 2:b 3:c", sent: "1=2", lanes: "1|2|3", after: 1},
		{name: "not begun before one that was", events: "1:a 2:a 3:b 4:c", sent: "1=5 3=5", lanes: "1 2|3|4", rows: "1 pending 1, 2 pending 0, 3 pending 1", after: 3},
		{name: "under way", events: "1:a 2:b", sent: "1=~ 2=2", lanes: "1|2", rows: "1 pending~ 0", after: 2},
		{name: "behind one under way", events: "1:a 2:a 3:b", sent: "1=~ 3=2", lanes: "1 2|3", rows: "1 pending~ 0, 2 pending+ 0", after: 3},
		{name: "nothing began", events: "1:a 2:b", lanes: "1|2", after: 0},
		{name: "a retry works", cursor: 4, due: "2:a", events: "5:b", sent: "2=2 5=2", lanes: "2|5", rows: "2 delivered 2", after: 5},
		{name: "a retry goes before its newer state", cursor: 4, due: "2:a", events: "5:a", sent: "2=2 5=2", lanes: "2 5", rows: "2 delivered 2", after: 5},
		{name: "a retry fails before its newer state", cursor: 4, due: "2:a", events: "5:a", sent: "2=5 5=2", lanes: "2 5", rows: "2 superseded 2", after: 5},
		{name: "a row that waits is superseded", cursor: 4, open: "2:a", events: "5:a", sent: "5=5", lanes: "5", rows: "2 superseded 1, 5 pending 1", after: 5},
		{name: "a row that waits stays if nothing newer was sent", cursor: 4, open: "2:a", events: "5:a", lanes: "5", after: 4},
		{name: "an older one is being sent", cursor: 4, open: "2:a~", events: "5:a 6:b", sent: "6=2", lanes: "6", rows: "5 pending+ 0", after: 6},
		{name: "by hand neither supersedes", cursor: 4, due: "4:a!", open: "2:a", sent: "4=2", lanes: "4", rows: "4 delivered 2", after: 4},
		{name: "nor is superseded", cursor: 4, due: "2:a!", events: "5:a", sent: "2=5 5=2", lanes: "2 5", rows: "2 pending 2", after: 5},
		{name: "one probe", cursor: 4, due: "2:a 3:b", events: "5:c", limit: 1, sent: "2=5", lanes: "2", rows: "2 pending 2", after: 4},
		{name: "a probe of the log", cursor: 4, events: "5:c- 6:d 7:e", limit: 1, sent: "6=5", lanes: "6", rows: "6 pending 1", after: 6},
		{name: "a replay", cursor: 9, logRange: "3:5", sent: "3=2 4=5 5=2", lanes: "3|4|5", rows: "4 pending 1", after: 9, next: 6},
		{name: "a replay that was cut off", cursor: 9, logRange: "3:5", sent: "3=2", lanes: "3|4|5", after: 9, next: 4},
		{name: "a replay behind the live ones", cursor: 9, events: "10:a", logRange: "3:4", limit: 2, sent: "10=2 3=2", lanes: "10|3", after: 10, next: 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.check(t)
		})
	}
}

func (c *scene) check(t *testing.T) {
	e := &webhooks.Endpoint{Endpoint: till.Endpoint{Events: []till.EventKind{"told", till.PaymentUpdated}, Enabled: true}, Cursor: c.cursor}
	m := &chunkInput{bodies: map[int64]*body{}}
	m.due, m.events = c.rowsOf(c.due, noon), bodiesOf(c.events)
	m.open = append(c.rowsOf(c.open, noon+1), m.due...)
	if c.logRange != "" {
		m.logRange = &webhooks.LogRange{Why: webhooks.RangeReplay}
		fmt.Sscanf(c.logRange, "%d:%d", &m.logRange.From, &m.logRange.To)
		m.logRange.Next = m.logRange.From
		for n := m.logRange.From; n <= m.logRange.To; n++ {
			m.replay = append(m.replay, &body{sequence: n, kind: "told", subject: till.ID{99, byte(n)}})
		}
	}
	if c.limit == 0 {
		c.limit = 100
	}
	w := planChunk(e, m, noon, c.limit)
	var lanes []string
	for _, lane := range w.orderedGroups {
		var one []string
		for _, it := range lane {
			one = append(one, fmt.Sprint(it.Sequence))
			c.act(it)
		}
		lanes = append(lanes, strings.Join(one, " "))
	}
	expect(t, "lanes", strings.Join(lanes, "|"), c.lanes)
	r := w.close(noon, func() float64 { return 0 })
	var rows []string
	slices.SortFunc(r.rows, func(a, b leftover) int { return int(a.row.Sequence - b.row.Sequence) })
	for _, l := range r.rows {
		mark := ""
		switch {
		case l.row.Sending(noon):
			mark = "~"
		case l.row.Status == webhooks.DeliveryPending && l.row.Attempts == 0 && l.row.DueAt > noon:
			mark = "+"
		}
		rows = append(rows, fmt.Sprintf("%d %s%s %d", l.row.Sequence, l.row.Status, mark, l.row.Attempts))
	}
	expect(t, "rows", strings.Join(rows, ", "), c.rows)
	if r.cursor != c.after || c.logRange != "" && r.next != c.next {
		t.Errorf("the cursor is %d and the range goes on at %d, want %d and %d", r.cursor, r.next, c.after, c.next)
	}
}

// act plays what came of an item.
func (c *scene) act(it *chunkItem) {
	for _, word := range strings.Fields(c.sent) {
		sequence, what, _ := strings.Cut(word, "=")
		if sequence != fmt.Sprint(it.Sequence) {
			continue
		}
		it.state = ended
		it.attempt = webhooks.DeliveryAttempt{SentAt: noon}
		switch what {
		case "~":
			it.state = sending
		case "2":
			it.outcome = attemptOutcome{response: Response{Status: 200}, ended: noon}
		default:
			it.outcome = attemptOutcome{response: Response{Status: 500}, ended: noon}
		}
	}
}

func (c *scene) rowsOf(text string, due till.Time) (out []*webhooks.Delivery) {
	for _, word := range strings.Fields(text) {
		var sequence int64
		var payment string
		fmt.Sscanf(word, "%d:%s", &sequence, &payment)
		d := &webhooks.Delivery{Sequence: sequence, Kind: webhooks.DeliverEvent, SubjectID: till.ID{payment[0]}, Status: webhooks.DeliveryPending, Attempts: 1, DueAt: due}
		switch {
		case strings.HasSuffix(word, "~"):
			d.LeaseUntil, d.DueAt = noon+5, noon+5
		case strings.HasSuffix(word, "!"):
			d.Kind = webhooks.DeliverAgain
		}
		out = append(out, d)
	}
	return out
}

func bodiesOf(text string) (out []*body) {
	for _, word := range strings.Fields(text) {
		b := &body{kind: "told"}
		var payment string
		fmt.Sscanf(word, "%d:%s", &b.sequence, &payment)
		if b.subject = (till.ID{payment[0]}); strings.HasSuffix(word, "-") {
			b.kind = "other"
		} else if strings.HasSuffix(word, "^") {
			b.kind = till.PaymentUpdated
		}
		out = append(out, b)
	}
	return out
}
