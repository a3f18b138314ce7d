package mpesa

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"till"
	"till/provider"
	"till/provider/wire"
)

// The reasons of payouts that a payment does not have.
const (
	recipientNotFound     till.FailureReason = "recipient_not_found"
	recipientLimitReached till.FailureReason = "recipient_limit_reached"
)

// The most of Daraja's own words that is kept.
const maxCode, maxText, maxID = 64, 256, 64

// verdict is what a result code means in our words.
type codeMeaning struct {
	outcome   provider.Outcome
	reason    till.FailureReason
	retryable bool
}

// pushCodes are the result codes of an STK push, of its query and its callback
// (Daraja 3.0 pages, 2025-12). One that is not here is never final: "still
// under processing" is said by a code, too.
var pushCodes = map[string]codeMeaning{
	"0":          {provider.Success, "", false},
	"1":          {provider.Failed, till.InsufficientFunds, true},
	"2":          {provider.Failed, till.AmountOutOfBounds, false}, // below the least amount
	"3":          {provider.Failed, till.AmountOutOfBounds, false}, // above the most
	"4":          {provider.Failed, till.PayerLimitReached, false}, // of a day
	"8":          {provider.Failed, till.PayerLimitReached, false}, // would exceed the most that an account holds
	"17":         {provider.Failed, till.PayerLimitReached, true},  // "rule limited": the same amount again within 2 min
	"1019":       {provider.Expired, till.CustomerTimeout, true},   // transaction expired
	"1025":       {provider.Failed, till.ProviderError, true},      // the prompt could not be sent, or is too long
	"1032":       {provider.Failed, till.CustomerDeclined, true},   // cancelled by the user
	"1037":       {provider.Expired, till.CustomerTimeout, true},   // no response, or the phone cannot be reached
	"2001":       {provider.Failed, till.WrongPIN, true},
	"2028":       {provider.Failed, till.ProviderRejected, false}, // product assignment: the number may not do this
	"8006":       {provider.Failed, till.PayerNotAllowed, false},  // the customer's PIN is locked
	"SFC_IC0003": {provider.Failed, till.ProviderRejected, false}, // the operator (a till's) does not exist
	"1001":       {provider.Failed, till.PayerBusy, true},         // other lists: another transaction is open
	"9999":       {provider.Failed, till.ProviderError, true},     // other lists: the prompt could not be sent
}

// payoutCodes are the result codes of B2C that say that nothing was paid
// (Daraja 3.0, BusinessToCustomer). What is wrong with our own account is never
// the recipient's fault: see accountFaults.
var payoutCodes = map[string]codeMeaning{
	"1":          {provider.Failed, till.ProviderUnavailable, true},
	"2":          {provider.Failed, till.AmountOutOfBounds, false},
	"3":          {provider.Failed, till.AmountOutOfBounds, false},
	"4":          {provider.Failed, recipientLimitReached, false},
	"8":          {provider.Failed, recipientLimitReached, false},
	"11":         {provider.Failed, till.ProviderUnavailable, true},
	"17":         {provider.Failed, till.ProviderRejected, true}, // "rule limited": the same again within 2 min [unverified for B2C]
	"21":         {provider.Failed, till.ProviderUnavailable, true},
	"2001":       {provider.Failed, till.ProviderUnavailable, true},
	"2006":       {provider.Failed, till.ProviderUnavailable, true},
	"2028":       {provider.Failed, till.ProviderUnavailable, true},
	"2040":       {provider.Failed, recipientNotFound, false}, // not registered for M-Pesa
	"8006":       {provider.Failed, till.ProviderUnavailable, true},
	"SFC_IC0003": {provider.Failed, recipientNotFound, false}, // the number is invalid, or not on M-Pesa
}

// accountFaults are the result codes by which Daraja says that something is wrong
// with our own set-up, of a payout and of a question about one, with what a
// person has to look at.
var accountFaults = map[string]string{
	"1":    "the payout short code has too little money: fund it",
	"11":   "the payout short code is not active (debit party in an invalid state): ask Safaricom",
	"21":   "the initiator is not allowed to do this: give it its roles on the M-Pesa portal",
	"2001": "the initiator's name, password or certificate is wrong",
	"2006": "the state of the payout short code does not allow it: ask Safaricom to activate it",
	"2028": "the payout short code is not permitted to do this: ask Safaricom to assign the product to it",
	"8006": "the initiator's credential is locked: unlock it or set a new password on the M-Pesa portal",
}

// ourFault says in plain words what a code tells about our own set-up, "" if
// nothing.
func ourFault(code string) string {
	text := accountFaults[code]
	if text == "" {
		return ""
	}
	return "M-Pesa answers " + code + ": " + text
}

// payoutStates are the words of TransactionStatus in the answer to a status
// query (Daraja 3.0, TransactionStatus): Completed, Cancelled, Declined and
// Expired are final, Authorized and Pending Authorized open. The other open ones are
// [unverified] and prove nothing but that the payout is known. A word that is not
// here is not final by itself.
var payoutStates = map[string]codeMeaning{
	"Completed":          {provider.Success, "", false},
	"Cancelled":          {provider.Failed, till.ProviderRejected, false},
	"Declined":           {provider.Failed, till.ProviderRejected, false},
	"Expired":            {provider.Failed, till.ProviderError, true},
	"Authorized":         {provider.Open, "", false},
	"Pending Authorized": {provider.Open, "", false},
	"Pending":            {provider.Open, "", false},
	"Initiated":          {provider.Open, "", false},
	"Submitted":          {provider.Open, "", false},
}

// failure is Daraja's body of an error.
type errorBody struct {
	Code    wire.Text `json:"errorCode"`
	Message wire.Text `json:"errorMessage"`
}

// refusals are the errors by which Daraja refuses a request before anything
// came of it, by code and, where one code has several meanings, by a part of
// the message. An error that is not here decides nothing.
var rejectionCodes = []struct {
	code, says string
	codeMeaning
	ours bool // it is our credentials
}{
	{"400.002.02", "", codeMeaning{provider.Rejected, till.ProviderRejected, false}, false},   // bad request, with the member's name
	{"400.003.02", "", codeMeaning{provider.Rejected, till.ProviderRejected, false}, false},   // bad request
	{"404.001.01", "", codeMeaning{provider.Rejected, till.ProviderUnavailable, true}, false}, // no such resource: base_url
	{"405.001", "", codeMeaning{provider.Rejected, till.ProviderUnavailable, true}, false},
	{"500.001.1001", "unable to lock subscriber", codeMeaning{provider.Rejected, till.PayerBusy, true}, false},
	{"500.001.1001", "wrong credentials", codeMeaning{}, true},
	{"500.001.1001", "merchant does not exist", codeMeaning{}, true},
	{"500.003.02", "spike arrest", codeMeaning{provider.Rejected, till.ProviderUnavailable, true}, false}, // but "busy" decides nothing
	{"500.003.03", "", codeMeaning{provider.Rejected, till.ProviderUnavailable, true}, false},             // quota
}

// accessError returns the error of a status that says that we are not let in, nil
// if it does not. A 401 comes from the gateway, which looks at the token before
// it passes anything on; who says 403 is in no source that we have.
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

// result says what an error means, or returns an error: we do not know.
func (f *errorBody) result(status int) (provider.Result, error) {
	code, message := wire.Truncate(string(f.Code), maxCode), wire.Truncate(string(f.Message), maxText)
	if err := accessError(status); err != nil {
		return provider.Result{}, fmt.Errorf("%w %s", err, code)
	}
	for _, r := range rejectionCodes {
		// A code names its HTTP status; another one is nothing that Daraja says.
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

// tokenErrors are the errors by which Daraja does not take a token, with the HTTP
// status of each: on the push and its query, on the transaction status, and as
// integrators report it [unverified].
var tokenErrors = map[string]int{
	"404.001.03": http.StatusNotFound,
	"400.003.01": http.StatusBadRequest,
	"401.002.01": http.StatusUnauthorized,
}

// tokenRefused tells that Daraja did not take the token. Any other 401 is
// about something else: a new token would not help, and would end the one that
// others use.
func tokenRefused(r *wire.Reply) bool {
	var f errorBody
	if wire.Decode(r.Body, &f) != nil {
		return false
	}
	status, known := tokenErrors[string(f.Code)]
	return known && (r.Status == status || r.Status == http.StatusUnauthorized)
}

// readToken reads the answer to a request for a token.
func readToken(status int, body []byte) (string, time.Duration, error) {
	switch status {
	case http.StatusOK:
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden:
		return "", 0, fmt.Errorf("%w (HTTP %d)", provider.ErrCredentials, status)
	default:
		return "", 0, fmt.Errorf("a token: HTTP %d", status)
	}
	var a struct {
		Token   wire.Text `json:"access_token"`
		Expires wire.Text `json:"expires_in"`
	}
	if err := wire.Decode(body, &a); err != nil {
		return "", 0, fmt.Errorf("a token: %w", err)
	}
	life, ok := wire.TokenLifetime(string(a.Expires))
	if !ok || a.Token == "" || strings.ContainsAny(string(a.Token), " \r\n\t") {
		return "", 0, errors.New("a token: the answer holds none")
	}
	return string(a.Token), life, nil
}

// accepted is the answer to a request that Daraja took.
type accepted struct {
	CheckoutRequestID wire.Text
	ConversationID    wire.Text
	ResponseCode      wire.Text
	errorBody
}

// decodeReply decodes an answer that must be HTTP 200; any other is Daraja's error.
func decodeReply(status int, body []byte, v any, f *errorBody) (refused bool, err error) {
	if err := wire.Decode(body, v); err != nil {
		if refused := accessError(status); refused != nil {
			return false, refused
		}
		return false, fmt.Errorf("HTTP %d: %w", status, err)
	}
	return status != http.StatusOK || f.Code != "", nil
}

// readPush gives the verdict on an answer to an STK push.
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

// isID tells whether a text can be an id of Daraja's. It is kept, with others,
// in a small room.
func isID(s string) bool {
	return s != "" && len(s) <= maxID && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == ',' || r == '=' })
}

// isBeingProcessed tells the words by which Daraja says that a prompt is open.
// The code that comes with them is not verified, so the words decide.
func isBeingProcessed(message wire.Text) bool {
	s := strings.ToLower(string(message))
	return strings.Contains(s, "being processed") || strings.Contains(s, "under processing")
}

// readPushQuery gives the verdict on an answer to a query about a push.
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
		// Whatever else it refuses is the question, not the push.
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

// pushCallback is the callback of a push.
type pushCallback struct {
	Body struct {
		StkCallback struct {
			CheckoutRequestID wire.Text
			ResultCode        wire.Text
			CallbackMetadata  struct {
				Item []struct {
					Name  wire.Text
					Value wire.Text // absent for some
				}
			}
		} `json:"stkCallback"`
	}
}

// readPushCallback reads a kept callback, nil if it is none.
func readPushCallback(mail []byte) *pushCallback {
	m := &pushCallback{}
	if len(mail) == 0 || wire.Decode(mail, m) != nil || !isID(m.id()) {
		return nil
	}
	return m
}

func (m *pushCallback) id() string { return string(m.Body.StkCallback.CheckoutRequestID) }

func (m *pushCallback) item(name wire.Text) string {
	for _, i := range m.Body.StkCallback.CallbackMetadata.Item {
		if i.Name == name {
			return string(i.Value)
		}
	}
	return ""
}

func (m *pushCallback) receipt() string { return wire.Truncate(m.item("MpesaReceiptNumber"), maxID) }

// matches tells whether a callback can be about a payment, by what it tells of it.
// The number of a customer may be masked, and then tells nothing.
func (m *pushCallback) matches(q *provider.Query) bool {
	amount, phone := m.amount(), m.item("PhoneNumber")
	masked := strings.Trim(phone, "0123456789") != ""
	return (amount.IsZero() || q.Amount.IsZero() || amount == q.Amount) && (phone == "" || masked || q.Phone == "" || phone == q.Phone)
}

// amount is zero where the callback does not tell it.
func (m *pushCallback) amount() till.Money { return parseShillings(m.item("Amount")) }

// ReadClaim reads what the callback of a push says. It names nothing of ours.
func (p *paymentService) ReadClaim(body []byte) (provider.Claim, bool) {
	m := readPushCallback(body)
	if m == nil {
		return provider.Claim{}, false
	}
	c := provider.Claim{Receipt: m.receipt(), Amount: m.amount()}
	switch m.Body.StkCallback.ResultCode {
	case "":
	case "0":
		c.Outcome = provider.Success
	default:
		c.Outcome = provider.Failed
	}
	return c, true
}

// parseShillings reads an amount of Daraja's, "1.00" or "1", zero if it is none.
func parseShillings(text string) till.Money {
	minor, ok := wire.ParseMinor(text, decimals)
	if !ok || minor == 0 {
		return till.Money{}
	}
	return till.Money{Minor: minor, Currency: currency}
}
