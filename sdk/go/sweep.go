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
	after, reset, failed := cursor.After, false, error(nil)
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
			if err := t.reread(ctx, r); err != nil {
				return err
			}
			cursor.Log, cursor.After, after, reset = "", 0, 0, true
			continue
		}
		cursor.Log = page.LogID
		for i := range page.Items {
			e := &page.Items[i]
			move := &Cursor{cursor.Name, cursor.Log, e.Sequence}
			if failed != nil || reset {
				move = nil
			}
			if err := t.applyEvent(ctx, e, move); err != nil {
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

// reread reads every attempt of the last seven days: the service was restored
// from a backup, and its log is another one.
func (t *Teller[T]) reread(ctx context.Context, r *Report) error {
	from, after := t.now().Add(-lookBack), ""
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
	_, _, err := t.readAndApply(ctx, row, 0)
	if err == nil {
		r.Read++
	}
	return err
}

// readAndApply reads the payment or payout of a row. One that the service does
// not know any more is lost: that is reported, never posted by itself.
func (t *Teller[T]) readAndApply(ctx context.Context, row *Row, wait time.Duration) (*Payment, *Payout, error) {
	var (
		p          *Payment
		o          *Payout
		err        error
		resolution string
	)
	if row.Kind == KindPayout {
		if o, err = t.client.Payouts.get(ctx, row.RemoteID, wait); err == nil {
			resolution = o.Resolution.State
		}
	} else if p, err = t.client.Payments.get(ctx, row.RemoteID, wait); err == nil {
		resolution = p.Resolution.State
	}
	var refused *Refused
	if errors.As(err, &refused) && (refused.Code == CodePaymentNotFound || refused.Code == CodePayoutNotFound) {
		_, settleErr := t.settle(ctx, row, Settlement{From: []string{StateTaken, StateEnded}, State: StateLost, Problem: Ptr(refused.Code)})
		return nil, nil, settleErr
	}
	if err != nil {
		return nil, nil, err
	}
	if err := t.applyRead(ctx, p, o); err != nil {
		return nil, nil, err
	}
	s := Settlement{From: []string{StateTaken}, NextAt: t.now().Add(t.cfg.openAfter)}
	if resolution == ResolutionAttention && row.Problem != problemAbandoned {
		s.Problem = Ptr(problemAttention)
	}
	_, err = t.settle(ctx, row, s)
	return p, o, err
}

// polls are the pauses between reads where the service has no long poll.
var polls = []time.Duration{time.Second, time.Second, 2 * time.Second, 3 * time.Second, 5 * time.Second}

// Wait sends what is not sent, and reads the payment until its status is final,
// at most for d: then the error is ErrStillOpen. Your function has been called
// when it returns.
func (t *Teller[T]) Wait(ctx context.Context, order string, d time.Duration) (*Payment, error) {
	p, _, err := t.wait(ctx, KindPayment, order, d)
	return p, err
}

// WaitPayOut is Wait for a payout.
func (t *Teller[T]) WaitPayOut(ctx context.Context, order string, d time.Duration) (*Payout, error) {
	_, o, err := t.wait(ctx, KindPayout, order, d)
	return o, err
}

func (t *Teller[T]) wait(ctx context.Context, kind, order string, d time.Duration) (*Payment, *Payout, error) {
	end := time.Now().Add(d)
	for n := 0; ; n++ {
		row, err := t.store.Newest(ctx, kind, order)
		if err != nil {
			return nil, nil, err
		}
		if row == nil {
			return nil, nil, ErrNoAttempt
		}
		switch row.State {
		case StateWritten, StateSending:
			if !t.now().Before(row.NextAt) || row.Tries == 0 {
				if _, err := t.send(ctx, *row, 1); err != nil {
					return nil, nil, err
				}
			}
		case StateTaken, StateEnded:
			p, o, err := t.readAndApply(ctx, row, min(time.Until(end), 30*time.Second))
			var unavailable *Unavailable
			if err != nil && !errors.As(err, &unavailable) {
				return nil, nil, err
			}
			if p != nil && final(p.Status) || o != nil && final(o.Status) {
				return p, o, nil
			}
		default:
			_, err := settled(row)
			return nil, nil, errors.Join(err, ErrStillOpen)
		}
		pause := polls[min(n, len(polls)-1)]
		if time.Now().Add(pause).After(end) {
			return nil, nil, ErrStillOpen
		}
		if err := t.client.sleep(ctx, pause); err != nil {
			return nil, nil, err
		}
	}
}

func final(status string) bool { return rank(status) >= rankFinal }
