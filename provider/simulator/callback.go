package simulator

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// CallbackSender makes an operator's callbacks, as its faults allow. Stop it when the
// operator ends.
type CallbackSender struct {
	injector *FaultInjector
	http     *http.Client
	ctx      context.Context
	stop     context.CancelFunc
	wg       sync.WaitGroup
	slots    chan struct{} // callbacks under way
	pending  atomic.Int64  // callbacks that wait for their time
}

// maxPending is how many callbacks may wait for their time. More are never made,
// as happens with operators.
const maxPending = 100_000

// NewCallbackSender returns a courier that makes at most 64 callbacks at once.
func NewCallbackSender(d *FaultInjector) *CallbackSender {
	ctx, stop := context.WithCancel(context.Background())
	return &CallbackSender{injector: d, ctx: ctx, stop: stop, slots: make(chan struct{}, 64),
		http: &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 16}}}
}

// Stop ends the courier: callbacks that are due later are never made.
func (c *CallbackSender) Stop() {
	c.stop()
	c.wg.Wait()
	c.http.CloseIdleConnections()
}

// Send makes a callback after a while. make is called then, because the body
// tells how things stand; nil means that there is nothing to tell. Where
// retries is not zero, an answer other than 2xx is followed by that many more
// tries, a second apart.
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

// Faults returns what the dice were made of, with defaults filled in.
func (d *FaultInjector) Faults() Faults { return d.faults() }

// Post returns a callback with a JSON body, nil if there is nowhere to send
// it.
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
