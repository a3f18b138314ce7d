package store

import (
	"context"

	"till"
)

// Stray is money that names us and that we do not know: a callback or a line of
// a statement about a payment or payout that is not here. It is in no ledger
// until somebody owns it.
type Stray struct {
	Connection string
	ID         till.ID

	// What it names, as far as it says: at least one of Reference, Subject and
	// Receipt.
	Reference till.ID // what we sent
	Subject   till.ID // the payment or payout
	Client    till.ID
	Receipt   string

	Direction string // StrayIn, StrayOut, or "" where nobody says
	Source    string // StrayCallback or StrayStatement
	SeenAt    till.Time
	Claimed   string     // what a callback says became of it, "" where it does not
	Amount    till.Money // claimed; once it is confirmed, confirmed. Without a currency nobody says
	Sealed    []byte     // the callback's body

	ConfirmedAt till.Time // zero: no statement has it
	Confirmed   string    // the statement that does

	Why      string // what it was closed for; "" while it is open
	ClosedAt till.Time
	ClosedBy string
	Reason   string
	Evidence []byte
	Owner    till.ID // the client that has the money
	Given    till.ID // the client that it was attributed to, if it ever was
	Settled  till.ID // the payment or payout that turned out to be it
	// TakenBack says that it had been attributed before its payment turned up,
	// and that the adjustment was taken back.
	TakenBack bool
}

// The ways of a stray's money.
const (
	StrayIn  = "in"  // it came from a customer
	StrayOut = "out" // it went to a recipient
)

// Where strays are seen.
const (
	StrayCallback  = "callback"
	StrayStatement = "statement"
)

// What a stray is closed for.
const (
	StrayAttributed = "attributed" // a person gave it to a client, by an adjustment
	StrayCredited   = "credited"   // its payment or payout turned up, and has its money
	StrayForeign    = "foreign"    // a person says that it is not ours
)

// name is what a stray is known by: the best name that it has.
func (s *Stray) name() string {
	switch {
	case !s.Reference.IsZero():
		return referenceName(s.Reference)
	case !s.Subject.IsZero():
		return "s" + s.Subject.String()
	}
	return "t" + s.Receipt
}

// standing reports whether a credit may still turn up for a stray.
func standing(why string) bool { return why == "" || why == StrayAttributed }

// StrayKey is what a payment, a payout, a callback or a line has to find a
// stray by: two references decide; without them an id, or a receipt.
type StrayKey struct {
	Connection         string
	Reference, Subject till.ID
	Receipt            string
}

// Key returns what a stray is found by.
func (s *Stray) Key() StrayKey { return StrayKey{s.Connection, s.Reference, s.Subject, s.Receipt} }

// is reports whether a key names the stray's money. Two references decide it: an
// operator that gives one receipt to two of them speaks of two movements, or does
// not know what it says, and a person has to look.
func (s *Stray) is(k *StrayKey) bool {
	switch {
	case !s.Reference.IsZero() && !k.Reference.IsZero():
		return s.Reference == k.Reference
	case !s.Subject.IsZero() && s.Subject == k.Subject:
		return true
	}
	return s.Receipt != "" && s.Receipt == k.Receipt
}

const strayColumns = `connection, id, reference, subject_id, client_id, receipt, direction, source, seen_at, claimed, minor, currency, confirmed_at, confirmed,
	sealed, why, closed_at, closed_by, reason, evidence, owner_id, given_id, settled_id, taken_back`

func scanStray(r row) (*Stray, error) {
	s := &Stray{}
	err := r.Scan(&s.Connection, idDest(&s.ID), idDest(&s.Reference), idDest(&s.Subject), idDest(&s.Client), textDest(&s.Receipt), &s.Direction, &s.Source,
		&s.SeenAt, &s.Claimed, intDest(&s.Amount.Minor), textDest(&s.Amount.Currency), intDest(&s.ConfirmedAt), textDest(&s.Confirmed), &s.Sealed,
		textDest(&s.Why), intDest(&s.ClosedAt), textDest(&s.ClosedBy), textDest(&s.Reason), &s.Evidence, idDest(&s.Owner), idDest(&s.Given), idDest(&s.Settled), boolDest(&s.TakenBack))
	return s, err
}

// StrayFilter says which strays are wanted. Zero fields do not filter.
type StrayFilter struct {
	Connection string
	All        bool // closed ones too, newest first
	Limit      int
}

// Strays returns the open strays, the longest open first, or all of them.
func (tx *Tx) Strays(ctx context.Context, f StrayFilter) ([]*Stray, error) {
	query := `SELECT ` + strayColumns + ` FROM strays WHERE standing = 1 AND why IS NULL AND (? = '' OR connection = ?) ORDER BY seen_at, id LIMIT ?`
	if f.All {
		query = `SELECT ` + strayColumns + ` FROM strays WHERE (? = '' OR connection = ?) ORDER BY seen_at DESC, id LIMIT ?`
	}
	return tx.strays(ctx, query, f.Connection, f.Connection, f.Limit)
}

// StraysAfter returns the next strays in the order of ids, beyond one.
func (tx *Tx) StraysAfter(ctx context.Context, id till.ID, limit int) ([]*Stray, error) {
	return tx.strays(ctx, `SELECT `+strayColumns+` FROM strays WHERE id > ? ORDER BY id LIMIT ?`, id[:], limit)
}

func (tx *Tx) strays(ctx context.Context, query string, args ...any) (out []*Stray, err error) {
	err = tx.rows(ctx, query, args, func(r row) error {
		s, err := scanStray(r)
		out = append(out, s)
		return err
	})
	return out, err
}

// Stray returns the stray with an id; nil if there is none.
func (tx *Tx) Stray(ctx context.Context, id till.ID) (*Stray, error) {
	found, err := tx.strays(ctx, `SELECT `+strayColumns+` FROM strays WHERE id = ?`, id[:])
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0], nil
}

// OpenStrays returns how many strays of a connection are open, or of all
// connections if it is "". It does not count beyond most.
func (tx *Tx) OpenStrays(ctx context.Context, connection string, most int) (n int, err error) {
	_, err = tx.one(ctx, `SELECT count(*) FROM (SELECT 1 FROM strays WHERE standing = 1 AND why IS NULL AND (? = '' OR connection = ?) LIMIT ?) AS open_ones`,
		[]any{connection, connection, most}, &n)
	return n, err
}

// FindStrays returns the strays whose money any of the keys names, open or
// closed, by the number of the key. One may come several times.
func (tx *Tx) FindStrays(ctx context.Context, keys []StrayKey) (map[int][]*Stray, error) {
	return tx.findStrays(ctx, keys, ``)
}

// StandingStrays is FindStrays for those that a credit may still turn up for.
func (tx *Tx) StandingStrays(ctx context.Context, keys []StrayKey) (map[int][]*Stray, error) {
	return tx.findStrays(ctx, keys, ` AND standing = 1`)
}

func (tx *Tx) findStrays(ctx context.Context, keys []StrayKey, which string) (map[int][]*Stray, error) {
	out := make(map[int][]*Stray)
	for _, by := range []struct {
		column string
		value  func(k *StrayKey) (v any, said bool)
	}{
		{"reference", func(k *StrayKey) (any, bool) { return k.Reference.Bytes(), !k.Reference.IsZero() }},
		{"subject_id", func(k *StrayKey) (any, bool) { return k.Subject.Bytes(), !k.Subject.IsZero() }},
		{"receipt", func(k *StrayKey) (any, bool) { return k.Receipt, k.Receipt != "" }},
	} {
		var args [][]any
		var of []int
		for i := range keys {
			if v, said := by.value(&keys[i]); said {
				args, of = append(args, []any{keys[i].Connection, v}), append(of, i)
			}
		}
		query := `SELECT ` + strayColumns + ` FROM strays WHERE connection = ? AND ` + by.column + ` = ?` + which
		err := tx.rowsOf(ctx, query, args, func(i int, r row) error {
			s, err := scanStray(r)
			if err == nil && s.is(&keys[of[i]]) {
				out[of[i]] = append(out[of[i]], s)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// anyStray asks whether there is any stray that a credit may turn up for: most
// of the time there is none, and nothing else is asked.
func anyStray(found *bool) read {
	return read{query: `SELECT 1 FROM strays WHERE standing = 1 ORDER BY connection, name LIMIT 1`, args: [][]any{{}}, scan: func(int, row) error {
		*found = true
		return nil
	}}
}

// InsertStray writes a stray down, and reports whether it is new: what has its
// name already is left as it is.
func (tx *Tx) InsertStray(ctx context.Context, s *Stray) (bool, error) {
	n, err := tx.exec(ctx, `INSERT INTO strays (connection, name, id, reference, subject_id, client_id, receipt, direction, source, seen_at, claimed, minor, currency,
		confirmed_at, confirmed, sealed, standing) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1) ON CONFLICT (connection, name) DO NOTHING`,
		s.Connection, s.name(), s.ID[:], orNull(s.Reference), orNull(s.Subject), orNull(s.Client), orNull(s.Receipt), s.Direction, s.Source, int64(s.SeenAt), s.Claimed,
		orNull(s.Amount.Minor), orNull(s.Amount.Currency), orNull(s.ConfirmedAt), orNull(s.Confirmed), bytesOrNull(s.Sealed))
	return n == 1, err
}

// ConfirmStray writes down what a statement says of an open stray, and reports
// whether it was open and not confirmed yet.
func (tx *Tx) ConfirmStray(ctx context.Context, s *Stray) (bool, error) {
	n, err := tx.exec(ctx, `UPDATE strays SET reference = ?, subject_id = ?, receipt = ?, direction = ?, minor = ?, currency = ?, confirmed_at = ?, confirmed = ?
		WHERE id = ? AND why IS NULL AND confirmed_at IS NULL`,
		orNull(s.Reference), orNull(s.Subject), orNull(s.Receipt), s.Direction, orNull(s.Amount.Minor), orNull(s.Amount.Currency), int64(s.ConfirmedAt), s.Confirmed, s.ID[:])
	return n == 1, err
}

// CloseStrays closes strays, each of which was so before: open, or attributed.
// If one was not, the transaction fails and may run again: somebody was faster.
func (tx *Tx) CloseStrays(ctx context.Context, before string, strays []*Stray) error {
	for _, s := range strays {
		n, err := tx.exec(ctx, `UPDATE strays SET why = ?, standing = ?, closed_at = ?, closed_by = ?, reason = ?, evidence = ?, owner_id = ?, given_id = ?, settled_id = ?, taken_back = ?,
			minor = ?, currency = ?, direction = ? WHERE id = ? AND coalesce(why, '') = ?`,
			s.Why, standing(s.Why), int64(s.ClosedAt), s.ClosedBy, orNull(s.Reason), bytesOrNull(s.Evidence), orNull(s.Owner), orNull(s.Given), orNull(s.Settled), s.TakenBack,
			orNull(s.Amount.Minor), orNull(s.Amount.Currency), s.Direction, s.ID[:], before)
		switch {
		case err != nil:
			return err
		case n != 1:
			return errAgain
		}
	}
	return nil
}
