package api

import (
	"context"
	"net/http"
	"strings"

	"till"
	"till/engine"
	"till/payout"
	"till/store"
	"till/store/refunds"
)

// refundHandlers answer about refunds.
type refundHandlers struct{ *exchange }

func onRefunds(handle func(refundHandlers) error) func(*exchange) error {
	return func(c *exchange) error { return handle(refundHandlers{c}) }
}

// createRefund is POST /refunds: one commit, no operator.
func (c refundHandlers) createRefund() error {
	var req payout.RefundRequest
	unknown, err := c.decodeKnown(&req)
	if err != nil {
		return err
	}
	req.Unknown = unknown
	who := engine.Client{Client: c.session.Client, Enabled: c.session.Enabled, Fees: c.session.Fees(), Actor: c.session.Actor(), Full: c.checkTestQuota(), Caller: c.caller}
	created, err := c.s.Payouts.Refund(c.auditContext(), who, &req)
	if err != nil {
		return err
	}
	c.subject = created.Payout.ID
	h := c.Header()
	h["Location"] = []string{c.s.BaseURL + "/refunds/" + created.Payout.ID.String()}
	if created.Replayed {
		h["Idempotent-Replayed"] = replayed
	}
	return c.json(http.StatusAccepted, created.Payout.AppendJSON(c.buffer()))
}

// refundRef returns the client's refund in the path. A malformed id is answered like an
// unknown one.
func (c refundHandlers) refundRef() (store.Ref, error) {
	id, err := till.ParseID(c.r.PathValue("refund_id"))
	if err != nil {
		return store.Ref{}, &till.Error{Code: till.CodeRefundNotFound}
	}
	c.subject = id
	return store.Ref{Client: c.session.Client.ID, ID: id}, nil
}

// getRefund is GET /refunds/{refund_id}.
func (c refundHandlers) getRefund() error {
	ref, err := c.refundRef()
	if err != nil {
		return err
	}
	var p *store.PayoutRow
	err = c.readAndWait(ref, func(ctx context.Context, tx *store.Tx) (status string, final bool, err error) {
		if p, err = payoutOf(ctx, tx, ref, till.NounRefund); err != nil {
			return "", false, err
		}
		return string(p.Status), p.Status.Final(), nil
	})
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, p.AppendJSON(c.buffer()))
}

// cancelRefund is POST /refunds/{refund_id}/cancel.
func (c refundHandlers) cancelRefund() error {
	ref, err := c.refundRef()
	if err != nil {
		return err
	}
	p, err := c.s.Payouts.CancelRefund(c.auditContext(), ref, c.session.Actor())
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, p.AppendJSON(c.buffer()))
}

var refundQuery = append([]string{"payment_id"}, paymentQuery...)

// listRefunds is GET /refunds.
func (c refundHandlers) listRefunds() error {
	f, page, err := c.paymentFilter(payoutStatusWords)
	if err != nil {
		return err
	}
	p := c.params()
	if id := p.id("payment_id"); id != nil {
		f.PaymentID = *id
	}
	if err := p.err(); err != nil {
		return err
	}
	var rows []*store.PayoutRow
	var total int64
	err = c.view(func(ctx context.Context, tx *store.Tx) (err error) {
		rows, total, err = store.ListRefunds(ctx, tx, c.session.Client.ID, f, page)
		return err
	})
	if err != nil {
		return err
	}
	b := appendItems(c.buffer(), rows, func(b []byte, p *store.PayoutRow) []byte { return p.AppendJSON(b) })
	return c.json(http.StatusOK, appendPage(b, total, page.Limit, page.Offset))
}

// listRefundEvents is GET /refunds/{refund_id}/events.
func (c refundHandlers) listRefundEvents() error {
	ref, err := c.refundRef()
	if err != nil {
		return err
	}
	return c.listPayoutEventsOf(ref, till.NounRefund)
}

// listRefundAttempts is GET /refunds/{refund_id}/attempts.
func (c refundHandlers) listRefundAttempts() error {
	ref, err := c.refundRef()
	if err != nil {
		return err
	}
	return c.listAttemptsOf(ref, func(ctx context.Context, tx *store.Tx) error {
		_, err := payoutOf(ctx, tx, ref, till.NounRefund)
		return err
	})
}

// listPaymentRefunds is GET /payments/{payment_id}/refunds, the newest first.
func (c refundHandlers) listPaymentRefunds() error {
	ref, err := c.paymentRef()
	if err != nil {
		return err
	}
	var rows []*store.PayoutRow
	err = c.view(func(ctx context.Context, tx *store.Tx) (err error) {
		if _, err := tx.Payment(ctx, ref); err != nil {
			return err
		}
		rows, err = refunds.Of(ctx, tx, ref)
		return err
	})
	if err != nil {
		return err
	}
	b := appendItems(c.buffer(), rows, func(b []byte, p *store.PayoutRow) []byte { return p.AppendJSON(b) })
	return c.json(http.StatusOK, append(b, '}'))
}

// refundSums reads what went back of those of some payments that were paid.
func refundSums(ctx context.Context, tx *store.Tx, rows []*store.PaymentRow) (map[store.Ref]till.RefundSums, error) {
	var paid []store.Ref
	for _, p := range rows {
		if p.Credited() {
			paid = append(paid, store.Ref{Client: p.ClientID, ID: p.ID})
		}
	}
	return refunds.Sums(ctx, tx, paid)
}

// appendPayment appends a payment with what went back of it. It can be given back unless the
// operator took the money back, or the number that paid was erased.
func appendPayment(b []byte, p *store.PaymentRow, sums map[store.Ref]till.RefundSums) []byte {
	s := sums[store.Ref{Client: p.ClientID, ID: p.ID}]
	s.Amount = p.Amount.Minor
	refundable := p.Credited() && p.ReversedEvent == 0 && !strings.HasPrefix(p.Phone, engine.ErasedMark)
	return p.AppendJSONWith(b, till.RefundsOf(s, refundable))
}
