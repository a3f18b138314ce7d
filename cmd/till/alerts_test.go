package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"till/meter"
	"till/store"
	"till/upkeep"
)

// sample is a value of a series. A number alone has no labels.
type sample struct {
	name   string
	labels map[string]string
	value  float64
}

// key is a sample's labels as text.
func (s *sample) key() string {
	var b strings.Builder
	for _, l := range slices.Sorted(maps.Keys(s.labels)) {
		fmt.Fprintf(&b, "%s=%q,", l, s.labels[l])
	}
	return b.String()
}

// scrape is what /metrics said at a time.
type scrape struct {
	at   time.Time
	text string
}

// scrapeGauges reads the gauges of a database as the service shows them.
func scrapeGauges(t *testing.T, database string) scrape {
	t.Helper()
	m := meter.New(meter.Config{})
	onStore(t, database, func(s *store.Store) error {
		result, err := upkeep.NewGaugesTurn(s).Run(t.Context())
		if err != nil {
			return err
		}
		var values []meter.Value
		err = json.Unmarshal([]byte(result), &values)
		m.Replace(upkeep.GaugesTurn, values)
		return err
	})
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return scrape{time.Now(), w.Body.String()}
}

var (
	seriesLine = regexp.MustCompile(`(?m)^([a-z_]+)(?:\{([^}]*)\})? (\S+)$`)
	labelPair  = regexp.MustCompile(`([a-z_]+)(=~|!=|=)"([^"]*)"`)
	ruleOf     = regexp.MustCompile(`(?m)^      - alert: (\w+)\n        expr: (".*")$`)
	promToken  = regexp.MustCompile(`\s*("[^"]*"|[a-zA-Z_][a-zA-Z0-9_]*|[0-9.]+[smhd]|[0-9.]+|==|!=|>=|<=|=~|[-+*/()<>{}\[\],=])`)
)

func (s scrape) find(name string) (out []sample) {
	for _, m := range seriesLine.FindAllStringSubmatch(s.text, -1) {
		if m[1] != name {
			continue
		}
		one := sample{name, map[string]string{}, 0}
		one.value, _ = strconv.ParseFloat(m[3], 64)
		for _, l := range labelPair.FindAllStringSubmatch(m[2], -1) {
			one.labels[l[1]] = l[3]
		}
		out = append(out, one)
	}
	return out
}

// fires reports whether an expression of an alert of the shipped rules has a value after
// these scrapes, of which the last is now.
func fires(t *testing.T, alert string, scrapes ...scrape) bool {
	t.Helper()
	rules, err := os.ReadFile("../../deploy/prometheus/till.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	found, firing := false, false
	for _, m := range ruleOf.FindAllStringSubmatch(string(rules), -1) {
		if m[1] != alert {
			continue
		}
		expr, err := strconv.Unquote(m[2])
		if err != nil {
			t.Fatal(err)
		}
		found = true
		p := &promql{t: t, scrapes: scrapes}
		for _, token := range promToken.FindAllStringSubmatch(expr, -1) {
			p.tokens = append(p.tokens, token[1])
		}
		firing = len(p.expr(0)) > 0 || firing
		if p.at != len(p.tokens) {
			t.Fatalf("%s: %s is not understood from %q on", alert, expr, p.tokens[p.at:])
		}
	}
	if !found {
		t.Fatalf("there is no rule %s", alert)
	}
	return firing
}

// promql evaluates the part of Prometheus' language that the walked alerts are written in.
// A range is all scrapes, but for a forecast.
type promql struct {
	t       *testing.T
	tokens  []string
	at      int
	scrapes []scrape
}

func (p *promql) peek() string {
	if p.at == len(p.tokens) {
		return ""
	}
	return p.tokens[p.at]
}

func (p *promql) next() string {
	s := p.peek()
	p.at++
	return s
}

func (p *promql) want(token string) {
	p.t.Helper()
	if got := p.next(); got != token {
		p.t.Fatalf("%q where %q must be, in %q", got, token, p.tokens)
	}
}

// levels are the operators, those that bind least first.
var levels = [][]string{{"or"}, {"and", "unless"}, {"==", "!=", ">", "<", ">=", "<="}, {"+", "-"}, {"*", "/"}}

func (p *promql) expr(level int) []sample {
	if level == len(levels) {
		return p.atom()
	}
	left := p.expr(level + 1)
	for slices.Contains(levels[level], p.peek()) {
		op := p.next()
		left = combine(op, left, p.expr(level+1))
	}
	return left
}

// combine matches samples by their labels; a number alone matches each.
func combine(op string, left, right []sample) (out []sample) {
	match := func(one sample, all []sample) *sample {
		for i := range all {
			if all[i].key() == one.key() || all[i].labels == nil || one.labels == nil {
				return &all[i]
			}
		}
		return nil
	}
	if op == "or" {
		for _, r := range right {
			if match(r, left) == nil {
				left = append(left, r)
			}
		}
		return left
	}
	if len(left) == 1 && left[0].labels == nil && len(right) > 0 { // a number is matched with each
		left = slices.Repeat(left, len(right))
		for i := range left {
			left[i].labels = right[i].labels
		}
	}
	for _, l := range left {
		r := match(l, right)
		switch {
		case op == "unless":
			if r == nil {
				out = append(out, l)
			}
		case r == nil:
		case op == "and":
			out = append(out, l)
		default:
			if v, keep := calculate(op, l.value, r.value); keep {
				l.value = v
				out = append(out, l)
			}
		}
	}
	return out
}

func calculate(op string, a, b float64) (v float64, keep bool) {
	switch op {
	case "+":
		return a + b, true
	case "-":
		return a - b, true
	case "*":
		return a * b, true
	case "/":
		return a / b, true
	}
	c := cmp.Compare(a, b)
	return a, map[string]bool{"==": c == 0, "!=": c != 0, ">": c > 0, "<": c < 0, ">=": c >= 0, "<=": c <= 0}[op]
}

func (p *promql) atom() []sample {
	word := p.next()
	if v, err := strconv.ParseFloat(word, 64); err == nil {
		return []sample{{value: v}}
	}
	switch word {
	case "(":
		out := p.expr(0)
		p.want(")")
		return out
	case "time":
		p.want("(")
		p.want(")")
		return []sample{{value: float64(p.scrapes[len(p.scrapes)-1].at.UnixMicro()) / 1e6}}
	case "max", "sum":
		return p.aggregate(word)
	case "increase", "rate", "predict_linear":
		p.want("(")
		name := p.next()
		first, last := p.selector(name)
		within := p.tokens[p.at-2]
		for p.peek() != ")" {
			p.next() // of how far, which is always four hours
		}
		p.want(")")
		if word == "predict_linear" {
			return p.forecast(name, within)
		}
		return combine("-", last, first)
	}
	_, last := p.selector(word)
	return last
}

// forecast continues the line through the first and the last scrape of a time that have a
// series. What was scraped within a minute forecasts nothing.
func (p *promql) forecast(name, within string) (out []sample) {
	d, err := time.ParseDuration(within)
	if err != nil {
		p.t.Fatal(err)
	}
	now := p.scrapes[len(p.scrapes)-1].at
	type point struct {
		at time.Time
		sample
	}
	begun := map[string]point{}
	lines := map[string]sample{}
	for _, s := range p.scrapes {
		if now.Sub(s.at) > d {
			continue
		}
		for _, x := range s.find(name) {
			from, found := begun[x.key()]
			if !found {
				begun[x.key()] = point{s.at, x}
			} else if took := s.at.Sub(from.at); took >= time.Minute {
				x.value += (x.value - from.value) / took.Seconds() * (now.Add(4 * time.Hour)).Sub(s.at).Seconds()
				lines[x.key()] = x
			}
		}
	}
	return slices.Collect(maps.Values(lines))
}

func (p *promql) aggregate(by string) (out []sample) {
	var labels []string
	if p.peek() == "by" {
		p.want("by")
		for p.want("("); p.peek() != ")"; {
			labels = append(labels, p.next())
		}
		p.want(")")
	}
	p.want("(")
	all := p.expr(0)
	p.want(")")
	for _, s := range all {
		group := sample{labels: map[string]string{}, value: s.value}
		for _, l := range labels {
			if v := s.labels[l]; v != "" {
				group.labels[l] = v
			}
		}
		i := slices.IndexFunc(out, func(o sample) bool { return o.key() == group.key() })
		switch {
		case i < 0:
			out = append(out, group)
		case by == "sum":
			out[i].value += s.value
		default:
			out[i].value = max(out[i].value, s.value)
		}
	}
	return out
}

// selector reads a series of the first and of the last scrape.
func (p *promql) selector(name string) (first, last []sample) {
	var text strings.Builder
	if p.peek() == "{" {
		for p.next(); p.peek() != "}"; {
			text.WriteString(p.next())
		}
		p.want("}")
	}
	if p.peek() == "[" {
		p.want("[")
		p.next()
		p.want("]")
	}
	if p.tokens[p.at-1] == "]" || strings.HasPrefix(name, "till_") {
		return p.read(p.scrapes[0], name, text.String()), p.read(p.scrapes[len(p.scrapes)-1], name, text.String())
	}
	p.t.Fatalf("%q is not understood in %q", name, p.tokens)
	return nil, nil
}

func (p *promql) read(from scrape, name, matchers string) []sample {
	return slices.DeleteFunc(from.find(name), func(s sample) bool {
		for _, m := range labelPair.FindAllStringSubmatch(matchers, -1) {
			is := s.labels[m[1]] == m[3]
			if m[2] == "=~" {
				is = regexp.MustCompile("^(?:" + m[3] + ")$").MatchString(s.labels[m[1]])
			}
			if is == (m[2] == "!=") {
				return true
			}
		}
		return false
	})
}

// A disk that fills pages; one of an instance that is gone does not, nor one on which
// somebody has made room.
func TestADiskThatFillsPagesAsLongAsItDoes(t *testing.T) {
	t.Parallel()
	now := time.Now()
	free := func(before time.Duration, bytes string) scrape {
		text := "till_disk_size_bytes 100e9\n"
		if bytes != "" {
			text += "till_disk_free_bytes " + bytes + "\n"
		}
		return scrape{now.Add(-before), text}
	}
	for _, c := range []struct {
		about string
		of    [3]string // 50 and 9 minutes ago, and now
		fires bool
	}{
		{"it fills", [3]string{"40e9", "30e9", "27e9"}, true},
		{"it is nearly full", [3]string{"9e9", "9e9", "9e9"}, true},
		{"it is as it was", [3]string{"30e9", "30e9", "30e9"}, false},
		{"somebody made room", [3]string{"60e9", "30e9", "32e9"}, false},
		{"it has only just begun", [3]string{"30e9", "40e9", "35e9"}, false},
		{"the instance is gone", [3]string{"40e9", "30e9", ""}, false},
	} {
		// A scrape between the last two: a forecast needs two, also where the last has none.
		between := map[bool]string{true: c.of[2], false: "29e9"}[c.of[2] != ""]
		if got := fires(t, "TillDiskFills", free(50*time.Minute, c.of[0]), free(9*time.Minute, c.of[1]), free(5*time.Minute, between), free(0, c.of[2])); got != c.fires {
			t.Errorf("%s: it fires %t", c.about, got)
		}
	}
}
