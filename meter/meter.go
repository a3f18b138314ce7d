package meter

import (
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Config is the lists that only the program's configuration knows.
type Config struct {
	Connections []string
	Methods     []string
	Version     string
	Revision    string
}

// other stands for a connection or a method that the configuration does not have: a row
// of another instance's, or of an earlier configuration.
const other = "other"

// Meter holds all metrics. Nil counts nothing.
type Meter struct {
	registry    *prometheus.Registry
	counters    map[string]*prometheus.CounterVec
	histograms  map[string]*prometheus.HistogramVec
	connections []string
	methods     []string

	gauges      *gauges
	authRefused map[string]prometheus.Counter
	rateLimited prometheus.Counter
	dropped     prometheus.Counter
	journal     [2]prometheus.Counter // as journalResults has them
	panics      map[string]prometheus.Counter
	unknown     map[string]prometheus.Counter // members of bodies, by mode
	callbacks   map[[2]string]prometheus.Counter
}

// New returns a Meter with every metric of Table.
func New(c Config) *Meter {
	m := &Meter{
		registry: prometheus.NewRegistry(), counters: map[string]*prometheus.CounterVec{}, histograms: map[string]*prometheus.HistogramVec{},
		connections: closed(c.Connections), methods: closed(c.Methods), gauges: newGauges(),
		authRefused: map[string]prometheus.Counter{}, panics: map[string]prometheus.Counter{}, unknown: map[string]prometheus.Counter{}, callbacks: map[[2]string]prometheus.Counter{},
	}
	for i := range Table {
		t := &Table[i]
		switch t.Kind {
		case Counter:
			m.counters[t.Name] = prometheus.NewCounterVec(prometheus.CounterOpts{Name: t.FullName(), Help: t.Help}, t.labels())
			m.registry.MustRegister(m.counters[t.Name])
		case Fast, Life, Size:
			m.histograms[t.Name] = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: t.FullName(), Help: t.Help, Buckets: buckets[t.Kind]}, t.labels())
			m.registry.MustRegister(m.histograms[t.Name])
		}
	}
	m.registry.MustRegister(m.gauges, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, why := range authReasons {
		m.authRefused[why] = m.newCounter("auth_refused_total", why)
	}
	m.rateLimited, m.dropped = m.newCounter("rate_limited_total"), m.newCounter("trace_dropped_total")
	for i, result := range journalResults {
		m.journal[i] = m.newCounter("journal_records_total", result)
	}
	for _, where := range panicPlaces {
		m.panics[where] = m.newCounter("panics_total", where)
	}
	for _, mode := range modes {
		m.unknown[mode] = m.newCounter("unknown_members_total", mode)
	}
	for _, connection := range m.connections {
		for _, result := range callbacks {
			m.callbacks[[2]string{connection, result}] = m.newCounter("callbacks_total", connection, result)
		}
	}
	m.Set("build_info", 1, c.Version, c.Revision)
	return m
}

// closed returns a list of labels without duplicates, and with other.
func closed(list []string) []string {
	list = append(slices.Clone(list), other)
	slices.Sort(list)
	return slices.Compact(list)
}

// newCounter resolves one counter. It is for start-up only.
func (m *Meter) newCounter(name string, labels ...string) prometheus.Counter {
	return m.counters[name].WithLabelValues(labels...)
}

// newHistogram resolves one histogram. It is for start-up only.
func (m *Meter) newHistogram(name string, labels ...string) prometheus.Observer {
	return m.histograms[name].WithLabelValues(labels...)
}

// known returns a label of a list, or other.
func known(list []string, label string) string {
	if _, found := slices.BinarySearch(list, label); found {
		return label
	}
	return other
}

// maxScrapes is how many scrapes are answered at once; others get 503.
const maxScrapes = 4

// Handler serves all metrics.
func (m *Meter) Handler() http.Handler {
	if m == nil {
		return http.NotFoundHandler()
	}
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes, ErrorHandling: promhttp.ContinueOnError})
}

// AuthRefused counts a request that was refused because of its key.
func (m *Meter) AuthRefused(why string) {
	if m != nil {
		if c := m.authRefused[why]; c != nil {
			c.Inc()
		}
	}
}

// RateLimited counts a request beyond a client's rate limit.
func (m *Meter) RateLimited() {
	if m != nil {
		m.rateLimited.Inc()
	}
}

// UnknownMembers counts members of a body that nobody knows.
func (m *Meter) UnknownMembers(mode string, n int) {
	if m != nil {
		if c := m.unknown[mode]; c != nil {
			c.Add(float64(n))
		}
	}
}

// Journaled counts creates that the journal has written, and creates that it lacks.
func (m *Meter) Journaled(written, missing int) {
	if m != nil {
		m.journal[0].Add(float64(written))
		m.journal[1].Add(float64(missing))
	}
}

// TraceDropped counts spans that were dropped.
func (m *Meter) TraceDropped(n int) {
	if m != nil {
		m.dropped.Add(float64(n))
	}
}

// Panicked counts a panic that was caught.
func (m *Meter) Panicked(where string) {
	if m != nil {
		if c := m.panics[where]; c != nil {
			c.Inc()
		}
	}
}

// Callback counts an operator's callback. The connection may be anything: it is in
// the URL.
func (m *Meter) Callback(connection, result string) {
	if m != nil {
		if c := m.callbacks[[2]string{known(m.connections, connection), result}]; c != nil {
			c.Inc()
		}
	}
}
