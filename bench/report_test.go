package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"till"
	"till/internal/dev/loadgen"
)

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   spread
	}{
		{nil, spread{}},
		{[]float64{3}, spread{3, 3, 3}},
		{[]float64{9, 1, 5}, spread{5, 1, 9}},
		{[]float64{4, 1, 2, 9}, spread{3, 1, 9}},
	} {
		if got := spreadOf(c.values); got != c.want {
			t.Errorf("%v: got %v, want %v", c.values, got, c.want)
		}
	}
	if got := ratios([]float64{2, 9, 5}, []float64{4, 3}); !slices.Equal(got, []float64{0.5, 3}) {
		t.Errorf("ratios %v", got)
	}
}

func TestQuantiles(t *testing.T) {
	var h loadgen.Histogram
	for i := range 1000 {
		h.Record(time.Duration(i+1) * time.Millisecond)
	}
	got := quantilesOf(&h)
	if len(got) != len(quantileNames()) || got[2] < 500 || got[2] > 510 || got[len(got)-1] != 1000 {
		t.Errorf("got %v for %v", got, quantileNames())
	}
	if names := quantileNames(); names[2] != "p50" || names[7] != "p99.5" {
		t.Errorf("names %v", names)
	}
}

func TestGoals(t *testing.T) {
	names := map[string]bool{}
	for i := range goals {
		g := &goals[i]
		if names[g.name] {
			t.Errorf("goal %s is there twice", g.name)
		}
		names[g.name] = true
		for _, engine := range []string{engineSQLite, enginePostgres} {
			must, aim := g.limits(engine)
			if g.more && aim < must || !g.more && aim > must {
				t.Errorf("%s on %s: the aim %v is easier than %v", g.name, engine, aim, must)
			}
		}
	}
	for _, c := range []struct {
		goal, engine string
		value        float64
		want         string
	}{
		{goalCreate, engineSQLite, 0.50, "aim reached"},
		{goalCreate, engineSQLite, 0.33, "reached"},
		{goalCreate, engineSQLite, 0.32, "**missed**"},
		{goalSettle, engineSQLite, 7, "aim reached"},
		{goalSettle, enginePostgres, 7, "**missed**"},
		{goalScale, engineSQLite, 1.1, "aim reached"},
		{goalScale, engineSQLite, 1.5, "reached"},
		{goalScale, engineSQLite, 1.6, "**missed**"},
	} {
		g := &goals[slices.IndexFunc(goals, func(g goal) bool { return g.name == c.goal })]
		if got := g.verdict(c.engine, c.value); got != c.want {
			t.Errorf("%s on %s at %v: %s, want %s", c.goal, c.engine, c.value, got, c.want)
		}
	}
	for v, want := range map[float64]string{0.01: "1/100", 0.0005: "1/2000", 0.75: "0.75", 0: "0"} {
		if got := fractionText(v); got != want {
			t.Errorf("%v is written %q, want %q", v, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int64]string{7: "7", 10_000: "10 thousand", 1_000_000: "1 million", 2_500_000: "2.5 million"} {
		if got := count(n); got != want {
			t.Errorf("%d is written %q, want %q", n, got, want)
		}
	}
}

// fullReport returns a report with something in every part.
func fullReport() *report {
	r := newReport(options{rounds: 2, seconds: 1, connections: 64, rows: 10_000_000})
	for _, engine := range []string{engineSQLite, enginePostgres} {
		e := &engineRun{report: &engineReport{Engine: engine}}
		for i := range goals {
			if must, _ := goals[i].limits(engine); must != 0 {
				e.record(goals[i].name, []float64{must, must})
			}
		}
		f := figures{Name: "till", RatePerSec: spread{100, 90, 110}, Quantiles: make([]float64, len(plotQuantiles))}
		l := &lists{Rows: r.Rows}
		for _, filter := range listFilters(1, till.Time(0).Add(200*24*time.Hour)) {
			for i, place := range listPlaces {
				p := &listPage{Filter: filter.name, Where: place.name, filter: filter}
				p.p50s, p.p99s = []float64{1, 2, 3}, []float64{2, float64(2 + i), 90}
				l.Pages = append(l.Pages, p)
			}
		}
		l.summarise()
		*e.report = engineReport{Engine: engine, Measures: e.report.Measures, Creates: []figures{f}, Alone: &singleCreate{Sides: []figures{f}},
			Settlement: &settlement{}, Life: &lifecycle{}, Deployment: &deployment{Ratio: spread{0.9, 0.8, 1}}, Operators: &operators{}, Seeding: &seeding{}, Lists: l, Floods: &floods{Sides: []*floodSide{{Name: "idle", P95Ms: spread{3, 2, 4}, Flood: map[string]int64{"429": 7}}}},
			Webhooks: &webhooks{Creates: []figures{f}, Sides: []hookSide{{Name: webhookBaselineName, PerSec: spread{400, 300, 500}, SenderMicros: 5}},
				Waits: []hooksWaits{{Name: webhookRunName, Events: 150, P50Ms: spread{2, 1, 3}, MaxMs: 9}}},
			Scale: []figures{f}, Readiness: &readiness{Payments: 10, Memory: []atRest{{"then", 44e6, 15e6}}}}
		r.Engines = append(r.Engines, e.report)
	}
	return r
}

func TestReport(t *testing.T) {
	r := fullReport()
	r.fillGoals()
	md := string(r.markdown("report"))
	for _, want := range []string{
		"| create at 10 million rows / at 10 thousand rows, cost per operation | PostgreSQL | 1.5 | 1.2 | **1.5** (1.5 – 1.5) | 2 | reached |",
		"| page at offset 5 million / naive `count(*)` + `OFFSET` | SQLite | 1/100 | 1/1000 | **1/100** (1/100 – 1/100) | 2 | reached |",
		"| webhooks per second beside a dead endpoint with 100 thousand events / without it | SQLite | 0.9 | 1 | **0.9** (0.9 – 0.9) | 2 | reached |",
		"| bare loop | 400 (300–500) | 5.0 | 0.0 | 0.0 | 0 |  |", "| till | 150 | 2.00 (1.00–3.00) | 0.00 (0.00–0.00) | 9.0 |",
		"| then | 44.0 MB | 15.0 MB |",
		"Two processes / one process: **0.90** (0.80–1.00)", "(report-lists-postgres.svg)", "| idle | 0 | 0 | 0.00 | 3.00 (2.00–4.00) | 0.0 | 0 % | 0 % | 429: 7 |", "first page's p50 2.00 ms; slowest p99 6.00 ms (none, last)",
	} {
		if !strings.Contains(strings.ToLower(md), strings.ToLower(want)) {
			t.Errorf("the report lacks %q:\n%s", want, md)
		}
	}
	if strings.Contains(md, "%!") || strings.Contains(md, "{rows}") {
		t.Errorf("a blank was not filled in:\n%s", md)
	}
	// Every row stands there once for each engine; "two instances" and the three of a cluster
	// are PostgreSQL's alone.
	if rows := strings.Count(md, "| SQLite |") + strings.Count(md, "| PostgreSQL |"); rows != 2*len(goals)-4 {
		t.Errorf("%d rows, want %d", rows, 2*len(goals)-4)
	}
	plots := r.plots()
	for _, name := range []string{"latency", "rates", "lists-sqlite", "lists-postgres"} {
		if plots[name] == nil {
			t.Fatalf("no plot %s", name)
		}
		checkSVG(t, plots[name])
	}
	for _, m := range r.Engines[0].Measures {
		if m.What == "" || m.Verdict == "" {
			t.Errorf("incomplete: %+v", m)
		}
	}
}

func TestSummarise(t *testing.T) {
	l := fullReport().Engines[0].Lists
	// One slow round of one page is in the ratios, not in the median.
	if got := l.summarise(); !slices.Equal(got, []float64{2, 3, 30}) {
		t.Errorf("ratios %v", got)
	}
	if l.FirstP50Ms != 2 || l.SlowestMs != 6 {
		t.Errorf("first %v, slowest %v", l.FirstP50Ms, l.SlowestMs)
	}
}

func TestNaiveInRound(t *testing.T) {
	asked := map[int]int{}
	for _, p := range fullReport().Engines[0].Lists.Pages {
		for round := range 3 {
			if p.naiveInRound(round) {
				asked[round]++
			}
		}
	}
	filters := len(listFilters(1, 2))
	if asked[0] != 0 || asked[1] != len(listPlaces)+filters-1 || asked[2] != 1 {
		t.Errorf("asked naively: %v", asked)
	}
}

func TestListFilters(t *testing.T) {
	from := till.TimeOf(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	all := 0
	for _, f := range listFilters(from, from.Add(seedDays*24*time.Hour)) {
		if f.filter.From > f.filter.To || f.filter.From.IsZero() != f.filter.To.IsZero() {
			t.Errorf("%s: from %v to %v", f.name, f.filter.From, f.filter.To)
		}
		if q := f.query(); !strings.Contains(q, "limit=20") || strings.Contains(q, "status=&") {
			t.Errorf("%s: query %s", f.name, q)
		}
		if f.isAll() {
			all++
		}
	}
	if all != 1 {
		t.Errorf("%d filters let everything pass", all)
	}
}

func TestOptions(t *testing.T) {
	for _, args := range []string{"-rounds 0", "-seconds 61", "-connections 1", "-rows 9999", "-engine mysql", "-only lists,nothing", "-report ../x", "more"} {
		if _, err := parseOptions(strings.Fields(args)); err == nil {
			t.Errorf("%s was taken", args)
		}
	}
	o, err := parseOptions(strings.Fields("-rows 10000 -only lists,scale -dir somewhere"))
	if err != nil || len(o.engines) != 2 || len(o.only) != 2 || o.command != "go run ./bench -only=lists,scale -rows=10000" {
		t.Errorf("%+v, error %v", o, err)
	}
}
