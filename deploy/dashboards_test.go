package deploy_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"till/meter"
)

var updateDashboards = flag.Bool("update", false, "rewrite deploy/grafana/*.json")

// source is the data source that a dashboard asks for when it is imported; provisioning
// has one of this name.
var source = object{"type": "prometheus", "uid": "${source}"}

// panelHeight is how high a panel is, in Grafana's units.
const panelHeight = 8

// help returns the sentences of the metrics in a panel's expressions.
func (p *panel) help() string {
	seen := map[string]bool{}
	var all []string
	for _, q := range p.exprs {
		for _, name := range metricName.FindAllString(q.expr, -1) {
			for _, m := range meter.Table {
				if (name == m.FullName() || strings.HasPrefix(name, m.FullName()+"_")) && !seen[m.Name] {
					seen[m.Name] = true
					all = append(all, "`"+m.FullName()+"`: "+m.Help)
				}
			}
		}
	}
	return strings.Join(all, "\n\n")
}

// json returns a panel as Grafana has it.
func (p *panel) json(id, x, y int) object {
	steps := []object{{"color": "green", "value": nil}}
	if p.bad > 0 {
		steps = append(steps, object{"color": "red", "value": p.bad})
	}
	var targets []object
	for i, q := range p.exprs {
		targets = append(targets, object{"refId": string(rune('A' + i)), "expr": q.expr, "legendFormat": q.legend, "datasource": source,
			"instant": p.kind != line, "range": p.kind == line})
	}
	custom := object{}
	if p.kind == line && p.bad > 0 {
		custom["thresholdsStyle"] = object{"mode": "line"}
	}
	options := object{}
	if p.kind == stat {
		options = object{"reduceOptions": object{"calcs": []string{"lastNotNull"}}, "colorMode": "value"}
	}
	return object{
		"id": id, "type": p.kind, "title": p.title, "description": strings.TrimSpace(p.shows + "\n\n" + p.help()), "datasource": source,
		"gridPos": object{"x": x, "y": y, "w": p.wide, "h": panelHeight}, "targets": targets, "options": options,
		"fieldConfig": object{"defaults": object{"unit": p.unit, "min": minOf(p), "custom": custom, "thresholds": object{"mode": "absolute", "steps": steps}}, "overrides": []any{}},
	}
}

// minOf lets axes of counts and sizes begin at zero. Times of day do not.
func minOf(p *panel) any {
	if p.unit == "dateTimeFromNow" {
		return nil
	}
	return 0
}

// json returns a dashboard as Grafana imports it.
func (d *dashboard) json() ([]byte, error) {
	var panels []object
	id, y := 0, 0
	for _, r := range d.rows {
		id++
		head := object{"id": id, "type": "row", "title": r.title, "collapsed": false, "gridPos": object{"x": 0, "y": y, "w": 24, "h": 1}, "panels": []any{}}
		if r.each {
			head["repeat"] = "connection"
		}
		panels = append(panels, head)
		y++
		x := 0
		for i := range r.panels {
			p := &r.panels[i]
			if x+p.wide > 24 {
				x, y = 0, y+panelHeight
			}
			id++
			panels = append(panels, p.json(id, x, y))
			x += p.wide
		}
		y += panelHeight
	}
	variables := []object{{"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus", "hide": 0}}
	if slices.ContainsFunc(d.rows, func(r row) bool { return r.each }) {
		variables = append(variables, object{"name": "connection", "label": "Connection", "type": "query", "datasource": source, "multi": true, "includeAll": true, "refresh": 2,
			"current": object{"selected": true, "text": []string{"All"}, "value": []string{"$__all"}}, "query": object{"query": "label_values(till_operator_in_flight, connection)", "refId": "connections"}})
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	err := e.Encode(object{
		"uid": "till-" + strings.TrimSuffix(d.file, ".json"), "title": d.title, "description": d.shows, "tags": []string{"till"}, "schemaVersion": 39, "version": 1, "editable": true,
		"time": object{"from": "now-6h", "to": "now"}, "refresh": "30s", "timezone": "browser", "templating": object{"list": variables}, "panels": panels,
		"links": []object{{"type": "dashboards", "tags": []string{"till"}, "title": "Till", "asDropdown": false}},
	})
	return b.Bytes(), err
}

// The files are the table, and every panel counts by metrics that exist.
func TestDashboardsAreTheTable(t *testing.T) {
	t.Parallel()
	for i := range dashboards {
		d := &dashboards[i]
		want, err := d.json()
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("grafana", d.file)
		if *updateDashboards {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := read(t, path); got != string(want) {
			t.Errorf("%s is not the table: run go test ./deploy -run Dashboards -update", path)
		}
		checkDashboard(t, path)
	}
	files, err := filepath.Glob("grafana/*.json")
	if err != nil || len(files) != len(dashboards) {
		t.Errorf("%v, %v", files, err)
	}
}

// checkDashboard reads a file as Grafana does.
func checkDashboard(t *testing.T, path string) {
	t.Helper()
	var d struct {
		Panels []struct {
			ID                       int
			Type, Title, Description string
			GridPos                  struct{ X, W int }
			Targets                  []struct{ Expr string }
			FieldConfig              struct{ Defaults struct{ Unit string } }
		}
	}
	if err := json.Unmarshal([]byte(read(t, path)), &d); err != nil {
		t.Fatal(err)
	}
	ids, titles := map[int]bool{}, map[string]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] || titles[p.Title] || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("%s: %s stands twice, or beyond the edge", path, p.Title)
		}
		ids[p.ID], titles[p.Title] = true, true
		if p.Type == "row" {
			continue
		}
		if p.Title == "" || p.FieldConfig.Defaults.Unit == "" || !strings.HasSuffix(p.Description, ".") || len(p.Targets) == 0 {
			t.Errorf("%s: %q lacks a title, a unit, a description or an expression", path, p.Title)
		}
		for _, q := range p.Targets {
			names := metricName.FindAllString(q.Expr, -1)
			if len(names) == 0 && !strings.Contains(q.Expr, `{job="till"}`) {
				t.Errorf("%s: %s counts by nothing: %s", path, p.Title, q.Expr)
			}
			for _, name := range names {
				if !exists(name) {
					t.Errorf("%s: %s: there is no metric %s", path, p.Title, name)
				}
			}
		}
	}
}

// Every metric is on a dashboard.
func TestEveryMetricIsOnADashboard(t *testing.T) {
	t.Parallel()
	shown := map[string]bool{"till_backup_seconds": true, "till_restored_timestamp_seconds": true, "till_certificate_life_seconds": true} // for alerts only
	for _, d := range dashboards {
		for _, name := range metricName.FindAllString(read(t, filepath.Join("grafana", d.file)), -1) {
			shown[name] = true
		}
	}
	for _, m := range meter.Table {
		if n := m.FullName(); !shown[n] && !shown[n+"_bucket"] && !shown[n+"_sum"] {
			t.Errorf("%s is on no dashboard", n)
		}
	}
}

// Prometheus evaluates every expression on series that were recorded from a running
// service (testdata/scrapes.txt), and finds something. Metrics that the service did not
// have then are listed in the file by hand.
func TestDashboardsShowSomething(t *testing.T) {
	t.Parallel()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("there is no promtool on this machine; Debian has it in its package prometheus, and make soak installs it")
	}
	var b strings.Builder
	b.WriteString("evaluation_interval: 1m\nrule_files: []\ntests:\n  - interval: 1m\n    input_series:\n")
	for line := range strings.Lines(read(t, "testdata/scrapes.txt")) {
		series, values, found := strings.Cut(strings.TrimSpace(line), " \t")
		if strings.HasPrefix(line, "#") || !found {
			continue
		}
		fmt.Fprintf(&b, "      - series: %s\n        values: %q\n", quoteYAML(series), values)
	}
	b.WriteString("    promql_expr_test:\n")
	exprs := map[string]bool{}
	for _, d := range dashboards {
		for _, r := range d.rows {
			for _, p := range r.panels {
				for _, q := range p.exprs {
					exprs[strings.ReplaceAll(q.expr, "$connection", "sandbox")] = true
				}
			}
		}
	}
	for _, e := range slices.Sorted(maps.Keys(exprs)) {
		// 1 if the expression has a value, nothing otherwise.
		fmt.Fprintf(&b, "      - expr: %s\n        eval_time: 30m\n        exp_samples:\n          - value: 1\n", quoteYAML("vector(1) and on () ("+e+")"))
	}
	path := filepath.Join(t.TempDir(), "dashboards.test.yml")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), promtool, "test", "rules", path).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Log(len(exprs), "expressions")
}

func quoteYAML(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
