package sandbox

import (
	"fmt"
	"time"

	"till"
	"till/provider"
)

// kind says which way the money goes.
type kind string

const (
	payment kind = "payment" // from a customer
	payout  kind = "payout"  // to a recipient
	refund  kind = "refund"  // back to a customer, by either road
)

// out reports whether money goes out.
func (k kind) out() bool { return k == payout || k == refund }

// story is what happens to a request, named by the last four digits of the
// customer's or recipient's phone.
type story string

const (
	approves      story = ""     // any other ending: the customer approves
	asksPerson    story = "0000" // somebody decides: see Decide
	declines      story = "0002"
	neverAnswers  story = "0003"
	noFunds       story = "0004"
	unknownPayer  story = "0005" // refused on the spot
	limitReached  story = "0006"
	wrongPIN      story = "0007"
	lostAnswer    story = "0011" // the request arrives, its answer does not
	lostRequest   story = "0012" // the first send never arrives
	lateMoney     story = "0013" // expires (a payout fails), and succeeds after that
	stuck         story = "0014" // open for ever
	fiveCallbacks story = "0015"
	earlyCallback story = "0016" // calls back before it answers
	noCallback    story = "0017"
	lyingCallback story = "0018" // calls back "success", but it was declined
	otherAmount   story = "0019" // moves another amount than it was asked for
	heldBack      story = "0020" // of payouts: waits before it is sent
	reverses      story = "0021" // succeeds, and is taken back after that
)

// noRefundCall is how numbers end whose payments this operator does not give back by naming
// them.
const noRefundCall = "0036"

// How long things take.
const (
	decisionTime       = time.Second            // from the request to the customer's decision
	lateMoneyDelay     = 2 * time.Second        // from the expiry, or a payout's failure, to the late money of 0013
	reversalDelay      = 3 * time.Second        // from the approval to the reversal of 0021
	earlyCallbackDelay = 50 * time.Millisecond  // from the request to the decision and callback of 0016
	slowAnswerDelay    = 300 * time.Millisecond // from the request to the answer of 0016
	heldBackDelay      = 5 * time.Second        // from the creation to the send of 0020
)

// answer is how this operator says something, and what it means in our words.
type answer struct {
	outcome   provider.Outcome
	reason    till.FailureReason
	code      string
	message   string
	retryable bool
}

var (
	answerOpen        = answer{provider.Open, "", "PENDING", "Waiting for the payer.", false}
	answerApproved    = answer{provider.Success, "", "APPROVED", "The payer approved.", false}
	answerReversed    = answer{provider.Reversed, "", "REVERSED", "The money was given back to the payer.", false}
	answerDeclined    = answer{provider.Failed, till.CustomerDeclined, "DECLINED", "The payer declined.", false}
	answerTimeout     = answer{provider.Expired, till.CustomerTimeout, "TIMEOUT", "The payer did not answer in time.", true}
	answerLowBalance  = answer{provider.Failed, till.InsufficientFunds, "LOW_BALANCE", "The payer's balance is too low.", true}
	answerPayerLimit  = answer{provider.Failed, till.PayerLimitReached, "PAYER_LIMIT", "The payer's limit is reached.", false}
	answerBadPIN      = answer{provider.Failed, till.WrongPIN, "BAD_PIN", "The payer typed a wrong PIN.", true}
	answerAccepted    = answer{provider.Accepted, "", "ACCEPTED", "The payer is asked.", false}
	answerDuplicate   = answer{provider.Duplicate, "", "DUPLICATE", "The reference is known.", false}
	answerNotFound    = answer{provider.NotFound, "", "NOT_FOUND", "The reference is not known.", false}
	answerNoSuchPayer = answer{provider.Rejected, till.PayerNotFound, "NO_SUCH_PAYER", "No wallet has this number.", false}

	// Of payouts.
	answerPayoutOpen      = answer{provider.Open, "", "PENDING", "The transfer is on its way.", false}
	answerPayoutAccepted  = answer{provider.Accepted, "", "ACCEPTED", "The transfer is on its way.", false}
	answerPaid            = answer{provider.Success, "", "PAID", "The recipient has the money.", false}
	answerNotPaid         = answer{provider.Failed, till.ProviderError, "NOT_PAID", "The transfer failed.", true}
	answerRecipientLimit  = answer{provider.Failed, till.RecipientLimitReached, "RECIPIENT_LIMIT", "The recipient's limit is reached.", false}
	answerNoSuchRecipient = answer{provider.Rejected, till.RecipientNotFound, "NO_SUCH_RECIPIENT", "No wallet has this number.", false}
)

// request is a row of the book. Its fate is a function of these fields alone.
type request struct {
	id          int64 // the order of arrival, across references
	kind        kind
	reference   till.ID
	client      till.ID
	payment     till.ID
	phone       string
	amount      till.Money // as asked for
	arrivedAt   till.Time
	expiresAt   till.Time
	callbackURL string

	asked     bool      // a handset held the number: a person decides, whatever the phone's story
	decidedAt till.Time // zero: no person has decided
	approved  bool      // what the person decided
	decision  Decision  // the same in full; "" in rows of older releases
	wrongPINs int       // how often the person typed a wrong PIN

	callbackTries int // how often the callback was claimed
}

func (r *request) story() story {
	if r.asked {
		return asksPerson
	}
	return storyOf(r.kind, r.phone)
}

// transition is a change in a request's life: from at on, the operator gives that answer.
type transition struct {
	at     till.Time
	answer answer
}

// transitions returns everything that happens to the request, in order.
func (r *request) transitions() []transition {
	decision := r.arrivedAt.Add(decisionTime)
	if r.kind.out() {
		switch r.story() {
		case limitReached:
			return []transition{{decision, answerRecipientLimit}}
		case lateMoney:
			return []transition{{decision, answerNotPaid}, {decision.Add(lateMoneyDelay), answerPaid}}
		case stuck:
			return nil
		}
		return []transition{{decision, answerPaid}}
	}
	switch r.story() {
	case asksPerson:
		switch {
		case r.decidedAt.IsZero():
			return []transition{{r.expiresAt, answerTimeout}}
		case r.approved:
			return []transition{{r.decidedAt, answerApproved}}
		case r.decision == WrongPIN:
			return []transition{{r.decidedAt, answerBadPIN}}
		case r.decision == NoFunds:
			return []transition{{r.decidedAt, answerLowBalance}}
		}
		return []transition{{r.decidedAt, answerDeclined}}
	case declines, lyingCallback:
		return []transition{{decision, answerDeclined}}
	case neverAnswers:
		return []transition{{r.expiresAt, answerTimeout}}
	case noFunds:
		return []transition{{decision, answerLowBalance}}
	case limitReached:
		return []transition{{decision, answerPayerLimit}}
	case wrongPIN:
		return []transition{{decision, answerBadPIN}}
	case lateMoney:
		return []transition{{r.expiresAt, answerTimeout}, {r.expiresAt.Add(lateMoneyDelay), answerApproved}}
	case reverses:
		return []transition{{decision, answerApproved}, {decision.Add(reversalDelay), answerReversed}}
	case stuck:
		return nil
	case earlyCallback:
		return []transition{{r.arrivedAt.Add(earlyCallbackDelay), answerApproved}}
	}
	return []transition{{decision, answerApproved}}
}

// resultAt returns what the operator says about the request at t.
func (r *request) resultAt(t till.Time) provider.Result {
	now := answerOpen
	if r.kind.out() {
		now = answerPayoutOpen
	}
	for _, turn := range r.transitions() {
		if turn.at <= t {
			now = turn.answer
		}
	}
	result := now.result(r.reference)
	result.Amount = r.movedAmount()
	if now.outcome == provider.Success {
		result.Receipt = r.receipt()
	}
	return result
}

func (w answer) result(reference till.ID) provider.Result {
	return provider.Result{
		Outcome:   w.outcome,
		Reference: reference.String(),
		Reason:    w.reason,
		Code:      w.code,
		Message:   w.message,
		Retryable: w.retryable,
	}
}

// movedAt returns when the money moves, zero if it never does.
func (r *request) movedAt() till.Time {
	for _, turn := range r.transitions() {
		if turn.answer.outcome == provider.Success {
			return turn.at
		}
	}
	return 0
}

// movedAmount returns the amount that the operator takes.
func (r *request) movedAmount() till.Money {
	m := r.amount
	if r.story() == otherAmount {
		m.Minor *= 2
	}
	return m
}

// receipt returns the operator's id of the money movement. The row's id makes
// it unique where one reference was taken twice.
func (r *request) receipt() string { return fmt.Sprintf("SBX%X%06X", r.reference[10:], r.id) }

// plannedCallback is the callback of a request.
type plannedCallback struct {
	at     till.Time // zero: there is none
	copies int       // how many are sent, at the same time
	claims provider.Outcome
}

// callback returns the request's one callback, for its first final state, with the outcome
// that it claims. For 0021 it is for the reversal, which nobody would notice otherwise.
func (r *request) callback() plannedCallback {
	turns := r.transitions()
	if r.callbackURL == "" || len(turns) == 0 {
		return plannedCallback{}
	}
	c := plannedCallback{at: turns[0].at, copies: 1, claims: turns[0].answer.outcome}
	switch r.story() {
	case lateMoney, noCallback:
		return plannedCallback{}
	case fiveCallbacks:
		c.copies = 5
	case reverses:
		c.at, c.claims = turns[1].at, turns[1].answer.outcome
	case lyingCallback:
		c.claims = provider.Success
	}
	return c
}
