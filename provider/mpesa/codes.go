package mpesa

import (
	"till"
	"till/provider"
)

// The reasons of payouts that a payment does not have.
const (
	recipientNotFound     till.FailureReason = "recipient_not_found"
	recipientLimitReached till.FailureReason = "recipient_limit_reached"
)

// codeMeaning is our reading of a result code.
type codeMeaning struct {
	outcome   provider.Outcome
	reason    till.FailureReason
	retryable bool
}

// pushCodes are the result codes of an STK push, of its query and its callback (Daraja 3.0
// pages, 2025-12). Any other code is never final: "still under processing" is a code, too.
var pushCodes = map[string]codeMeaning{
	"0":          {provider.Success, "", false},
	"1":          {provider.Failed, till.InsufficientFunds, true},
	"2":          {provider.Failed, till.AmountOutOfBounds, false}, // below the least amount
	"3":          {provider.Failed, till.AmountOutOfBounds, false}, // above the greatest amount
	"4":          {provider.Failed, till.PayerLimitReached, false}, // of a day
	"8":          {provider.Failed, till.PayerLimitReached, false}, // the account would exceed its limit
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

// payoutCodes are the result codes of B2C that say that nothing was paid (Daraja 3.0,
// BusinessToCustomer). A fault of our own account is never the recipient's: see
// accountFaults.
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

// accountFaults are the result codes for faults of our own set-up, of a payout and of a
// status query, with what a person has to check.
var accountFaults = map[string]string{
	"1":    "the payout short code has too little money: fund it",
	"11":   "the payout short code is not active (debit party in an invalid state): ask Safaricom",
	"21":   "the initiator is not allowed to do this: give it its roles on the M-Pesa portal",
	"2001": "the initiator's name, password or certificate is wrong",
	"2006": "the state of the payout short code does not allow it: ask Safaricom to activate it",
	"2028": "the payout short code is not permitted to do this: ask Safaricom to assign the product to it",
	"8006": "the initiator's credential is locked: unlock it or set a new password on the M-Pesa portal",
}

// ourFault says what a code shows about our own set-up, "" if nothing.
func ourFault(code string) string {
	text := accountFaults[code]
	if text == "" {
		return ""
	}
	return "M-Pesa answers " + code + ": " + text
}

// payoutStates are the values of TransactionStatus in the answer to a status query (Daraja
// 3.0, TransactionStatus). Completed, Cancelled, Declined and Expired are final; Authorized
// and Pending Authorized are open. The other open ones are [unverified] and prove only that
// the payout is known. Any other value is not final by itself.
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

// rejectionCodes are the errors by which Daraja rejects a request before it does anything:
// by code and, if one code has several meanings, by a part of the message. Any other error
// decides nothing.
var rejectionCodes = []struct {
	code, says string
	codeMeaning
	ours bool // our credentials are refused
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
