package till

import (
	"errors"
	"fmt"
	"time"
)

// Code names a kind of refusal. Codes are stable: clients branch on them.
type Code string

// Every code the service answers with. The HTTP status of each is in
// api/errors.go, and nowhere else.
const (
	CodeMalformedBody        Code = "malformed_body"             // the body is not the JSON we read
	CodeInvalidParameter     Code = "invalid_parameter"          // a query parameter is unknown or ill-formed
	CodeKeyInURL             Code = "key_in_url"                 // an API key is in the URL, where logs keep it
	CodeMissingKey           Code = "missing_api_key"            // no X-Api-Key header
	CodeInvalidKey           Code = "invalid_api_key"            // unknown, revoked or expired; which one is not shown
	CodeInsufficientScope    Code = "insufficient_scope"         // the key is good but not for this
	CodeClientSuspended      Code = "client_suspended"           // the client may not use the service now
	CodePaymentNotFound      Code = "payment_not_found"          // no such payment of this client
	CodePayoutNotFound       Code = "payout_not_found"           // no such payout of this client
	CodeNotCancellable       Code = "payout_not_cancellable"     // it may have been sent already
	CodeInsufficientBalance  Code = "insufficient_balance"       // the wallet has less than the payout and its fee
	CodeRefundNotFound       Code = "refund_not_found"           // no such refund of this client
	CodeRefundNotCancellable Code = "refund_not_cancellable"     // it may have been sent already
	CodeNotRefundable        Code = "payment_not_refundable"     // it is not paid, or its money may not go back
	CodeRefundExceeds        Code = "refund_exceeds_payment"     // more than is left of the payment
	CodeRefundInProgress     Code = "refund_in_progress"         // another refund of the payment is open
	CodeRefundNotPossible    Code = "refund_not_possible"        // no operator takes the money back to the payer
	CodeCheckoutNotFound     Code = "checkout_not_found"         // no such checkout of this client
	CodeCheckoutLive         Code = "checkout_live"              // one of its asks may still bring money, or has
	CodeLinkNotFound         Code = "link_not_found"             // no such link of this client
	CodePagesNotAvailable    Code = "pages_not_available"        // the service has no pages to pay on
	CodePayoutsHeld          Code = "payouts_held"               // no new payouts are taken until a person releases them
	CodeEventNotFound        Code = "event_not_found"            // no such event of this client
	CodeEndpointNotFound     Code = "webhook_endpoint_not_found" // no such webhook endpoint of this client
	CodeEndpointDisabled     Code = "webhook_endpoint_disabled"  // it is disabled, and nothing is sent to it
	CodeKeyNotFound          Code = "api_key_not_found"          // no such key of this client
	CodePromptNotFound       Code = "prompt_not_found"           // no such open prompt of this client
	CodeClientNotFound       Code = "client_not_found"           // no such client; command line only
	CodeNotFound             Code = "not_found"                  // no such path
	CodeMethodNotAllowed     Code = "method_not_allowed"         // the path exists, the verb does not
	CodeCursorAhead          Code = "cursor_ahead"               // beyond the end of the event log: a restore lost history
	CodeRequestTimeout       Code = "request_timeout"            // the request came too slowly
	CodeBodyTooLarge         Code = "body_too_large"             // over the body limit
	CodeHeadersTooLarge      Code = "headers_too_large"          // over the header limit
	CodeUnsupportedMediaType Code = "unsupported_media_type"     // not plain application/json
	CodeValidationFailed     Code = "validation_failed"          // fields are missing or wrong; see Fields
	CodeKeyReused            Code = "idempotency_key_reused"     // the key belongs to another body
	CodeRateLimited          Code = "rate_limited"               // slow down
	CodeMethodUnavailable    Code = "method_unavailable"         // the method is closed just now
	CodeServiceUnavailable   Code = "service_unavailable"        // the database is unreachable or a queue is full
	CodeInternal             Code = "internal_error"             // ours; safe to retry with the same key
)

// The codes of single fields, under CodeValidationFailed.
const (
	FieldRequired             Code = "required"
	FieldInvalidFormat        Code = "invalid_format"
	FieldTooLong              Code = "too_long"
	FieldTooMany              Code = "too_many"
	FieldTooDeep              Code = "too_deep"
	FieldUnknownMethod        Code = "unknown_method"
	FieldCountryRequired      Code = "country_required"
	FieldCountryNotSupported  Code = "country_not_supported"
	FieldCurrencyNotSupported Code = "currency_not_supported"
	FieldInvalidPhone         Code = "invalid_phone"
	FieldAmountOutOfBounds    Code = "amount_out_of_bounds"
	FieldNotRepresentable     Code = "amount_not_representable"
	FieldLineItemMismatch     Code = "line_item_mismatch"
	FieldItemsSumMismatch     Code = "items_sum_mismatch"
	FieldTaxTotalMismatch     Code = "tax_total_mismatch"
	FieldTaxSubtotalMismatch  Code = "tax_subtotal_mismatch"
	FieldTaxSubtotalRequired  Code = "tax_subtotal_required"
	FieldUnknownEvent         Code = "unknown_event"
	FieldScopeNotGranted      Code = "scope_not_granted" // a key grants only scopes it has
	FieldUnknownMember        Code = "unknown_member"
	FieldURLNotAllowed        Code = "url_not_allowed" // events are not posted to such an address
	FieldNotTaken             Code = "not_taken"       // the method does not take it in this country
)

// FieldError is one mistake in a body. It never holds the bad value.
type FieldError struct {
	Pointer string // a plain JSON pointer, "/amount/value"
	Code    Code
	Detail  string
}

// Error is a refusal that the person who called should see. Any other error
// is ours: it is logged, and the caller reads only "internal error".
type Error struct {
	Code   Code
	Detail string
	Told   bool // the detail is written for clients, whatever the code
	Fields []FieldError

	// PaymentID, PayoutID and RefundID name what holds a reused idempotency key, and RefundID
	// the refund that is in progress.
	PaymentID, PayoutID, RefundID ID

	// Refundable is how much of the payment can still go back, in minor units, where a
	// refusal of a refund says so; nil elsewhere.
	Refundable *int64

	// RetryAfter is when it is worth trying again, where that is known.
	RetryAfter time.Duration
}

// Error returns the code and the detail in one line.
func (e *Error) Error() string {
	if e.Detail == "" {
		return string(e.Code)
	}
	return string(e.Code) + ": " + e.Detail
}

// Errorf returns an Error with a formatted detail.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Detail: fmt.Sprintf(format, args...)}
}

// ErrorCode returns the code of err, CodeInternal if it has none, and ""
// if err is nil.
func ErrorCode(err error) Code {
	var e *Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return e.Code
	}
	return CodeInternal
}
