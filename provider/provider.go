package provider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"till"
)

// Outcome is an operator's answer about one request, in our terms.
type Outcome string

// The outcomes. Submit returns Accepted, Duplicate, Rejected or, if the operator decides at
// once, a final outcome. Check returns Open, NotFound, Unrecognised, AnswerPending or a
// final outcome.
const (
	Accepted      Outcome = "accepted"     // the operator has the request and prompts the customer
	Duplicate     Outcome = "duplicate"    // the reference was submitted before: check, do not conclude
	Rejected      Outcome = "rejected"     // refused outright, nothing was created
	Open          Outcome = "open"         // the operator has it; no decision yet
	NotFound      Outcome = "not_found"    // the operator does not know the reference (yet)
	Unrecognised  Outcome = "unrecognised" // an unknown status: never final
	AnswerPending Outcome = "asked"        // the operator accepted our query and answers by a callback: proves nothing
	Success       Outcome = "success"      // the money moved: from the customer, or to the recipient
	Failed        Outcome = "failed"       // refused by the customer or the operator
	Expired       Outcome = "expired"      // the operator names a timeout
	Reversed      Outcome = "reversed"     // it had succeeded; the operator took the money back
)

// ProvesReceived reports whether the outcome proves that the operator has the
// request. Rejected does not: nothing was created. AnswerPending does not: a query
// can name anything.
func (o Outcome) ProvesReceived() bool {
	switch o {
	case Accepted, Duplicate, Open, Unrecognised, Success, Failed, Expired, Reversed:
		return true
	}
	return false
}

// Final reports whether the outcome ends a payment.
func (o Outcome) Final() bool { return o == Success || o == Failed || o == Expired }

// Result is the operator's answer.
type Result struct {
	Outcome Outcome

	// Receipt is the operator's own id of the money movement, "" until known.
	Receipt string

	// Handle is the operator's own id of the request, where Check needs it. The
	// engine stores it and passes it in every Query.
	Handle string

	// Amount and Reference are what the operator says it moved and for which
	// of our references; zero where it does not say. The caller compares them
	// with its own record before it believes a success.
	Amount    till.Money
	Reference string

	// Reason is why it failed, in our words; set on Rejected, Failed, Expired.
	Reason till.FailureReason
	// Code and Message are the operator's own texts, stored for support.
	Code, Message string
	// Retryable says that a new payment may well succeed (a timeout, say).
	Retryable bool

	// Original is what the answer about a refund shows of the payment that it gives back.
	Original OriginalState

	// NextURL is where the customer approves, for an operator that sends them to a page or an
	// app of its own; "" if it does not, or has no address yet. An adapter returns only
	// addresses of hosts that are the operator's.
	NextURL string
	// NextUntil is when that address ends, zero if the operator does not say.
	NextUntil till.Time

	// OurFault says what is wrong with our own account at the operator, an empty
	// float or a missing role, for a person to fix; "" if nothing is. It is not the
	// customer's or recipient's fault, and affects the next request too.
	OurFault string
}

// Request is a request to collect a payment, or to pay a payout: the Provider is for one of
// the two.
type Request struct {
	Client      till.ID
	ID          till.ID // of the payment or payout, for people at the operator
	Reference   till.ID // the operator's key for duplicates; the same for a row that was lost and created again with another ID
	Method      string
	Country     string
	Phone       string // of the customer or recipient: digits, with the calling code
	Amount      till.Money
	Description string
	ExpiresAt   till.Time // when the customer's time to approve ends
	CallbackURL string    // "" where callbacks cannot reach us

	ReturnURL string      // where the operator sends the customer back to, in the redirect flow; "" in others
	Code      OneTimeCode // what the customer got from the operator, in the code flow; "" in others

	// PaymentID is of a refund, by either road: the payment that it gives back.
	PaymentID till.ID
	// Refund is of a refund by the operator's own call. Without it, a refund is sent like any
	// payout.
	Refund *Original
}

// OneTimeCode is the code by which a customer lets an operator take one payment. It is not
// printed: who has it can take another one.
type OneTimeCode string

// Format implements fmt.Formatter.
func (c OneTimeCode) Format(f fmt.State, _ rune) {
	if c != "" {
		io.WriteString(f, "(code)")
	}
}

// LogValue implements slog.LogValuer.
func (c OneTimeCode) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(c)) }

// Query asks an operator for the state of a submitted request.
type Query struct {
	Client      till.ID
	ID          till.ID
	Reference   till.ID
	Method      string
	Country     string
	Phone       string // "" if the person's data was erased
	Amount      till.Money
	CallbackURL string // for an operator that answers a query by a callback
	Refund      *Original

	// Handle is what an earlier Result returned, "" if none did.
	Handle string
	// CallbackBody is the body of the latest callback for the request, nil if there is
	// none. It is kept only if Traits.NeedsCallbackBody is set. Anyone could have sent it.
	// An adapter may learn from it what to query. It may trust it as an answer only if
	// nobody but the operator can know the address.
	CallbackBody []byte
}

// Provider is one configured account at an operator, for payments or for
// payouts: a connection has one or both.
//
// Two rules prevent double charging. A nil error means that the Result is the
// operator's answer. A non-nil error means that the outcome is unknown: leave the
// payment as it is and check again. So an adapter never turns a timeout, a 5xx or an
// unreadable answer into a Result, and never retries by itself.
type Provider interface {
	// Submit sends the request once.
	Submit(ctx context.Context, r Request) (Result, error)
	// Check reads the state of a request that may have been submitted.
	Check(ctx context.Context, q Query) (Result, error)
	// Traits says how this operator behaves. It never changes.
	Traits() Traits
	// Fingerprint names the account behind the connection (base URL, account, environment),
	// so that a payment is checked only where it was sent.
	Fingerprint() string
}

// ErrCredentials marks an error of a call whose credentials the operator refused. The
// outcome is unknown, as with any error, but a few of them in a row stop new payments
// sooner.
var ErrCredentials = errors.New("the operator refuses our credentials")

// ErrNotSent marks an error of a call of which no byte was sent. An adapter that returns it
// must be certain: a first send that fails like this counts as never made, and is made
// again.
var ErrNotSent = errors.New("nothing was sent")

// Refusal is the error of a call that the operator's gateway refused before it was
// processed: wrong credentials, or too many calls. The call created nothing, and no later
// call of the same request has begun. An adapter that returns it must be certain: a refused
// first send counts as never made, and is made again.
type Refusal struct {
	Err        error         // why; ErrCredentials where that is the reason
	RetryAfter time.Duration // for how long the operator asks us to wait, 0 if it does not say
}

// Error implements error.
func (r *Refusal) Error() string { return "the call was refused: " + r.Err.Error() }

// Unwrap returns why.
func (r *Refusal) Unwrap() error { return r.Err }

// Rate is how often an operator may be called: so many calls per second, by
// all instances together, and so many at once after a pause.
type Rate struct {
	PerSecond int // 0: no limit
	Burst     int // at least 1 is allowed
}

// Traits are the times and habits of an operator.
type Traits struct {
	// ClientReference says that the operator deduplicates and looks up by the
	// reference we send. Without it a payment is never sent twice.
	ClientReference bool

	ApprovalWindow time.Duration // how long a customer has to approve
	SubmitTimeout  time.Duration // how long one Submit may take; under the lease
	CheckTimeout   time.Duration // how long one Check may take; under the lease
	NotFoundDelay  time.Duration // after a send, how long "not found" proves nothing
	Poll           time.Duration // between two checks of an open payment
	PollMax        time.Duration // the slowest pace at which an overdue payment is asked about
	Grace          time.Duration // after the window, how long before people are notified

	// LateReads are the times after a final other than success at which the
	// operator is asked once more, in case the money came after all.
	LateReads []time.Duration

	// PayerUnknown says that anybody who has the operator's page can pay: the number that we
	// asked for need not be the payer's. Nothing is sent back to it.
	PayerUnknown bool

	// Redirect says that nobody can pay without the address in the answer to Submit, whatever
	// the method. So a send whose answer was lost was shown to nobody, and may be made again
	// even where the operator does not look up our reference. An operator that does is asked.
	Redirect bool

	// RefundsBounded says that the operator's refund call is used unless the configuration says
	// otherwise: it takes our reference, is asked by it, and never moves more than the payment.
	RefundsBounded bool

	// NeedsCallbackBody says that the body of the latest callback is kept for Check.
	NeedsCallbackBody bool

	// SubmitRate and CheckRate limit the calls of each kind.
	SubmitRate, CheckRate Rate

	// NoBreaker says that failures are no sign of bad health: the tester
	// chooses them. Such an operator is never closed.
	NoBreaker bool
}
