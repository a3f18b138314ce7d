package till

import "strings"

// Reason is why a case was opened or closed, or what came of a call to an operator: a code
// and the values of its sentence. Both are stored beside the sentence in English, so that
// pages can say it in the reader's language. The zero Reason is for words that are not ours:
// a person's, or an operator's.
type Reason struct {
	Code   ReasonCode
	Values []string // in the order of the places in the sentence
}

// ReasonCode names a sentence. The console has words for each, in each language.
type ReasonCode string

// The codes.
const (
	ReasonOverdue           ReasonCode = "over"
	ReasonStranded          ReasonCode = "stranded"
	ReasonRestored          ReasonCode = "restored"
	ReasonMaybeRetry        ReasonCode = "retry"
	ReasonHeld              ReasonCode = "held"
	ReasonHeldBack          ReasonCode = "held_back" // at the last moment
	ReasonNotHeld           ReasonCode = "released"
	ReasonRestoreReleased   ReasonCode = "restore_released"
	ReasonOperatorHasIt     ReasonCode = "has"
	ReasonUnknownStatus     ReasonCode = "status"
	ReasonReceiptReused     ReasonCode = "receipt"
	ReasonHandleReused      ReasonCode = "handle"
	ReasonCallbackForeign   ReasonCode = "handle_call"
	ReasonWasSuccess        ReasonCode = "was_success"
	ReasonMoneyCameIn       ReasonCode = "came"
	ReasonMoneyWentOut      ReasonCode = "went"
	ReasonSecondSuccess     ReasonCode = "second"
	ReasonNeverSent         ReasonCode = "never_sent"
	ReasonOtherCurrency     ReasonCode = "other_currency"
	ReasonOtherAmount       ReasonCode = "other_amount"
	ReasonOtherReference    ReasonCode = "other_reference"
	ReasonWalletFull        ReasonCode = "full"
	ReasonLateMoney         ReasonCode = "late"
	ReasonLatePayout        ReasonCode = "late_payout"
	ReasonReversed          ReasonCode = "back"
	ReasonRefundedBeyond    ReasonCode = "refunded_beyond"
	ReasonRefundedReversed  ReasonCode = "refunded_reversed"
	ReasonRefundedElsewhere ReasonCode = "refunded_elsewhere"
	ReasonNotPaidThere      ReasonCode = "not_paid_there"
	ReasonPaidTwice         ReasonCode = "paid_twice"
	ReasonPageAbuse         ReasonCode = "page_abuse"
	ReasonPageReported      ReasonCode = "page_reported"
	ReasonFault             ReasonCode = "fault" // of the program, in the words of its log
	ReasonRecorded          ReasonCode = "recorded"
	ReasonResolved          ReasonCode = "resolved"
	ReasonResolvedBy        ReasonCode = "resolved_by"
	ReasonResolvedOn        ReasonCode = "resolved_on" // by evidence
	ReasonStatement         ReasonCode = "statement"
	ReasonStatementLine     ReasonCode = "statement_line"
	ReasonRefusedBeforeSent ReasonCode = "refused"
	ReasonNoAnswerInTime    ReasonCode = "no_answer_in_time"
	ReasonNoAnswer          ReasonCode = "no_answer"
)

// reasons has each code's sentence in English, as it is stored and as commands show it. A
// place in braces is for a value, and its name says what kind of value.
var reasons = []struct {
	code ReasonCode
	text string
}{
	{ReasonOverdue, "its time is over and the operator has not decided"},
	{ReasonStranded, "its time is over, and no instance takes it: is the connection {connection}, with the account it was made with, configured anywhere?"},
	{ReasonRestored, "an old database was put back while it was open: it may have been sent, and the operator has not told"},
	{ReasonMaybeRetry, "an old database was put back, and this may be the retry of a {kind} that was lost with it: it is not sent until that is known"},
	{ReasonHeld, "{holds}: it is not sent before that is released"},
	{ReasonHeldBack, "payouts are held: it was not sent"},
	{ReasonNotHeld, "it is no longer held"},
	{ReasonRestoreReleased, "the restore was released"},
	{ReasonOperatorHasIt, "the operator has it"},
	{ReasonUnknownStatus, "the operator answers with a status that is not known: {code}"},
	{ReasonReceiptReused, "the operator reports a success under a receipt that another {kind} has: {other} of client {client}"},
	{ReasonHandleReused, "the operator gave it the id of another's request, and it cannot be asked about by that"},
	{ReasonCallbackForeign, "a callback for it names the operator's id of another's request; it was not believed"},
	{ReasonWasSuccess, "the operator called it a success before and says {outcome} now"},
	{ReasonMoneyCameIn, "money came in for it, and the operator says {outcome} now"},
	{ReasonMoneyWentOut, "money went out for it, and the operator says {outcome} now"},
	{ReasonSecondSuccess, "the operator reports a second success with another receipt"},
	{ReasonNeverSent, "the operator reports a success of a payout that was never sent"},
	{ReasonOtherCurrency, "the operator reports another currency: {a} instead of {b}{then}"},
	{ReasonOtherAmount, "the operator reports another amount: {a} instead of {b}{then}"},
	{ReasonOtherReference, "the operator reports another reference{then}"},
	{ReasonWalletFull, "the wallet cannot hold the money{then}"},
	{ReasonLateMoney, "money came after it had ended as {state}; it was credited"},
	{ReasonLatePayout, "it was paid after it had ended as {state}; the wallet was debited"},
	{ReasonReversed, "the operator took the money back: {a} from the wallet, {owed} owed by the client"},
	{ReasonPaidTwice, "the payment {a} of the same checkout was credited before: this one is too much"},
	{ReasonPageAbuse, "many numbers were asked by the merchant's links and did not approve, and hardly any paid: each of its links asks once a minute while that is so"},
	{ReasonPageReported, "somebody who opened the page says that something is wrong with it"},
	{ReasonRefundedBeyond, "it was paid after it had ended otherwise, and with it more goes back of the payment than was paid: {a} instead of {b}"},
	{ReasonRefundedReversed, "the operator took the money back, {a}, and the customer was refunded, too: {b} went back or is on its way"},
	{ReasonRefundedElsewhere, "the operator refuses the refund, because the payment is given back without us, or was: {code}"},
	{ReasonNotPaidThere, "the operator refuses the refund, because it does not know the payment, or not as paid: {code}"},
	{ReasonFault, "{fault}"},
	{ReasonRecorded, "an answer could be recorded"},
	{ReasonResolved, "the {kind} was resolved as {outcome}"},
	{ReasonResolvedBy, "resolved by {who}"},
	{ReasonResolvedOn, "resolved by {who}, evidence sha256:{digest}"},
	{ReasonStatement, "{class}: {statement}"},
	{ReasonStatementLine, "{class}: {statement} line {line}"},
	{ReasonRefusedBeforeSent, "refused before it was taken"},
	{ReasonNoAnswerInTime, "no answer in time"},
	{ReasonNoAnswer, "no answer"},
}

var reasonTexts = func() map[ReasonCode]string {
	texts := make(map[ReasonCode]string, len(reasons))
	for _, r := range reasons {
		texts[r.code] = r.text
	}
	return texts
}()

// ReasonCodes lists every code.
func ReasonCodes() []ReasonCode {
	codes := make([]ReasonCode, len(reasons))
	for i, r := range reasons {
		codes[i] = r.code
	}
	return codes
}

// ReasonEnd is the value of a place called then: what was done about money that is not as
// it was requested.
type ReasonEnd string

// The ends. ReasonEnds lists them.
const (
	ThenNotCredited ReasonEnd = "not_credited"
	ThenCredited    ReasonEnd = "credited"
	ThenNotDebited  ReasonEnd = "not_debited"
	ThenNotPosted   ReasonEnd = "not_posted"
)

// ReasonEnds lists the ends.
var ReasonEnds = []ReasonEnd{ThenNotCredited, ThenCredited, ThenNotDebited, ThenNotPosted}

var reasonEndTexts = map[ReasonEnd]string{
	ThenNotCredited: "; nothing was credited",
	ThenCredited:    " with the receipt; the payment was credited before",
	ThenNotDebited:  " taken back; nothing was debited",
	ThenNotPosted:   "; nothing was posted",
}

// Because returns the reason with a code and the values of its sentence.
func Because(code ReasonCode, values ...string) Reason { return Reason{code, values} }

// IsZero reports whether there is no reason of ours.
func (r Reason) IsZero() bool { return r.Code == "" }

// Then returns the reason with its end.
func (r Reason) Then(end ReasonEnd) Reason {
	return Reason{r.Code, append(r.Values[:len(r.Values):len(r.Values)], string(end))}
}

// Places returns the names of the places in a code's sentence, in order.
func (c ReasonCode) Places() (names []string) {
	for _, part := range strings.Split(reasonTexts[c], "{")[1:] {
		name, _, _ := strings.Cut(part, "}")
		names = append(names, name)
	}
	return names
}

// Value returns the value of a place, "" if the sentence has none of that name.
func (r Reason) Value(place string) string {
	for i, name := range r.Code.Places() {
		if name == place && i < len(r.Values) {
			return r.Values[i]
		}
	}
	return ""
}

// String returns the sentence in English, "" for the zero Reason and for a code that this
// release does not know.
func (r Reason) String() string {
	var pairs []string
	for _, name := range r.Code.Places() {
		value := r.Value(name)
		if name == "then" {
			value = reasonEndTexts[ReasonEnd(value)]
		}
		pairs = append(pairs, "{"+name+"}", value)
	}
	return strings.NewReplacer(pairs...).Replace(reasonTexts[r.Code]) // in one pass: a value is not filled again
}
