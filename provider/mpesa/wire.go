package mpesa

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"till"
	"till/provider"
	"till/provider/wire"
)

// How much of Daraja's texts is kept.
const maxCode, maxText, maxID = 64, 256, 64

// errorBody is Daraja's body of an error.
type errorBody struct {
	Code    wire.Text `json:"errorCode"`
	Message wire.Text `json:"errorMessage"`
}

// accessError returns the error of a status that refuses access, nil for any other status.
// The gateway sends 401 before it passes anything on. No source says what sends 403.
func accessError(status int) error {
	err := fmt.Errorf("%w (HTTP %d)", provider.ErrCredentials, status)
	switch status {
	case http.StatusUnauthorized:
		return &provider.Refusal{Err: err}
	case http.StatusForbidden:
		return err
	}
	return nil
}

// result returns what an error means, or an error if that is unknown.
func (f *errorBody) result(status int) (provider.Result, error) {
	code, message := wire.Truncate(string(f.Code), maxCode), wire.Truncate(string(f.Message), maxText)
	if err := accessError(status); err != nil {
		return provider.Result{}, fmt.Errorf("%w %s", err, code)
	}
	for _, r := range rejectionCodes {
		// A code begins with its HTTP status; otherwise the answer is not Daraja's.
		if r.code != code || !strings.HasPrefix(code, fmt.Sprint(status)) || !strings.Contains(strings.ToLower(message), r.says) {
			continue
		}
		if r.ours {
			return provider.Result{}, &provider.Refusal{Err: fmt.Errorf("%w: %s", provider.ErrCredentials, r.says)}
		}
		return provider.Result{Outcome: r.outcome, Reason: r.reason, Retryable: r.retryable, Code: code, Message: message}, nil
	}
	return provider.Result{}, fmt.Errorf("HTTP %d, error %q", status, code)
}

// accepted is the answer to a request that Daraja accepted.
type accepted struct {
	CheckoutRequestID wire.Text
	ConversationID    wire.Text
	ResponseCode      wire.Text
	errorBody
}

// decodeReply decodes an answer that must be HTTP 200. Any other status is Daraja's error.
func decodeReply(status int, body []byte, v any, f *errorBody) (refused bool, err error) {
	if err := wire.Decode(body, v); err != nil {
		if refused := accessError(status); refused != nil {
			return false, refused
		}
		return false, fmt.Errorf("HTTP %d: %w", status, err)
	}
	return status != http.StatusOK || f.Code != "", nil
}

// readPush reads the answer to an STK push.
func readPush(status int, body []byte) (provider.Result, error) {
	var a accepted
	refused, err := decodeReply(status, body, &a, &a.errorBody)
	switch {
	case err != nil:
		return provider.Result{}, err
	case refused:
		return a.result(status)
	case a.ResponseCode != "0" || !isID(string(a.CheckoutRequestID)):
		return provider.Result{}, fmt.Errorf("a push was answered with %q and no id to ask by", wire.Truncate(string(a.ResponseCode), maxCode))
	}
	return provider.Result{Outcome: provider.Accepted, Handle: string(a.CheckoutRequestID)}, nil
}

// isID reports whether a text can be Daraja's id. The handle, which stores several, has
// little room.
func isID(s string) bool {
	return s != "" && len(s) <= maxID && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == ',' || r == '=' })
}

// isBeingProcessed reports whether a message says that the prompt is open. The code that
// comes with it is not verified, so the message decides.
func isBeingProcessed(message wire.Text) bool {
	s := strings.ToLower(string(message))
	return strings.Contains(s, "being processed") || strings.Contains(s, "under processing")
}

// readPushQuery reads the answer to a query about a push.
func readPushQuery(status int, body []byte, id string) (provider.Result, error) {
	var a struct {
		CheckoutRequestID wire.Text
		ResponseCode      wire.Text
		ResultCode        wire.Text
		ResultDesc        wire.Text
		errorBody
	}
	refused, err := decodeReply(status, body, &a, &a.errorBody)
	if err != nil {
		return provider.Result{}, err
	}
	if refused {
		if status == http.StatusInternalServerError && isBeingProcessed(a.Message) {
			return provider.Result{Outcome: provider.Open, Handle: id}, nil
		}
		// Any other rejection is about the query, not the push.
		if _, err := a.result(status); err != nil {
			return provider.Result{}, err
		}
		return provider.Result{}, fmt.Errorf("the question was refused: HTTP %d, error %q", status, wire.Truncate(string(a.Code), maxCode))
	}
	if a.ResponseCode != "0" || string(a.CheckoutRequestID) != id || a.ResultCode == "" {
		return provider.Result{}, errors.New("the answer is not about this push")
	}
	code, message := wire.Truncate(string(a.ResultCode), maxCode), wire.Truncate(string(a.ResultDesc), maxText)
	v, known := pushCodes[code]
	switch {
	case known && v.outcome == provider.Success:
		return provider.Result{Outcome: provider.Success, Handle: id}, nil
	case known:
		return provider.Result{Outcome: v.outcome, Handle: id, Reason: v.reason, Retryable: v.retryable, Code: code, Message: message}, nil
	case isBeingProcessed(a.ResultDesc):
		return provider.Result{Outcome: provider.Open, Handle: id}, nil
	}
	return provider.Result{Outcome: provider.Unrecognised, Handle: id, Code: code, Message: message}, nil
}

// parseShillings parses Daraja's amount, "1.00" or "1"; zero if it is none.
func parseShillings(text string) till.Money {
	minor, ok := wire.ParseMinor(text, decimals)
	if !ok || minor == 0 {
		return till.Money{}
	}
	return till.Money{Minor: minor, Currency: currency}
}

// isDuplicate reports whether a message says that Daraja has seen the reference before. The
// code that comes with it is not documented.
func isDuplicate(message wire.Text) bool {
	return strings.Contains(strings.ToLower(string(message)), "duplicate")
}
