package api

import (
	"context"
	"net/http"
	"strconv"

	"till"
	"till/collect"
	"till/engine"
	"till/internal/jsonx"
	"till/store"
)

// createPayment is POST /payments: one commit, no operator.
func (c *exchange) createPayment() error {
	var req collect.Request
	if err := c.decode(&req); err != nil {
		return err
	}
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
	err = c.readAndWait(ref, func(ctx context.Context, tx *store.Tx) (status string, final bool, err error) {
		if p, err = tx.Payment(ctx, ref); err != nil {
			return "", false, err
		}
		return string(p.Status), p.Status.Final(), nil
	})
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, p.AppendJSON(c.buffer()))
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
	err = c.view(func(ctx context.Context, tx *store.Tx) (err error) {
		rows, total, err = tx.ListPayments(ctx, c.session.Client.ID, f, page)
		return err
	})
	if err != nil {
		return err
	}
	b := appendItems(c.buffer(), rows, func(b []byte, p *store.PaymentRow) []byte { return p.AppendJSON(b) })
	return c.json(http.StatusOK, appendPage(b, total, page.Limit, page.Offset))
}

// paymentFilter reads the filters of payments or payouts.
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
	return c.json(http.StatusOK, append(appendItems(c.buffer(), attempts, appendAttempt), '}'))
}

func appendAttempt(b []byte, a *store.Attempt) []byte {
	outcome := a.Outcome
	if outcome == "" {
		outcome = "in_flight"
	}
	b = append(b, `{"id":`...)
	b = strconv.AppendInt(b, int64(a.N), 10)
	b = append(b, `,"kind":`...)
	b = jsonx.AppendString(b, a.Kind)
	b = append(b, `,"connection":`...)
	b = jsonx.AppendString(b, a.Connection)
	b = append(b, `,"submission_reference":`...)
	b = a.Reference.AppendJSON(b)
	b = append(b, `,"outcome":`...)
	b = jsonx.AppendString(b, outcome)
	b = append(b, `,"provider_code":`...)
	b = jsonx.AppendStringOrNull(b, a.Code)
	b = append(b, `,"detail":`...)
	b = jsonx.AppendStringOrNull(b, a.Detail)
	b = append(b, `,"started_at":`...)
	b = a.StartedAt.AppendJSON(b)
	b = append(b, `,"ended_at":`...)
	b = a.EndedAt.AppendJSON(b)
	b = append(b, `,"duration_ms":`...)
	if a.EndedAt.IsZero() {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendInt(b, max(0, a.EndedAt.Sub(a.StartedAt).Milliseconds()), 10)
	}
	b = append(b, `,"repeats":`...)
	b = strconv.AppendInt(b, int64(a.Repeats), 10)
	b = append(b, `,"last_at":`...)
	b = a.LastAt.AppendJSON(b)
	return append(b, '}')
}
