package mtnmomo

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"till"
	"till/provider"
	"till/provider/wire"
)

// maxNote is the longest message to the customer. MTN answers 400 to a longer one, to an
// apostrophe and to an ampersand [common errors page, official notebook].
const maxNote = 160

// transferRequest is a request to pay, a transfer or a refund.
type transferRequest struct {
	Amount       string `json:"amount"` // a string, though it holds a number
	Currency     string `json:"currency"`
	ExternalID   string `json:"externalId"`
	Payer        *party `json:"payer,omitempty"`
	Payee        *party `json:"payee,omitempty"`
	Original     string `json:"referenceIdToRefund,omitempty"` // the X-Reference-Id of the request to pay
	PayerMessage string `json:"payerMessage"`
	PayeeNote    string `json:"payeeNote"`
}

type party struct {
	Type string `json:"partyIdType"`
	ID   string `json:"partyId"` // calling code included, no plus
}

// statusAnswer is MTN's answer to a read, with the members that decide something.
type statusAnswer struct {
	Receipt    wire.Text     `json:"financialTransactionId"`
	ExternalID wire.Text     `json:"externalId"`
	Amount     wire.Text     `json:"amount"`
	Currency   wire.Text     `json:"currency"`
	Status     wire.Text     `json:"status"`
	Reason     failureReason `json:"reason"`
}

// failureReason is why something failed: a plain string in MTN's announcements and in
// Congo, an object in the API's description.
type failureReason struct{ Code, Message string }

// UnmarshalJSON accepts either form.
func (r *failureReason) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '{' {
		var o struct {
			Code    wire.Text `json:"code"`
			Message wire.Text `json:"message"`
		}
		if err := json.Unmarshal(b, &o); err != nil {
			return err
		}
		r.Code, r.Message = string(o.Code), string(o.Message)
		return nil
	}
	var t wire.Text
	if err := t.UnmarshalJSON(b); err != nil {
		return err
	}
	r.Code, r.Message = string(t), ""
	return nil
}

// errorBody is the body of an error: MTN's, the gateway's, or OAuth's.
type errorBody struct {
	Code    wire.Text `json:"code"`
	Message wire.Text `json:"message"`
	Error   wire.Text `json:"error"`
}

// readError reads the body of an error, which may be empty. A body that is neither empty
// nor JSON is not MTN's.
func readError(body []byte) (errorBody, error) {
	var f errorBody
	if len(body) == 0 {
		return f, nil
	}
	if err := wire.Decode(body, &f); err != nil {
		return errorBody{}, err
	}
	if f.Code == "" {
		f.Code = f.Error
	}
	return f, nil
}

// submitOutcomes gives the outcome of a submit by its HTTP status. Any other status is an
// error. The body must be empty or JSON. Source: common errors page, as integrators agree
// to read it.
var submitOutcomes = map[int]provider.Outcome{
	http.StatusAccepted:   provider.Accepted,
	http.StatusConflict:   provider.Duplicate, // RESOURCE_ALREADY_EXIST: the reference was used before
	http.StatusBadRequest: provider.Rejected,  // often with an empty body: nothing was created
}

// rejectedCodes are the four logical errors that MTN sends as HTTP 500: it rejected the
// request and created nothing. Any other 500, such as INTERNAL_PROCESSING_ERROR, may come
// after MTN accepted the request.
var rejectedCodes = map[string]bool{
	"NOT_ALLOWED":                    true, // our account is blocked, or may not do this
	"NOT_ALLOWED_TARGET_ENVIRONMENT": true, // our configuration
	"INVALID_CALLBACK_URL_HOST":      true, // our configuration
	"INVALID_CURRENCY":               true, // our configuration
}

// errForbidden is the gateway's answer to an IP address or user agent that it does not
// admit (FORBIDDEN IP, or HTML). It passes nothing on.
var errForbidden = fmt.Errorf("%w: 403, as for an IP address that is not on MTN's list", provider.ErrCredentials)

// readSubmit reads the answer to a submit.
func (p *service) readSubmit(r *wire.Reply) (provider.Result, error) {
	if r.Status == http.StatusForbidden {
		return provider.Result{}, &provider.Refusal{Err: errForbidden}
	}
	outcome := submitOutcomes[r.Status]
	if outcome == "" && r.Status != http.StatusInternalServerError {
		return provider.Result{}, fmt.Errorf("MTN answered %d", r.Status)
	}
	f, err := readError(r.Body)
	if err != nil {
		return provider.Result{}, fmt.Errorf("MTN answered %d: %w", r.Status, err)
	}
	code := normalizeCode(string(f.Code))
	switch {
	case r.Status == http.StatusInternalServerError && !rejectedCodes[code]:
		return provider.Result{}, fmt.Errorf("MTN answered 500 %s", wire.Truncate(code, maxCode))
	case code == "RESOURCE_ALREADY_EXIST":
		outcome = provider.Duplicate
	case r.Status == http.StatusInternalServerError:
		outcome = provider.Rejected
	}
	result := provider.Result{Outcome: outcome}
	if outcome == provider.Rejected {
		result.Reason = till.ProviderRejected
		result.Code = wire.Truncate(code, maxCode)
		if result.Code == "" {
			result.Code = fmt.Sprintf("HTTP %d", r.Status)
		}
		result.Message = wire.Truncate(string(f.Message), maxMessage)
	}
	return result, nil
}

// How much of MTN's texts is kept.
const (
	maxCode    = 100
	maxMessage = 300
)

// readCheck reads the answer to a read. Only a 200 with one of MTN's three statuses decides
// anything. Only a 404 that names the resource means "not found"; any other 404 is a wrong
// address, or the gateway's.
func (p *service) readCheck(r *wire.Reply, q provider.Query) (provider.Result, error) {
	switch r.Status {
	case http.StatusOK:
	case http.StatusNotFound:
		if f, err := readError(r.Body); err == nil && normalizeCode(string(f.Code)) == "RESOURCE_NOT_FOUND" {
			return provider.Result{Outcome: provider.NotFound}, nil
		}
		return provider.Result{}, errors.New("MTN answered 404 without naming the reference")
	case http.StatusForbidden:
		return provider.Result{}, errForbidden
	default:
		return provider.Result{}, fmt.Errorf("MTN answered %d", r.Status)
	}
	var s statusAnswer
	if err := wire.Decode(r.Body, &s); err != nil {
		return provider.Result{}, err
	}
	switch s.Status {
	case "":
		return provider.Result{}, errors.New("the answer has no status")
	case "PENDING":
		return provider.Result{Outcome: provider.Open}, nil
	case "SUCCESSFUL":
		return p.success(&s, q)
	case "FAILED":
		return p.failure(s.Reason), nil
	}
	return provider.Result{Outcome: provider.Unrecognised, Code: wire.Truncate(string(s.Status), maxCode)}, nil
}

// success returns the result for a success, with what MTN says it moved.
func (p *service) success(s *statusAnswer, q provider.Query) (provider.Result, error) {
	result := provider.Result{Outcome: provider.Success, Receipt: wire.Truncate(string(s.Receipt), maxCode)}
	if s.Amount != "" || s.Currency != "" {
		m, err := p.parseMoney(string(s.Amount), string(s.Currency), q.Amount.Currency)
		if err != nil {
			return provider.Result{}, err
		}
		result.Amount = m
	}
	// MTN does not repeat the reference as such. It repeats the external id, which is the
	// reference too, or the row's id if an earlier release sent it.
	switch id := string(s.ExternalID); {
	case id == "" || q.ID.IsZero():
	case strings.EqualFold(id, q.Reference.String()), strings.EqualFold(id, q.ID.String()):
		result.Reference = q.Reference.String()
	default:
		result.Reference = wire.Truncate(id, maxCode)
	}
	return result, nil
}

// ReadClaim reads a callback, which has the form of an answer to a read. The external id is
// our reference if it has the form of one.
func (p *service) ReadClaim(body []byte) (provider.Claim, bool) {
	var s statusAnswer
	if err := wire.Decode(body, &s); err != nil || s.Status == "" {
		return provider.Claim{}, false
	}
	c := provider.Claim{Receipt: wire.Truncate(string(s.Receipt), maxCode)}
	if id, err := till.ParseID(strings.ToLower(string(s.ExternalID))); err == nil && id[6]>>4 == 4 {
		c.Reference = id
	}
	switch s.Status {
	case "SUCCESSFUL":
		c.Outcome = provider.Success
	case "FAILED":
		c.Outcome = provider.Failed
	}
	c.Amount, _ = p.parseMoney(string(s.Amount), string(s.Currency), "")
	return c, true
}

// parseMoney reads an amount. The sandbox's currency stands for the payment's own.
func (p *service) parseMoney(amount, currency, own string) (till.Money, error) {
	if own != "" && (currency == "" || p.currencyOverride != "" && currency == p.currencyOverride) {
		currency = own
	}
	decimals, ok := till.CurrencyDecimals(currency)
	if !ok {
		return till.Money{}, errors.New("the answer is in a currency that is not known")
	}
	minor, ok := wire.ParseMinor(amount, decimals)
	if !ok {
		return till.Money{}, errors.New("the amount in the answer cannot be read")
	}
	return till.Money{Minor: minor, Currency: currency}, nil
}

// normalizeCode writes a code in one form: one official page has NOT ENOUGH_FUNDS.
func normalizeCode(code string) string {
	return strings.ReplaceAll(strings.ToUpper(strings.TrimSpace(code)), " ", "_")
}
