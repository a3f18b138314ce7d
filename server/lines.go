package server

import (
	"context"
	"encoding/json"
	"log/slog"

	"till/meter"
	"till/store/admin"
	"till/upkeep"
)

// logChanged writes a line about something that is now otherwise. Lines "changed" of
// breakers and endpoints have the same fields; a golden test holds the list.
func (s *Server) logChanged(what, id, from, to, why string) {
	s.log.LogAttrs(context.Background(), slog.LevelInfo, "changed",
		slog.String("what", what), slog.String("id", id), slog.String("from", from), slog.String("to", to), slog.String("why", why))
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// booksLine is what was read and found about the books. All fields are always there.
type booksLine struct {
	what           string // verify, backup, drill or reconcile
	id             string // the connection of a statement
	read, problems int64
	seconds        int64
}

func (s *Server) logBooks(l booksLine) {
	s.log.LogAttrs(context.Background(), slog.LevelInfo, "books",
		slog.String("what", l.what), slog.String("id", l.id), slog.Int64("read", l.read), slog.Int64("problems", l.problems), slog.Int64("seconds", l.seconds))
}

// bookTimes are the gauges whose value is a time: when a command last did something about
// the books.
var bookTimes = map[string]string{
	"backup_timestamp_seconds": "backup", "drill_timestamp_seconds": "drill", "statement_until_timestamp_seconds": "reconcile",
}

// noticeBooks writes a line for each backup, drill and comparison that a command has made,
// and for each kind of case, since the gauges were last read. The instance that read them writes it; the first read
// after a start is what was before.
func (s *Server) noticeBooks(t *admin.Turn, values []meter.Value) {
	if t.Name != upkeep.GaugesTurn || t.RanAt == s.noticedAt {
		return
	}
	first := s.noticedAt.IsZero()
	s.noticedAt = t.RanAt
	s.noticeCases(values, !first && t.Owner == s.id)
	was := s.noticed
	s.noticed = map[string]float64{}
	for _, v := range values {
		what := bookTimes[v.Name]
		if what == "" || len(v.Labels) != 1 {
			continue
		}
		label := v.Labels[0]
		s.noticed[what+" "+label] = v.Value
		if first || t.Owner != s.id || v.Value == 0 || was[what+" "+label] == v.Value {
			continue
		}
		l := booksLine{what: what}
		switch {
		case what == "reconcile":
			l.id, l.problems = label, int64(sumOf(values, "statement_differences", label))
		case label == "failed":
			l.problems = 1
		case what == "backup":
			l.read, l.seconds = int64(sumOf(values, "backup_bytes", "")), int64(sumOf(values, "backup_seconds", ""))
		}
		s.logBooks(l)
	}
}

// sumOf adds up the values of a gauge whose first label is the given one; "" takes all.
func sumOf(values []meter.Value, name, label string) (n float64) {
	for _, v := range values {
		if v.Name == name && (label == "" || len(v.Labels) > 0 && v.Labels[0] == label) {
			n += v.Value
		}
	}
	return n
}

// showGauges shows the numbers from the books as metrics. A result that cannot be read is
// another release's, and is left out.
func (s *Server) showGauges(t *admin.Turn) {
	var values []meter.Value
	if json.Unmarshal([]byte(t.Result), &values) == nil {
		s.meter.Replace(t.Name, values)
		s.noticeBooks(t, values)
	}
}
