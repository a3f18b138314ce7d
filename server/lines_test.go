package server

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"till"
	"till/internal/logs"
	"till/store/admin"
	"till/upkeep"
)

// What commands have done about the books stands in the log of the service, once, in the
// instance that read it.
func TestBooksLines(t *testing.T) {
	t.Parallel()
	var w bytes.Buffer
	s := &Server{log: logs.New(&w, true, slog.LevelInfo), id: till.NewID(1)}
	turn := func(at till.Time, owner till.ID, gauges ...upkeep.Gauge) {
		s.showGauges(&admin.Turn{Name: upkeep.GaugesTurn, RanAt: at, Owner: owner, Result: upkeep.EncodeGauges(gauges)})
	}
	ok := func(at float64) upkeep.Gauge {
		return upkeep.Gauge{Name: "backup_timestamp_seconds", Labels: []string{"ok"}, Value: at}
	}
	bytesOf := upkeep.Gauge{Name: "backup_bytes", Value: 77}
	turn(1, s.id, ok(10), bytesOf) // from before the start
	turn(1, s.id, ok(10), bytesOf) // seen once more
	turn(2, s.id, ok(20), bytesOf)
	turn(3, till.NewID(2), ok(30), bytesOf) // another instance's line
	turn(4, s.id, ok(30), bytesOf, upkeep.Gauge{Name: "drill_timestamp_seconds", Labels: []string{"failed"}, Value: 5},
		upkeep.Gauge{Name: "statement_until_timestamp_seconds", Labels: []string{"mtn"}, Value: 6}, upkeep.Gauge{Name: "statement_differences", Labels: []string{"mtn", "late"}, Value: 3})
	var got []string
	for line := range strings.Lines(w.String()) {
		var f map[string]any
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatal(err)
		}
		if fields := strings.Join(slices.Sorted(maps.Keys(f)), " "); f["msg"] != "books" || fields != "id level msg problems read seconds time what" {
			t.Errorf("%s has %s", f["msg"], fields)
		}
		b, _ := json.Marshal([]any{f["what"], f["id"], f["read"], f["problems"]})
		got = append(got, string(b))
	}
	want := []string{`["backup","",77,0]`, `["drill","",0,1]`, `["reconcile","mtn",0,3]`}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
