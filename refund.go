package till

import "strconv"

// Road is how a refund's money goes back.
type Road string

// The roads. A plain payout has RoadTransfer.
const (
	RoadTransfer Road = "transfer" // it is sent to the payer's number, like a payout
	RoadRefund   Road = "refund"   // by the operator's own call, which names the payment
)

// RefundReasons are the reasons that a refund may be made for. Readers treat one that they do
// not know as "other".
var RefundReasons = []string{"requested_by_customer", "duplicate", "not_delivered", "late_payment", "wrong_amount", "other"}

// RefundSums are what went back of a payment and what is on its way, in minor units of the
// payment's currency.
type RefundSums struct {
	Amount    int64 // of the payment
	Refunding int64 // of open refunds
	Refunded  int64 // of refunds that succeeded
	Late      int64 // of refunds that were paid after they had ended otherwise
}

// Left returns how much of the payment has not gone back and is not on its way.
func (s RefundSums) Left() int64 { return max(0, s.Amount-s.Refunding-s.Refunded-s.Late) }

// Beyond reports whether more went back, or is on its way, than was paid.
func (s RefundSums) Beyond() bool { return s.Refunding+s.Refunded+s.Late > s.Amount }

// Refunds is what clients see of a payment's refunds.
type Refunds struct {
	Refunded   int64 // in time or late
	Refunding  int64
	Refundable int64
}

// RefundsOf returns what clients see of a payment's refunds. refundable says that the
// payment's money may go back at all.
func RefundsOf(s RefundSums, refundable bool) Refunds {
	r := Refunds{Refunded: s.Refunded + s.Late, Refunding: s.Refunding}
	if refundable {
		r.Refundable = s.Left()
	}
	return r
}

// AppendJSONWith is AppendJSON with what went back of the payment.
func (p *Payment) AppendJSONWith(b []byte, r Refunds) []byte {
	b = p.AppendJSON(b)
	b = append(b[:len(b)-1], `,"refunds":{"refunded":"`...)
	b = strconv.AppendInt(b, r.Refunded, 10)
	b = append(b, `","refunding":"`...)
	b = strconv.AppendInt(b, r.Refunding, 10)
	b = append(b, `","refundable":"`...)
	b = strconv.AppendInt(b, r.Refundable, 10)
	return append(b, `"}}`...)
}
