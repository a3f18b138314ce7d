package api

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"till"
	"till/internal/jsonx"
	"till/store"
)

// refusal is the answer to an error code.
type refusal struct {
	status int
	detail string // for people, if the error has no detail of its own
}

// refusals gives every code its status. There is no other place for that.
var refusals = map[till.Code]refusal{
	till.CodeMalformedBody:        {http.StatusBadRequest, "The body is not the JSON that is expected."},
	till.CodeInvalidParameter:     {http.StatusBadRequest, "Some query parameters are unknown or wrong."},
	till.CodeKeyInURL:             {http.StatusBadRequest, "An API key stands in the URL, where logs keep it. Send it in the X-Api-Key header, and rotate it."},
	till.CodeMissingKey:           {http.StatusUnauthorized, "Send your API key in the X-Api-Key header."},
	till.CodeInvalidKey:           {http.StatusUnauthorized, "The API key is not valid."},
	till.CodeInsufficientScope:    {http.StatusForbidden, "The key lacks a scope."},
	till.CodeClientSuspended:      {http.StatusForbidden, "This account is suspended."},
	till.CodePaymentNotFound:      {http.StatusNotFound, "There is no such payment."},
	till.CodePayoutNotFound:       {http.StatusNotFound, "There is no such payout."},
	till.CodeNotCancellable:       {http.StatusConflict, "The payout may have been sent already."},
	till.CodeInsufficientBalance:  {http.StatusUnprocessableEntity, "The wallet has less available than the payout or refund and its fee."},
	till.CodeRefundNotFound:       {http.StatusNotFound, "There is no such refund."},
	till.CodeRefundNotCancellable: {http.StatusConflict, "The refund may have been sent already."},
	till.CodeNotRefundable:        {http.StatusUnprocessableEntity, "The payment cannot be given back."},
	till.CodeRefundExceeds:        {http.StatusUnprocessableEntity, "More than is left of the payment."},
	till.CodeRefundInProgress:     {http.StatusConflict, "Another refund of the payment is open. Wait until it has ended."},
	till.CodeRefundNotPossible:    {http.StatusUnprocessableEntity, "No operator takes the money back to who paid."},
	till.CodeCheckoutNotFound:     {http.StatusNotFound, "There is no such checkout."},
	till.CodeCheckoutLive:         {http.StatusConflict, "One of its asks may still bring money, or has brought it."},
	till.CodeLinkNotFound:         {http.StatusNotFound, "There is no such link."},
	till.CodePagesNotAvailable:    {http.StatusUnprocessableEntity, "This service has no pages to pay on."},
	till.CodePayoutsHeld:          {http.StatusServiceUnavailable, "No new payouts are taken until the operator of this service releases them. Ask there; the same idempotency key will do."},
	till.CodeEventNotFound:        {http.StatusNotFound, "There is no such event."},
	till.CodeEndpointNotFound:     {http.StatusNotFound, "There is no such webhook endpoint."},
	till.CodeEndpointDisabled:     {http.StatusConflict, "The webhook endpoint is disabled. Enable it first."},
	till.CodeKeyNotFound:          {http.StatusNotFound, "There is no such key."},
	till.CodePromptNotFound:       {http.StatusNotFound, "No prompt is open for this payment."},
	till.CodeClientNotFound:       {http.StatusNotFound, "There is no such client."},
	till.CodeNotFound:             {http.StatusNotFound, "There is no such path."},
	till.CodeMethodNotAllowed:     {http.StatusMethodNotAllowed, "This path does not have this method; see the Allow header."},
	till.CodeCursorAhead:          {http.StatusConflict, "The cursor is beyond the end of the log: history was lost with a restore. Compare log_id and read again from a sequence that you know."},
	till.CodeRequestTimeout:       {http.StatusRequestTimeout, "The request did not arrive in time."},
	till.CodeBodyTooLarge:         {http.StatusRequestEntityTooLarge, "The body is larger than 65536 bytes."},
	till.CodeHeadersTooLarge:      {http.StatusRequestHeaderFieldsTooLarge, "The request headers are too large."},
	till.CodeUnsupportedMediaType: {http.StatusUnsupportedMediaType, "Send the body as Content-Type: application/json."},
	till.CodeValidationFailed:     {http.StatusUnprocessableEntity, "Some fields are missing or wrong."},
	till.CodeKeyReused:            {http.StatusUnprocessableEntity, "The idempotency key belongs to another body."},
	till.CodeRateLimited:          {http.StatusTooManyRequests, "Too many requests. Try again after the time in Retry-After."},
	till.CodeMethodUnavailable:    {http.StatusServiceUnavailable, "The payment method is closed just now. Try again later with the same idempotency key."},
	till.CodeServiceUnavailable:   {http.StatusServiceUnavailable, "The service cannot take the request now. Try again with the same idempotency key."},
	till.CodeInternal:             {http.StatusInternalServerError, "Something went wrong on our side. It is safe to try again with the same idempotency key."},
}

// hasOwnDetail reports whether a code's errors have details written for clients. All other
// details come from the table.
func hasOwnDetail(code till.Code) bool {
	switch code {
	case till.CodeInsufficientScope, till.CodeUnsupportedMediaType:
		return true
	}
	return false
}

var (
	errNoPath   = &till.Error{Code: till.CodeNotFound}
	errNoMethod = &till.Error{Code: till.CodeMethodNotAllowed}
	errPanic    = &till.Error{Code: till.CodeInternal}
)

// malformed returns the error of an unreadable body.
func malformed(pointer, detail string) *till.Error {
	return &till.Error{Code: till.CodeMalformedBody, Fields: []till.FieldError{{Pointer: pointer, Code: till.FieldInvalidFormat, Detail: detail}}}
}

// retryAfter is the Retry-After of a 503. The database is unavailable for moments; a client
// that comes back sooner only adds to the queue.
var retryAfter = []string{"1"}

// fail answers with an error.
func (c *exchange) fail(err error) {
	e := c.refusal(err)
	r := refusals[e.Code]
	// A hold lasts until a person releases it, so retrying soon is useless.
	if r.status == http.StatusServiceUnavailable && e.Code != till.CodePayoutsHeld {
		c.Header()["Retry-After"] = retryAfter
		if s := (e.RetryAfter + time.Second - 1) / time.Second; s > 1 {
			c.Header()["Retry-After"] = []string{strconv.FormatInt(int64(s), 10)}
		}
	}
	c.code = e.Code
	c.countRefusal(e)
	c.logRefusal(e, r.status)
	if c.mayDelay {
		c.s.delays.Wait(c.r.Context(), c.s.polls.stopping)
	}
	c.write(r.status, typeProblem, appendProblem(c.buffer(), c.s.ErrorPages, e, c.id))
}

// writeProblem answers with an error outside of an exchange and closes the connection. It
// returns the answer's request id.
func writeProblem(w http.ResponseWriter, pages string, e *till.Error) (id string) {
	id = till.NewID(till.TimeOf(time.Now())).String()
	h := w.Header()
	setCommonHeaders(h, id)
	h["Content-Type"] = typeProblem
	h["Connection"] = []string{"close"}
	w.WriteHeader(refusals[e.Code].status)
	w.Write(appendProblem(nil, pages, e, id)) // an error means that the client has gone
	return id
}

// failNoPath answers a request for a path that does not exist.
func (c *exchange) failNoPath() { c.fail(c.refuse(string(errNoPath.Code), errNoPath)) }

// refusal returns what the client sees of err. An error that is not for clients is logged,
// and the client gets a plain 500 or 503.
func (c *exchange) refusal(err error) *till.Error {
	var e *till.Error
	if errors.As(err, &e) {
		if _, known := refusals[e.Code]; known {
			return e
		}
	}
	switch {
	case errors.Is(err, context.Canceled):
		return &till.Error{Code: till.CodeServiceUnavailable} // the client has gone
	case errors.Is(err, store.ErrBusy):
		c.reason = refusedReaders
		return &till.Error{Code: till.CodeServiceUnavailable}
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrUnknownCommit), errors.Is(err, context.DeadlineExceeded):
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("%w: %w", store.ErrUnavailable, err) // the log counts by it
		}
		c.logged = true
		c.s.Log.Warn("database unavailable", "request_id", c.id, "route", c.name(), "error", err)
		return &till.Error{Code: till.CodeServiceUnavailable}
	}
	c.logged = true
	c.s.Log.Error("request failed", "request_id", c.id, "route", c.name(), "error", err)
	return errPanic
}

// appendProblem encodes an error as in RFC 9457. The type is the address of the page about
// its code, about:blank where pages is "". The title is the status in words.
func appendProblem(b []byte, pages string, e *till.Error, requestID string) []byte {
	r := refusals[e.Code]
	detail := r.detail
	switch {
	case e.Code == till.CodeKeyReused && !e.PaymentID.IsZero():
		detail = "The idempotency key was used for payment " + e.PaymentID.String() + " with another body."
	case e.Code == till.CodeKeyReused && !e.PayoutID.IsZero():
		detail = "The idempotency key was used for payout " + e.PayoutID.String() + " with another body."
	case e.Code == till.CodeKeyReused && !e.RefundID.IsZero():
		detail = "The idempotency key was used for refund " + e.RefundID.String() + " with another body."
	case (e.Told || hasOwnDetail(e.Code)) && e.Detail != "":
		detail = e.Detail
	}
	kind := "about:blank"
	if pages != "" {
		kind = pages + string(e.Code)
	}
	b = append(b, `{"type":`...)
	b = jsonx.AppendString(b, kind)
	b = append(b, `,"title":`...)
	b = jsonx.AppendString(b, http.StatusText(r.status))
	b = append(b, `,"status":`...)
	b = strconv.AppendInt(b, int64(r.status), 10)
	b = append(b, `,"detail":`...)
	b = jsonx.AppendString(b, detail)
	b = append(b, `,"code":`...)
	b = jsonx.AppendString(b, string(e.Code))
	b = append(b, `,"request_id":`...)
	b = jsonx.AppendString(b, requestID)
	if len(e.Fields) > 0 {
		b = append(b, `,"errors":[`...)
		for i, f := range e.Fields {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, `{"pointer":`...)
			b = jsonx.AppendString(b, f.Pointer)
			b = append(b, `,"code":`...)
			b = jsonx.AppendString(b, string(f.Code))
			b = append(b, `,"detail":`...)
			b = jsonx.AppendString(b, f.Detail)
			b = append(b, '}')
		}
		b = append(b, ']')
	}
	if !e.PaymentID.IsZero() {
		b = append(b, `,"payment_id":"`...)
		b = e.PaymentID.Append(b)
		b = append(b, '"')
	}
	if !e.PayoutID.IsZero() {
		b = append(b, `,"payout_id":"`...)
		b = e.PayoutID.Append(b)
		b = append(b, '"')
	}
	if !e.RefundID.IsZero() {
		b = append(b, `,"refund_id":"`...)
		b = e.RefundID.Append(b)
		b = append(b, '"')
	}
	if e.Refundable != nil {
		b = append(b, `,"refundable":"`...)
		b = strconv.AppendInt(b, *e.Refundable, 10)
		b = append(b, '"')
	}
	return append(b, '}')
}

// Codes lists every code that has a status, in no order.
func Codes() []till.Code { return slices.Collect(maps.Keys(refusals)) }
