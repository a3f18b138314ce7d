package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"till"
	"till/provider"
)

const (
	callbackBatch        = 64              // callbacks sent at the same time
	maxCallbackTries     = 3               // then it is given up
	callbackPause        = time.Second     // between two tries
	callbackTimeout      = 2 * time.Second // of one try
	callbackLease        = 5 * time.Second // after which a try whose process died is made again
	callbackPollInterval = 250 * time.Millisecond
	callbackLockedPause  = 5 * time.Millisecond // when what is due is in another process's hands
)

// Run sends callbacks when they are due, until ctx ends. It polls at least every quarter of
// a second: another process may have accepted a request.
func (o *Operator) Run(ctx context.Context) {
	for ctx.Err() == nil {
		sent, next, err := o.SendCallbacks(ctx)
		if err != nil && ctx.Err() == nil {
			o.log.Error("sandbox callbacks not sent", "error", err)
		}
		wait := o.pollInterval
		if err == nil && !next.IsZero() {
			wait = min(wait, next.Sub(o.now()))
		}
		if wait <= 0 && sent == 0 {
			wait = callbackLockedPause
		}
		if wait > 0 {
			o.pause(ctx, wait)
		}
	}
}

// pause waits for d, or until something is due earlier.
func (o *Operator) pause(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithCancel(ctx)
	listening := make(chan struct{})
	go func() {
		defer close(listening)
		select {
		case <-o.wake:
			cancel()
		case <-ctx.Done():
		}
	}()
	_ = o.sleep(ctx, d) // it ends early when woken, or when Run does
	cancel()
	// A goroutine that outlived the pause could take the next wake.
	<-listening
}

// wakeFor wakes Run if due comes before its next poll.
func (o *Operator) wakeFor(due, now till.Time) {
	if due.IsZero() || due.Sub(now) >= o.pollInterval {
		return
	}
	select {
	case o.wake <- struct{}{}:
	default: // a wake is waiting already
	}
}

// SendCallbacks sends the callbacks that are due now, at most one batch of
// them, and waits for their answers. It returns how many were received and
// when the next is due, zero if none is.
func (o *Operator) SendCallbacks(ctx context.Context) (sent int, next till.Time, err error) {
	// A read first keeps an idle sandbox from taking the write lock.
	next, err = o.book.nextCallback(ctx)
	now := o.now()
	if err != nil || next.IsZero() || next > now {
		return 0, next, err
	}
	batch, err := o.book.claimCallbacks(ctx, now)
	if err != nil {
		return 0, 0, err
	}
	if sent, err = o.deliver(ctx, batch); err != nil {
		return sent, 0, err
	}
	next, err = o.book.nextCallback(ctx)
	return sent, next, err
}

// deliver sends the callbacks of requests that this process has claimed, and records which
// are sent again. An error is the book's.
func (o *Operator) deliver(ctx context.Context, batch []*request) (sent int, err error) {
	received := make([]atomic.Int64, len(batch))
	var failed atomic.Int64
	var why atomic.Pointer[error] // of one that failed
	var posts sync.WaitGroup
	for i, r := range batch {
		c := r.callback()
		body := callbackBody(r, c)
		for range c.copies {
			posts.Go(func() {
				ctx, cancel := context.WithTimeout(ctx, callbackTimeout)
				defer cancel()
				if err := o.post(ctx, r.callbackURL, body); err != nil {
					failed.Add(1)
					why.Store(&err)
					return
				}
				received[i].Add(1)
			})
		}
	}
	posts.Wait()
	if n := failed.Load(); n > 0 {
		o.log.Warn("sandbox callbacks not delivered", "count", n, "error", *why.Load())
	}

	again := make(map[*request]till.Time, len(batch))
	for i, r := range batch {
		n := received[i].Load()
		sent += int(n)
		switch {
		case n > 0:
			again[r] = 0
		case r.callbackTries < maxCallbackTries:
			again[r] = o.now().Add(callbackPause)
		}
	}
	// What was sent is recorded even if ctx has ended meanwhile.
	return sent, o.book.reschedule(context.WithoutCancel(ctx), again)
}

// callbackBody returns what the operator posts.
func callbackBody(r *request, c plannedCallback) []byte {
	body := struct {
		PaymentID string `json:"payment_id"`
		Reference string `json:"reference"`
		Status    string `json:"status"`
		Receipt   string `json:"receipt"`
	}{r.payment.String(), r.reference.String(), string(c.claims), ""}
	if c.claims == provider.Success {
		body.Receipt = r.receipt()
	}
	b, _ := json.Marshal(body) // strings always marshal
	return b
}

// ReadClaim implements provider.ClaimReader, for payments and payouts alike.
func (o *Operator) ReadClaim(body []byte) (provider.Claim, bool) {
	var b struct{ Reference, Status, Receipt string }
	if err := json.Unmarshal(body, &b); err != nil || b.Reference == "" {
		return provider.Claim{}, false
	}
	c := provider.Claim{Receipt: b.Receipt}
	if c.Outcome = provider.Outcome(b.Status); !c.Outcome.Final() && c.Outcome != provider.Reversed {
		c.Outcome = ""
	}
	c.Reference, _ = till.ParseID(b.Reference)
	return c, true
}

// callbackClient posts callbacks. It follows no redirect.
var callbackClient = &http.Client{
	Transport: &http.Transport{
		MaxIdleConnsPerHost: callbackBatch,
		IdleConnTimeout:     30 * time.Second,
	},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// postHTTP sends a callback; any answer other than 2xx is an error.
func postHTTP(ctx context.Context, url string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := callbackClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	// A connection is used again only if its answer was read.
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10))
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return fmt.Errorf("callback answered %s", res.Status)
	}
	return nil
}
