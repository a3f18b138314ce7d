package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"till"
	"till/internal/logs"
	"till/store"
	"till/store/admin"
	"till/upkeep"
)

// changedLines reads lines "changed", without the ids, and holds their fields.
func changedLines(t *testing.T, log string) (out []string) {
	t.Helper()
	for line := range strings.Lines(log) {
		var f map[string]any
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatal(err)
		}
		if f["msg"] != "changed" {
			continue
		}
		if fields := strings.Join(slices.Sorted(maps.Keys(f)), " "); fields != "from id level msg time to what why" {
			t.Errorf("a line has the fields %s", fields)
		}
		out = append(out, fmt.Sprintf("%v %v: %v", f["what"], f["to"], f["why"]))
	}
	return out
}

// Acts that change how the service works have a line, without names of people; the lines of
// one commit are bounded.
func TestActsHaveLines(t *testing.T) {
	t.Parallel()
	var w bytes.Buffer
	s := &Server{log: logs.New(&w, true, slog.LevelInfo)}
	row := func(actor, action, detail string) *store.AuditRow {
		return &store.AuditRow{ClientID: till.NewID(1), Actor: actor, Action: action, Detail: detail}
	}
	s.logActs([]*store.AuditRow{
		row("cli:canary", "key.create", "key abc, scopes payments:read"),
		row("person:Canary Ndala", "role.set", "Canary Ndala: owner, before none"),
		row("Canary of old", "payouts.hold", "canary asked for it"),
		row("api:k1", "webhook_endpoint.delete", "https://canary.example/x"),
		row("engine", "level.raise", "from level 1 to 2"),
		row("engine", "collection", "5000 XAF"), // money: no line
		row("person:Canary Ndala", "case.resolve", "canary"),
	})
	got := changedLines(t, w.String())
	want := []string{
		"key created: by a command: key abc, scopes payments:read",
		"configuration role given: by a person",
		"configuration payouts held: by a person",
		"endpoint deleted: by api:k1",
		"level raised: by the service: from level 1 to 2",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if strings.Contains(strings.ToLower(w.String()), "canary") {
		t.Errorf("a name is in the log: %s", w.String())
	}
	w.Reset()
	s.logActs(slices.Repeat([]*store.AuditRow{row("api:k1", "key.create", "")}, maxActLines+7))
	if got := changedLines(t, w.String()); len(got) != maxActLines+1 || got[maxActLines] != "others : 7 more acts are in the audit log" {
		t.Errorf("%d lines, the last is %q", len(got), got[len(got)-1])
	}
}

// The table names acts that exist: the console has words for each that is written.
func TestTheActsOfTheTableExist(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../console/words/en.toml")
	if err != nil {
		t.Fatal(err)
	}
	for action := range changes {
		if !strings.Contains(string(text), "\n\""+action+"\" = ") {
			t.Errorf("nobody writes %q", action)
		}
	}
}

// Cases that were opened and closed, by whomever, are told by kind, once.
func TestCasesHaveLines(t *testing.T) {
	t.Parallel()
	var w bytes.Buffer
	s := &Server{log: logs.New(&w, true, slog.LevelInfo), id: till.NewID(1)}
	see := func(at till.Time, owner till.ID, open map[string]float64) {
		var gauges []upkeep.Gauge
		for kind, n := range open {
			gauges = append(gauges, upkeep.Gauge{Name: "cases_open", Labels: []string{"live", kind}, Value: n})
		}
		s.showGauges(&admin.Turn{Name: upkeep.GaugesTurn, RanAt: at, Owner: owner, Result: upkeep.EncodeGauges(gauges)})
	}
	see(1, s.id, map[string]float64{"overdue": 2}) // from before the start
	see(2, s.id, map[string]float64{"overdue": 2})
	see(3, s.id, map[string]float64{"overdue": 3, "mismatch": 1})
	see(4, till.NewID(2), map[string]float64{"overdue": 3, "mismatch": 5}) // another instance's line
	see(5, s.id, map[string]float64{"mismatch": 5})
	var got []string
	for line := range strings.Lines(w.String()) {
		var f map[string]any
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%v %v %v-%v", f["what"], f["id"], f["from"], f["to"]))
	}
	if want := []string{"case mismatch 0-1", "case overdue 2-3", "case overdue 3-0"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
