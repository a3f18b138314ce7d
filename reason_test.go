package till_test

import (
	"slices"
	"testing"

	"till"
)

// The sentences are those that releases before the codes wrote: they are in databases, and
// commands show them.
func TestSentencesOfReasons(t *testing.T) {
	t.Parallel()
	all := map[till.ReasonCode][]struct {
		reason till.Reason
		want   string
	}{}
	add := func(want string, r till.Reason) {
		all[r.Code] = append(all[r.Code], struct {
			reason till.Reason
			want   string
		}{r, want})
	}
	because := till.Because
	add("its time is over and the operator has not decided", because(till.ReasonOverdue))
	add("its time is over, and no instance takes it: is the connection momo, with the account it was made with, configured anywhere?", because(till.ReasonStranded, "momo"))
	add("an old database was put back while it was open: it may have been sent, and the operator has not told", because(till.ReasonRestored))
	add("an old database was put back, and this may be the retry of a payment that was lost with it: it is not sent until that is known", because(till.ReasonMaybeRetry, "payment"))
	add("payouts are held by Anne (audit), and its client is suspended: it is not sent before that is released", because(till.ReasonHeld, "payouts are held by Anne (audit), and its client is suspended"))
	add("payouts are held: it was not sent", because(till.ReasonHeldBack))
	add("it is no longer held", because(till.ReasonNotHeld))
	add("the restore was released", because(till.ReasonRestoreReleased))
	add("the operator has it", because(till.ReasonOperatorHasIt))
	add("the operator answers with a status that is not known: TS {a}", because(till.ReasonUnknownStatus, "TS {a}"))
	add("the operator reports a success under a receipt that another payout has: p1 of client c1", because(till.ReasonReceiptReused, "payout", "p1", "c1"))
	add("the operator gave it the id of another's request, and it cannot be asked about by that", because(till.ReasonHandleReused))
	add("a callback for it names the operator's id of another's request; it was not believed", because(till.ReasonCallbackForeign))
	add("the operator called it a success before and says failed now", because(till.ReasonWasSuccess, "failed"))
	add("money came in for it, and the operator says expired now", because(till.ReasonMoneyCameIn, "expired"))
	add("money went out for it, and the operator says failed now", because(till.ReasonMoneyWentOut, "failed"))
	add("the operator reports a second success with another receipt", because(till.ReasonSecondSuccess))
	add("the operator reports a success of a payout that was never sent", because(till.ReasonNeverSent))
	add("the operator reports another currency: 9 USD instead of 5000 XAF; nothing was credited", because(till.ReasonOtherCurrency, "9 USD", "5000 XAF").Then(till.ThenNotCredited))
	add("the operator reports another amount: 9 XAF instead of 5000 XAF", because(till.ReasonOtherAmount, "9 XAF", "5000 XAF"))
	add("the operator reports another amount: 9 XAF instead of 5000 XAF with the receipt; the payment was credited before", because(till.ReasonOtherAmount, "9 XAF", "5000 XAF").Then(till.ThenCredited))
	add("the operator reports another reference", because(till.ReasonOtherReference))
	add("the operator reports another reference taken back; nothing was debited", because(till.ReasonOtherReference).Then(till.ThenNotDebited))
	add("the operator reports another reference; nothing was posted", because(till.ReasonOtherReference).Then(till.ThenNotPosted))
	add("the wallet cannot hold the money; nothing was credited", because(till.ReasonWalletFull).Then(till.ThenNotCredited))
	add("money came after it had ended as expired; it was credited", because(till.ReasonLateMoney, "expired"))
	add("it was paid after it had ended as cancelled; the wallet was debited", because(till.ReasonLatePayout, "cancelled"))
	add("the operator took the money back: 4900 XAF from the wallet, 100 owed by the client", because(till.ReasonReversed, "4900 XAF", "100"))
	add("the operator refuses the refund, because the payment is given back without us, or was: AMOUNT_TOO_LARGE", because(till.ReasonRefundedElsewhere, "AMOUNT_TOO_LARGE"))
	add("the operator refuses the refund, because it does not know the payment, or not as paid: INVALID_STATE", because(till.ReasonNotPaidThere, "INVALID_STATE"))
	add("it was paid after it had ended otherwise, and with it more goes back of the payment than was paid: 160 XAF instead of 100 XAF", because(till.ReasonRefundedBeyond, "160 XAF", "100 XAF"))
	add("the payment p1 of the same checkout was credited before: this one is too much", because(till.ReasonPaidTwice, "p1"))
	add("many numbers were asked by the merchant's links and did not approve, and hardly any paid: each of its links asks once a minute while that is so", because(till.ReasonPageAbuse))
	add("somebody who opened the page says that something is wrong with it", because(till.ReasonPageReported))
	add("the operator took the money back, 100 XAF, and the customer was refunded, too: 60 XAF went back or is on its way", because(till.ReasonRefundedReversed, "100 XAF", "60 XAF"))
	add("the answer could not be recorded: recording it panics; the log says where", because(till.ReasonFault, "the answer could not be recorded: recording it panics; the log says where"))
	add("an answer could be recorded", because(till.ReasonRecorded))
	add("the payment was resolved as success", because(till.ReasonResolved, "payment", "success"))
	add("resolved by person:Jean", because(till.ReasonResolvedBy, "person:Jean"))
	add("resolved by Jean, evidence sha256:00ff", because(till.ReasonResolvedOn, "Jean", "00ff"))
	add("missing: statement april.csv sha256:00ff", because(till.ReasonStatement, "missing", "statement april.csv sha256:00ff"))
	add("amount: statement april.csv sha256:00ff line 7", because(till.ReasonStatementLine, "amount", "statement april.csv sha256:00ff", "7"))
	add("refused before it was taken", because(till.ReasonRefusedBeforeSent))
	add("no answer in time", because(till.ReasonNoAnswerInTime))
	add("no answer", because(till.ReasonNoAnswer))

	ends := map[string]bool{}
	for _, code := range till.ReasonCodes() {
		if len(all[code]) == 0 {
			t.Errorf("nothing is known of the sentence of %q", code)
		}
		for _, c := range all[code] {
			if got := c.reason.String(); got != c.want {
				t.Errorf("%s: got  %q\nwant %q", code, got, c.want)
			}
			places := code.Places()
			if n := len(c.reason.Values); n != len(places) && !(n == len(places)-1 && places[n] == "then") {
				t.Errorf("%s: %d values for the places %q", code, n, places)
			}
			ends[c.reason.Value("then")] = true
		}
	}
	for _, end := range till.ReasonEnds {
		if !ends[string(end)] {
			t.Errorf("nothing is known of the end %q", end)
		}
	}
	if got := (till.Reason{}).String() + till.Because("of a later release", "x").String(); got != "" {
		t.Errorf("a code that is not known says %q", got)
	}
	codes := till.ReasonCodes()
	slices.Sort(codes)
	if n := len(slices.Compact(codes)); n != len(till.ReasonCodes()) || n != len(all) {
		t.Errorf("%d codes, of %d sentences", n, len(all))
	}
}
