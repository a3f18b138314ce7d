package deploy_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"till/meter"
)

var (
	alertLine  = regexp.MustCompile(`(?m)^      - alert: (\w+)$`)
	exprLine   = regexp.MustCompile(`(?m)^        expr: "(.*)"$`)
	metricName = regexp.MustCompile(`\btill_[a-z0-9_]+\b`)
)

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// exists reports whether the table has a metric, or the histogram that a series is of.
func exists(name string) bool {
	for _, m := range meter.Table {
		if name == m.FullName() {
			return true
		}
		if m.Kind != meter.Counter && m.Kind != meter.Gauge {
			for _, end := range []string{"_bucket", "_count", "_sum"} {
				if name == m.FullName()+end {
					return true
				}
			}
		}
	}
	return false
}

// Every rule counts by metrics that exist, and every alert has its page.
func TestAlertsHaveMetricsAndPages(t *testing.T) {
	t.Parallel()
	rules, pages := read(t, "prometheus/till.rules.yml"), read(t, "../docs/guide/runbooks.md")
	alerts, exprs := alertLine.FindAllStringSubmatch(rules, -1), exprLine.FindAllStringSubmatch(rules, -1)
	if len(alerts) < 30 || len(alerts) != len(exprs) {
		t.Fatalf("%d alerts with %d expressions", len(alerts), len(exprs))
	}
	for i, e := range exprs {
		names := metricName.FindAllString(e[1], -1)
		if len(names) == 0 && alerts[i][1] != "TillDown" {
			t.Errorf("%s counts by nothing", alerts[i][1])
		}
		for _, name := range names {
			if !exists(name) {
				t.Errorf("%s: there is no metric %s", alerts[i][1], name)
			}
		}
	}
	known := map[string]bool{}
	for _, a := range alerts {
		known[a[1]] = true
		_, page, found := strings.Cut(pages, "\n## "+a[1]+"\n")
		page, _, _ = strings.Cut(page, "\n## ")
		for _, part := range []string{"**Means.**", "**Look.**", "**Do.**", "**Over when.**"} {
			if !found || !strings.Contains(page, part) {
				t.Errorf("the page of %s has no %s", a[1], part)
			}
		}
	}
	for _, line := range strings.Split(pages, "\n") {
		if name, is := strings.CutPrefix(line, "## "); is && !known[name] {
			t.Errorf("%s has a page and no rule", name)
		}
	}
	for _, name := range metricName.FindAllString(pages, -1) {
		if !exists(name) {
			t.Errorf("the runbooks name %s, which does not exist", name)
		}
	}
}

// Money of test clients wakes nobody: an expression about a metric that knows live from test
// names the live series each time, and one about connections begins without the sandbox.
func TestAlertsAreAboutLiveMoney(t *testing.T) {
	t.Parallel()
	labels := map[string]string{}
	for _, m := range meter.Table {
		labels[m.FullName()] = " " + m.Labels + " "
	}
	selector := regexp.MustCompile(`\b(till_[a-z0-9_]+?)(_bucket|_count|_sum)?\b(?:\{([^}]*)\})?`)
	live, real := 0, 0
	for i, e := range exprLine.FindAllStringSubmatch(read(t, "prometheus/till.rules.yml"), -1) {
		alert := alertLine.FindAllStringSubmatch(read(t, "prometheus/till.rules.yml"), -1)[i][1]
		begun := false
		for _, s := range selector.FindAllStringSubmatch(e[1], -1) {
			of, found := labels[s[1]]
			if !found {
				of = labels[s[1]+s[2]]
			}
			if strings.Contains(of, " mode ") {
				if live++; !strings.Contains(s[3], `mode=\"live\"`) {
					t.Errorf("%s counts test money: %s", alert, s[0])
				}
			}
			if strings.Contains(of, " connection ") && !begun {
				begun = true
				if real++; !strings.Contains(s[3], `connection!=\"sandbox\"`) {
					t.Errorf("%s begins with the sandbox: %s", alert, s[0])
				}
			}
		}
	}
	if live < 8 || real < 10 {
		t.Errorf("only %d series of money and %d rules about connections", live, real)
	}
}

// Each alert fires for what it is for, and is silent otherwise.
func TestAlertsFire(t *testing.T) {
	t.Parallel()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("there is no promtool on this machine; Debian has it in its package prometheus, and make soak installs it")
	}
	arguments := []string{"check", "rules", "till.rules.yml"}
	if !testing.Short() {
		arguments = []string{"test", "rules", "till.rules.test.yml", "till.rules.slow.test.yml"}
	}
	c := exec.CommandContext(t.Context(), promtool, arguments...)
	c.Dir = "prometheus"
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	tests := read(t, "prometheus/till.rules.test.yml") + read(t, "prometheus/till.rules.slow.test.yml")
	for _, a := range alertLine.FindAllStringSubmatch(read(t, "prometheus/till.rules.yml"), -1) {
		if n := strings.Count(tests, `alertname=\"`+a[1]+`\"`); n < 2 {
			t.Errorf("%s has %d tests: at least one that it fires, and one that it does not", a[1], n)
		}
	}
}
