package till

import (
	"strconv"
	"unicode/utf8"
)

// AppendJSON appends the payment as clients see it, in answers and in events
// alike: every field always, null where there is nothing.
func (p *Payment) AppendJSON(b []byte) []byte {
	if p.NextAction == nil {
		return p.appendJSON(b, "")
	}
	return p.appendJSON(b, string(p.NextAction.AppendJSON(nil)))
}

// appendJSON is AppendJSON with what the customer has to do, as JSON, "" if nothing: then
// the member is left out.
func (p *Payment) appendJSON(b []byte, next string) []byte {
	b = append(b, `{"id":"`...)
	b = p.ID.Append(b)
	b = append(b, `","status":"`...)
	b = append(b, p.Status...)
	b = append(b, `","method":`...)
	b = appendString(b, p.Method)
	b = append(b, `,"country":`...)
	b = appendStringOrNull(b, p.Country)
	b = append(b, `,"amount":{"value":"`...)
	b = strconv.AppendInt(b, p.Amount.Minor, 10)
	b = append(b, `","currency":"`...)
	b = append(b, p.Amount.Currency...)
	b = append(b, `"},"fee":"`...)
	b = strconv.AppendInt(b, p.Fee, 10)
	b = append(b, `","net":"`...)
	b = strconv.AppendInt(b, p.net(), 10)
	b = append(b, `","reference":`...)
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
	b = append(b, `,"reversed_at":`...)
	b = p.ReversedAt.AppendJSON(b)
	b = append(b, `,"resolution":`...)
	b = p.Resolution.appendJSON(b)
	if next != "" {
		b = append(b, `,"next_action":`...)
		b = append(b, next...)
	}
	return append(b, '}')
}

// AppendJSON appends what the customer has to do.
func (n *NextAction) AppendJSON(b []byte) []byte {
	b = append(b, `{"type":"redirect","url":`...)
	b = appendString(b, n.URL)
	b = append(b, `,"expires_at":`...)
	b = n.ExpiresAt.AppendJSON(b)
	return append(b, '}')
}

// appendJSON appends the detail. What was paid after all is not to be tried
// again: that would pay twice.
func (d *FailureDetail) appendJSON(b []byte, paid bool) []byte {
	if d == nil {
		return append(b, "null"...)
	}
	b = append(b, `{"provider_code":`...)
	b = appendStringOrNull(b, d.ProviderCode)
	b = append(b, `,"provider_message":`...)
	b = appendStringOrNull(b, d.ProviderMessage)
	b = append(b, `,"retryable":`...)
	b = strconv.AppendBool(b, d.Retryable && !paid)
	return append(b, '}')
}

func (r Resolution) appendJSON(b []byte) []byte {
	b = append(b, `{"state":"`...)
	b = append(b, r.State...)
	b = append(b, `","last_checked_at":`...)
	b = r.LastCheckedAt.AppendJSON(b)
	b = append(b, `,"next_check_at":`...)
	b = r.NextCheckAt.AppendJSON(b)
	b = append(b, `,"attempts":`...)
	b = strconv.AppendInt(b, int64(r.Attempts), 10)
	return append(b, '}')
}

// AppendJSON appends the time as a JSON string, the zero time as null.
func (t Time) AppendJSON(b []byte) []byte {
	if t.IsZero() {
		return append(b, "null"...)
	}
	b = append(b, '"')
	b = t.Append(b)
	return append(b, '"')
}

func appendStringOrNull(b []byte, s string) []byte {
	if s == "" {
		return append(b, "null"...)
	}
	return appendString(b, s)
}

// appendString writes a JSON string. The root may use nothing but the
// standard library, whose encoder would escape HTML and allocate; the rules
// are five lines. Text reaches us only as valid UTF-8.
func appendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf || c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		b = append(b, s[start:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		start = i
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}
