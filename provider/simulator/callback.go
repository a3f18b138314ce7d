package simulator

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// CallbackSender sends an operator's callbacks, with its faults. Stop it when the operator
// ends.
type CallbackSender struct {
	injector *FaultInjector
	http     *http.Client
	ctx      context.Context
	stop     context.CancelFunc
	wg       sync.WaitGroup
	slots    chan struct{} // callbacks under way
	pending  atomic.Int64  // callbacks that are due later
}

// maxPending is how many callbacks may be due later. More are never sent, as happens with
// operators.
const maxPending = 100_000

// Dial opens a connection, as net.Dialer does.
type Dial func(ctx context.Context, network, addr string) (net.Conn, error)

// NewCallbackSender returns a sender of at most 64 callbacks at once. dial replaces the
// dialer, for a network in memory; nil means the system's.
func NewCallbackSender(d *FaultInjector, dial Dial) *CallbackSender {
	ctx, stop := context.WithCancel(context.Background())
	return &CallbackSender{injector: d, ctx: ctx, stop: stop, slots: make(chan struct{}, 64),
		http: &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 16, DialContext: dial}}}
}

// Stop ends the sender: callbacks that are due later are never sent.
func (c *CallbackSender) Stop() {
	c.stop()
	c.wg.Wait()
	c.http.CloseIdleConnections()
}

// Send sends a callback after a while. It calls make then, because the body has the state
// of that time; nil means no callback. If retries is not zero, an answer other than 2xx
// causes that many more tries, a second apart.
func (c *CallbackSender) Send(after time.Duration, retries int, make func() *http.Request) {
	if c.ctx.Err() != nil || c.injector.Happens(c.injector.faults().LostCallback) {
		return
	}
	times := 1
	if c.injector.Happens(c.injector.faults().DuplicateCallback) {
		times = 5
	}
	for range times {
		if c.pending.Add(1) > maxPending {
			c.pending.Add(-1)
			return
		}
		c.wg.Go(func() {
			defer c.pending.Add(-1)
			c.send(after, retries, make)
		})
	}
}

func (c *CallbackSender) send(after time.Duration, retries int, make func() *http.Request) {
	timer := time.NewTimer(after)
	defer timer.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-timer.C:
		}
		select {
		case <-c.ctx.Done():
			return
		case c.slots <- struct{}{}:
		}
		ok := c.once(make())
		<-c.slots
		if ok || retries == 0 {
			return
		}
		retries--
		timer.Reset(time.Second)
	}
}

func (c *CallbackSender) once(r *http.Request) bool {
	if r == nil {
		return true
	}
	res, err := c.http.Do(r.WithContext(c.ctx))
	if err != nil {
		return false
	}
	defer res.Body.Close()
	io.Copy(io.Discard, io.LimitReader(res.Body, 4096))
	return res.StatusCode/100 == 2
}

func (d *FaultInjector) faults() Faults {
	if d == nil {
		return Faults{}
	}
	return d.config
}

// Faults returns the faults, with defaults filled in.
func (d *FaultInjector) Faults() Faults { return d.faults() }

// Post returns a callback with a JSON body, nil if there is no address.
func Post(method, url string, body []byte) *http.Request {
	if url == "" {
		return nil
	}
	r, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		return nil
	}
	r.Header.Set("Content-Type", "application/json")
	return r
}
