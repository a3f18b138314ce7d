package mtnmomo

import (
	"till"
	"till/provider"
	"till/provider/wire"
)

// codeMeaning is our reading of MTN's reason, for each product. The payer of a collection
// is the customer, that of a disbursement is us.
type codeMeaning struct {
	payment, payout till.FailureReason
	expired         bool // MTN names a timeout
	retryable       bool // a new payment may well succeed
	source          string
}

// failureCodes lists each documented reason of a FAILED status. Any other reason is
// unspecified, and its text is kept.
//
// If our own account is empty or blocked, that is provider_unavailable, never the
// customer's insufficient_funds. For a disbursement MTN has one code, NOT_ENOUGH_FUNDS, for
// our empty float and for a recipient whose limit is reached. Because it may be ours, it is
// provider_unavailable.
var failureCodes = map[string]codeMeaning{
	"NOT_ENOUGH_FUNDS":              {till.InsufficientFunds, till.ProviderUnavailable, false, true, "product updates 192"},
	"COULD_NOT_PERFORM_TRANSACTION": {till.CustomerTimeout, till.ProviderError, true, true, "product updates 192: PIN not entered in time"},
	"PAYER_NOT_FOUND":               {till.PayerNotFound, till.ProviderUnavailable, false, false, "product updates 192"},
	"PAYEE_NOT_FOUND":               {till.ProviderRejected, till.RecipientNotFound, false, false, "product updates 192"},
	"PAYER_LIMIT_REACHED":           {till.PayerLimitReached, till.ProviderUnavailable, false, true, "product updates 192"},
	"SENDER_ACCOUNT_NOT_ACTIVE":     {till.PayerNotAllowed, till.ProviderUnavailable, false, false, "product updates 192: blocked payer"},
	"PAYEE_NOT_ALLOWED_TO_RECEIVE":  {till.ProviderRejected, till.RecipientNotAllowed, false, false, "product updates 192: blocked payee"},
	"NOT_ALLOWED":                   {till.ProviderRejected, till.ProviderRejected, false, false, "product updates 192: blocked partner"},

	// MTN Congo's code for NOT_ENOUGH_FUNDS and more.
	"LOW_BALANCE_OR_PAYEE_LIMIT_REACHED_OR_NOT_ALLOWED": {till.FundsOrLimit, till.ProviderUnavailable, false, true, "recorded in Congo, lepresk/momo-api"},

	"APPROVAL_REJECTED":         {till.CustomerDeclined, till.ProviderRejected, false, true, "API description; sandbox 46733123451"},
	"REJECTED":                  {till.CustomerDeclined, till.ProviderRejected, false, true, "API description; sandbox"},
	"PAYMENT_NOT_APPROVED":      {till.NotApproved, till.ProviderRejected, false, true, "API description"},
	"TRANSACTION_CANCELED":      {till.NotApproved, till.ProviderRejected, false, true, "API description"},
	"EXPIRED":                   {till.CustomerTimeout, till.ProviderError, true, true, "API description; sandbox 46733123452"},
	"TRANSACTION_NOT_COMPLETED": {till.ProviderError, till.ProviderError, false, true, "API description"},
	"TRANSACTION_NOT_FOUND":     {till.ProviderError, till.ProviderError, false, true, "API description"},
	"RESOURCE_NOT_FOUND":        {till.ProviderError, till.ProviderError, false, true, "API description"},
	// The generic failure. It is final under FAILED, but not as HTTP 500.
	"INTERNAL_PROCESSING_ERROR":      {till.ProviderError, till.ProviderError, false, true, "common errors page; sandbox 46733123450"},
	"SERVICE_UNAVAILABLE":            {till.ProviderUnavailable, till.ProviderUnavailable, false, true, "common errors page; sandbox"},
	"NOT_ALLOWED_TARGET_ENVIRONMENT": {till.ProviderRejected, till.ProviderRejected, false, false, "common errors page; sandbox"},
	"INVALID_CALLBACK_URL_HOST":      {till.ProviderRejected, till.ProviderRejected, false, false, "common errors page; sandbox"},
	"INVALID_CURRENCY":               {till.ProviderRejected, till.ProviderRejected, false, false, "common errors page; sandbox"},
	"TRANSFER_TYPE_UNKNOWN":          {till.ProviderRejected, till.ProviderRejected, false, false, "sandbox 46733123464"},

	// Codes of the consent products, which no payment of ours should meet.
	"CONSENT_MISMATCH":                            {till.ProviderRejected, till.ProviderRejected, false, false, "API description"},
	"UNSUPPORTED_SCOPE":                           {till.ProviderRejected, till.ProviderRejected, false, false, "API description"},
	"MISSING_SCOPE_INSTRUCTION":                   {till.ProviderRejected, till.ProviderRejected, false, false, "API description"},
	"MORE_THAN_ONE_FINANCIAL_SCOPE_NOT_SUPPORTED": {till.ProviderRejected, till.ProviderRejected, false, false, "API description"},
}

// undecidedCodes are documented reasons that contradict FAILED: they say that the request
// is still open, or that the reference is another request's. They decide nothing.
var undecidedCodes = map[string]bool{
	"ONGOING": true, "PAYER_DELAYED": true, "PAYEE_DELAYED": true, "RESOURCE_ALREADY_EXIST": true,
}

// failure returns the result of a FAILED status.
func (p *service) failure(r failureReason) provider.Result {
	code := normalizeCode(r.Code)
	if undecidedCodes[code] {
		return provider.Result{Outcome: provider.Unrecognised, Code: "FAILED " + code}
	}
	result := provider.Result{Outcome: provider.Failed, Reason: till.Unspecified,
		Code: wire.Truncate(r.Code, maxCode), Message: wire.Truncate(r.Message, maxMessage)}
	if result.Code == "" {
		result.Code = "FAILED"
	}
	m, ok := failureCodes[code]
	if !ok {
		return result
	}
	result.Reason, result.Retryable = m.payment, m.retryable
	if p.payout {
		result.Reason = m.payout
		if m.payout == till.ProviderUnavailable && code != "SERVICE_UNAVAILABLE" {
			result.OurFault = "MTN answers " + wire.Truncate(code, maxCode) + " to a payout: look at the float, the limits and the state of the disbursement account"
		}
	}
	if p.resource == refunding.resource && (code == "TRANSACTION_NOT_FOUND" || code == "RESOURCE_NOT_FOUND") {
		result.Original, result.Retryable = provider.NotPaidThere, false
	}
	if m.expired && !p.payout {
		result.Outcome = provider.Expired
	}
	return result
}
