package sandbox

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"till"
	"till/provider"
)

// HandsetState is what a person has done with a handset.
type HandsetState string

// The states.
const (
	HandsetOn        HandsetState = "on"
	HandsetNoNetwork HandsetState = "no_network" // prompts wait until it is back
	HandsetOff       HandsetState = "off"        // nobody answers
)

// Valid reports whether s is one of the states.
func (s HandsetState) Valid() bool {
	return s == HandsetOn || s == HandsetNoNetwork || s == HandsetOff
}

const (
	// HoldTime is how long a handset holds its number after it was last seen.
	HoldTime = 30 * time.Second

	// MaxHandsets is how many handsets a client has; one more replaces the one
	// that was seen longest ago.
	MaxHandsets = 100

	// MaxMessages is how many messages a handset shows, the newest.
	MaxMessages = 20

	// maxHandsetRequests is how many requests of a number its balance counts.
	maxHandsetRequests = 1000

	// putAway is after how long without being seen a handset starts anew.
	putAway = time.Hour

	openingBalance = 50_000 // in units of the currency
)

// Handset is a pretend phone.
type Handset struct {
	Phone    string
	State    HandsetState
	Balance  till.Money
	Prompts  []Prompt  // open ones, the oldest first
	Messages []Message // the newest first
}

// MessageKind says what a message is about.
type MessageKind string

// The kinds.
const (
	MessagePaid     MessageKind = "paid"     // the customer paid
	MessageReceived MessageKind = "received" // a payout or a refund came
	MessageReturned MessageKind = "returned" // a payment was taken back
)

// Message is what the operator writes to a customer after money moved.
type Message struct {
	Kind    MessageKind
	Payment till.ID // or payout
	Amount  till.Money
	Balance till.Money // after it
	At      till.Time
	Receipt string
}

// handsetRow is a row of handsets.
type handsetRow struct {
	state               HandsetState
	openedAt, heldUntil till.Time
}

func (h *handsetRow) scan(scan func(...any) error) error {
	return scan(&h.state, &h.openedAt, &h.heldUntil)
}

// HoldHandset says that a person has the handset of a number before them. For
// HoldTime from now on, payments that arrive for the number wait for the
// person, whatever the story of its last digits is.
func (o *Operator) HoldHandset(ctx context.Context, client till.ID, phone string, state HandsetState) error {
	if !state.Valid() {
		return fmt.Errorf("sandbox handset: there is no state %q", state)
	}
	now := o.now()
	err := o.book.write(ctx, func(ctx context.Context) error {
		_, err := o.book.stmt.hold.ExecContext(ctx, client[:], phone, string(state), int64(now), int64(now.Add(HoldTime)), int64(now.Add(-putAway)))
		if err != nil {
			return err
		}
		_, err = o.book.stmt.dropHandsets.ExecContext(ctx, client[:], MaxHandsets)
		return err
	})
	if err != nil {
		return fmt.Errorf("sandbox handset: %w", err)
	}
	return nil
}

// Handset returns the handset of a number: its open prompts, what it has in the
// currency, and its messages. A number that nobody held is on.
func (o *Operator) Handset(ctx context.Context, client till.ID, phone, currency string) (*Handset, error) {
	now := o.now()
	row, requests, err := o.book.readHandset(ctx, client, phone)
	if err != nil {
		return nil, fmt.Errorf("sandbox handset: %w", err)
	}
	h := &Handset{Phone: phone, State: row.state, Balance: till.Money{Currency: currency}}
	h.Messages, h.Balance.Minor = statement(requests, row.openedAt, now, currency)
	slices.Reverse(h.Messages)
	h.Messages = h.Messages[:min(len(h.Messages), MaxMessages)]
	for _, r := range slices.Backward(requests) {
		if r.kind == payment && r.story() == asksPerson && r.decidedAt.IsZero() && r.expiresAt > now {
			h.Prompts = append(h.Prompts, Prompt{r.payment, r.phone, r.amount, r.expiresAt, r.wrongPINs})
		}
	}
	return h, nil
}

// isHeld reports whether a handset holds the number.
func (b *book) isHeld(ctx context.Context, client till.ID, phone string, now till.Time) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, bookTimeout)
	defer cancel()
	h, err := b.handsetRow(ctx, client, phone)
	return h.heldUntil > now, err
}

// handsetRow returns the row of a number; that of one that nobody held is zero
// and on.
func (b *book) handsetRow(ctx context.Context, client till.ID, phone string) (h handsetRow, err error) {
	err = h.scan(b.stmt.handset.QueryRowContext(ctx, client[:], phone).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return handsetRow{state: HandsetOn}, nil
	}
	return h, err
}

// readHandset returns a number's row and its requests, the newest first.
func (b *book) readHandset(ctx context.Context, client till.ID, phone string) (h handsetRow, requests []*request, err error) {
	ctx, cancel := context.WithTimeout(ctx, bookTimeout)
	defer cancel()
	if h, err = b.handsetRow(ctx, client, phone); err != nil {
		return h, nil, err
	}
	rows, err := b.stmt.ofPhone.QueryContext(ctx, client[:], phone, maxHandsetRequests)
	if err != nil {
		return h, nil, err
	}
	err = eachRequest(rows, func(r *request) { requests = append(requests, r) })
	return h, requests, err
}

// statement returns what happened to a number's money since a moment, the
// oldest first, and what is left.
func statement(requests []*request, since, now till.Time, currency string) (messages []Message, minor int64) {
	for _, r := range requests {
		if r.arrivedAt < since || r.amount.Currency != currency {
			continue
		}
		for _, t := range r.transitions() {
			if t.at > now {
				continue
			}
			m := Message{Payment: r.payment, Amount: r.movedAmount(), At: t.at, Receipt: r.receipt()}
			switch {
			case t.answer.outcome == provider.Success && r.kind.out():
				m.Kind = MessageReceived
			case t.answer.outcome == provider.Success:
				m.Kind = MessagePaid
			case t.answer.outcome == provider.Reversed:
				m.Kind = MessageReturned
			default:
				continue
			}
			messages = append(messages, m)
		}
	}
	slices.SortStableFunc(messages, func(a, b Message) int { return cmp.Compare(a.At, b.At) })
	minor = opening(currency)
	for i := range messages {
		m := &messages[i]
		if m.Kind == MessagePaid {
			minor -= m.Amount.Minor
		} else {
			minor += m.Amount.Minor
		}
		m.Balance = till.Money{Minor: minor, Currency: currency}
	}
	return messages, minor
}

// opening returns what a handset starts with, in minor units.
func opening(currency string) int64 {
	minor := int64(openingBalance)
	decimals, _ := till.CurrencyDecimals(currency)
	for range decimals {
		minor *= 10
	}
	return minor
}
