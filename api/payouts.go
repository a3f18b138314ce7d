package api

import (
	"context"
	"net/http"

	"till"
	"till/engine"
	"till/payout"
	"till/store"
)

// createPayout is POST /payouts: one commit, no operator.
func (c *exchange) createPayout() error {
	var req payout.Request
	unknown, err := c.decodeKnown(&req)
	if err != nil {
		return err
	}
	req.Unknown = unknown
	who := engine.Client{Client: c.session.Client, Enabled: c.session.Enabled, Fees: c.session.Fees(), Actor: c.session.Actor(), Full: c.checkTestQuota(), Caller: c.caller}
	created, err := c.s.Payouts.Create(c.auditContext(), who, &req)
	if err != nil {
		return err
	}
	c.subject = created.Payout.ID
	h := c.Header()
	h["Location"] = []string{c.s.BaseURL + "/payouts/" + created.Payout.ID.String()}
	if created.Replayed {
		h["Idempotent-Replayed"] = replayed
	}
	return c.json(http.StatusAccepted, created.Payout.AppendJSON(c.buffer()))
}

// payoutRef returns the client's payout in the path. A malformed id is answered like an
// unknown one.
func (c *exchange) payoutRef() (store.Ref, error) {
	id, err := till.ParseID(c.r.PathValue("payout_id"))
	if err != nil {
		return store.Ref{}, &till.Error{Code: till.CodePayoutNotFound}
	}
	c.subject = id
	return store.Ref{Client: c.session.Client.ID, ID: id}, nil
}

// getPayout is GET /payouts/{payout_id}.
func (c *exchange) getPayout() error {
	ref, err := c.payoutRef()
	if err != nil {
		return err
	}
	var p *store.PayoutRow
	err = c.readAndWait(ref, func(ctx context.Context, tx *store.Tx) (status string, final bool, err error) {
		if p, err = payoutOf(ctx, tx, ref, till.NounPayout); err != nil {
			return "", false, err
		}
		return string(p.Status), p.Status.Final(), nil
	})
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, p.AppendJSON(c.buffer()))
}

// cancelPayout is POST /payouts/{payout_id}/cancel.
func (c *exchange) cancelPayout() error {
	ref, err := c.payoutRef()
	if err != nil {
		return err
	}
	p, err := c.s.Payouts.Cancel(c.auditContext(), ref, c.session.Actor())
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, p.AppendJSON(c.buffer()))
}

// listPayouts is GET /payouts.
func (c *exchange) listPayouts() error {
	f, page, err := c.paymentFilter(payoutStatusWords)
	if err != nil {
		return err
	}
	var rows []*store.PayoutRow
	var total int64
	err = c.view(func(ctx context.Context, tx *store.Tx) (err error) {
		rows, total, err = tx.ListPayouts(ctx, c.session.Client.ID, f, page)
		return err
	})
	if err != nil {
		return err
	}
	b := appendItems(c.buffer(), rows, func(b []byte, p *store.PayoutRow) []byte { return p.AppendJSON(b) })
	return c.json(http.StatusOK, appendPage(b, total, page.Limit, page.Offset))
}

var payoutStatusWords = func() (words []string) {
	for _, s := range till.PayoutStatuses {
		words = append(words, string(s))
	}
	return words
}()

// listPayoutEvents is GET /payouts/{payout_id}/events.
func (c *exchange) listPayoutEvents() error {
	ref, err := c.payoutRef()
	if err != nil {
		return err
	}
	return c.listPayoutEventsOf(ref, till.NounPayout)
}

// listPayoutAttempts is GET /payouts/{payout_id}/attempts.
func (c *exchange) listPayoutAttempts() error {
	ref, err := c.payoutRef()
	if err != nil {
		return err
	}
	return c.listAttemptsOf(ref, func(ctx context.Context, tx *store.Tx) error {
		_, err := payoutOf(ctx, tx, ref, till.NounPayout)
		return err
	})
}

// payoutOf reads a payout, or a refund: one is not found as the other.
func payoutOf(ctx context.Context, tx *store.Tx, ref store.Ref, noun till.Noun) (*store.PayoutRow, error) {
	rows, err := tx.Payouts(ctx, []store.Ref{ref})
	if p := rows[ref]; err != nil || p != nil && p.Noun() == noun {
		return p, err
	}
	if noun == till.NounRefund {
		return nil, &till.Error{Code: till.CodeRefundNotFound}
	}
	return nil, &till.Error{Code: till.CodePayoutNotFound}
}

func (c *exchange) listPayoutEventsOf(ref store.Ref, noun till.Noun) error {
	return c.listEventsOf(func(ctx context.Context, tx *store.Tx) ([]*store.EventRow, error) {
		if _, err := payoutOf(ctx, tx, ref, noun); err != nil {
			return nil, err
		}
		return tx.PayoutEvents(ctx, ref)
	})
}
