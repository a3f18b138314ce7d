package pawapay

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"till"
	"till/provider"
	"till/provider/wire"
)

// serviceKind is what differs between deposits, payouts and refunds.
type serviceKind struct {
	id        string // the name of its id in JSON
	path      string
	operation string // active-conf's name
	codes     map[string]codeMeaning
}

var (
	deposits = serviceKind{"depositId", "/v2/deposits", "DEPOSIT", depositCodes}
	payouts  = serviceKind{"payoutId", "/v2/payouts", "PAYOUT", payoutCodes}
	refunds  = serviceKind{"refundId", "/v2/refunds", "REFUND", refundCodes}
)

// initiation is the body of POST /v2/deposits, /v2/payouts and /v2/refunds. pawaPay rejects
// unknown members.
type initiation struct {
	RefundID        string `json:"refundId,omitempty"`
	DepositID       string `json:"depositId,omitempty"` // of a refund: what it gives back
	PayoutID        string `json:"payoutId,omitempty"`
	Amount          string `json:"amount"`
	Currency        string `json:"currency"`
	Payer           *party `json:"payer,omitempty"`
	Recipient       *party `json:"recipient,omitempty"`
	CustomerMessage string `json:"customerMessage,omitempty"`
	// Of providers that ask in another way than by a prompt. The others reject them.
	PreAuthorisationCode string `json:"preAuthorisationCode,omitempty"`
	SuccessfulURL        string `json:"successfulUrl,omitempty"`
	FailedURL            string `json:"failedUrl,omitempty"`

	ClientReferenceID string              `json:"clientReferenceId"`
	Metadata          []map[string]string `json:"metadata"`
}

type party struct {
	Type           string  `json:"type"`
	AccountDetails account `json:"accountDetails"`
}

type account struct {
	PhoneNumber string `json:"phoneNumber"`
	Provider    string `json:"provider"`
}

// initiation returns the body of a request. The metadata has our id, because a callback
// does not repeat clientReferenceId.
func (s *service) initiation(r provider.Request, route *Route, amount string) *initiation {
	fallback := s.c.CustomerMessage
	if fallback == "" {
		fallback = defaultMessage
	}
	id, reference := r.ID.String(), r.Reference.String()
	who := &party{"MMO", account{r.Phone, route.Code}}
	in := &initiation{Amount: amount, Currency: r.Amount.Currency,
		CustomerMessage: customerMessage(r.Description, fallback), ClientReferenceID: id}
	switch s.kind {
	case &refunds: // to the deposit's payer
		in.RefundID, in.DepositID, in.Metadata, in.CustomerMessage = reference, r.Refund.Reference.String(), []map[string]string{{"tillRefundId": id}}, ""
	case &payouts:
		in.PayoutID, in.Recipient, in.Metadata = reference, who, []map[string]string{{"tillPayoutId": id}}
	default:
		in.DepositID, in.Payer, in.Metadata = reference, who, []map[string]string{{"tillPaymentId": id}}
		in.PreAuthorisationCode, in.SuccessfulURL, in.FailedURL = string(r.Code), r.ReturnURL, r.ReturnURL
	}
	return in
}

// The limits of a customer message, in characters.
const minMessage, maxMessage = 4, 22

// customerMessage reduces a text to 4 to 22 letters, digits and spaces. It returns the
// fallback for a text that is too short.
func customerMessage(text, fallback string) string {
	if s := wire.PlainASCII(text, maxMessage); len(s) >= minMessage {
		return s
	}
	return fallback
}

// answer is pawaPay's answer to an initiation and to a status read.
type answer struct {
	RefundID      wire.Text      `json:"refundId"`
	DepositID     wire.Text      `json:"depositId"`
	PayoutID      wire.Text      `json:"payoutId"`
	Status        wire.Text      `json:"status"`
	NextURL       wire.Text      `json:"authorizationUrl"`
	FailureReason *failureReason `json:"failureReason"`
	Data          *transferState `json:"data"`
}

type failureReason struct {
	Code    wire.Text `json:"failureCode"`
	Message wire.Text `json:"failureMessage"`
}

// transferState is the state of one deposit, payout or refund; a callback has the same form.
type transferState struct {
	RefundID              wire.Text      `json:"refundId"`
	DepositID             wire.Text      `json:"depositId"`
	PayoutID              wire.Text      `json:"payoutId"`
	Status                wire.Text      `json:"status"`
	Amount                wire.Text      `json:"amount"`
	Currency              wire.Text      `json:"currency"`
	ProviderTransactionID wire.Text      `json:"providerTransactionId"`
	NextURL               wire.Text      `json:"authorizationUrl"`
	FailureReason         *failureReason `json:"failureReason"`
}

// referenceOf returns the id of this kind. One of pawaPay's samples calls a refund's id that of
// a payout.
func referenceOf(k *serviceKind, refund, deposit, payout wire.Text) string {
	switch k {
	case &refunds:
		return string(cmp.Or(refund, payout))
	case &payouts:
		return string(payout)
	}
	return string(deposit)
}

// How much of pawaPay's texts is kept.
const maxCode, maxText = 64, 256

func (f *failureReason) text() (code, message string) {
	if f == nil {
		return "", ""
	}
	return wire.Truncate(string(f.Code), maxCode), wire.Truncate(string(f.Message), maxText)
}

// statusError returns the error of a gateway's status, nil if the body has to be read.
func statusError(status int) error {
	switch status {
	case http.StatusOK:
		return nil
	case http.StatusUnauthorized, http.StatusForbidden:
		// NO_AUTHENTICATION, AUTHENTICATION_ERROR, AUTHORISATION_ERROR,
		// HTTP_SIGNATURE_ERROR, DEPOSITS_NOT_ALLOWED, PAYOUTS_NOT_ALLOWED,
		// REFUNDS_NOT_ALLOWED: pawaPay sends all of these before it reads the request.
		return &provider.Refusal{Err: fmt.Errorf("%w (HTTP %d)", provider.ErrCredentials, status)}
	}
	return fmt.Errorf("HTTP %d", status)
}

// readSubmit reads the answer to an initiation. What pawaPay does not say explicitly is an
// error: the outcome is unknown.
func readSubmit(k *serviceKind, status int, body []byte, id string) (provider.Result, error) {
	// Refunds that the account may not make say nothing about its payouts.
	forbidden := status == http.StatusForbidden && k == &refunds
	if status != http.StatusBadRequest && !forbidden {
		if err := statusError(status); err != nil {
			return provider.Result{}, err
		}
	}
	var a answer
	err := wire.Decode(body, &a)
	if code, message := a.FailureReason.text(); forbidden {
		if err == nil && code == codeNotAllowed {
			return k.rejected(code, message), nil
		}
		err = statusError(status)
	}
	if err != nil {
		return provider.Result{}, fmt.Errorf("HTTP %d: %w", status, err)
	}
	if got := referenceOf(k, a.RefundID, a.DepositID, a.PayoutID); got != "" && !strings.EqualFold(got, id) {
		return provider.Result{}, errors.New("the answer is about another request")
	}
	code, message := a.FailureReason.text()
	if status == http.StatusBadRequest {
		// Nothing was created if pawaPay gives a reason. An empty 400 says nothing.
		if _, known := k.codes[code]; code == codeUnknown || code == "" || !known && a.Status != "REJECTED" {
			return provider.Result{}, fmt.Errorf("HTTP %d without a reason that is known", status)
		}
		return k.rejected(code, message), nil
	}
	switch a.Status {
	case "ACCEPTED":
		return provider.Result{Outcome: provider.Accepted, Reference: id, NextURL: string(a.NextURL)}, nil
	case "DUPLICATE_IGNORED":
		return provider.Result{Outcome: provider.Duplicate, Reference: id}, nil
	case "REJECTED":
		if code != "" && code != codeUnknown {
			return k.rejected(code, message), nil
		}
	}
	return provider.Result{}, fmt.Errorf("an initiation was answered with status %q, code %q", wire.Truncate(string(a.Status), maxCode), code)
}

func (k *serviceKind) rejected(code, message string) provider.Result {
	v := k.meaning(code)
	return provider.Result{Outcome: provider.Rejected, Reason: v.reason, Retryable: v.retryable, Code: code, Message: message,
		OurFault: k.ourFault(code), Original: k.original(code)}
}

// readCheck reads the answer to a status read.
func readCheck(k *serviceKind, status int, body []byte, id string) (provider.Result, error) {
	if err := statusError(status); err != nil {
		return provider.Result{}, err
	}
	var a answer
	if err := wire.Decode(body, &a); err != nil {
		return provider.Result{}, err
	}
	switch {
	case a.Status == "NOT_FOUND" && a.Data == nil:
		return provider.Result{Outcome: provider.NotFound}, nil
	case a.Status != "FOUND" || a.Data == nil:
		return provider.Result{}, fmt.Errorf("a status read was answered with %q", wire.Truncate(string(a.Status), maxCode))
	}
	d := a.Data
	if !strings.EqualFold(referenceOf(k, d.RefundID, d.DepositID, d.PayoutID), id) {
		return provider.Result{}, errors.New("the answer is about another request")
	}
	r := provider.Result{Outcome: statusOutcomes[string(d.Status)], Reference: id, Receipt: wire.Truncate(string(d.ProviderTransactionID), maxCode)}
	switch r.Outcome {
	case "":
		if d.Status == "" {
			return provider.Result{}, errors.New("the answer has no status")
		}
		r.Outcome, r.Code = provider.Unrecognised, wire.Truncate(string(d.Status), maxCode)
	case provider.Open:
		r.NextURL = string(d.NextURL)
	case provider.Failed:
		if r.Code, r.Message = d.FailureReason.text(); r.Code == "" {
			r.Code = "FAILED"
		}
		v := k.meaning(r.Code)
		r.Reason, r.Retryable, r.OurFault, r.Original = v.reason, v.retryable, k.ourFault(r.Code), k.original(r.Code)
	case provider.Success:
		amount, ok := parseMoney(d)
		if !ok {
			return provider.Result{}, errors.New("a success without an amount that can be read")
		}
		r.Amount = amount
	}
	return r, nil
}

// parseMoney reads the amount that moved: "100.00" XAF is 100 francs.
func parseMoney(d *transferState) (till.Money, bool) {
	currency := string(d.Currency)
	decimals, ok := till.CurrencyDecimals(currency)
	if !ok {
		return till.Money{}, false
	}
	minor, ok := wire.ParseMinor(string(d.Amount), decimals)
	return till.Money{Minor: minor, Currency: currency}, ok
}
