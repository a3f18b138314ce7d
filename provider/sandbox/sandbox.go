package sandbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"till"
	"till/provider"
)

// Config says where the book is and how long customers have. Only Path is
// required.
type Config struct {
	// Path is the book's file, or a postgres:// URL: then the book is the schema
	// sandbox, or the one beside the schema that the URL's search_path names,
	// with _sandbox behind its name. Several processes may share either.
	Path   string
	Window time.Duration // how long a customer has to approve; 0: a minute

	Now   func() till.Time                                      // nil: the wall clock
	Sleep func(ctx context.Context, d time.Duration) error      // nil: in real time
	Post  func(ctx context.Context, url string, b []byte) error // sends a callback; nil: by HTTP

	// NoDedup makes an operator that takes a repeated reference as a new
	// request, as some do. It is for tests: a double send shows as two debits.
	NoDedup bool

	// PollInterval is how long a callback that another process owes may wait to be
	// noticed; 0: a quarter of a second.
	PollInterval time.Duration

	Log *slog.Logger // nil: silence
}

// Operator is the sandbox: a provider.Provider with its own book. It is safe
// for concurrent use.
type Operator struct {
	window       time.Duration
	dedup        bool
	pollInterval time.Duration
	now          func() till.Time
	sleep        func(context.Context, time.Duration) error
	post         func(context.Context, string, []byte) error
	log          *slog.Logger

	book *book
	wake chan struct{} // wakes Run when something is due before its next check

	closed context.Context // ends with Close: calls that wait in silence give up
	close  context.CancelFunc
}

var _ provider.Provider = (*Operator)(nil)

// ErrClosed says that the operator was closed while a request waited for an
// answer that it never gets.
var ErrClosed = errors.New("the sandbox operator is closed")

const defaultWindow = time.Minute

// Open opens the operator's book, or starts one where there is none.
func Open(ctx context.Context, c Config) (*Operator, error) {
	o := &Operator{
		window:       c.Window,
		dedup:        !c.NoDedup,
		pollInterval: c.PollInterval,
		now:          c.Now,
		sleep:        c.Sleep,
		post:         c.Post,
		log:          c.Log,
		wake:         make(chan struct{}, 1),
	}
	if o.window == 0 {
		o.window = defaultWindow
	}
	if o.pollInterval == 0 {
		o.pollInterval = callbackPollInterval
	}
	if o.now == nil {
		o.now = func() till.Time { return till.TimeOf(time.Now()) }
	}
	if o.sleep == nil {
		o.sleep = sleep
	}
	if o.post == nil {
		o.post = postHTTP
	}
	if o.log == nil {
		o.log = slog.New(slog.DiscardHandler)
	}
	var err error
	if o.book, err = openBook(ctx, c.Path, o.dedup); err != nil {
		return nil, err
	}
	o.closed, o.close = context.WithCancel(context.Background())
	return o, nil
}

// Close closes the book. Run must have returned.
func (o *Operator) Close() error {
	o.close()
	return o.book.close()
}

// Traits returns how the sandbox behaves. Its times are short, so that every story ends
// within seconds of the window.
func (o *Operator) Traits() provider.Traits {
	return provider.Traits{
		ClientReference: o.dedup,
		ApprovalWindow:  o.window,
		SubmitTimeout:   500 * time.Millisecond,
		CheckTimeout:    2 * time.Second,
		NotFoundDelay:   500 * time.Millisecond,
		Poll:            500 * time.Millisecond,
		PollMax:         time.Hour,
		Grace:           time.Second,
		// The first read finds the late money of 0013, which comes 2 s after the expiry.
		LateReads: []time.Duration{3 * time.Second, time.Hour, 6 * time.Hour, 24 * time.Hour, 72 * time.Hour},
		// A developer's time-outs must not close a method for others.
		NoBreaker: true,
	}
}

// Fingerprint names the account: there is one sandbox.
func (o *Operator) Fingerprint() string { return "sandbox" }

// Submit accepts a request, and its phone number's story begins.
func (o *Operator) Submit(ctx context.Context, q provider.Request) (provider.Result, error) {
	return o.submit(ctx, payment, q)
}

func (o *Operator) submit(ctx context.Context, k kind, q provider.Request) (provider.Result, error) {
	result, err := o.accept(ctx, k, q)
	if err == nil {
		// An answer after the caller has gone is lost.
		err = ctx.Err()
	}
	if err != nil {
		return provider.Result{}, fmt.Errorf("sandbox submit: %w", err)
	}
	return result, nil
}

func (o *Operator) accept(ctx context.Context, k kind, q provider.Request) (provider.Result, error) {
	if err := ctx.Err(); err != nil {
		return provider.Result{}, err
	}
	r := o.newRequest(k, q)
	if k == payment {
		var err error
		if r.asked, err = o.book.isHeld(ctx, r.client, r.phone, r.arrivedAt); err != nil {
			return provider.Result{}, err
		}
	}
	switch r.story() {
	case unknownPayer:
		if k.out() {
			return answerNoSuchRecipient.result(r.reference), nil
		}
		return answerNoSuchPayer.result(r.reference), nil
	case lostRequest:
		first, err := o.book.recordSwallowed(ctx, r.reference, r.arrivedAt)
		if err != nil {
			return provider.Result{}, err
		}
		if first {
			return provider.Result{}, o.waitForever(ctx)
		}
	}

	due := r.callback().at
	if r.story() == earlyCallback && due != 0 {
		// This call sends the callback; Run sends it if this process dies.
		r.callbackTries, due = 1, due.Add(callbackLease)
	}
	fresh, err := o.book.record(ctx, r, due)
	if err != nil {
		return provider.Result{}, err
	}
	if !fresh {
		return answerDuplicate.result(r.reference), nil
	}
	o.wakeFor(due, r.arrivedAt)

	switch r.story() {
	case lostAnswer:
		return provider.Result{}, o.waitForever(ctx)
	case earlyCallback:
		if err := o.sendEarlyCallback(ctx, r); err != nil {
			return provider.Result{}, err
		}
	}
	result := answerAccepted.result(r.reference)
	if k.out() {
		result = answerPayoutAccepted.result(r.reference)
	}
	result.Amount = r.amount
	return result, nil
}

func (o *Operator) newRequest(k kind, q provider.Request) *request {
	r := &request{
		kind:        k,
		reference:   q.Reference,
		client:      q.Client,
		payment:     q.ID,
		phone:       q.Phone,
		amount:      q.Amount,
		arrivedAt:   o.now(),
		expiresAt:   q.ExpiresAt,
		callbackURL: q.CallbackURL,
	}
	if r.expiresAt.IsZero() {
		r.expiresAt = r.arrivedAt.Add(o.window)
	}
	return r
}

// waitForever never answers.
func (o *Operator) waitForever(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-o.closed.Done():
		return ErrClosed
	}
}

// sendEarlyCallback sends the callback of a request that is not answered yet.
func (o *Operator) sendEarlyCallback(ctx context.Context, r *request) error {
	if err := o.sleep(ctx, earlyCallbackDelay); err != nil {
		return err
	}
	if r.callbackURL != "" {
		if _, err := o.deliver(ctx, []*request{r}); err != nil {
			return err
		}
	}
	return o.sleep(ctx, slowAnswerDelay-earlyCallbackDelay)
}

// Check returns the state of the request with the reference.
func (o *Operator) Check(ctx context.Context, q provider.Query) (provider.Result, error) {
	r, err := o.book.find(ctx, q.Reference)
	switch {
	case err != nil:
		return provider.Result{}, fmt.Errorf("sandbox check: %w", err)
	case r == nil:
		return answerNotFound.result(q.Reference), nil
	}
	return r.resultAt(o.now()), nil
}

// sleep waits in real time.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
