package till

// SubjectKind says what a subject is: a payment or a payout. Rows, events and
// the configuration use the same two words.
type SubjectKind string

// The kinds of subjects.
const (
	SubjectPayment SubjectKind = "payment"
	SubjectPayout  SubjectKind = "payout"
)

// Noun is what clients call a subject. Kinds of events, counts and texts begin with it.
type Noun string

// The nouns. A refund is a subject of the kind payout.
const (
	NounPayment Noun = "payment"
	NounPayout  Noun = "payout"
	NounRefund  Noun = "refund"

	NounCheckout Noun = "checkout" // no subject: payments are asked within it
)
