package airtel

import (
	"till"
)

// The reasons of payouts.
const (
	recipientNotFound     till.FailureReason = "recipient_not_found"
	recipientLimitReached till.FailureReason = "recipient_limit_reached"
	recipientNotAllowed   till.FailureReason = "recipient_not_allowed"
)

// codeClass is what a code says about a request.
type codeClass int

const (
	unknownCode  codeClass = iota
	succeeded              // done; after a submit it means no more than accepted
	inProcess              // Airtel holds it
	ambiguous              // Airtel does not know: make an enquiry
	duplicate              // the id was used before: make an enquiry
	notFound               // Airtel does not know the id
	rejectedCode           // refused before the customer was asked: nothing was created
	failedCode             // failed after it was accepted; after a submit, make an enquiry
)

// codeMeaning is our reading of one code. reason is "" for a code that is no failure.
type codeMeaning struct {
	class       codeClass
	reason      till.FailureReason
	retryable   bool // a new payment may well succeed
	description string
}

// codes are the documented codes. Sources: the error-code pages of developers.airtel.ug for
// DP008 and DP009 (the same list in five repositories), the Congo list for DP009 1018 and
// 1019, and what the Red Cross saw in Zambia for the ROUTER codes. Any other code decides
// nothing.
var codes = map[string]codeMeaning{
	"DP00800001000": {ambiguous, "", false, "ambiguous, still processing"},
	"DP00800001001": {succeeded, "", false, "success"},
	"DP00800001002": {failedCode, till.WrongPIN, true, "incorrect PIN"},
	"DP00800001003": {rejectedCode, till.PayerLimitReached, true, "exceeds withdrawal or wallet limit"},
	"DP00800001004": {rejectedCode, till.AmountOutOfBounds, false, "invalid amount"},
	// It has three meanings: the id is invalid, the PIN was not typed, or there is no such
	// number.
	"DP00800001005": {failedCode, till.NotApproved, true, "transaction id invalid, or no PIN"},
	"DP00800001006": {inProcess, "", false, "in process"},
	"DP00800001007": {rejectedCode, till.InsufficientFunds, true, "not enough balance"},
	"DP00800001008": {failedCode, till.CustomerDeclined, true, "refused"},
	"DP00800001009": {failedCode, till.ProviderRejected, false, "do not honour"},
	"DP00800001010": {rejectedCode, till.PayerNotFound, false, "churned, barred or not registered"},
	"DP00800001024": {ambiguous, "", false, "timed out"},
	"DP00800001025": {notFound, "", false, "transaction not found"},
	"DP00800001026": {rejectedCode, till.ProviderRejected, false, "signature does not match"},
	"DP00800001029": {failedCode, till.CustomerTimeout, true, "expired"},

	"DP00900001000": {ambiguous, "", false, "ambiguous"},
	"DP00900001001": {succeeded, "", false, "success"},
	"DP00900001003": {rejectedCode, recipientLimitReached, true, "maximum daily limit"},
	"DP00900001004": {rejectedCode, till.AmountOutOfBounds, false, "invalid amount"},
	"DP00900001005": {failedCode, till.ProviderError, true, "failed"},
	"DP00900001006": {inProcess, "", false, "processing"},
	// Our own wallet is empty: not the recipient's fault.
	"DP00900001007": {rejectedCode, till.ProviderUnavailable, true, "insufficient funds"},
	"DP00900001009": {rejectedCode, recipientNotFound, false, "invalid initiatee"},
	"DP00900001010": {rejectedCode, recipientNotAllowed, false, "user not allowed"},
	// Seen as "Duplicate exttRID", which is our id; documented as "similar information". If
	// it meant a similar request, the enquiry would not find ours, and a person would have
	// to decide: slow, but safe.
	"DP00900001011": {duplicate, "", false, "similar information already exists"},
	"DP00900001012": {rejectedCode, recipientNotFound, false, "invalid mobile number"},
	"DP00900001013": {rejectedCode, till.ProviderRejected, false, "refused"},
	"DP00900001014": {ambiguous, "", false, "timed out: may be processed or failed"},
	"DP00900001015": {notFound, "", false, "not found"},
	"DP00900001016": {rejectedCode, till.ProviderRejected, false, "signature does not match (Uganda)"},
	"DP00900001017": {duplicate, "", false, "duplicate transaction id"},
	"DP00900001018": {rejectedCode, till.ProviderRejected, false, "signature does not match (Congo)"},
	"DP00900001019": {rejectedCode, till.ProviderUnavailable, false, "sender barred: our own wallet"},

	// Deprecated, but sometimes the only code.
	"ESB000001": {ambiguous, "", false, "something went wrong"},
	"ESB000004": {ambiguous, "", false, "error initiating"},
	"ESB000008": {rejectedCode, till.ProviderRejected, false, "field validation"},
	"ESB000010": {succeeded, "", false, "success"},
	"ESB000011": {failedCode, till.Unspecified, true, "failed"},
	"ESB000014": {ambiguous, "", false, "error fetching status"},
	"ESB000033": {rejectedCode, till.PayerNotFound, false, "length of the number"},
	"ESB000034": {rejectedCode, till.ProviderRejected, false, "country"},
	"ESB000035": {rejectedCode, till.ProviderRejected, false, "currency"},
	"ESB000036": {rejectedCode, till.PayerNotFound, false, "length of the number, or must begin with 0"},
	"ESB000039": {rejectedCode, till.ProviderRejected, false, "vendor not configured"},
	"ESB000041": {duplicate, "", false, "external transaction id already exists"},
	"ESB000045": {notFound, "", false, "no transaction found"},

	// The gateway's codes, without the usual envelope.
	"ROUTER001": {rejectedCode, till.ProviderRejected, false, "wallet not configured"},
	"ROUTER003": {rejectedCode, till.ProviderRejected, false, "missing parameters"},
	"ROUTER005": {rejectedCode, till.ProviderRejected, false, "country route not configured"},
	"ROUTER006": {rejectedCode, till.ProviderRejected, false, "invalid country"},
	"ROUTER007": {rejectedCode, till.ProviderRejected, false, "not authorised for the country"},
	"ROUTER110": {rejectedCode, till.ProviderRejected, false, "partner not found"},
	"ROUTER112": {rejectedCode, till.ProviderRejected, false, "invalid currency"},
	"ROUTER114": {rejectedCode, till.ProviderUnavailable, false, "PIN validation error: our own PIN"},
	"ROUTER115": {rejectedCode, till.ProviderUnavailable, false, "incorrect PIN: our own"},
	"ROUTER116": {rejectedCode, till.ProviderUnavailable, false, "incorrectly encrypted PIN: our own"},
	"ROUTER117": {ambiguous, "", false, "request timeout"},
	"ROUTER119": {rejectedCode, till.ProviderRejected, false, "invalid or missing currency"},
}

// payoutReason returns a code's reason for a payout: there the payer is us, and the number
// is the recipient's.
func payoutReason(r till.FailureReason) till.FailureReason {
	switch r {
	case till.PayerNotFound:
		return recipientNotFound
	case till.PayerLimitReached:
		return recipientLimitReached
	case till.InsufficientFunds:
		return till.ProviderUnavailable
	case till.WrongPIN:
		return till.ProviderUnavailable
	case till.CustomerDeclined, till.CustomerTimeout, till.NotApproved:
		return till.ProviderError
	}
	return r
}
