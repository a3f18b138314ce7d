package till

// thing is a payment, a payout, a refund or a checkout: one of the four.
type thing struct {
	payment  *Payment
	payout   *Payout
	refund   *Refund
	checkout *Checkout
}

// only is the one of a kind.
func (x thing) only(kind string) thing {
	switch kind {
	case KindPayment:
		return thing{payment: x.payment}
	case KindPayout:
		return thing{payout: x.payout}
	case KindRefund:
		return thing{refund: x.refund}
	case KindCheckout:
		return thing{checkout: x.checkout}
	}
	return thing{}
}

// facts are what the four have alike.
type facts struct {
	noun, id, key, reference, status string
	resolution                       string
	expires                          Timestamp
	late, reversed                   bool
}

func (x thing) facts() facts {
	switch {
	case x.payment != nil:
		p := x.payment
		return facts{KindPayment, p.ID, p.IdempotencyKey, Value(p.Reference), p.Status, p.Resolution.State, p.ExpiresAt, p.LateSuccessAt != nil, p.ReversedAt != nil}
	case x.payout != nil:
		p := x.payout
		return facts{KindPayout, p.ID, p.IdempotencyKey, Value(p.Reference), p.Status, p.Resolution.State, p.ExpiresAt, p.LateSuccessAt != nil, false}
	case x.refund != nil:
		p := x.refund
		return facts{KindRefund, p.ID, p.IdempotencyKey, Value(p.Reference), p.Status, p.Resolution.State, p.ExpiresAt, p.LateSuccessAt != nil, false}
	case x.checkout != nil:
		p := x.checkout
		return facts{KindCheckout, p.ID, p.IdempotencyKey, Value(p.Reference), stateOf(p), "", p.ExpiresAt, false, false}
	}
	return facts{}
}

// progress is that of a row that the service has.
func (x thing) progress() Progress {
	return Progress{State: Taken, ID: x.facts().id, Payment: x.payment, Payout: x.payout, Refund: x.refund, Checkout: x.checkout}
}

// thing is what the service answered.
func (p Progress) thing() thing { return thing{p.Payment, p.Payout, p.Refund, p.Checkout} }
