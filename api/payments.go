package api

import (
	"cmp"
	"context"
	"net/http"

	"till"
	"till/collect"
	"till/engine"
	"till/store"
)

// createPayment is POST /payments: one commit, no operator.
func (c *exchange) createPayment() error {
	var req collect.Request
	unknown, err := c.decodeKnown(&req)
	if err != nil {
		return err
	}
	req.Unknown = unknown
	who := engine.Client{Client: c.session.Client, Enabled: c.session.Enabled, Fees: c.session.Fees(), Full: c.checkTestQuota(), Caller: c.caller}
	created, err := c.s.Collector.Create(c.r.Context(), who, &req)
	if err != nil {
		return err
	}
	c.subject = created.Payment.ID
	h := c.Header()
	h["Location"] = []string{c.s.BaseURL + "/payments/" + created.Payment.ID.String()}
	if created.Replayed {
		h["Idempotent-Replayed"] = replayed
	}
	return c.json(http.StatusAccepted, created.Payment.AppendJSON(c.buffer()))
}

var replayed = []string{"true"}

// getPayment is GET /payments/{payment_id}.
func (c *exchange) getPayment() error {
	ref, err := c.paymentRef()
	if err != nil {
		return err
	}
	var p *store.PaymentRow
	var sums map[store.Ref]till.RefundSums
	err = c.readAndWait(ref, func(ctx context.Context, tx *store.Tx) (status string, final bool, err error) {
		if p, err = tx.Payment(ctx, ref); err != nil {
			return "", false, err
		}
		if sums, err = refundSums(ctx, tx, []*store.PaymentRow{p}); err != nil {
			return "", false, err
		}
		if err = engine.NextActions(ctx, tx, []*store.PaymentRow{p}); err != nil {
			return "", false, err
		}
		if status = string(p.Status); p.NextAction != nil {
			status += " " + p.NextAction.URL // who waits is answered when the customer can go on
		}
		return status, p.Status.Final(), nil
	})
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, appendPayment(c.buffer(), p, sums))
}

// paymentRef returns the client's payment in the path.
func (c *exchange) paymentRef() (store.Ref, error) {
	id, err := c.paymentID(till.CodePaymentNotFound)
	c.subject = id
	return store.Ref{Client: c.session.Client.ID, ID: id}, err
}

var paymentQuery = []string{
	"status", "method", "from_date", "to_date", "limit", "offset", "order",
	"reference", "idempotency_key", "provider_reference",
}

// The longest filter texts, in characters.
const (
	maxMethodFilter    = 64
	maxReferenceFilter = 128
	maxReceiptFilter   = 255
	maxCurrencyFilter  = 8
)

// listPayments is GET /payments.
func (c *exchange) listPayments() error {
	f, page, err := c.paymentFilter(statusWords)
	if err != nil {
		return err
	}
	var rows []*store.PaymentRow
	var total int64
	var sums map[store.Ref]till.RefundSums
	err = c.view(func(ctx context.Context, tx *store.Tx) (err error) {
		if rows, total, err = tx.ListPayments(ctx, c.session.Client.ID, f, page); err != nil {
			return err
		}
		if sums, err = refundSums(ctx, tx, rows); err != nil {
			return err
		}
		return engine.NextActions(ctx, tx, rows)
	})
	if err != nil {
		return err
	}
	b := appendItems(c.buffer(), rows, func(b []byte, p *store.PaymentRow) []byte { return appendPayment(b, p, sums) })
	return c.json(http.StatusOK, appendPage(b, total, page.Limit, page.Offset))
}

// paymentFilter reads the filters of payments, payouts or refunds.
func (c *exchange) paymentFilter(statuses []string) (store.PaymentFilter, store.Page, error) {
	p := c.params()
	f := store.PaymentFilter{
		Status:            till.Status(p.choice("status", statuses...)),
		Method:            p.text("method", maxMethodFilter),
		From:              p.time("from_date"),
		To:                p.time("to_date"),
		Reference:         p.text("reference", maxReferenceFilter),
		ProviderReference: p.text("provider_reference", maxReceiptFilter),
	}
	f.Key = p.id("idempotency_key")
	page := p.page()
	return f, page, p.err()
}

var statusWords = func() (words []string) {
	for _, s := range till.Statuses {
		words = append(words, string(s))
	}
	return words
}()

// listAttempts is GET /payments/{payment_id}/attempts.
func (c *exchange) listAttempts() error {
	ref, err := c.paymentRef()
	if err != nil {
		return err
	}
	return c.listAttemptsOf(ref, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Payment(ctx, ref)
		return err
	})
}

// listAttemptsOf answers with the attempts of a payment or payout, if it exists.
func (c *exchange) listAttemptsOf(ref store.Ref, exists func(ctx context.Context, tx *store.Tx) error) error {
	var attempts []*store.Attempt
	err := c.view(func(ctx context.Context, tx *store.Tx) (err error) {
		if err := exists(ctx, tx); err != nil {
			return err
		}
		attempts, err = tx.Attempts(ctx, ref)
		return err
	})
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, listOf(attempts, attemptOf))
}

type attempt struct {
	N          int       `json:"id"`
	Kind       string    `json:"kind"`
	Connection string    `json:"connection"`
	Reference  till.ID   `json:"submission_reference"`
	Outcome    string    `json:"outcome"`
	Code       *string   `json:"provider_code"`
	Detail     *string   `json:"detail"`
	StartedAt  till.Time `json:"started_at"`
	EndedAt    till.Time `json:"ended_at"`
	Took       *int64    `json:"duration_ms"`
	Repeats    int       `json:"repeats"`
	LastAt     till.Time `json:"last_at"`
}

func attemptOf(a *store.Attempt) attempt {
	out := attempt{a.N, a.Kind, a.Connection, a.Reference, cmp.Or(a.Outcome, "in_flight"), orNull(a.Code), orNull(a.Detail),
		a.StartedAt, a.EndedAt, nil, a.Repeats, a.LastAt}
	if !a.EndedAt.IsZero() {
		took := max(0, a.EndedAt.Sub(a.StartedAt).Milliseconds())
		out.Took = &took
	}
	return out
}
