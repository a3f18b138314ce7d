package privacy

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"till"
	"till/engine"
	"till/internal/request"
	"till/store"
	"till/store/checkouts"
	"till/store/lookup"
	"till/store/refunds"
)

// A checkout may have numbers of several people: one that the shop named, and those that were
// typed on its page. A person's wish takes out that person's number alone.

// checkoutBatch is some checkouts of one client.
type checkoutBatch struct {
	wants  func(row lookup.PhoneRow) (texts, wanted bool) // of each number of a checkout
	client till.ID
	refs   []store.Ref
}

func (e *eraser) addCheckout(ctx context.Context, b *checkoutBatch, ref store.Ref) error {
	if len(b.refs) == eraseRows || len(b.refs) > 0 && b.client != ref.Client {
		if err := e.flushCheckouts(ctx, b); err != nil {
			return err
		}
	}
	b.client, b.refs = ref.Client, append(b.refs, ref)
	return nil
}

// eraseCheckoutsOf reads a client's checkouts, after its payments were erased, and erases those
// that an erasure by token or by age concerns.
func (e *eraser) eraseCheckoutsOf(ctx context.Context, client till.ID) error {
	end, b := e.end(), checkoutBatch{wants: e.wants}
	for after := (till.ID{}); ; {
		var rows []*checkouts.Row
		asks := map[store.Ref][]till.Ask{}
		err := e.s.View(ctx, func(tx *store.Tx) (err error) {
			if rows, err = checkouts.Each(ctx, tx, client, after, personRefs); err != nil {
				return err
			}
			refs := make([]store.Ref, len(rows))
			for i, row := range rows {
				refs[i] = row.Ref()
			}
			asks, err = checkouts.AsksOf(ctx, tx, refs)
			return err
		})
		if err != nil {
			return err
		}
		for _, row := range rows {
			if after = row.ID; bytes.Compare(after[:], end[:]) >= 0 {
				return e.flushCheckouts(ctx, &b)
			}
			x, err := e.erasedCheckout(row, asks[row.Ref()], &b)
			if err == nil && x != nil {
				err = e.addCheckout(ctx, &b, row.Ref())
			}
			if err != nil {
				return err
			}
		}
		if len(rows) < personRefs {
			return e.flushCheckouts(ctx, &b)
		}
	}
}

// flushCheckouts erases a batch in one commit, with its audit row, and empties it.
func (e *eraser) flushCheckouts(ctx context.Context, b *checkoutBatch) error {
	if len(b.refs) == 0 {
		return nil
	}
	done, err := e.commit(ctx, b.client, func(tx *store.Tx) (done, left int, err error) { return e.eraseCheckouts(ctx, tx, b) })
	e.out.Checkouts += done
	b.refs = nil
	return err
}

func (e *eraser) eraseCheckouts(ctx context.Context, tx *store.Tx, b *checkoutBatch) (done, left int, err error) {
	if !e.DryRun { // no checkout moves, and no ask is made, meanwhile
		if _, err := tx.LockHeads(ctx, []till.ID{b.client}); err != nil {
			return 0, 0, err
		}
	}
	asks, err := checkouts.AsksOf(ctx, tx, b.refs)
	if err != nil {
		return 0, 0, err
	}
	tokens := map[string]bool{}
	for _, ref := range b.refs {
		row, err := checkouts.Get(ctx, tx, ref)
		if err != nil {
			return 0, 0, err
		}
		x, err := e.erasedCheckout(row, asks[ref], b)
		if err != nil {
			return 0, 0, err
		}
		if x == nil {
			continue
		}
		needed, err := e.isNeeded(ctx, tx, x)
		if err != nil {
			return 0, 0, err
		}
		if needed {
			left++
			continue
		}
		if done++; e.DryRun {
			continue
		}
		if err := x.write(ctx, tx); err != nil {
			return 0, 0, err
		}
		for _, token := range x.tokens {
			tokens[token] = true
		}
	}
	if done == 0 || e.DryRun {
		return done, left, nil
	}
	return done, left, store.AuditClients(ctx, tx, []till.ID{b.client}, e.By, ActErase, e.detail("checkouts", done, tokens))
}

// erasedCheckout is a checkout without the numbers that are taken out.
type erasedCheckout struct {
	row    checkouts.Row
	asks   []till.Ask // whose numbers are taken out
	tokens []string
}

// erasedCheckout returns what a checkout becomes; nil if nothing of it is to be taken out.
func (e *eraser) erasedCheckout(row *checkouts.Row, asks []till.Ask, b *checkoutBatch) (*erasedCheckout, error) {
	x := &erasedCheckout{row: *row}
	// Without a number there may still be texts.
	texts, wanted := b.wants(lookup.PhoneRow{ID: row.ID})
	wanted = wanted && texts && row.ErasedAt.IsZero()
	texts = wanted
	take := func(phone *string) bool {
		if *phone == "" || strings.HasPrefix(*phone, engine.ErasedMark) {
			return false
		}
		t, w := b.wants(lookup.PhoneRow{ID: row.ID, Phone: *phone})
		if w {
			texts, wanted = texts || t, true
			*phone = e.keys.ErasedPhone(*phone)
			x.tokens = append(x.tokens, *phone)
		}
		return w
	}
	take(&x.row.Phone)
	for _, a := range asks {
		if take(&a.Phone) {
			x.asks = append(x.asks, a)
		}
	}
	if !wanted {
		return nil, nil
	}
	if row.ErasedAt.IsZero() {
		x.row.BodyHash, x.row.BodyVersion = e.keys.ErasedHash(row.BodyHash, row.BodyVersion)
		x.row.ErasedAt = e.s.Now()
	}
	var err error
	if x.row.Document, err = request.EraseDocument(row.Document, "", "", texts); err != nil {
		err = fmt.Errorf("%s: %w", row.ID, err)
	}
	return x, err
}

// isNeeded reports whether a checkout can still be paid, or whether one of the payments that it
// asked these numbers for keeps its number.
func (e *eraser) isNeeded(ctx context.Context, tx *store.Tx, x *erasedCheckout) (bool, error) {
	if x.row.State == till.CheckoutOpen {
		return true, nil
	}
	var refs []store.Ref
	for _, a := range x.asks {
		if !a.PaymentID.IsZero() {
			refs = append(refs, store.Ref{Client: a.ClientID, ID: a.PaymentID})
		}
	}
	if len(refs) == 0 {
		return false, nil
	}
	payments, err := tx.Payments(ctx, store.SortedRefs(refs))
	if err != nil {
		return false, err
	}
	sums, err := refunds.Sums(ctx, tx, refs)
	if err != nil {
		return false, err
	}
	for _, p := range payments {
		if strings.HasPrefix(p.Phone, engine.ErasedMark) {
			continue
		}
		if !e.DryRun {
			return true, nil // it was left, a moment ago
		}
		if busy, err := isBusy(ctx, tx, p.Subject(), sums); err != nil || busy {
			return busy, err
		}
	}
	return false, nil
}

// write writes a checkout without the numbers.
func (x *erasedCheckout) write(ctx context.Context, tx *store.Tx) error {
	if err := checkouts.Erase(ctx, tx, &x.row); err != nil {
		return err
	}
	for i := range x.asks {
		if err := checkouts.EraseAsk(ctx, tx, &x.asks[i]); err != nil {
			return err
		}
	}
	return lookup.ForgetAnswers(ctx, tx, x.row.Ref())
}
