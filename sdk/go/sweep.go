package till

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Report is what a sweep did.
type Report struct {
	Sent      int // attempts that the service took
	Waiting   int // attempts that are sent again later
	Applied   int // events of the log that were looked at
	Read      int // open attempts that were read
	Attention []Attention
}

// Attention is an attempt that a person should look at.
type Attention struct {
	Kind, Order, Key string
	State            string
	Problem          string // needs_attention, stale, withdrawn, or a code of the service
}

// Bounds of one sweep.
const (
	maxDue       = 100
	maxOpen      = 200
	maxAttention = 100
	logPage      = 200
	lookBack     = 7 * 24 * time.Hour
)

// Sweep does all that is due, once: it sends, reads the event log to its end,
// reads what is open for long, and lists what needs a person. Call it from cron,
// or use Run. One failure does not stop the rest; the error joins all.
func (t *Teller[T]) Sweep(ctx context.Context) (Report, error) {
	var r Report
	errs := []error{t.sendDue(ctx, &r), t.readLog(ctx, &r, 0), t.readOpen(ctx, &r)}
	rows, err := t.store.Attention(ctx, t.now().Add(-lookBack), maxAttention)
	for _, row := range rows {
		r.Attention = append(r.Attention, Attention{row.Kind, row.Order, row.Key, row.State, row.Problem})
	}
	return r, errors.Join(append(errs, err)...)
}

// Run does the same all the time, until ctx ends: it waits for the log by long
// poll, and looks at the outbox every second.
func (t *Teller[T]) Run(ctx context.Context) error {
	var all sync.WaitGroup
	loop := func(pause time.Duration, work func(context.Context, *Report) error) {
		all.Add(1)
		go func() {
			defer all.Done()
			for failures := 0; ctx.Err() == nil; {
				var r Report
				err := work(ctx, &r)
				if t.cfg.onReport != nil && ctx.Err() == nil {
					t.cfg.onReport(r, err)
				}
				if failures++; err == nil {
					failures = 0
				}
				_ = sleep(ctx, max(pause, min(time.Minute, time.Duration(failures)*time.Second)))
			}
		}()
	}
	loop(time.Second, t.sendDue)
	loop(10*time.Millisecond, func(ctx context.Context, r *Report) error { return t.readLog(ctx, r, 30*time.Second) })
	loop(15*time.Second, t.readOpen)
	all.Wait()
	return ctx.Err()
}

// sendDue sends what is due, four at a time.
func (t *Teller[T]) sendDue(ctx context.Context, r *Report) error {
	rows, err := t.store.Due(ctx, t.now(), maxDue)
	if err != nil {
		return err
	}
	var (
		all  sync.WaitGroup
		mu   sync.Mutex
		errs []error
	)
	for _, row := range rows {
		if err := t.pace.wait(ctx); err != nil {
			break
		}
		t.sends <- struct{}{}
		all.Add(1)
		go func() {
			defer func() { <-t.sends; all.Done() }()
			p, err := t.send(ctx, row, 1)
			mu.Lock()
			defer mu.Unlock()
			var refused *Refused
			switch {
			case errors.As(err, &refused):
				// It is on the attention list.
			case err != nil:
				errs = append(errs, err)
			case p.State == Taken:
				r.Sent++
			default:
				r.Waiting++
			}
		}()
	}
	all.Wait()
	return errors.Join(errs...)
}

// readLog reads the event log from the cursor to its end. An event whose
// function fails holds the cursor back, and nothing else: those after it are
// applied, and are old news when they are read again.
func (t *Teller[T]) readLog(ctx context.Context, r *Report, wait time.Duration) error {
	cursor, err := t.store.Cursor(ctx, t.cfg.cursor)
	if err != nil {
		return err
	}
	cursor.Name = t.cfg.cursor
	if cursor.Log == "" && !t.cfg.fromStart {
		if err := t.begin(ctx, &cursor, r); err != nil {
			return err
		}
	}
	after, reset, failed, foreign := cursor.After, false, error(nil), t.cfg.foreign
	for {
		if err := t.pace.wait(ctx); err != nil {
			return err
		}
		page, err := t.client.Events.Read(ctx, after, logPage, wait)
		var refused *Refused
		ahead := errors.As(err, &refused) && refused.Code == CodeCursorAhead
		if err != nil && !ahead {
			return errors.Join(failed, err)
		}
		if ahead || cursor.Log != "" && page.LogID != cursor.Log {
			if reset {
				return errors.New("till: the event log changes while it is read")
			}
			if err := t.reread(ctx, t.now().Add(-lookBack), r); err != nil {
				return err
			}
			cursor.Log, cursor.After, after, reset = "", 0, 0, true
			foreign = foreign && t.cfg.fromStart // what of them is history cannot be told
			continue
		}
		cursor.Log = page.LogID
		for i := range page.Items {
			e := &page.Items[i]
			move := &Cursor{cursor.Name, cursor.Log, e.Sequence}
			if failed != nil || reset {
				move = nil
			}
			if err := t.applyEvent(ctx, e, move, foreign); err != nil {
				if ctx.Err() != nil {
					return err
				}
				failed = errors.Join(failed, err)
			} else if r.Applied++; failed == nil {
				cursor.After = e.Sequence
			}
		}
		end := page.NextAfter == after || len(page.Items) == 0
		after = page.NextAfter
		if failed == nil {
			cursor.After = page.NextAfter
			if err := t.store.MoveCursor(ctx, cursor, reset); err != nil {
				return err
			}
			reset = false
		}
		if end || wait > 0 && failed == nil {
			return failed
		}
		wait = 0
	}
}

// begin sets the cursor of a new store to the end of the log. What its own
// attempts came to before that is read from them.
func (t *Teller[T]) begin(ctx context.Context, cursor *Cursor, r *Report) error {
	end, err := t.logEnd(ctx)
	if err != nil {
		return err
	}
	if err := t.reread(ctx, time.Time{}, r); err != nil {
		return err
	}
	cursor.Log, cursor.After = end.Log, end.After
	return t.store.MoveCursor(ctx, *cursor, false)
}

// logEnd finds the end of the log: the service takes no sequence beyond it, so a
// few calls find it, however long it is.
func (t *Teller[T]) logEnd(ctx context.Context) (Cursor, error) {
	var end Cursor
	var beyond int64 // 0 for not known
	for at := int64(0); ; {
		if err := t.pace.wait(ctx); err != nil {
			return end, err
		}
		page, err := t.client.Events.Read(ctx, at, 1, 0)
		var refused *Refused
		switch {
		case errors.As(err, &refused) && refused.Code == CodeCursorAhead && at > 0:
			beyond = at
		case err != nil:
			return end, err
		case end.Log != "" && page.LogID != end.Log:
			return end, errors.New("till: the event log changes while it is read")
		default:
			end.Log, end.After = page.LogID, at
		}
		switch {
		case beyond == 0:
			at = max(16, 4*at)
		case beyond-end.After <= 1:
			return end, nil
		default:
			at = end.After + (beyond-end.After)/2
		}
	}
}

// reread reads every attempt since a time: the service was restored from a
// backup, and its log is another one; or this store begins.
func (t *Teller[T]) reread(ctx context.Context, from time.Time, r *Report) error {
	after := ""
	for {
		rows, err := t.store.Since(ctx, from, after, maxOpen)
		if err != nil {
			return err
		}
		for i := range rows {
			after = rows[i].Key
			if rows[i].RemoteID == "" {
				continue // it was not taken: the outbox sends it, or it is over
			}
			if err := t.readRow(ctx, &rows[i], r); err != nil {
				return err
			}
		}
		if len(rows) < maxOpen {
			return nil
		}
	}
}

// readOpen reads attempts that are taken, not ended, and left alone for long.
func (t *Teller[T]) readOpen(ctx context.Context, r *Report) error {
	rows, err := t.store.Open(ctx, t.now(), maxOpen)
	if err != nil {
		return err
	}
	var errs []error
	for i := range rows {
		if err := t.readRow(ctx, &rows[i], r); err != nil {
			errs = append(errs, err)
			if ctx.Err() != nil || len(errs) > 3 {
				break
			}
		}
	}
	return errors.Join(errs...)
}

// readRow reads one attempt and applies what it shows.
func (t *Teller[T]) readRow(ctx context.Context, row *Row, r *Report) error {
	if err := t.pace.wait(ctx); err != nil {
		return err
	}
	_, err := t.readAndApply(ctx, row, 0)
	if err == nil {
		r.Read++
	}
	return err
}

// readAndApply reads what a row made. What the service does not know any more
// is lost: that is reported, never posted by itself. A checkout is made again by its
// key as long as it can be paid: its page asks by the same keys as the lost one, so
// nobody is debited twice.
func (t *Teller[T]) readAndApply(ctx context.Context, row *Row, wait time.Duration) (x thing, err error) {
	unknown := CodePaymentNotFound
	switch row.Kind {
	case KindPayout:
		unknown = CodePayoutNotFound
		x.payout, err = t.client.Payouts.get(ctx, row.RemoteID, wait)
	case KindRefund:
		unknown = CodeRefundNotFound
		x.refund, err = t.client.Refunds.get(ctx, row.RemoteID, wait)
	case KindCheckout:
		unknown = CodeCheckoutNotFound
		x.checkout, err = t.client.Checkouts.Await(ctx, row.RemoteID, wait)
	default:
		x.payment, err = t.client.Payments.get(ctx, row.RemoteID, wait)
	}
	var refused *Refused
	if errors.As(err, &refused) && refused.Code == unknown {
		if now := t.now(); row.Kind == KindCheckout && row.State == StateTaken && now.Before(row.SendUntil) {
			_, err = t.settle(ctx, row, Settlement{From: []string{StateTaken}, State: StateSending, NextAt: now})
			return thing{}, err
		}
		_, err = t.end(ctx, row, Settlement{From: []string{StateTaken, StateEnded}, State: StateLost, Problem: Ptr(refused.Code), Details: detailsOf(refused.Failure)})
		return thing{}, err
	}
	if err != nil {
		return thing{}, err
	}
	if err := t.applyRead(ctx, x); err != nil {
		return thing{}, err
	}
	s := Settlement{From: []string{StateTaken}, NextAt: t.now().Add(t.cfg.openAfter)}
	if x.facts().resolution == ResolutionAttention && row.Problem != problemAbandoned {
		s.Problem = Ptr(problemAttention)
	}
	_, err = t.settle(ctx, row, s)
	return x, err
}

// polls are the pauses between reads where the service has no long poll.
var polls = []time.Duration{time.Second, time.Second, 2 * time.Second, 3 * time.Second, 5 * time.Second}

// Wait sends what is not sent, and reads the payment until its status is final,
// at most for d: then the error is ErrStillOpen. Your function has been called
// when it returns.
func (t *Teller[T]) Wait(ctx context.Context, order string, d time.Duration) (*Payment, error) {
	x, err := t.wait(ctx, KindPayment, order, d)
	return x.payment, err
}

// WaitPayOut is Wait for a payout.
func (t *Teller[T]) WaitPayOut(ctx context.Context, order string, d time.Duration) (*Payout, error) {
	x, err := t.wait(ctx, KindPayout, order, d)
	return x.payout, err
}

// WaitRefund is Wait for the newest refund of an order.
func (t *Teller[T]) WaitRefund(ctx context.Context, order string, d time.Duration) (*Refund, error) {
	x, err := t.wait(ctx, KindRefund, order, d)
	return x.refund, err
}

// WaitCheckout is Wait for the newest checkout of an order, until it is paid, expired
// or cancelled.
func (t *Teller[T]) WaitCheckout(ctx context.Context, order string, d time.Duration) (*Checkout, error) {
	x, err := t.wait(ctx, KindCheckout, order, d)
	return x.checkout, err
}

func (t *Teller[T]) wait(ctx context.Context, kind, order string, d time.Duration) (thing, error) {
	end := time.Now().Add(d)
	for n := 0; ; n++ {
		row, err := t.store.Newest(ctx, kind, order)
		if err != nil {
			return thing{}, err
		}
		if row == nil {
			return thing{}, ErrNoAttempt
		}
		switch row.State {
		case StateWritten, StateSending:
			if !t.now().Before(row.NextAt) || row.Tries == 0 {
				if _, err := t.send(ctx, *row, 1); err != nil {
					return thing{}, err
				}
			}
		case StateTaken, StateEnded:
			x, err := t.readAndApply(ctx, row, min(time.Until(end), 30*time.Second))
			var unavailable *Unavailable
			if err != nil && !errors.As(err, &unavailable) {
				return thing{}, err
			}
			if final(x.facts().status) {
				return x, nil
			}
		default:
			_, err := settled(row)
			return thing{}, errors.Join(err, ErrStillOpen)
		}
		pause := polls[min(n, len(polls)-1)]
		if time.Now().Add(pause).After(end) {
			return thing{}, ErrStillOpen
		}
		if err := t.client.sleep(ctx, pause); err != nil {
			return thing{}, err
		}
	}
}

func final(status string) bool { return rank(status) >= rankFinal }
