package meter

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Route counts the requests of one route.
type Route struct {
	codes      [7]prometheus.Counter
	took, wait prometheus.Observer
}

// Closed stands for a 503 that is no fault of the service: the operators of a method cannot
// be reached, or a person holds payouts. They have alerts of their own.
const Closed = -1

// NoRoute is the name of requests that no route answers.
const NoRoute = "none"

// wait is the series of long polls, which take long on purpose.
const wait = "wait"

// slowOrRare are parts of the names of routes that share one histogram, so that it stays
// small: people's and machines' chores, not money.
var slowOrRare = []string{"/sandbox/", "/openapi.", "/webhook-endpoints", "/api-keys", "/attempts", "}/events", "/events/{", "PUT "}

// NewRoute returns the handle of a route. The name is its method and pattern.
func (m *Meter) NewRoute(name string) *Route {
	if m == nil {
		return nil
	}
	group := name
	for _, word := range slowOrRare {
		if strings.Contains(name, word) {
			group = other
		}
	}
	r := &Route{took: m.newHistogram("http_request_duration_seconds", group), wait: m.newHistogram("http_request_duration_seconds", wait)}
	for i, code := range codes {
		r.codes[i] = m.newCounter("http_requests_total", name, code)
	}
	return r
}

// Served counts a request. A status of 0 means that the client disconnected.
func (r *Route) Served(status int, took time.Duration, waited bool) {
	if r == nil {
		return
	}
	i := 0 // as codes has them
	switch {
	case status == 0:
		i = 5
	case status == Closed:
		i = 6
	case status == 429:
		i = 2
	case status == 503:
		i = 4
	case status >= 500:
		i = 3
	case status >= 400:
		i = 1
	}
	r.codes[i].Inc()
	if waited {
		r.wait.Observe(took.Seconds())
	} else {
		r.took.Observe(took.Seconds())
	}
}

// Batch counts the group commits of one queue. It implements batch.Observer.
type Batch struct {
	size, wait prometheus.Observer
	full       prometheus.Counter
}

// NewBatch returns the handle of a queue. queued returns how many items wait.
func (m *Meter) NewBatch(name string, queued func() int) *Batch {
	if m == nil {
		return nil
	}
	m.Gauge("batch_queue", func() float64 { return float64(queued()) }, name)
	return &Batch{m.newHistogram("batch_size", name), m.newHistogram("batch_wait_seconds", name), m.newCounter("batch_full_total", name)}
}

// Ran counts a batch that is about to run.
func (b *Batch) Ran(size int, wait time.Duration) {
	if b != nil {
		b.size.Observe(float64(size))
		b.wait.Observe(wait.Seconds())
	}
}

// Full counts an item that found no place.
func (b *Batch) Full() {
	if b != nil {
		b.full.Inc()
	}
}

// Operation counts one kind of call to one operator.
type Operation struct {
	outcomes    map[string]prometheus.Counter
	took, delay prometheus.Observer
	short       prometheus.Counter
}

// NewOperation returns the handle of an operation.
func (m *Meter) NewOperation(connection, operation string) *Operation {
	if m == nil {
		return nil
	}
	connection = known(m.connections, connection)
	o := &Operation{
		outcomes: map[string]prometheus.Counter{}, took: m.newHistogram("operator_call_seconds", connection, operation),
		delay: m.newHistogram("step_delay_seconds", connection, operation), short: m.newCounter("operator_short_total", connection, operation),
	}
	for _, outcome := range outcomes {
		o.outcomes[outcome] = m.newCounter("operator_calls_total", connection, operation, outcome)
	}
	return o
}

// Called counts a call that was answered, or not.
func (o *Operation) Called(outcome string, failed bool, took time.Duration) {
	if o == nil {
		return
	}
	c := o.outcomes[outcome]
	if failed || c == nil {
		c = o.outcomes["error"]
	}
	c.Inc()
	o.took.Observe(took.Seconds())
}

// LeaseOver counts a call that was not made, because its lease had ended.
func (o *Operation) LeaseOver() {
	if o != nil {
		o.outcomes["lease_over"].Inc()
	}
}

// Begun notes how long after its due time a step was begun.
func (o *Operation) Begun(delay time.Duration) {
	if o != nil {
		o.delay.Observe(max(0, delay).Seconds())
	}
}

// Short counts a due step that has to wait for the operator's rate limit.
func (o *Operation) Short() {
	if o != nil {
		o.short.Inc()
	}
}

// Subjects counts what happens to payments, or to payouts.
type Subjects struct {
	m           *Meter
	moves       map[[2]string]prometheus.Counter // by method and status
	success     map[string]prometheus.Observer   // by connection
	others      map[string]prometheus.Observer
	late, taken map[string]prometheus.Counter
	owed        map[string]prometheus.Counter
}

// NewSubjects returns the handle of a kind, with the statuses that it can have.
func (m *Meter) NewSubjects(kind string, statuses []string) *Subjects {
	if m == nil {
		return nil
	}
	s := &Subjects{m: m, moves: map[[2]string]prometheus.Counter{}, success: map[string]prometheus.Observer{}, others: map[string]prometheus.Observer{},
		late: map[string]prometheus.Counter{}, taken: map[string]prometheus.Counter{}, owed: map[string]prometheus.Counter{}}
	for _, method := range m.methods {
		for _, status := range statuses {
			s.moves[[2]string{method, status}] = m.newCounter("moves_total", kind, method, status)
		}
	}
	for _, c := range m.connections {
		if c != other { // nobody asks how long another configuration's took
			s.success[c] = m.newHistogram("time_to_final_seconds", kind, c, "success")
			s.others[c] = m.newHistogram("time_to_final_seconds", kind, c, "other")
		}
		s.late[c], s.taken[c], s.owed[c] = m.newCounter("late_total", kind, c), m.newCounter("reversed_total", kind, c), m.newCounter("owed_total", kind, c)
	}
	return s
}

// Moved counts a change of status.
func (s *Subjects) Moved(method, status string) {
	if s != nil {
		if c := s.moves[[2]string{known(s.m.methods, method), status}]; c != nil {
			c.Inc()
		}
	}
}

// Ended counts a final status, and how long it took.
func (s *Subjects) Ended(connection string, success bool, took time.Duration) {
	if s == nil {
		return
	}
	by := s.others
	if success {
		by = s.success
	}
	if o := by[connection]; o != nil {
		o.Observe(took.Seconds())
	}
}

// Late counts money that moved after the end.
func (s *Subjects) Late(connection string) {
	if s != nil {
		s.late[known(s.m.connections, connection)].Inc()
	}
}

// Reversed counts money that the operator took back.
func (s *Subjects) Reversed(connection string) {
	if s != nil {
		s.taken[known(s.m.connections, connection)].Inc()
	}
}

// Owed counts a debt of a client.
func (s *Subjects) Owed(connection string) {
	if s != nil {
		s.owed[known(s.m.connections, connection)].Inc()
	}
}

// Database counts transactions. It implements db.Observer.
type Database struct {
	results map[[2]string]prometheus.Counter
	took    map[string]prometheus.Observer
	waits   map[string]prometheus.Observer
}

// NewDatabase returns the handle of the database.
func (m *Meter) NewDatabase() *Database {
	if m == nil {
		return nil
	}
	d := &Database{map[[2]string]prometheus.Counter{}, map[string]prometheus.Observer{}, map[string]prometheus.Observer{}}
	for _, kind := range transactions {
		d.took[kind] = m.newHistogram("db_transaction_seconds", kind)
		for _, result := range txResults {
			d.results[[2]string{kind, result}] = m.newCounter("db_transactions_total", kind, result)
		}
	}
	for _, queue := range transactions[1:] {
		d.waits[queue] = m.newHistogram("db_gate_wait_seconds", queue)
	}
	return d
}

// Transaction counts one try of a transaction.
func (d *Database) Transaction(kind, result string, took time.Duration) {
	if d == nil {
		return
	}
	if c := d.results[[2]string{kind, result}]; c != nil {
		c.Inc()
		d.took[kind].Observe(took.Seconds())
	}
}

// Waited notes how long a write transaction waited for its turn.
func (d *Database) Waited(queue string, wait time.Duration) {
	if d == nil {
		return
	}
	if o := d.waits[queue]; o != nil {
		o.Observe(wait.Seconds())
	}
}

// Webhook counts deliveries.
type Webhook struct {
	results     map[string]prometheus.Counter
	took, first prometheus.Observer
}

// NewWebhook returns the handle of deliveries.
func (m *Meter) NewWebhook() *Webhook {
	if m == nil {
		return nil
	}
	w := &Webhook{map[string]prometheus.Counter{}, m.newHistogram("webhook_attempt_seconds"), m.newHistogram("webhook_first_attempt_delay_seconds")}
	for _, result := range deliveries {
		w.results[result] = m.newCounter("webhook_attempts_total", result)
	}
	return w
}

// Attempt counts an attempt.
func (w *Webhook) Attempt(result string, took time.Duration) {
	if w == nil {
		return
	}
	if c := w.results[result]; c != nil {
		c.Inc()
		w.took.Observe(took.Seconds())
	}
}

// First notes how long after its commit an event was first sent.
func (w *Webhook) First(delay time.Duration) {
	if w != nil {
		w.first.Observe(max(0, delay).Seconds())
	}
}
