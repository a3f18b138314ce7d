package sandbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"till"
)

// Decision is what a person does with a prompt.
type Decision string

// The decisions.
const (
	Approve  Decision = "approve"
	Decline  Decision = "decline"
	WrongPIN Decision = "wrong_pin" // as after three wrong PINs
	NoFunds  Decision = "no_funds"  // as with too little money
)

// Valid reports whether d is one of the decisions.
func (d Decision) Valid() bool {
	return d == Approve || d == Decline || d == WrongPIN || d == NoFunds
}

const (
	// PIN is the PIN of every handset.
	PIN = "1234"

	// MaxWrongPINs is how many wrong PINs end a payment.
	MaxWrongPINs = 3
)

// Decide answers the prompt of a client's payment. Where there is no open one
// (another client's, answered or expired) it returns CodePromptNotFound.
func (o *Operator) Decide(ctx context.Context, client, payment till.ID, d Decision) error {
	if !d.Valid() {
		return fmt.Errorf("sandbox decide: there is no decision %q", d)
	}
	return o.answerPrompt(ctx, client, payment, func(context.Context, *sql.Tx, *request) (Decision, error) { return d, nil })
}

// TypePIN answers a prompt as a handset does: the right PIN approves if the
// balance suffices, and ends the payment with NoFunds if not; the third wrong
// one ends it too. left is how many tries remain while the prompt stays open.
// Where there is no open prompt it returns CodePromptNotFound.
func (o *Operator) TypePIN(ctx context.Context, client, payment till.ID, pin string) (decided Decision, left int, err error) {
	err = o.answerPrompt(ctx, client, payment, func(ctx context.Context, tx *sql.Tx, r *request) (Decision, error) {
		decided, left = "", 0
		if pin != PIN {
			if left = MaxWrongPINs - r.wrongPINs - 1; left > 0 {
				_, err := tx.StmtContext(ctx, o.book.stmt.countPIN).ExecContext(ctx, client[:], payment[:])
				return "", err
			}
			decided, left = WrongPIN, 0
			return decided, nil
		}
		balance, err := o.book.lockBalance(ctx, tx, r, o.now())
		if err != nil {
			return "", err
		}
		if decided = Approve; r.amount.Minor > balance {
			decided = NoFunds
		}
		return decided, nil
	})
	return decided, left, err
}

// answerPrompt runs f with an open prompt that is locked, and writes down what
// it decides; "" leaves the prompt open.
func (o *Operator) answerPrompt(ctx context.Context, client, payment till.ID, f func(context.Context, *sql.Tx, *request) (Decision, error)) error {
	var found bool
	var decided Decision
	err := o.book.write(ctx, func(ctx context.Context) error {
		tx, err := o.book.writer.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		r, err := o.book.lockPrompt(ctx, tx, client, payment)
		// The time is asked for when the lock is held: a decision that waited for
		// it must not undo an expiry that was reported.
		now := o.now()
		if err != nil || r == nil || r.expiresAt <= now {
			return err
		}
		found = true
		if decided, err = f(ctx, tx, r); err != nil {
			return err
		}
		if decided != "" {
			_, err = tx.StmtContext(ctx, o.book.stmt.decide).ExecContext(ctx, client[:], int64(now), number(decided == Approve), payment[:], string(decided))
			if err != nil {
				return err
			}
		}
		return tx.Commit()
	})
	switch {
	case err != nil:
		return fmt.Errorf("sandbox decide: %w", err)
	case !found:
		return till.Errorf(till.CodePromptNotFound, "no open prompt for this payment")
	case decided != "":
		now := o.now()
		o.wakeFor(now, now)
	}
	return nil
}

// lockPrompt locks what nobody has decided about a payment and returns its
// newest request, nil if there is none.
func (b *book) lockPrompt(ctx context.Context, tx *sql.Tx, client, payment till.ID) (last *request, err error) {
	rows, err := tx.StmtContext(ctx, b.stmt.lockPrompt).QueryContext(ctx, client[:], payment[:])
	if err != nil {
		return nil, err
	}
	err = eachRequest(rows, func(r *request) { last = r })
	return last, err
}

// lockBalance returns what a request's payer has, and keeps others from paying
// with it until the transaction ends.
func (b *book) lockBalance(ctx context.Context, tx *sql.Tx, r *request, now till.Time) (minor int64, err error) {
	var h handsetRow
	err = h.scan(tx.StmtContext(ctx, b.stmt.lockHandset).QueryRowContext(ctx, r.client[:], r.phone).Scan)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, err
	}
	rows, err := tx.StmtContext(ctx, b.stmt.movements).QueryContext(ctx, r.client[:], r.phone, maxHandsetRequests)
	if err != nil {
		return 0, err
	}
	var requests []*request
	if err := eachRequest(rows, func(r *request) { requests = append(requests, r) }); err != nil {
		return 0, err
	}
	_, minor = statement(requests, h.openedAt, now, r.amount.Currency)
	return minor, nil
}
