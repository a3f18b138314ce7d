package payout

import (
	"context"
	"slices"
	"strings"
	"time"

	"till"
	"till/engine"
	"till/internal/request"
	"till/provider"
	"till/store"
	"till/store/refunds"
)

// RefundRequest is the body of a call that gives a payment back, as the client sent it. A nil
// member was absent or null. Who gets the money, and by which method, is the payment's.
type RefundRequest struct {
	PaymentID      *string          `json:"payment_id"`
	Amount         *request.Amount  `json:"amount"`
	IdempotencyKey *string          `json:"idempotency_key"`
	Reason         *string          `json:"reason"`
	Reference      *string          `json:"reference"`
	Description    *string          `json:"description"`
	Metadata       request.Metadata `json:"metadata"`

	Unknown []till.FieldError `json:"-"` // as in request.Body
}

// refundBodyVersion is the version of the list of members that hash covers, as bodyVersion is
// for payouts.
const refundBodyVersion = 1

// check applies all rules that cannot change over time.
func (r *RefundRequest) check(c *request.Validator) (o *request.Parsed, payment till.ID) {
	if r.PaymentID == nil {
		c.Add("/payment_id", till.FieldRequired, "is required")
	} else if id, err := till.ParseID(*r.PaymentID); err != nil {
		c.Add("/payment_id", till.FieldInvalidFormat, "must be the id of a payment")
	} else {
		payment = id
	}
	b := request.Body{Amount: r.Amount, IdempotencyKey: r.IdempotencyKey, Reference: r.Reference, Description: r.Description, Metadata: r.Metadata}
	return b.CheckRefund(c, func(*request.Parsed) {
		if r.Reason != nil && !slices.Contains(till.RefundReasons, *r.Reason) {
			c.Add("/reason", till.FieldInvalidFormat, "must be one of: "+strings.Join(till.RefundReasons, ", "))
		}
	}), payment
}

// hash returns the same value for two bodies exactly if they mean the same. No payout has it:
// one key makes either. It reports false for a version that this program does not know.
func (r *RefundRequest) hash(version int) ([32]byte, bool) {
	if version != refundBodyVersion {
		return [32]byte{}, false
	}
	return request.Hash(func(h *request.Hasher) {
		noun := string(till.NounRefund)
		h.Text(&noun)
		payment := strings.ToLower(request.TextOf(r.PaymentID))
		h.Text(&payment)
		h.Amount(r.Amount)
		h.Text(r.Reason)
		h.Text(r.Reference)
		h.Text(r.Description)
		h.Value(r.Metadata.Raw)
	})
}

// document returns what is echoed as sent, with the number that the payment was made from.
func (r *RefundRequest) document(phone string) []byte {
	body := Request{Body: request.Body{Description: r.Description, Metadata: r.Metadata}, Recipient: &Recipient{Phone: &phone}}
	return body.document()
}

// Refund records that a client gives a payment back and reserves the money, in one commit with
// an audit row. Everything but the body's form is decided in that commit, under the lock of the
// client's head, after the key was looked up. It returns, in this order: CodeValidationFailed
// with all mistakes of the body, CodeKeyReused, CodeServiceUnavailable while an older release
// may run, CodePaymentNotFound, CodeNotRefundable, CodeValidationFailed for an amount that the
// operator does not move, CodeRefundExceeds, CodeRefundInProgress, CodeRefundNotPossible,
// CodeMethodUnavailable, CodeInsufficientBalance, CodePayoutsHeld.
func (d *Disburser) Refund(ctx context.Context, who engine.Client, r *RefundRequest) (Created, error) {
	call, err := newRefund(ctx, who, r)
	if err != nil {
		return Created{}, err
	}
	return createdFrom(d.Accept(ctx, call))
}

// originals are the payments that a batch of creates gives back, as the batch has left them.
type originals struct {
	of    map[store.Ref]*refunds.Original
	level int // what may be written
}

// readOriginals reads the payments that some of the calls give back.
func readOriginals(ctx context.Context, tx *store.Tx, calls []*createCall) (o originals, err error) {
	var refs []store.Ref
	for _, call := range calls {
		if ref := paymentOf(call.Row); call.Row.IsRefund() && !slices.Contains(refs, ref) {
			refs = append(refs, ref)
		}
	}
	if len(refs) == 0 {
		return o, nil
	}
	o.of, o.level, err = refunds.OriginalsAndLevel(ctx, tx, refs)
	return o, err
}

// paymentOf names the payment that a refund gives back.
func paymentOf(p *store.PayoutRow) store.Ref {
	return store.Ref{Client: p.ClientID, ID: p.PaymentID}
}

// amounts returns the payments' amounts, for their sums.
func (o *originals) amounts() map[store.Ref]int64 {
	out := make(map[store.Ref]int64, len(o.of))
	for ref, of := range o.of {
		out[ref] = of.Sums.Amount
	}
	return out
}

// fit reports whether a refund that was lost can be made again now.
func (o *originals) fit(p *store.PayoutRow) bool {
	of := o.of[paymentOf(p)]
	return o.level >= refunds.Level && of != nil && of.Credited && of.Open.IsZero() && of.Sums.Refunding+of.Sums.Refunded+p.Amount.Minor <= of.Sums.Amount
}

// add notes a refund that the batch makes.
func (o *originals) add(p *store.PayoutRow) {
	if of := o.of[paymentOf(p)]; of != nil {
		of.Open = p.ID
		of.Sums.Refunding += p.Amount.Minor
	}
}

// admitRefund decides whether a refund is made, and completes its row from its payment's. It
// does not look at the wallet, nor at holds.
func (d *Disburser) admitRefund(call *createCall, o *originals, now till.Time) error {
	if o.level < refunds.Level {
		return &till.Error{Code: till.CodeServiceUnavailable, Told: true,
			Detail: "Refunds are not taken yet: the level of this service has not been raised since its upgrade. Try again later with the same key."}
	}
	if call.Client.Full != nil {
		return call.Client.Full
	}
	if r := call.Body.(*RefundRequest); r.Unknown != nil {
		v := request.Validator{Fields: r.Unknown}
		return v.Refusal()
	}
	p, of := call.Row, o.of[paymentOf(call.Row)]
	if of == nil {
		return till.Errorf(till.CodePaymentNotFound, "there is no such payment")
	}
	if bar := d.bar(of, now); bar != "" {
		none := int64(0)
		return &till.Error{Code: till.CodeNotRefundable, Told: true, Detail: d.say(bar), Refundable: &none}
	}
	left, amount := of.Sums.Left(), call.Amount
	if amount == 0 { // none was sent
		amount = left
	}
	p.Amount = till.Money{Minor: amount, Currency: of.Payment.Amount.Currency}
	p.Method, p.Country, p.Phone = of.Payment.Method, of.Payment.Country, of.Payment.Phone
	if err := checkRefundAmount(call, p); err != nil {
		return err
	}
	if amount > left || amount == 0 && of.Open.IsZero() {
		return &till.Error{Code: till.CodeRefundExceeds, Refundable: &left}
	}
	if !of.Open.IsZero() {
		return &till.Error{Code: till.CodeRefundInProgress, RefundID: of.Open}
	}
	h := d.here(call.Client.Client, &of.Payment, p.Amount)
	name, road, err := h.choose(&of.Payment)
	if err == nil {
		err = d.Reachable(name)
	}
	if err == nil {
		err = d.Opens(name, p.Method, p.Country, p.Amount.Currency, road == till.RoadRefund)
	}
	if err != nil {
		return err
	}
	p.Connection, p.Road, p.Fingerprint = name, road, d.c.Connections[name].Fingerprint()
	p.Fee = till.FeeFor(call.Client.Fees, till.RefundFee, p.Method, p.Amount)
	p.Document = call.Body.(*RefundRequest).document(p.Phone)
	return nil
}

// RefundAge is how old a payment may be.
func (d *Disburser) RefundAge() time.Duration {
	if d.c.Refunds.MaxAge > 0 {
		return d.c.Refunds.MaxAge
	}
	return 90 * 24 * time.Hour
}

// bar says why a payment's money may not go back at all.
func (d *Disburser) bar(of *refunds.Original, now till.Time) Bar {
	switch {
	case of.Suspended:
		return BarSuspended
	case !of.Credited:
		return BarUnpaid
	case of.Reversed:
		return BarReversed
	case strings.HasPrefix(of.Payment.Phone, engine.ErasedMark):
		return BarErased
	case now.Sub(of.Payment.CreatedAt) > d.RefundAge():
		return BarOld
	}
	return ""
}

// checkRefundAmount applies what the payment's currency and market ask of an amount.
func checkRefundAmount(call *createCall, p *store.PayoutRow) error {
	var v request.Validator
	if call.Currency != "" && call.Currency != p.Amount.Currency {
		v.Add("/amount/currency", till.FieldCurrencyNotSupported, "must be the payment's currency, "+p.Amount.Currency)
	} else if _, k := marketOf(&p.Payout); k != nil {
		request.CheckBounds(&v, k, p.Amount.Minor)
	}
	if len(v.Fields) > 0 {
		return v.Refusal()
	}
	return nil
}

// here returns what this instance knows of connections, for a refund of an amount.
func (d *Disburser) here(client *till.Client, p *till.Payment, amount till.Money) here {
	return here{
		origins: d.c.Refunds.Origins, retired: d.c.Refunds.Retired,
		refunds: func(name string) bool {
			c, ok := d.c.Connections[name].(provider.Refunder)
			return ok && c.CanRefund(d.Original(p), amount)
		},
		serves: func(name string) bool {
			c := d.c.Connections[name]
			return c != nil && provider.Serves(c, p.Method, p.Country, amount.Currency)
		},
		route: d.Routed(client, p.Method, p.Country, amount.Currency),
	}
}
