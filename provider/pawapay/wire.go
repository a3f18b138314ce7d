package pawapay

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"till"
	"till/provider"
	"till/provider/wire"
)

// kind is what differs between deposits and payouts.
type serviceKind struct {
	id        string // how it is named in JSON
	path      string
	operation string // as active-conf calls it
	codes     map[string]codeMeaning
}

var (
	deposits = serviceKind{"depositId", "/v2/deposits", "DEPOSIT", depositCodes}
	payouts  = serviceKind{"payoutId", "/v2/payouts", "PAYOUT", payoutCodes}
)

// The reasons of payouts that a payment does not have.
const (
	recipientNotFound     till.FailureReason = "recipient_not_found"
	recipientLimitReached till.FailureReason = "recipient_limit_reached"
)

// What an amount that the provider cannot express is refused with. It is our
// word, not pawaPay's: nothing was sent.
const (
	reasonNotRepresentable = till.AmountOutOfBounds
	codeNotRepresentable   = "amount_not_representable"
)

// verdict is what a failure code means in our words.
type codeMeaning struct {
	reason    till.FailureReason
	retryable bool // a new payment may well succeed
}

// codeUnknown is pawaPay's word for an error of its own. As the answer to an
// initiation it decides nothing.
const codeUnknown = "UNKNOWN_ERROR"

// depositCodes are the failure codes of version 2 (docs.pawapay.io,
// v2/docs/failure_codes). "Initiation" codes come with REJECTED, the
// others with FAILED.
var depositCodes = map[string]codeMeaning{
	// Transaction, of deposits.
	"PAYMENT_NOT_APPROVED":           {till.NotApproved, true}, // declined, a wrong PIN, or no answer: one word for all
	"INSUFFICIENT_BALANCE":           {till.InsufficientFunds, true},
	"PAYMENT_IN_PROGRESS":            {till.PayerBusy, true}, // another prompt is open; up to 10 min to clear
	"TRANSACTION_ALREADY_IN_PROCESS": {till.PayerBusy, true}, // KEN, ETH
	"PAYER_NOT_FOUND":                {till.PayerNotFound, false},
	"PAYER_LIMIT_REACHED":            {till.PayerLimitReached, false},
	"WALLET_LIMIT_REACHED":           {till.PayerLimitReached, false},
	"UNSPECIFIED_FAILURE":            {till.Unspecified, false},
	codeUnknown:                      {till.ProviderError, true}, // under FAILED it is final
	// Initiation, with HTTP 200.
	"AMOUNT_OUT_OF_BOUNDS":             {till.AmountOutOfBounds, false},
	"INVALID_AMOUNT":                   {till.AmountOutOfBounds, false}, // decimals that the provider does not take
	"AMOUNT_TOO_LARGE":                 {till.AmountOutOfBounds, false},
	"INVALID_PHONE_NUMBER":             {till.PayerNotFound, false},
	"INVALID_CURRENCY":                 {till.ProviderRejected, false},
	"INVALID_PROVIDER":                 {till.ProviderRejected, false},
	"PROVIDER_TEMPORARILY_UNAVAILABLE": {till.ProviderUnavailable, true},
	"PAWAPAY_WALLET_OUT_OF_FUNDS":      {till.ProviderUnavailable, true}, // our float, never the customer's
	"NOT_FOUND":                        {till.ProviderRejected, false},
	"INVALID_STATE":                    {till.ProviderRejected, false},
	"DEPOSIT_ALREADY_REFUNDED":         {till.ProviderRejected, false}, // refunds only, which we do not make
	"REFUND_IN_PROGRESS":               {till.ProviderRejected, false}, // likewise
	// Initiation, with HTTP 400: our request was wrong.
	"INVALID_INPUT":            {till.ProviderRejected, false},
	"MISSING_PARAMETER":        {till.ProviderRejected, false},
	"UNSUPPORTED_PARAMETER":    {till.ProviderRejected, false},
	"INVALID_PARAMETER":        {till.ProviderRejected, false},
	"DUPLICATE_METADATA_FIELD": {till.ProviderRejected, false},
}

// payoutCodes are those of deposits, but for what concerns the recipient.
var payoutCodes = func() map[string]codeMeaning {
	m := map[string]codeMeaning{}
	for code, v := range depositCodes {
		m[code] = v
	}
	for code, v := range map[string]codeMeaning{
		"RECIPIENT_NOT_FOUND":     {recipientNotFound, false},
		"RECIPIENT_LIMIT_REACHED": {recipientLimitReached, false},
		"WALLET_LIMIT_REACHED":    {recipientLimitReached, false},
		"INVALID_PHONE_NUMBER":    {recipientNotFound, false},
		"MANUALLY_CANCELLED":      {till.ProviderRejected, false}, // by a person, in the dashboard
	} {
		m[code] = v
	}
	for _, code := range []string{"PAYMENT_NOT_APPROVED", "INSUFFICIENT_BALANCE", "PAYMENT_IN_PROGRESS",
		"TRANSACTION_ALREADY_IN_PROCESS", "PAYER_NOT_FOUND", "PAYER_LIMIT_REACHED"} {
		delete(m, code)
	}
	return m
}()

// lifecycle is how data.status of a status read is understood (v2/docs). A
// word that is not here is never final.
var statusOutcomes = map[string]provider.Outcome{
	"ACCEPTED":          provider.Open,
	"ENQUEUED":          provider.Open, // payouts: the operator is delayed
	"PROCESSING":        provider.Open,
	"IN_RECONCILIATION": provider.Open, // resolves by itself
	"COMPLETED":         provider.Success,
	"FAILED":            provider.Failed,
}

// initiation is the body of POST /v2/deposits and /v2/payouts. pawaPay refuses
// members that it does not know.
type initiation struct {
	DepositID         string              `json:"depositId,omitempty"`
	PayoutID          string              `json:"payoutId,omitempty"`
	Amount            string              `json:"amount"`
	Currency          string              `json:"currency"`
	Payer             *party              `json:"payer,omitempty"`
	Recipient         *party              `json:"recipient,omitempty"`
	CustomerMessage   string              `json:"customerMessage"`
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

// initiation writes a request in pawaPay's words. The metadata carries our id:
// a callback does not repeat clientReferenceId.
func (s *service) initiation(r provider.Request, route *Route, amount string) *initiation {
	fallback := s.c.CustomerMessage
	if fallback == "" {
		fallback = defaultMessage
	}
	id, reference := r.ID.String(), r.Reference.String()
	who := &party{"MMO", account{r.Phone, route.Code}}
	in := &initiation{Amount: amount, Currency: r.Amount.Currency,
		CustomerMessage: customerMessage(r.Description, fallback), ClientReferenceID: id}
	if s.kind == &payouts {
		in.PayoutID, in.Recipient, in.Metadata = reference, who, []map[string]string{{"tillPayoutId": id}}
	} else {
		in.DepositID, in.Payer, in.Metadata = reference, who, []map[string]string{{"tillPaymentId": id}}
	}
	return in
}

// The bounds of a customer message.
const minMessage, maxMessage = 4, 22

// customerMessage makes 4 to 22 letters, digits and spaces of a text; one that
// is too short gives way to the fallback.
func customerMessage(text, fallback string) string {
	if s := wire.PlainASCII(text, maxMessage); len(s) >= minMessage {
		return s
	}
	return fallback
}

// answer is what pawaPay says to an initiation and to a status read.
type answer struct {
	DepositID     wire.Text      `json:"depositId"`
	PayoutID      wire.Text      `json:"payoutId"`
	Status        wire.Text      `json:"status"`
	FailureReason *failureReason `json:"failureReason"`
	Data          *transferState `json:"data"`
}

type failureReason struct {
	Code    wire.Text `json:"failureCode"`
	Message wire.Text `json:"failureMessage"`
}

// record is the state of one deposit or payout; a callback is one, too.
type transferState struct {
	DepositID             wire.Text      `json:"depositId"`
	PayoutID              wire.Text      `json:"payoutId"`
	Status                wire.Text      `json:"status"`
	Amount                wire.Text      `json:"amount"`
	Currency              wire.Text      `json:"currency"`
	ProviderTransactionID wire.Text      `json:"providerTransactionId"`
	FailureReason         *failureReason `json:"failureReason"`
}

// referenceOf returns the id that the kind goes by.
func referenceOf(k *serviceKind, deposit, payout wire.Text) string {
	if k == &payouts {
		return string(payout)
	}
	return string(deposit)
}

// The most of pawaPay's own words that is kept.
const maxCode, maxText = 64, 256

func (f *failureReason) text() (code, message string) {
	if f == nil {
		return "", ""
	}
	return wire.Truncate(string(f.Code), maxCode), wire.Truncate(string(f.Message), maxText)
}

// statusError says what a status of the gateway means, nil if it has to be read.
func statusError(status int) error {
	switch status {
	case http.StatusOK:
		return nil
	case http.StatusUnauthorized, http.StatusForbidden:
		// NO_AUTHENTICATION, AUTHENTICATION_ERROR, AUTHORISATION_ERROR,
		// HTTP_SIGNATURE_ERROR, DEPOSITS_NOT_ALLOWED, PAYOUTS_NOT_ALLOWED: all of
		// them come before pawaPay looks at what is asked for.
		return &provider.Refusal{Err: fmt.Errorf("%w (HTTP %d)", provider.ErrCredentials, status)}
	}
	return fmt.Errorf("HTTP %d", status)
}

// readSubmit gives the verdict on an answer to an initiation. What pawaPay
// does not say in so many words is an error: we do not know.
func readSubmit(k *serviceKind, status int, body []byte, id string) (provider.Result, error) {
	if status != http.StatusBadRequest {
		if err := statusError(status); err != nil {
			return provider.Result{}, err
		}
	}
	var a answer
	if err := wire.Decode(body, &a); err != nil {
		return provider.Result{}, fmt.Errorf("HTTP %d: %w", status, err)
	}
	if got := referenceOf(k, a.DepositID, a.PayoutID); got != "" && !strings.EqualFold(got, id) {
		return provider.Result{}, errors.New("the answer is about another request")
	}
	code, message := a.FailureReason.text()
	if status == http.StatusBadRequest {
		// Nothing was created if pawaPay says why; an empty 400 says nothing.
		if _, known := k.codes[code]; code == codeUnknown || code == "" || !known && a.Status != "REJECTED" {
			return provider.Result{}, fmt.Errorf("HTTP %d without a reason that is known", status)
		}
		return k.rejected(code, message), nil
	}
	switch a.Status {
	case "ACCEPTED":
		return provider.Result{Outcome: provider.Accepted, Reference: id}, nil
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
	return provider.Result{Outcome: provider.Rejected, Reason: v.reason, Retryable: v.retryable, Code: code, Message: message, OurFault: k.ourFault(code)}
}

// ourFault says what a code tells about our own account, "" if nothing.
func (k *serviceKind) ourFault(code string) string {
	if k != &payouts || code != "PAWAPAY_WALLET_OUT_OF_FUNDS" {
		return ""
	}
	return "pawaPay answers " + code + ": a wallet that payouts come from has too little money: fund it"
}

func (k *serviceKind) meaning(code string) codeMeaning {
	if v, ok := k.codes[code]; ok {
		return v
	}
	return codeMeaning{reason: till.Unspecified}
}

// readCheck gives the verdict on an answer to a status read.
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
	if !strings.EqualFold(referenceOf(k, d.DepositID, d.PayoutID), id) {
		return provider.Result{}, errors.New("the answer is about another request")
	}
	r := provider.Result{Outcome: statusOutcomes[string(d.Status)], Reference: id, Receipt: wire.Truncate(string(d.ProviderTransactionID), maxCode)}
	switch r.Outcome {
	case "":
		if d.Status == "" {
			return provider.Result{}, errors.New("the answer has no status")
		}
		r.Outcome, r.Code = provider.Unrecognised, wire.Truncate(string(d.Status), maxCode)
	case provider.Failed:
		if r.Code, r.Message = d.FailureReason.text(); r.Code == "" {
			r.Code = "FAILED"
		}
		v := k.meaning(r.Code)
		r.Reason, r.Retryable, r.OurFault = v.reason, v.retryable, k.ourFault(r.Code)
	case provider.Success:
		amount, ok := parseMoney(d)
		if !ok {
			return provider.Result{}, errors.New("a success without an amount that can be read")
		}
		r.Amount = amount
	}
	return r, nil
}

// parseMoney reads what was moved: "100.00" XAF is 100 francs.
func parseMoney(d *transferState) (till.Money, bool) {
	currency := string(d.Currency)
	decimals, ok := till.CurrencyDecimals(currency)
	if !ok {
		return till.Money{}, false
	}
	minor, ok := wire.ParseMinor(string(d.Amount), decimals)
	return till.Money{Minor: minor, Currency: currency}, ok
}
