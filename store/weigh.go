package store

import "errors"

// ErrEnough, from the function that Weigh was given, says that the row it was told of is
// the last that is wanted of a log.
var ErrEnough = errors.New("store: enough was read")

// rowWeight is about how many bytes a row takes beside its document; payoutWeight
// is a payout in an event, which is read after the events are.
const (
	rowWeight    = 1 << 10
	payoutWeight = 4 << 10
)

// Weigh has f told how many bytes the payments, payouts and events take that
// this transaction reads from now on, row by row. An error of f ends the
// reading: a page of rows can be as large as its client likes, and its reader
// must be able to stop before the memory is spent.
func (tx *Tx) Weigh(f func(bytes int) error) { tx.scale = f }

func (tx *Tx) weigh(bytes int) error {
	if tx.scale == nil {
		return nil
	}
	return tx.scale(rowWeight + bytes)
}

// Weight returns about how many bytes the event takes, with what it is about.
func (e *EventRow) Weight() int { return rowWeight + e.documents() }

func (e *EventRow) documents() int {
	n := len(e.Document)
	if e.Payment != nil {
		n += len(e.Payment.Document)
	}
	if e.Kind.Subject() == KindPayout {
		n += payoutWeight
	}
	return n
}
