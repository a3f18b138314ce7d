package sandbox

import (
	"context"
	"fmt"

	"till"
)

// MaxPrompts is the most prompts that are listed at once.
const MaxPrompts = 1000

// Prompt is a question on the screen of a customer's phone that a person
// answers: approve the payment or decline it.
type Prompt struct {
	Payment   till.ID
	Phone     string
	Amount    till.Money
	ExpiresAt till.Time
	WrongPINs int // how often a wrong PIN was typed
}

// Prompts returns the open prompts of a client, the oldest first, at most
// limit and never more than MaxPrompts.
func (o *Operator) Prompts(ctx context.Context, client till.ID, limit int) ([]Prompt, error) {
	limit = max(0, min(limit, MaxPrompts))
	ctx, cancel := context.WithTimeout(ctx, bookTimeout)
	defer cancel()
	rows, err := o.book.stmt.prompts.QueryContext(ctx, client[:], int64(o.now()), limit)
	if err != nil {
		return nil, fmt.Errorf("sandbox prompts: %w", err)
	}
	var prompts []Prompt
	err = eachRequest(rows, func(r *request) {
		prompts = append(prompts, Prompt{r.payment, r.phone, r.amount, r.expiresAt, r.wrongPINs})
	})
	if err != nil {
		return nil, fmt.Errorf("sandbox prompts: %w", err)
	}
	return prompts, nil
}

// Debit is money that left a customer's wallet.
type Debit struct {
	Payment   till.ID
	Reference till.ID
	Amount    till.Money // as it moved, not as it was asked for
	At        till.Time
}

// Debits returns all debits up to now, in the order in which the requests arrived. It reads
// the whole book, for tests and checks to compare with.
func (o *Operator) Debits(ctx context.Context) ([]Debit, error) { return o.movements(ctx, false) }

// movements returns what came from customers, or what went out to recipients.
func (o *Operator) movements(ctx context.Context, out bool) ([]Debit, error) {
	rows, err := o.book.reader.QueryContext(ctx, `SELECT `+columns+` FROM requests ORDER BY id`)
	if err != nil {
		return nil, fmt.Errorf("sandbox debits: %w", err)
	}
	now := o.now()
	var debits []Debit
	err = eachRequest(rows, func(r *request) {
		if at := r.movedAt(); r.kind.out() == out && !at.IsZero() && at <= now {
			debits = append(debits, Debit{r.payment, r.reference, r.movedAmount(), at})
		}
	})
	if err != nil {
		return nil, fmt.Errorf("sandbox debits: %w", err)
	}
	return debits, nil
}
