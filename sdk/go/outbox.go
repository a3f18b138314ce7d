package till

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"
)

// firstDue is when Run sends a wish that nobody called Send for.
const firstDue = time.Second

// put writes an attempt, unless the order has one that stands in the way.
func (t *Teller[T]) put(ctx context.Context, tx T, kind, order string, until time.Duration, body func(key string) ([]byte, error)) error {
	for range 3 {
		attempts, err := t.store.Attempts(ctx, tx, kind, order)
		if err != nil {
			return err
		}
		if err := t.otherWay(ctx, tx, kind, order); err != nil {
			return err
		}
		number := 1
		for i := range attempts {
			row := &attempts[i]
			number = row.Attempt + 1
			switch {
			case kind == KindRefund && row.open(): // another one of the same sum may well be meant
				return &AttemptOpen{row.Order, row.State, row.SendUntil}
			case kind != KindRefund && row.paid():
				return &AlreadyPaid{order}
			case row.open():
				return t.again(row, body)
			}
		}
		key := newKey()
		b, err := body(key)
		if err != nil {
			return err
		}
		now := t.now()
		fresh, err := t.store.Put(ctx, tx, Row{
			Key: key, Kind: kind, Order: order, Attempt: number, Body: b, State: StateWritten,
			NextAt: now.Add(firstDue), SendUntil: now.Add(until), CreatedAt: now,
		})
		if err != nil || fresh {
			return err
		}
	}
	return ErrOtherWrite
}

// again is the same wish while an attempt is open: that attempt. Another wish is
// refused.
func (t *Teller[T]) again(row *Row, body func(key string) ([]byte, error)) error {
	b, err := body(row.Key)
	if err != nil {
		return err
	}
	if !sameJSON(b, row.Body) {
		return &AttemptOpen{row.Order, row.State, row.SendUntil}
	}
	return nil
}

// sameJSON compares two bodies by what they say, numbers by their digits.
func sameJSON(a, b []byte) bool {
	x, errX := canonical(a)
	y, errY := canonical(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

func canonical(b []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// now is the time, as exact as stores keep it.
func (t *Teller[T]) now() time.Time { return t.cfg.now().UTC().Truncate(time.Millisecond) }

// ProgressState is what a send came to.
type ProgressState string

// What a send comes to.
const (
	Taken     ProgressState = "taken"   // the service has it
	Later     ProgressState = "later"   // the service cannot take it now; nothing exists; it is sent again
	Uncertain ProgressState = "unclear" // not known yet; say "check your phone" all the same
	Lapsed    ProgressState = "lapsed"  // it was not sent in its time; nothing exists
	Lost      ProgressState = "lost"    // the service had it, or of a payout or refund may have had it, and does not know it: a person looks
)

// Progress is how far an attempt got.
type Progress struct {
	State    ProgressState
	ID       string   // of the payment, payout, refund or checkout, once taken
	Payment  *Payment // as the service answered, if it just did
	Payout   *Payout
	Refund   *Refund
	Checkout *Checkout
	Replayed bool

	URL          string // of a checkout, once taken: send the customer there
	ReturnSecret string // of a checkout, once taken: for VerifyReturn

	Err error // an [Unavailable] or [Unclear], for the log
}

// Send posts the newest attempt of an order, and repeats it within the deadline
// of a call. What is not settled then is sent again by Run or Sweep. Its error
// is a [Refused], or one of the store; a lost answer is no error.
func (t *Teller[T]) Send(ctx context.Context, order string) (Progress, error) {
	return t.sendOrder(ctx, KindPayment, order)
}

// SendPayOut posts the newest payout of an order, like Send.
func (t *Teller[T]) SendPayOut(ctx context.Context, order string) (Progress, error) {
	return t.sendOrder(ctx, KindPayout, order)
}

// SendRefund posts the newest refund of an order, like Send.
func (t *Teller[T]) SendRefund(ctx context.Context, order string) (Progress, error) {
	return t.sendOrder(ctx, KindRefund, order)
}

func (t *Teller[T]) sendOrder(ctx context.Context, kind, order string) (Progress, error) {
	row, err := t.store.Newest(ctx, kind, order)
	if err != nil {
		return Progress{}, err
	}
	if row == nil {
		return Progress{}, ErrNoAttempt
	}
	return t.send(ctx, *row, t.client.tries)
}

// waitForOther is how long Send leaves a row to another worker that is sending
// it. After that both may: the key makes it one payment.
const waitForOther = time.Second

// send makes tries until the row is settled, or time or tries are over.
func (t *Teller[T]) send(ctx context.Context, row Row, tries int) (Progress, error) {
	ctx, cancel := context.WithTimeout(ctx, t.client.deadline)
	defer cancel()
	end, _ := ctx.Deadline()
	given := time.Now().Add(waitForOther)
	for n := 1; ; n++ {
		switch row.State {
		case StateWritten, StateSending:
		default:
			return settled(&row)
		}
		now := t.now()
		if !now.Before(row.SendUntil) {
			return t.stale(ctx, row, now)
		}
		if n == 1 && row.inFlight(now) && time.Now().Before(given) {
			if err := t.client.sleep(ctx, 100*time.Millisecond); err != nil {
				return Progress{State: Uncertain}, nil
			}
			if err := t.reload(ctx, &row); err != nil {
				return Progress{}, err
			}
			n--
			continue
		}
		lease := now.Add(t.client.tryTimeout)
		if !lease.After(row.Lease) {
			lease = row.Lease.Add(time.Millisecond)
		}
		counted, err := t.store.Count(ctx, row, lease, lease.Add(leaseGrace))
		if err != nil {
			return Progress{}, err
		}
		if !counted { // another one was faster; see what it did
			if err := t.reload(ctx, &row); err != nil {
				return Progress{}, err
			}
			if n--; ctx.Err() != nil {
				return Progress{State: Uncertain}, nil
			}
			continue
		}
		before := row.State == StateSending
		row.State, row.Lease = StateSending, lease
		row.Tries++
		p, wait, err := t.post(ctx, &row, before)
		if err != nil || p.State == Taken || wait == 0 || n >= tries || time.Now().Add(wait).After(end) {
			return p, err
		}
		if t.client.sleep(ctx, wait) != nil {
			return p, nil
		}
	}
}

// leaseGrace is how long after the deadline of a try, of which nobody told the
// end, the next one is due.
const leaseGrace = time.Second

// inFlight reports whether somebody seems to be sending a row just now.
func (r *Row) inFlight(now time.Time) bool {
	return r.State == StateSending && now.Before(r.Lease) && r.NextAt.Equal(r.Lease.Add(leaseGrace))
}

func (t *Teller[T]) reload(ctx context.Context, row *Row) error {
	fresh, err := t.store.Newest(ctx, row.Kind, row.Order)
	if err == nil && fresh != nil {
		*row = *fresh
	}
	return err
}

// settled is the progress of a row that is sent no more.
func settled(row *Row) (Progress, error) {
	switch row.State {
	case StateTaken, StateEnded:
		why := keptOf(row.Details)
		return Progress{State: Taken, ID: row.RemoteID, URL: why.URL, ReturnSecret: why.ReturnSecret}, nil
	case StateLapsed:
		return Progress{State: Lapsed}, nil
	case StateLost:
		return Progress{State: Lost, ID: row.RemoteID}, nil
	}
	why := keptOf(row.Details)
	return Progress{}, &Refused{&Failure{Code: row.Problem, Status: why.Status, Detail: why.Detail, Errors: why.Errors, RequestID: why.RequestID,
		IdempotencyKey: row.Key, Tries: row.Tries}}
}

// request is the create that a row stands for.
func (r *Row) request() request {
	op := map[string]operation{KindPayment: opCreatePayment, KindPayout: opCreatePayout, KindRefund: opCreateRefund, KindCheckout: opCreateCheckout}[r.Kind]
	return request{op: op, body: r.Body, key: r.Key}
}

// post makes one try, which was counted, and settles the row. Wait is when to
// try again, 0 for not now.
func (t *Teller[T]) post(ctx context.Context, row *Row, before bool) (p Progress, wait time.Duration, err error) {
	r := row.request()
	key, err := t.client.apiKey(ctx)
	if err != nil {
		return Progress{}, 0, t.backToWritten(ctx, row, before, err)
	}
	got := t.client.try(ctx, r, key, 0)
	if got.status == 401 {
		if again, err := t.client.apiKey(ctx); err == nil && again != key {
			got = t.client.try(ctx, r, again, 0)
		}
	}
	verdict := judge(r.op, got, before)
	if verdict == verdictDone {
		if p, err = answered(got, r); err == nil {
			t.client.budget.success()
			return p, 0, t.take(ctx, row, p)
		}
		verdict = verdictUnclear
	}
	if verdict == verdictLook {
		found, err := t.find(ctx, row)
		switch {
		case row.Kind == KindCheckout: // nobody was given the page that may exist
			verdict = verdictRefused
		case err != nil:
			verdict = verdictUnclear
		case found != nil:
			return *found, 0, t.adopt(ctx, row, *found)
		case row.Kind != KindPayment:
			verdict = verdictUnclear // the try before may have been taken, by a service that was restored since
		default:
			verdict = verdictRefused
		}
	}
	if verdict == verdictRefused {
		return Progress{}, 0, t.refuse(ctx, row, before, got)
	}
	fail := failure(verdict, got, row.Key, row.Tries)
	wait = delay(min(row.Tries-1, 5), got.retryAfter, t.client.random())
	pause := max(outboxDelay(row.Tries), got.retryAfter)
	next := t.now().Add(pause)
	if !got.passing() {
		wait = 0
	}
	if verdict == verdictUnavailable { // nothing arrived, now or before
		_, err := t.settle(ctx, row, Settlement{From: []string{StateSending}, Lease: row.Lease, State: StateWritten, NextAt: next})
		return Progress{State: Later, Err: fail}, wait, err
	}
	_, err = t.settle(ctx, row, Settlement{From: []string{StateSending}, Lease: row.Lease, State: StateSending, NextAt: next})
	return Progress{State: Uncertain, Err: fail}, wait, err
}

// refuse ends a row that the service does not take. If your function fails, it
// was not told, so the wish is sent again.
func (t *Teller[T]) refuse(ctx context.Context, row *Row, before bool, got *tried) error {
	fail := &Refused{newFailure(got, row.Key, row.Tries)}
	word := cmp.Or(fail.Code, StateRefused)
	s := Settlement{From: []string{StateSending}, Lease: row.Lease, State: StateRefused, Problem: &word, Details: detailsOf(fail.Failure)}
	if _, err := t.end(ctx, row, s); err != nil {
		return t.backToWritten(ctx, row, before, err)
	}
	return fail
}

// settle changes a row in the store, and in memory if the store did.
func (t *Teller[T]) settle(ctx context.Context, row *Row, s Settlement) (bool, error) {
	s.Key = row.Key
	ok, err := t.store.Settle(context.WithoutCancel(ctx), s)
	if ok && s.State != "" {
		row.State = s.State
	}
	return ok, err
}

// backToWritten undoes a count of which nothing was sent, or an end that your
// function did not take.
func (t *Teller[T]) backToWritten(ctx context.Context, row *Row, before bool, cause error) error {
	s := Settlement{From: []string{row.State}, Lease: row.Lease, State: StateWritten, NextAt: t.now().Add(outboxDelay(row.Tries))}
	if before {
		s.State = StateSending
	}
	_, err := t.settle(ctx, row, s)
	return errors.Join(cause, err)
}

// outboxDelay is how long the outbox waits after a try: 1, 2, 4 … 60 s.
func outboxDelay(tries int) time.Duration {
	const most = time.Minute
	if tries > 6 {
		return most
	}
	return min(most, time.Second<<max(tries-1, 0))
}

// answered reads the answer to a create.
func answered(got *tried, r request) (Progress, error) {
	var x thing
	var err error
	switch r.op.id {
	case opCreatePayout.id:
		x.payout, err = payoutOf(got, r)
	case opCreateRefund.id:
		x.refund, err = refundOf(got, r)
	case opCreateCheckout.id:
		made, err := newCheckoutOf(got, r)
		if err != nil {
			return Progress{}, err
		}
		p := made.progress()
		p.Replayed = got.header.Get("Idempotent-Replayed") == "true"
		return p, nil
	default:
		x.payment, err = paymentOf(got, r)
	}
	if err != nil {
		return Progress{}, err
	}
	p := x.progress()
	p.Replayed = got.header.Get("Idempotent-Replayed") == "true"
	return p, nil
}

// take notes that the service has it. News that came before the answer is not
// undone.
func (t *Teller[T]) take(ctx context.Context, row *Row, p Progress) error {
	told := p.thing().facts()
	s := Settlement{
		From: []string{StateWritten, StateSending, StateLapsed, StateRefused, StateLost}, State: StateTaken,
		NextAt: t.now().Add(t.cfg.openAfter), SendUntil: told.expires.Time(), RemoteID: &p.ID,
	}
	if row.Problem != problemAbandoned {
		s.Problem, s.Details = Ptr(""), Ptr("")
	}
	if row.Status == "" && rank(told.status) < rankFinal {
		s.Status = &told.status // what ended is told by apply, with the call of the function
	}
	if p.Checkout == nil {
		_, err := t.settle(ctx, row, s)
		return err
	}
	s.Details = kept{URL: p.URL, ReturnSecret: p.ReturnSecret}.text()
	ok, err := t.settle(ctx, row, s)
	if err != nil || ok {
		return err
	}
	// News came before the answer. Its payment is kept, and the page's address with it.
	if err := t.reload(ctx, row); err != nil {
		return err
	}
	k := keptOf(row.Details)
	k.URL, k.ReturnSecret = p.URL, p.ReturnSecret
	_, err = t.settle(ctx, row, Settlement{From: []string{StateTaken, StateEnded}, Details: k.text()})
	return err
}

// find asks the service for what a row made; nil if there is nothing. A checkout is
// not looked for: nobody was given its address.
func (t *Teller[T]) find(ctx context.Context, row *Row) (*Progress, error) {
	var x thing
	var err error
	switch row.Kind {
	case KindCheckout:
	case KindPayout:
		x.payout, err = t.client.Payouts.byKey(ctx, row.Key)
	case KindRefund:
		x.refund, err = t.client.Refunds.byKey(ctx, row.Key)
	default:
		x.payment, err = t.client.Payments.byKey(ctx, row.Key)
	}
	if err != nil || x == (thing{}) {
		return nil, err
	}
	p := x.progress()
	p.Replayed = true
	return &p, nil
}

// adopt takes what was found, with the news that it brings.
func (t *Teller[T]) adopt(ctx context.Context, row *Row, p Progress) error {
	if err := t.take(ctx, row, p); err != nil {
		return err
	}
	return t.applyRead(ctx, p.thing())
}

// stale ends a wish whose time is over. What was never sent lapses. What may
// have arrived is asked for by its key, not sooner than a request can be on its
// way; it is never posted again. If the service does not know it, a payment
// lapses, and so does a checkout whose address was given to nobody. A payout or
// refund is lost: a service that was restored from a backup forgot what it had paid
// out since, and one more would pay twice.
func (t *Teller[T]) stale(ctx context.Context, row Row, now time.Time) (Progress, error) {
	if row.State == StateWritten {
		ok, err := t.end(ctx, &row, Settlement{From: []string{StateWritten}, State: StateLapsed, Problem: Ptr(problemStale)})
		if err != nil {
			return Progress{}, t.backToWritten(ctx, &row, false, err)
		}
		if !ok {
			err = ErrOtherWrite
		}
		return Progress{State: Lapsed}, err
	}
	if look := row.Lease.Add(t.cfg.lookAfter); now.Before(look) {
		_, err := t.settle(ctx, &row, Settlement{From: []string{StateSending}, Lease: row.Lease, NextAt: look})
		return Progress{State: Uncertain}, err
	}
	found, err := t.find(ctx, &row)
	if err != nil {
		_, settleErr := t.settle(ctx, &row, Settlement{From: []string{StateSending}, Lease: row.Lease, NextAt: now.Add(t.cfg.lookAfter)})
		return Progress{State: Uncertain, Err: err}, settleErr
	}
	if found != nil {
		return *found, t.adopt(ctx, &row, *found)
	}
	end := StateLapsed
	if row.Kind == KindPayout || row.Kind == KindRefund || row.Kind == KindCheckout && row.RemoteID != "" {
		end = StateLost
	}
	ok, err := t.end(ctx, &row, Settlement{From: []string{StateSending}, Lease: row.Lease, State: end, Problem: Ptr(problemStale)})
	if err != nil {
		return Progress{}, t.backToWritten(ctx, &row, true, err)
	}
	if !ok { // news came meanwhile
		return Progress{State: Uncertain}, err
	}
	return Progress{State: ProgressState(end)}, err
}
