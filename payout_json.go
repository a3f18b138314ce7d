package till

import "strconv"

// AppendJSON appends the payout or refund as clients see it, in answers and in events
// alike: every field always, null where there is nothing.
func (p *Payout) AppendJSON(b []byte) []byte {
	b = append(b, `{"id":"`...)
	b = p.ID.Append(b)
	b = append(b, `","status":"`...)
	b = append(b, p.Status...)
	if p.IsRefund() {
		b = append(b, `","payment_id":"`...)
		b = p.PaymentID.Append(b)
	}
	b = append(b, `","method":`...)
	b = appendString(b, p.Method)
	b = append(b, `,"country":`...)
	b = appendStringOrNull(b, p.Country)
	b = append(b, `,"amount":`...)
	b = appendMoney(b, p.Amount)
	b = append(b, `,"fee":"`...)
	b = strconv.AppendInt(b, p.Fee, 10)
	b = append(b, `","net":"`...)
	b = strconv.AppendInt(b, p.Reserve(), 10)
	if b = append(b, '"'); p.IsRefund() {
		b = append(b, `,"reason":`...)
		b = appendStringOrNull(b, p.Reason)
	}
	b = append(b, `,"reference":`...)
	b = appendStringOrNull(b, p.Reference)
	b = append(b, `,"idempotency_key":`...)
	b = appendString(b, p.IdempotencyKey)
	b = append(b, `,"provider_reference":`...)
	b = appendStringOrNull(b, p.ProviderReference)
	b = append(b, `,"failure_reason":`...)
	b = appendStringOrNull(b, string(p.FailureReason))
	b = append(b, `,"failure_detail":`...)
	b = p.FailureDetail.appendJSON(b, !p.LateSuccessAt.IsZero())
	b = append(b, ',')
	b = append(b, p.Document...)
	b = append(b, `,"created_at":`...)
	b = p.CreatedAt.AppendJSON(b)
	b = append(b, `,"updated_at":`...)
	b = p.UpdatedAt.AppendJSON(b)
	b = append(b, `,"expires_at":`...)
	b = p.ExpiresAt.AppendJSON(b)
	b = append(b, `,"late_success_at":`...)
	b = p.LateSuccessAt.AppendJSON(b)
	b = append(b, `,"resolution":`...)
	b = p.Resolution.appendJSON(b)
	return append(b, '}')
}

func appendMoney(b []byte, m Money) []byte {
	b = append(b, `{"value":"`...)
	b = strconv.AppendInt(b, m.Minor, 10)
	b = append(b, `","currency":"`...)
	b = append(b, m.Currency...)
	return append(b, `"}`...)
}
