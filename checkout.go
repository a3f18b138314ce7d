package till

import (
	"slices"
	"strconv"
)

// CheckoutState is how far a checkout got.
type CheckoutState string

// The states of a checkout.
const (
	CheckoutOpen      CheckoutState = "open"      // it can be paid
	CheckoutPaid      CheckoutState = "paid"      // one of its asks was credited
	CheckoutExpired   CheckoutState = "expired"   // its time was over and no ask was live
	CheckoutCancelled CheckoutState = "cancelled" // by the client, while no ask was live
)

// CheckoutStates lists every state.
var CheckoutStates = []CheckoutState{CheckoutOpen, CheckoutPaid, CheckoutExpired, CheckoutCancelled}

// CheckoutMoves is every legal change of a checkout's state and no other. Money that came
// after all wins: what had expired or was cancelled becomes paid, and late.
var CheckoutMoves = map[CheckoutState][]CheckoutState{
	CheckoutOpen:      {CheckoutPaid, CheckoutExpired, CheckoutCancelled},
	CheckoutExpired:   {CheckoutPaid},
	CheckoutCancelled: {CheckoutPaid},
}

// CanBecome reports whether a checkout may move from s to next.
func (s CheckoutState) CanBecome(next CheckoutState) bool {
	return slices.Contains(CheckoutMoves[s], next)
}

// Checkout is one order that is paid on a page. At most one of its payments, the asks, is to
// be paid.
type Checkout struct {
	ClientID       ID
	ID             ID
	IdempotencyKey string // exactly as sent
	Token          string // of its page's address
	LinkID         ID     // the link that opened it; zero: none

	State  CheckoutState
	Amount Money // always > 0

	Reference  string   // "" where not sent, as all that follows
	Country    string   // the only one that is offered
	Methods    []string // the only ones that are offered
	Phone      string   // what the page shows at first
	PhoneFixed bool     // no other number may pay
	ReturnURL  string
	Language   string

	// Document is the part of the request that is copied to each ask, as sent: the JSON
	// members description, charge, tax, metadata, ready to be spliced into an object.
	Document []byte

	PaymentID ID   // of the first ask that was credited; zero: none
	PaidAt    Time // when it was credited
	Late      bool // it was credited after the checkout had expired or was cancelled
	Overpaid  bool // another ask was credited, too

	CreatedAt, UpdatedAt, ExpiresAt Time
}

// Over reports whether the checkout takes no new ask.
func (c *Checkout) Over(now Time) bool { return c.State != CheckoutOpen || now >= c.ExpiresAt }

// Ask is one payment within a checkout: a number and a method that somebody typed.
type Ask struct {
	ClientID, CheckoutID ID
	N                    int // from 1, without gaps
	Key                  ID  // the payment's idempotency key; it is derived
	Method, Country      string
	Amount               Money
	Phone                string
	AskedAt              Time
	Refused              Code // why there is no payment; "": there is one, or will be

	// What there is of its payment.
	PaymentID ID
	Status    Status
	Credit    int64 // the event that says that its money came, in time or late; 0: it has not
}

// AskNotSent is why an ask has no payment whose checkout ended before it had one.
const AskNotSent Code = "not_sent"

// AskStand is how an ask stands: what may follow it.
type AskStand int

// The stands of an ask.
const (
	AskUnsent   AskStand = iota // written down, and its payment was not made yet: it is made, nothing else is
	AskLive                     // its payment may still bring money: nothing follows
	AskEnded                    // it ended without money: another may follow
	AskCredited                 // its money came: nothing follows, ever
)

// Stand returns how the ask stands. What its payment says counts before what its row says.
func (a *Ask) Stand() AskStand {
	switch {
	case a.Credit != 0 || a.Status == Success:
		return AskCredited
	case !a.PaymentID.IsZero() && a.Status.Final():
		return AskEnded
	case !a.PaymentID.IsZero():
		return AskLive
	case a.Refused != "":
		return AskEnded
	}
	return AskUnsent
}

// The bounds of a checkout's asks. Those that made no payment do not count against MaxAsks.
const (
	MaxAsks       = 5
	MaxAskNumbers = 3
	MaxAskRows    = 20 // of all, so that a checkout's rows are bounded
)

// AsCreated returns the checkout as its creation answered it, whatever has happened since: what
// a repeated create call is given.
func (c *Checkout) AsCreated() *Checkout {
	a := *c
	a.State, a.PaymentID, a.PaidAt, a.Late, a.Overpaid, a.UpdatedAt = CheckoutOpen, ID{}, 0, false, false, c.CreatedAt
	return &a
}

// AppendJSON appends the checkout as clients see it, with its page's address, "" if there are
// no pages.
func (c *Checkout) AppendJSON(b []byte, url string, asks []Ask) []byte {
	b = append(b, `{"id":"`...)
	b = c.ID.Append(b)
	b = append(b, `","url":`...)
	b = appendStringOrNull(b, url)
	b = append(c.appendFixed(b), ',')
	return append(c.AppendState(b, asks), '}')
}

// AppendEvent appends the checkout as an event shows it: what AppendState wrote then, and what
// never changes. There is no address: it is the configuration's.
func (c *Checkout) AppendEvent(b []byte, state string) []byte {
	b = append(b, `{"id":"`...)
	b = append(c.ID.Append(b), '"')
	b = append(c.appendFixed(b), ',')
	return append(append(b, state...), '}')
}

// appendFixed appends the members that never change.
func (c *Checkout) appendFixed(b []byte) []byte {
	b = append(b, `,"link_id":`...)
	b = appendIDOrNull(b, c.LinkID)
	b = append(b, `,"amount":{"value":"`...)
	b = strconv.AppendInt(b, c.Amount.Minor, 10)
	b = append(b, `","currency":"`...)
	b = append(b, c.Amount.Currency...)
	b = append(b, `"},"reference":`...)
	b = appendStringOrNull(b, c.Reference)
	b = append(b, `,"idempotency_key":`...)
	b = appendString(b, c.IdempotencyKey)
	b = append(b, ',')
	b = append(b, c.Document...)
	b = append(b, `,"country":`...)
	b = appendStringOrNull(b, c.Country)
	b = append(b, `,"methods":`...)
	b = appendMethods(b, c.Methods)
	b = append(b, `,"phone":`...)
	b = appendStringOrNull(b, c.Phone)
	b = append(b, `,"phone_fixed":`...)
	b = strconv.AppendBool(b, c.PhoneFixed)
	b = append(b, `,"return_url":`...)
	b = appendStringOrNull(b, c.ReturnURL)
	b = append(b, `,"language":`...)
	b = appendStringOrNull(b, c.Language)
	b = append(b, `,"expires_at":`...)
	b = c.ExpiresAt.AppendJSON(b)
	b = append(b, `,"created_at":`...)
	return c.CreatedAt.AppendJSON(b)
}

// AppendState appends the members that change, without braces: what an event keeps. They name
// nobody: an event is kept for ever.
func (c *Checkout) AppendState(b []byte, asks []Ask) []byte {
	b = append(b, `"state":"`...)
	b = append(b, c.State...)
	b = append(b, `","payment_id":`...)
	b = appendIDOrNull(b, c.PaymentID)
	b = append(b, `,"paid_at":`...)
	b = c.PaidAt.AppendJSON(b)
	b = append(b, `,"late":`...)
	b = strconv.AppendBool(b, c.Late)
	b = append(b, `,"overpaid":`...)
	b = strconv.AppendBool(b, c.Overpaid)
	b = append(b, `,"asks":[`...)
	for i := range asks {
		if i > 0 {
			b = append(b, ',')
		}
		b = asks[i].appendJSON(b)
	}
	b = append(b, `],"updated_at":`...)
	return c.UpdatedAt.AppendJSON(b)
}

// AskRefused is what clients see as the status of an ask that made no payment. One whose
// payment is about to be made is pending.
const AskRefused Status = "refused"

func (a *Ask) appendJSON(b []byte) []byte {
	status := a.Status
	switch a.Stand() {
	case AskUnsent:
		status = Pending
	case AskEnded:
		if a.PaymentID.IsZero() {
			status = AskRefused
		}
	}
	b = append(b, `{"n":`...)
	b = strconv.AppendInt(b, int64(a.N), 10)
	b = append(b, `,"payment_id":`...)
	b = appendIDOrNull(b, a.PaymentID)
	b = append(b, `,"method":`...)
	b = appendString(b, a.Method)
	b = append(b, `,"status":"`...)
	b = append(b, status...)
	return append(b, `"}`...)
}

func appendIDOrNull(b []byte, id ID) []byte {
	if id.IsZero() {
		return append(b, "null"...)
	}
	b = append(b, '"')
	b = id.Append(b)
	return append(b, '"')
}
