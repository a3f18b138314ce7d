package till

// SubjectKind says what a subject is: a payment or a payout. Rows, events and
// the configuration use the same two words.
type SubjectKind string

// The kinds of subjects.
const (
	SubjectPayment SubjectKind = "payment"
	SubjectPayout  SubjectKind = "payout"
)
