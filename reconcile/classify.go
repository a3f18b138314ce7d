package reconcile

import (
	"fmt"

	"till"
	"till/store/matching"
)

// Class says how a line of an operator's statement compares with our books.
type Class string

// The classes, in the order of the report.
const (
	Matched           Class = "matched"             // the same money on both sides
	MatchedLate       Class = "matched_late"        // the same, booked after the payment had ended otherwise
	NoMoney           Class = "no_money"            // both sides say that no money moved, or not yet
	Elsewhere         Class = "elsewhere"           // booked here without a line, which may be in another statement
	MissingAtOperator Class = "missing_at_operator" // booked here, no line
	MissingHere       Class = "missing_here"        // a line, and nothing of ours
	Explained         Class = "explained"           // a line, nothing of ours, and a stray that was closed
	AmountDiffers     Class = "amount_differs"      // or the currency
	Late              Class = "late"                // the line says success; here it is open or ended otherwise
	OpenHere          Class = "open_here"           // the line says failed; here it is open
	StatusDiffers     Class = "status_differs"      // one side says that money moved, the other that it did not
	ReceiptUsedTwice  Class = "receipt_used_twice"  // one receipt for two lines or two payments
	PaidTwice         Class = "paid_twice"          // two receipts for one payment
	ReceiptDiffers    Class = "receipt_differs"     // the same money under another receipt
	LedgerDiffers     Class = "ledger_differs"      // the payment and its entry in the ledger do not fit
	BrokenLine        Class = "broken_line"         // a line that cannot be read
)

// classes lists every class in the order of the report.
var classes = []Class{Matched, MatchedLate, NoMoney, Elsewhere, Explained, MissingAtOperator, MissingHere, AmountDiffers, Late, OpenHere, StatusDiffers,
	ReceiptUsedTwice, PaidTwice, ReceiptDiffers, LedgerDiffers, BrokenLine}

// Difference reports whether a person has to check it.
func (c Class) Difference() bool {
	return c != Matched && c != MatchedLate && c != NoMoney && c != Elsewhere && c != Explained
}

// Remedy is what ApplyStatement does about a difference.
type Remedy string

// The remedies.
const (
	settleSuccess Remedy = "success" // the line is evidence: the money came
	settleFailed  Remedy = "failed"  // the line is evidence: it did not
	openACase     Remedy = "case"    // a person decides
	keepStray     Remedy = "stray"   // the money names us: it is kept until somebody owns it
)

// classification is the result of comparing a line with a payment or payout.
type classification struct {
	class  Class
	why    string
	remedy Remedy
}

// otherLines are the numbers of other lines about the same payment or payout,
// or with the same receipt; 0 means none.
type otherLines struct {
	success  uint32 // the first line that says success, if it is not this one
	sameCode bool   // that one has the same receipt, or neither has one
	failed   uint32
	reversed uint32
	twin     uint32 // a line with this receipt under another reference
}

// settled reports whether our books say that the money moved.
func settled(c *matching.ReconcileRow) bool { return c.Status == till.Success || c.Late }

// final reports whether the status is final. Only payouts can be cancelled.
func final(c *matching.ReconcileRow) bool { return c.Status.Final() || c.Status == "cancelled" }

// classify compares a line with its payment or payout.
func classify(line *record, money till.Money, c *matching.ReconcileRow, b otherLines) classification {
	switch line.status {
	case lineSuccess:
		return classifySuccess(line, money, c, b)
	case lineFailed:
		switch {
		case b.success != 0:
			return classification{StatusDiffers, fmt.Sprintf("the line says failed, and line %d says success", b.success), openACase}
		case settled(c):
			return classification{StatusDiffers, "the line says failed; here it has succeeded", openACase}
		case final(c):
			return classification{NoMoney, "no money moved, on both sides", ""}
		}
		return classification{OpenHere, "the line says failed; here it is still open", settleFailed}
	case lineReversed:
		switch {
		case money != c.Amount:
			return classification{AmountDiffers, "what was taken back is not what was asked for", openACase}
		case settled(c) && c.Reversed && b.success != 0:
			return classification{Matched, "taken back, on both sides", ""}
		case settled(c) && c.Reversed:
			return classification{NoMoney, "it came and was taken back, on both sides", ""}
		case settled(c):
			return classification{StatusDiffers, "the line says that the money was taken back; here it was not", openACase}
		case final(c):
			return classification{NoMoney, "the money was taken back, and none is booked here", ""}
		}
		return classification{StatusDiffers, "the line says that the money was taken back; here it is still open", openACase}
	}
	if final(c) {
		return classification{StatusDiffers, "the line says that it is not decided; here it has ended", openACase}
	}
	return classification{NoMoney, "not decided yet, on both sides", ""}
}

func classifySuccess(line *record, money till.Money, c *matching.ReconcileRow, b otherLines) classification {
	ours := receiptKey(c.Receipt)
	theirs := line.keys[byReceipt]
	switch {
	case b.success != 0 && b.sameCode:
		return classification{ReceiptUsedTwice, fmt.Sprintf("line %d says the same already", b.success), openACase}
	case b.success != 0:
		return classification{PaidTwice, fmt.Sprintf("line %d says success under another receipt: the customer may have paid twice", b.success), openACase}
	case b.twin != 0 && (!settled(c) || ours != theirs):
		return classification{ReceiptUsedTwice, fmt.Sprintf("line %d has the same receipt under another reference", b.twin), openACase}
	case money.Currency != c.Amount.Currency:
		return classification{AmountDiffers, "the currency is not the one that was asked for", openACase}
	case money != c.Amount:
		return classification{AmountDiffers, "the amount is not what was asked for", openACase}
	case settled(c):
		return classifyBooked(c, ours, theirs)
	case b.reversed != 0:
		return classification{NoMoney, fmt.Sprintf("taken back by line %d", b.reversed), ""}
	case b.failed != 0:
		return classification{StatusDiffers, fmt.Sprintf("the line says success, and line %d says failed", b.failed), openACase}
	case c.Status == "cancelled" && c.Reference.IsZero():
		return classification{StatusDiffers, "the line says success; here it was cancelled before it was sent", openACase}
	case final(c):
		return classification{Late, "the line says success; here it has ended as " + string(c.Status), settleSuccess}
	}
	return classification{Late, "the line says success; here it is still open", settleSuccess}
}

// classifyBooked compares a line that says success with booked money.
func classifyBooked(c *matching.ReconcileRow, ours, theirs key) classification {
	if why := ledgerDiffers(c); why != "" {
		return classification{LedgerDiffers, why, openACase}
	}
	if ours != (key{}) && theirs != (key{}) && ours != theirs {
		return classification{ReceiptDiffers, "the same money, under another receipt", ""}
	}
	if c.Late {
		return classification{MatchedLate, "booked after it had ended as " + string(c.Status), ""}
	}
	return classification{Matched, "", ""}
}

// ledgerDiffers says how the ledger differs from a payment or payout whose
// money moved, "" if it does not.
func ledgerDiffers(c *matching.ReconcileRow) string {
	switch {
	case c.Booked.IsZero():
		return "the money moved, and the ledger has no entry for it"
	case c.Booked != c.Amount:
		return "the entry in the ledger is not of the amount that moved"
	}
	return ""
}

// classifyUnmatched classifies a payment or payout without a line. The
// operator moved its money between its creation and its booking, by a clock
// that may differ from ours. A statement that covers all of that time must
// have a line.
func classifyUnmatched(c *matching.ReconcileRow, from, to, slack till.Time) (classification, bool) {
	if !settled(c) {
		return classification{}, false
	}
	if why := ledgerDiffers(c); why != "" && c.CreatedAt >= from && c.CreatedAt <= to {
		return classification{LedgerDiffers, why + "; and no line is about it", openACase}, true
	}
	switch {
	case c.BookedAt < from || c.CreatedAt > to:
		return classification{}, false
	case c.CreatedAt >= from+slack && c.BookedAt <= to-slack:
		return classification{MissingAtOperator, "booked here, and the statement of that time has no line", ""}, true
	}
	return classification{Elsewhere, "made or booked outside this time: its line may be in another statement", ""}, true
}
