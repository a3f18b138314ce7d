package till

import "strconv"

// Link is an address that anybody can pay on: each payer gets a checkout of their own. What is
// paid for never changes; its title, its end and whether it is switched on do.
type Link struct {
	ClientID       ID
	ID             ID
	IdempotencyKey string // exactly as sent
	Token          string // of its page's address

	Active bool // false: its page takes nothing
	Title  string

	Amount    Money   // Minor is 0 where the payer types it
	Min, Max  int64   // bounds of what is typed; 0: those of the methods alone
	Suggested []int64 // what the page proposes

	AskLabel    string // what the payer is asked for, which becomes the checkout's reference; "": nothing
	AskRequired bool   // it must be given

	Country   string   // the only one that is offered; "" where not sent, as all that follows
	Methods   []string // the only ones that are offered
	ReturnURL string
	Language  string

	// Document has the JSON members description and metadata, as sent, ready to be spliced into
	// an object. They are copied to each checkout.
	Document []byte

	CreatedAt, UpdatedAt Time
	ExpiresAt            Time // zero: never
}

// The bounds of a link's members.
const (
	MaxLinkTitle    = 60
	MaxAskLabel     = 30
	MaxAskReference = 64 // of what the payer types
	MaxSuggested    = 4
)

// Open reports whether the payer types the amount.
func (l *Link) Open() bool { return l.Amount.Minor == 0 }

// Takes reports whether the link's page takes payments.
func (l *Link) Takes(now Time) bool { return l.Active && !l.Ended(now) }

// Ended reports whether the link's time is over.
func (l *Link) Ended(now Time) bool { return !l.ExpiresAt.IsZero() && now >= l.ExpiresAt }

// Fits reports whether an amount may be paid on the link, whatever the methods' bounds are.
func (l *Link) Fits(minor int64) bool {
	if !l.Open() {
		return minor == l.Amount.Minor
	}
	return minor > 0 && minor >= l.Min && (l.Max == 0 || minor <= l.Max)
}

// AppendJSON appends the link as clients see it, with its page's address, "" if there are no
// pages.
func (l *Link) AppendJSON(b []byte, url string) []byte {
	b = append(b, `{"id":"`...)
	b = l.ID.Append(b)
	b = append(b, `","url":`...)
	b = appendStringOrNull(b, url)
	b = append(b, `,"active":`...)
	b = strconv.AppendBool(b, l.Active)
	b = append(b, `,"title":`...)
	b = appendString(b, l.Title)
	b = append(b, `,"amount":`...)
	if l.Open() {
		b = append(b, `null,"open_amount":{"currency":"`...)
		b = append(b, l.Amount.Currency...)
		b = append(b, `","min":`...)
		b = appendMinorOrNull(b, l.Min)
		b = append(b, `,"max":`...)
		b = appendMinorOrNull(b, l.Max)
		b = append(b, `,"suggested":`...)
		b = append(l.appendSuggested(b), '}')
	} else {
		b = append(b, `{"value":`...)
		b = appendMinorOrNull(b, l.Amount.Minor)
		b = append(b, `,"currency":"`...)
		b = append(b, l.Amount.Currency...)
		b = append(b, `"},"open_amount":null`...)
	}
	b = append(b, `,"ask_reference":`...)
	if l.AskLabel == "" {
		b = append(b, "null"...)
	} else {
		b = append(b, `{"label":`...)
		b = appendString(b, l.AskLabel)
		b = append(b, `,"required":`...)
		b = append(strconv.AppendBool(b, l.AskRequired), '}')
	}
	b = append(b, `,"idempotency_key":`...)
	b = appendString(b, l.IdempotencyKey)
	b = append(b, ',')
	b = append(b, l.Document...)
	b = append(b, `,"country":`...)
	b = appendStringOrNull(b, l.Country)
	b = append(b, `,"methods":`...)
	b = appendMethods(b, l.Methods)
	b = append(b, `,"return_url":`...)
	b = appendStringOrNull(b, l.ReturnURL)
	b = append(b, `,"language":`...)
	b = appendStringOrNull(b, l.Language)
	b = append(b, `,"expires_at":`...)
	b = l.ExpiresAt.AppendJSON(b)
	b = append(b, `,"created_at":`...)
	b = l.CreatedAt.AppendJSON(b)
	b = append(b, `,"updated_at":`...)
	return append(l.UpdatedAt.AppendJSON(b), '}')
}

func (l *Link) appendSuggested(b []byte) []byte {
	b = append(b, '[')
	for i, n := range l.Suggested {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendMinorOrNull(b, n)
	}
	return append(b, ']')
}

// appendMinorOrNull appends an amount as a string of minor units, null for zero.
func appendMinorOrNull(b []byte, minor int64) []byte {
	if minor == 0 {
		return append(b, "null"...)
	}
	b = append(b, '"')
	return append(strconv.AppendInt(b, minor, 10), '"')
}

func appendMethods(b []byte, methods []string) []byte {
	if methods == nil {
		return append(b, "null"...)
	}
	for i, m := range methods {
		b = append(b, "[,"[min(i, 1)])
		b = appendString(b, m)
	}
	return append(b, ']')
}
