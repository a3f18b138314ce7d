package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"till"
	"till/books"
	"till/engine"
	"till/provider/simulator"
	"till/provider/wire"
	"till/store"
	"till/store/storetest"
)

// row is a payment or payout as our books have it.
type row struct {
	kind, id, reference, status, connection string
	payment                                 string // of a refund
	road                                    till.Road
	amount                                  till.Money
	final, paid, attention                  bool
}

func (r *row) String() string {
	return fmt.Sprintf("%s %s at %s: %s (paid %v, attention %v)", r.kind, r.id, r.connection, r.status, r.paid, r.attention)
}

// rows reads all of the client's payments and payouts.
func (w *World) rows() (all []*row) {
	in, out := engine.NewKeys(till.SubjectPayment, secretText), engine.NewKeys(till.SubjectPayout, secretText)
	page := store.Page{Limit: 1000}
	storetest.View(w.T, w.store, func(ctx context.Context, tx *store.Tx) error {
		payments, _, err := tx.ListPayments(ctx, w.client.ID, store.PaymentFilter{}, page)
		if err != nil {
			return err
		}
		for _, p := range payments {
			all = append(all, &row{"payment", p.ID.String(), in.Reference(p.ClientID, p.IdempotencyKey).String(), string(p.Status), p.Connection, "", "",
				p.Amount, p.Status.Final(), p.Status == till.Success || p.LateEvent != 0, p.Attention})
		}
		payouts, _, err := tx.ListPayouts(ctx, w.client.ID, store.PaymentFilter{}, page)
		if err != nil {
			return err
		}
		refunds, _, err := store.ListRefunds(ctx, tx, w.client.ID, store.PaymentFilter{}, page)
		for _, p := range append(payouts, refunds...) {
			kind, payment := "payout", ""
			if p.IsRefund() {
				kind, payment = "refund", p.PaymentID.String()
			}
			all = append(all, &row{kind, p.ID.String(), out.Reference(p.ClientID, p.IdempotencyKey).String(), string(p.Status), p.Connection, payment, p.Road,
				p.Amount, p.Status.Final(), p.Status == till.PayoutSuccess || p.LateEvent != 0, p.Attention})
		}
		return err
	})
	return all
}

// Settle waits until everything has ended that can: most is how long that may take.
func (w *World) Settle(most time.Duration) {
	for pause, end := 5*time.Second, time.Now().Add(most); time.Now().Before(end); pause = min(pause*5/4, time.Minute) {
		time.Sleep(pause)
		open := w.up() == nil || w.shop != nil && len(w.undelivered()) > 0
		for _, r := range w.rows() {
			open = open || !r.final
		}
		if !open {
			time.Sleep(5 * time.Second) // what was just answered is recorded
			return
		}
	}
}

// Verdict says what the story's end must be, beside what always holds.
type Verdict struct {
	Open     bool // payments or payouts may stay open, each with a case
	LateWait bool // the operator may have moved money that its next late read finds
}

// Judge holds all books against each other. The instances have ended.
func (w *World) Judge(v Verdict) {
	w.T.Helper()
	w.checkBooks()
	rows := w.rows()
	w.checkOperators(rows, v)
	w.checkRefunds(rows)
	w.checkClient(rows)
	w.checkReceiver()
	w.checkRest(rows, v)
}

// checkBooks lets our books prove themselves.
func (w *World) checkBooks() {
	w.T.Helper()
	ctx := context.Background()
	key, err := books.ChainKey(secretText)
	if err == nil {
		_, err = books.ExtendChains(ctx, w.store, key)
	}
	if err != nil {
		w.wrong("chains: %v", err)
	}
	storetest.RollUp(w.T, w.store)
	r, err := books.Verify(ctx, w.store, books.Options{Slice: 7, Key: key})
	if err != nil {
		w.wrong("verify: %v", err)
	}
	for _, p := range r.Problems {
		w.wrong("our books: %s broken: subject %s: %s", p.Invariant, p.Subject, p.Detail)
	}
}

// taken is what an operator has of one payment or payout.
type taken struct {
	connection string
	entries    []simulator.Entry
	moved      []simulator.Entry
}

// tail is what all operators are told of a reference, each in its own way.
func tail(id string) string {
	id = strings.ToLower(strings.ReplaceAll(id, "-", ""))
	return id[max(0, len(id)-12):]
}

// checkOperators: a reference is taken once, and money moves once, of the right amount,
// where we say success and nowhere else.
func (w *World) checkOperators(rows []*row, v Verdict) {
	w.T.Helper()
	theirs := map[string]*taken{}
	for name, o := range w.operators {
		for _, e := range o.book.Entries() {
			key := e.Kind + " " + tail(e.External)
			if theirs[key] == nil {
				theirs[key] = &taken{connection: name}
			}
			x := theirs[key]
			x.entries = append(x.entries, e)
			if state, _ := e.StateAt(o.book.Now()); state == simulator.Success {
				x.moved = append(x.moved, e)
			}
		}
	}
	for _, r := range rows {
		kind := r.kind
		if kind == "refund" && r.road == till.RoadTransfer {
			kind = "payout" // to the operator
		}
		x, key := theirs[kind+" "+tail(r.reference)], kind+" "+tail(r.reference)
		if x == nil {
			x, key = theirs[kind+" "+tail(r.id)], kind+" "+tail(r.id)
		}
		delete(theirs, key)
		if x == nil {
			x = &taken{connection: r.connection}
		}
		what := fmt.Sprintf("%s; the operator took it %d times and moved money %d times", r, len(x.entries), len(x.moved))
		switch {
		case len(x.entries) > 1:
			w.wrong("operator's book: taken twice: %s", what)
		case r.paid && len(x.moved) == 0:
			w.wrong("operator's book: invented: %s", what)
		case !r.paid && len(x.moved) > 0 && r.final && !v.LateWait:
			w.wrong("operator's book: money that we do not know: %s", what)
		case len(x.entries) > 0 && x.connection != r.connection:
			w.wrong("operator's book: elsewhere, at %s: %s", x.connection, what)
		}
		for _, e := range x.entries {
			decimals, _ := till.CurrencyDecimals(r.amount.Currency)
			if minor, ok := wire.ParseMinor(e.Amount, decimals); !ok || minor != r.amount.Minor {
				w.wrong("operator's book: %s instead of %d: %s", e.Amount, r.amount.Minor, what)
			}
		}
	}
	for key, x := range theirs {
		w.wrong("operator's book: %s has %d of %s, which we do not have", x.connection, len(x.entries), key)
	}
}

// checkRefunds: a payment is given back at most once.
func (w *World) checkRefunds(rows []*row) {
	w.T.Helper()
	for _, p := range rows {
		back := int64(0)
		for _, r := range rows {
			if r.payment == p.id && (r.paid || !r.final) {
				back += r.amount.Minor
			}
		}
		if back > p.amount.Minor {
			w.wrong("refunds: %d of %d is given back of %s", back, p.amount.Minor, p)
		}
	}
}

// checkClient: what was accepted is there, under one id for each key.
func (w *World) checkClient(rows []*row) {
	w.T.Helper()
	for _, o := range w.answers.orders {
		n := 0
		for _, r := range rows {
			if r.kind == o.Kind && r.id == o.ID {
				n++
			}
		}
		if o.Refused == "" && (n != 1 || len(o.others) > 0) {
			w.wrong("client's book: %s %s was accepted as %s %v, and there are %d of it", o.Kind, o.Key, o.ID, o.others, n)
		}
	}
	if accepted := len(slices.Collect(func(yield func(*Order) bool) {
		for _, o := range w.answers.orders {
			if o.ID != "" && !yield(o) {
				return
			}
		}
	})); len(rows) != accepted {
		w.wrong("client's book: %d orders were accepted, and there are %d", accepted, len(rows))
	}
}

// undelivered returns the events that the receiver has not got, and need have.
func (w *World) undelivered() (missing []string) {
	storetest.View(w.T, w.store, func(ctx context.Context, tx *store.Tx) error {
		events, err := tx.Events(ctx, w.client.ID, 0, 100_000)
		if err != nil {
			return err
		}
		w.shop.mu.Lock()
		defer w.shop.mu.Unlock()
		missing = nil
		for _, e := range events {
			// A later state of the same payment or payout may stand for it.
			if _, got := w.shop.book[e.Sequence]; !got && w.shop.last[e.SubjectID.String()].Sequence < e.Sequence {
				missing = append(missing, fmt.Sprintf("%d %s of %s", e.Sequence, e.Kind, e.SubjectID))
			}
		}
		return nil
	})
	return missing
}

// checkReceiver: every event arrived, signed, and the last state is the true one.
func (w *World) checkReceiver() {
	w.T.Helper()
	if w.shop == nil {
		return
	}
	for _, m := range w.undelivered() {
		w.wrong("receiver's book: event %s did not arrive", m)
	}
	if w.shop.forged > 0 {
		w.wrong("receiver's book: %d deliveries had no good signature", w.shop.forged)
	}
	for _, r := range w.rows() {
		last := w.shop.last[r.id]
		if _, status := last.subject(); status != r.status {
			w.wrong("receiver's book: the last state of %s is %q", r, status)
		}
	}
}

// checkRest: nothing stays open without a case, nothing is leased, and no reserve is left.
func (w *World) checkRest(rows []*row, v Verdict) {
	w.T.Helper()
	held := int64(0)
	for _, r := range rows {
		switch {
		case r.final:
		case !v.Open || !r.attention:
			w.wrong("at rest: open without end: %s", r)
		case r.kind != "payment":
			held += r.amount.Minor
		}
	}
	storetest.View(w.T, w.store, func(ctx context.Context, tx *store.Tx) error {
		for _, r := range rows {
			id, err := till.ParseID(r.id)
			if err != nil {
				return err
			}
			s, err := tx.Step(ctx, store.Ref{Client: w.client.ID, ID: id})
			if err != nil {
				return err
			}
			if s != nil && s.LeaseUntil > tx.Now() {
				w.wrong("at rest: the step of %s is leased until %s", r, s.LeaseUntil)
			}
		}
		balances, err := tx.Balances(ctx, store.Scope{Client: w.client.ID, Mode: till.Live})
		for _, b := range balances {
			if b.Reserved > 0 && held == 0 {
				w.wrong("at rest: %d %s are reserved", b.Reserved, b.Currency)
			}
		}
		return err
	})
}
