package pawapay

import (
	"till"
	"till/provider"
)

// The reasons of payouts that a payment does not have.
const (
	recipientNotFound     till.FailureReason = "recipient_not_found"
	recipientLimitReached till.FailureReason = "recipient_limit_reached"
)

// The reason and code of an amount that the provider cannot express. The code is ours, not
// pawaPay's: nothing was sent.
const (
	reasonNotRepresentable = till.AmountOutOfBounds
	codeNotRepresentable   = "amount_not_representable"
)

// codeMeaning is our reading of a failure code.
type codeMeaning struct {
	reason    till.FailureReason
	retryable bool // a new payment may well succeed
}

// codeUnknown is pawaPay's code for an error of its own. As the answer to an initiation it
// decides nothing.
const codeUnknown = "UNKNOWN_ERROR"

// codeNotAllowed is the code of a refund that the account may not make.
const codeNotAllowed = "REFUNDS_NOT_ALLOWED"

// depositCodes are the failure codes of version 2 (docs.pawapay.io,
// v2/docs/failure_codes). "Initiation" codes come with REJECTED, the
// others with FAILED.
var depositCodes = map[string]codeMeaning{
	// Transaction, of deposits.
	"PAYMENT_NOT_APPROVED":           {till.NotApproved, true}, // declined, a wrong PIN, or no answer: one code for all
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
	"INVALID_AMOUNT":                   {till.AmountOutOfBounds, false}, // decimals that the provider does not accept
	"AMOUNT_TOO_LARGE":                 {till.AmountOutOfBounds, false},
	"INVALID_PHONE_NUMBER":             {till.PayerNotFound, false},
	"INVALID_CURRENCY":                 {till.ProviderRejected, false},
	"INVALID_PROVIDER":                 {till.ProviderRejected, false},
	"PROVIDER_TEMPORARILY_UNAVAILABLE": {till.ProviderUnavailable, true},
	"PAWAPAY_WALLET_OUT_OF_FUNDS":      {till.ProviderUnavailable, true}, // our float, never the customer's
	"NOT_FOUND":                        {till.ProviderRejected, false},
	"INVALID_STATE":                    {till.ProviderRejected, false},
	// Initiation, with HTTP 400: our request was wrong.
	"INVALID_INPUT":            {till.ProviderRejected, false},
	"MISSING_PARAMETER":        {till.ProviderRejected, false},
	"UNSUPPORTED_PARAMETER":    {till.ProviderRejected, false},
	"INVALID_PARAMETER":        {till.ProviderRejected, false},
	"DUPLICATE_METADATA_FIELD": {till.ProviderRejected, false},
}

// payoutCodes are the codes of deposits, with other meanings for those about the recipient.
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

// refundCodes are the codes of payouts, and those about the deposit that is given back.
var refundCodes = func() map[string]codeMeaning {
	m := map[string]codeMeaning{}
	for code, v := range payoutCodes {
		m[code] = v
	}
	for _, code := range []string{"AMOUNT_TOO_LARGE", "DEPOSIT_ALREADY_REFUNDED", "REFUND_IN_PROGRESS", "NOT_FOUND", "INVALID_STATE", codeNotAllowed} {
		m[code] = codeMeaning{till.ProviderRejected, false}
	}
	return m
}()

// original says what a code shows of the deposit that a refund names. We give back at most the
// deposit, one part at a time: if pawaPay knows of more, somebody refunds without us.
func (k *serviceKind) original(code string) provider.OriginalState {
	if k != &refunds {
		return ""
	}
	switch code {
	case "AMOUNT_TOO_LARGE", "DEPOSIT_ALREADY_REFUNDED", "REFUND_IN_PROGRESS":
		return provider.RefundedElsewhere
	case "NOT_FOUND", "INVALID_STATE":
		return provider.NotPaidThere
	}
	return ""
}

// statusOutcomes is how data.status of a status read is understood (v2/docs). Any other
// status is never final.
var statusOutcomes = map[string]provider.Outcome{
	"ACCEPTED":          provider.Open,
	"ENQUEUED":          provider.Open, // payouts, refunds: the operator is delayed
	"PROCESSING":        provider.Open,
	"IN_RECONCILIATION": provider.Open, // resolves by itself
	"COMPLETED":         provider.Success,
	"FAILED":            provider.Failed,
}

// ourFault says what a code shows about our own account, "" if nothing.
func (k *serviceKind) ourFault(code string) string {
	switch {
	case k == &refunds && code == codeNotAllowed:
		return "pawaPay answers " + code + ": ask pawaPay to allow refunds, or write refunds = \"payout\" into the connection"
	case k == &deposits || code != "PAWAPAY_WALLET_OUT_OF_FUNDS":
		return ""
	}
	return "pawaPay answers " + code + ": a wallet that payouts and refunds come from has too little money: fund it"
}

func (k *serviceKind) meaning(code string) codeMeaning {
	if v, ok := k.codes[code]; ok {
		return v
	}
	return codeMeaning{reason: till.Unspecified}
}
