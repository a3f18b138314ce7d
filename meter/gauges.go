package meter

import (
	"maps"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// maxReplaced is how many values Replace takes of one source.
const maxReplaced = 500

// Value is one value of a gauge.
type Value struct {
	Name   string // as in Table
	Labels []string
	Value  float64
}

// gauges are read when they are scraped.
type gauges struct {
	descs map[string]*prometheus.Desc

	mu       sync.Mutex
	funcs    map[string][]gaugeFunc // by name and labels; several add up
	set      map[string]Value
	replaced map[string][]Value // by source
}

type gaugeFunc struct {
	name   string
	labels []string
	read   func() float64
}

func newGauges() *gauges {
	g := &gauges{descs: map[string]*prometheus.Desc{}, funcs: map[string][]gaugeFunc{}, set: map[string]Value{}, replaced: map[string][]Value{}}
	for i := range Table {
		if t := &Table[i]; t.Kind == Gauge {
			g.descs[t.Name] = prometheus.NewDesc(t.FullName(), t.Help, t.labels(), nil)
		}
	}
	return g
}

func gaugeKey(name string, labels []string) string {
	return name + "\x00" + strings.Join(labels, "\x00")
}

// Gauge has a value read at each scrape. Several functions with the same name and labels
// add up. read must be cheap and must not wait: a scrape may come in the middle of a
// stop.
func (m *Meter) Gauge(name string, read func() float64, labels ...string) {
	if m == nil {
		return
	}
	g := m.gauges
	g.mustHave(name)
	g.mu.Lock()
	defer g.mu.Unlock()
	k := gaugeKey(name, labels)
	g.funcs[k] = append(g.funcs[k], gaugeFunc{name, labels, read})
}

// Set sets a gauge. Its labels come from a closed list: every new combination is a new
// series for ever.
func (m *Meter) Set(name string, value float64, labels ...string) {
	if m == nil {
		return
	}
	m.gauges.mustHave(name)
	m.gauges.mu.Lock()
	defer m.gauges.mu.Unlock()
	m.gauges.set[gaugeKey(name, labels)] = Value{name, labels, value}
}

// Replace sets all gauges of one source: those that it set before and names no more are
// gone. Values that the table does not have are dropped, as they may come from another
// release, and so are those beyond 500.
func (m *Meter) Replace(source string, values []Value) {
	if m == nil {
		return
	}
	var kept []Value
	seen := map[string]bool{}
	for _, v := range values {
		k := gaugeKey(v.Name, v.Labels)
		if m.gauges.descs[v.Name] == nil || seen[k] || len(kept) == maxReplaced {
			continue
		}
		seen[k] = true
		kept = append(kept, v)
	}
	m.gauges.mu.Lock()
	defer m.gauges.mu.Unlock()
	m.gauges.replaced[source] = kept
}

func (g *gauges) mustHave(name string) {
	if g.descs[name] == nil {
		panic("meter: no such gauge: " + name)
	}
}

// Describe implements prometheus.Collector.
func (g *gauges) Describe(c chan<- *prometheus.Desc) {
	for _, d := range g.descs {
		c <- d
	}
}

// Collect implements prometheus.Collector.
func (g *gauges) Collect(c chan<- prometheus.Metric) {
	g.mu.Lock()
	funcs, all := maps.Clone(g.funcs), maps.Clone(g.set)
	for _, values := range g.replaced {
		for _, v := range values {
			all[gaugeKey(v.Name, v.Labels)] = v
		}
	}
	g.mu.Unlock()
	for k, several := range funcs {
		v := Value{Name: several[0].name, Labels: several[0].labels}
		for _, f := range several {
			v.Value += f.read()
		}
		all[k] = v
	}
	for _, v := range all {
		// A wrong number of labels comes from another release's document.
		if one, err := prometheus.NewConstMetric(g.descs[v.Name], prometheus.GaugeValue, v.Value, v.Labels...); err == nil {
			c <- one
		}
	}
}
