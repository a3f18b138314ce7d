package loadgen

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// accepted is the status of a payment that was recorded.
const accepted = 202

// The limits of any load, whatever the flags say.
const (
	MaxConnections = 1024
	MaxTime        = 10 * time.Minute
	MaxRequests    = 50_000_000
	AnswerTime     = 30 * time.Second // what a server may take for one answer
)

// Closed is one round: each connection sends its next request when the previous one is
// answered, until the time is over or the count is reached.
type Closed struct {
	Addr        string
	APIKey      string
	Connections int
	Duration    time.Duration // 0: no limit but MaxTime
	Requests    int           // 0: no limit but MaxRequests
}

// Result is the result of a load.
type Result struct {
	Accepted int64         // answers 202; any other answer fails the load
	Elapsed  time.Duration // to the last answer
	Latency  *Histogram
}

// Rate returns the accepted requests per second.
func (r Result) Rate() float64 { return float64(r.Accepted) / r.Elapsed.Seconds() }

// Run loads the server. It fails at the first answer that is not a 202, and when ctx ends.
// The Result has what was accepted until then.
func (l Closed) Run(ctx context.Context) (Result, error) {
	conns, err := l.dial(ctx)
	defer closeAll(conns)
	if err != nil {
		return Result{Latency: &Histogram{}}, err
	}
	duration := l.Duration
	if duration <= 0 || duration > MaxTime {
		duration = MaxTime
	}
	requests := l.Requests
	if requests <= 0 || requests > MaxRequests {
		requests = MaxRequests
	}

	// A connection that fails, or an interrupt, ends all connections at once.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { closeAll(conns) })()

	// The count starts at the time, so two rounds never use the same order number.
	var orders atomic.Int64
	orders.Store(time.Now().UnixMicro())

	callers := make([]*connection, len(conns))
	for i, c := range conns {
		callers[i] = &connection{
			conn: c, template: newTemplate(l.Addr, "/v1", l.APIKey, &orders), reader: reader{src: c},
			budget: (requests + i) / len(conns),
		}
	}
	var wg sync.WaitGroup
	start := time.Now()
	for _, c := range callers {
		wg.Go(func() {
			if err := c.loop(start, start.Add(duration)); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	r := Result{Elapsed: time.Since(start), Latency: &Histogram{}}
	for _, c := range callers {
		r.Latency.Merge(&c.latency)
	}
	r.Accepted = r.Latency.N
	return r, context.Cause(ctx)
}

func (l Closed) dial(ctx context.Context) ([]net.Conn, error) {
	var conns []net.Conn
	d := net.Dialer{Timeout: 5 * time.Second}
	for range min(l.Connections, MaxConnections) {
		c, err := d.DialContext(ctx, "tcp", l.Addr)
		if err != nil {
			return conns, err
		}
		conns = append(conns, c)
	}
	if len(conns) == 0 {
		return nil, errors.New("a load needs at least one connection")
	}
	return conns, nil
}

func closeAll(conns []net.Conn) {
	for _, c := range conns {
		c.Close()
	}
}

// connection is one connection of a load.
type connection struct {
	conn     net.Conn
	template *template
	reader   reader
	budget   int // requests it may send
	latency  Histogram
}

// loop sends a request and waits for the answer, repeatedly. The end of one request is the
// start of the next, so one reading of the clock serves both. The deadline is set once,
// because setting it each time would cost as much as a request.
func (c *connection) loop(start, end time.Time) error {
	if err := c.conn.SetDeadline(end.Add(AnswerTime)); err != nil {
		return err
	}
	for range c.budget {
		if _, err := c.conn.Write(c.template.next()); err != nil {
			return err
		}
		status, body, err := c.reader.next()
		if err != nil {
			return err
		}
		if status != accepted {
			return fmt.Errorf("answer %d: %.300s", status, body)
		}
		now := time.Now()
		c.latency.Record(now.Sub(start))
		if start = now; !now.Before(end) {
			break
		}
	}
	return nil
}
