package payout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"till"
	"till/engine"
	"till/internal/request"
	"till/ledger"
	"till/store"
	"till/store/refunds"
)

// Bar is why the money of a payment may not go back at all; "" if it may.
type Bar string

// The bars.
const (
	BarSuspended Bar = "suspended" // a person decides about the money
	BarUnpaid    Bar = "unpaid"
	BarReversed  Bar = "reversed" // the operator took it back
	BarErased    Bar = "erased"   // the number that paid
	BarOld       Bar = "old"      // the number may be somebody else's by now
)

// Bars lists every bar.
var Bars = []Bar{BarSuspended, BarUnpaid, BarReversed, BarErased, BarOld}

// say is the detail of a refusal.
func (d *Disburser) say(b Bar) string {
	switch b {
	case BarSuspended:
		return "Money of the payment is put aside until a person has decided about it."
	case BarUnpaid:
		return "The payment is not paid."
	case BarReversed:
		return "The operator has taken the payment's money back."
	case BarErased:
		return "The number that paid was erased."
	}
	return fmt.Sprintf("The payment is older than %d days. The number may belong to somebody else by now.", d.RefundAge()/(24*time.Hour))
}

// RefundOffer is what giving a payment back would do now, for somebody who decides about it.
type RefundOffer struct {
	Left    int64       // of the payment: neither back nor on its way, in minor units
	Refund  till.Payout // as it would be made: to whom, how much, for which fee
	Balance till.Money  // what the wallet has available before
	Bar     Bar
	Low     bool  // the level of the installation is too low for refunds
	Refused error // what Refund would return; nil if it would be made
}

// After returns what the wallet would have available.
func (o *RefundOffer) After() till.Money {
	return till.Money{Minor: o.Balance.Minor - o.Refund.Reserve(), Currency: o.Balance.Currency}
}

// Market returns the method and the market in which the money goes back; nil if there is none.
func (o *RefundOffer) Market() (*till.Method, *till.Market) { return marketOf(&o.Refund) }

func marketOf(p *till.Payout) (*till.Method, *till.Market) {
	m, known := till.MethodOf(p.Method)
	if !known {
		return nil, nil
	}
	country := p.Country
	if k, found := till.CountryByCallingCode(p.Phone, m.Countries()); country == "" && found {
		country = k.Code
	}
	k, _ := m.Market(country, p.Amount.Currency)
	return m, k
}

// OfferRefund returns what Refund would do now, and does nothing. The rules are those of
// Refund: it decides again when it is called. It returns CodePaymentNotFound, and
// CodeValidationFailed with mistakes of the body.
func (d *Disburser) OfferRefund(ctx context.Context, who engine.Client, r *RefundRequest) (*RefundOffer, error) {
	call, err := newRefund(ctx, who, r)
	if err != nil {
		return nil, err
	}
	o := &RefundOffer{}
	err = d.c.Store.View(ctx, func(tx *store.Tx) error { return d.offer(ctx, tx, call, o) })
	if err != nil {
		return nil, d.Unavailable("refund not looked at", err)
	}
	return o, nil
}

func (d *Disburser) offer(ctx context.Context, tx *store.Tx, call *createCall, o *RefundOffer) error {
	calls, clients := []*createCall{call}, []till.ID{call.Client.ID}
	originals, err := readOriginals(ctx, tx, calls)
	if err != nil {
		return err
	}
	of := originals.of[paymentOf(call.Row)]
	if of == nil {
		return till.Errorf(till.CodePaymentNotFound, "there is no such payment")
	}
	held, err := tx.HoldsOf(ctx, clients)
	if err != nil {
		return err
	}
	wallets, err := tx.WalletsOf(ctx, clients)
	if err != nil {
		return err
	}
	var w *ledger.Wallet
	for _, some := range wallets {
		if some.Currency == of.Payment.Amount.Currency {
			w = some
		}
	}
	o.Balance.Currency = of.Payment.Amount.Currency
	if w != nil {
		o.Balance.Minor = w.Available()
	}
	o.Left, o.Bar = of.Sums.Left(), d.bar(of, tx.Now())
	o.Low = originals.level < refunds.Level
	if o.Refused = d.admitRefund(call, &originals, tx.Now()); o.Refused == nil {
		o.Refused = mayReserve(call.Row, w, len(held[call.Client.ID]) > 0)
	}
	o.Refund = call.Row.Payout
	return nil
}

// newRefund returns the call that a body asks for.
func newRefund(ctx context.Context, who engine.Client, r *RefundRequest) (*createCall, error) {
	var v request.Validator
	parsed, payment := r.check(&v)
	if len(v.Fields) > 0 {
		v.Fields = append(v.Fields, r.Unknown...)
		return nil, v.Refusal()
	}
	sum, ok := r.hash(refundBodyVersion)
	if !ok {
		return nil, errors.New("hash the body of a refund")
	}
	call := &createCall{Client: who, Parsed: parsed, Hash: r.hash, Body: r, Audit: &store.AuditRow{Actor: who.Actor, Cause: store.CauseOf(ctx)}}
	call.Row = &store.PayoutRow{
		Payout: till.Payout{
			ClientID: who.ID, IdempotencyKey: parsed.SentKey, Status: till.PayoutPending, PaymentID: payment, Reason: request.TextOf(r.Reason),
			Reference: request.TextOf(r.Reference), Document: r.document(""), Resolution: till.Resolution{State: till.Waiting},
		},
		BodyHash: sum, BodyVersion: refundBodyVersion,
	}
	return call, nil
}
