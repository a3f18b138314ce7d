package matching

import (
	"context"

	"till"
	"till/internal/db"
	"till/store"
)

const strayColumns = `connection, id, reference, subject_id, client_id, receipt, direction, source, seen_at, claimed, minor, currency, confirmed_at, confirmed,
	sealed, why, closed_at, closed_by, reason, evidence, owner_id, given_id, settled_id, taken_back`

var selectOpenStrays = db.Define(db.SQL{Name: "strays.selectOpenStrays",
	SQLite: `SELECT ` + strayColumns + ` FROM strays WHERE standing = 1 AND why IS NULL AND ($1 = '' OR connection = $1) ORDER BY seen_at, id LIMIT $2`})

var selectStrays = db.Define(db.SQL{Name: "strays.selectStrays",
	SQLite: `SELECT ` + strayColumns + ` FROM strays WHERE ($1 = '' OR connection = $1) ORDER BY seen_at DESC, id LIMIT $2`})

var straysByReference = db.Define(db.SQL{Name: "strays.straysByReference",
	SQLite: `SELECT ` + strayColumns + ` FROM strays WHERE connection = $1 AND reference = $2`,
	Postgres: `SELECT u.nth, found.* FROM (SELECT unnest($1::text[]) AS a1, unnest($2::bytea[]) AS a2, unnest($3::bigint[]) AS nth LIMIT $4::bigint) AS u,
		LATERAL (SELECT ` + strayColumns + ` FROM strays WHERE connection = u.a1 AND reference = u.a2 OFFSET 0) AS found`,
	Arrays: true})

var straysBySubject = db.Define(db.SQL{Name: "strays.straysBySubject",
	SQLite: `SELECT ` + strayColumns + ` FROM strays WHERE connection = $1 AND subject_id = $2`,
	Postgres: `SELECT u.nth, found.* FROM (SELECT unnest($1::text[]) AS a1, unnest($2::bytea[]) AS a2, unnest($3::bigint[]) AS nth LIMIT $4::bigint) AS u,
		LATERAL (SELECT ` + strayColumns + ` FROM strays WHERE connection = u.a1 AND subject_id = u.a2 OFFSET 0) AS found`,
	Arrays: true})

var straysByReceipt = db.Define(db.SQL{Name: "strays.straysByReceipt",
	SQLite: `SELECT ` + strayColumns + ` FROM strays WHERE connection = $1 AND receipt = $2`,
	Postgres: `SELECT u.nth, found.* FROM (SELECT unnest($1::text[]) AS a1, unnest($2::text[]) AS a2, unnest($3::bigint[]) AS nth LIMIT $4::bigint) AS u,
		LATERAL (SELECT ` + strayColumns + ` FROM strays WHERE connection = u.a1 AND receipt = u.a2 OFFSET 0) AS found`,
	Arrays: true})

var standingByReference = db.Define(db.SQL{Name: "strays.standingByReference",
	SQLite: `SELECT ` + strayColumns + ` FROM strays WHERE connection = $1 AND reference = $2 AND standing = 1`,
	Postgres: `SELECT u.nth, found.* FROM (SELECT unnest($1::text[]) AS a1, unnest($2::bytea[]) AS a2, unnest($3::bigint[]) AS nth LIMIT $4::bigint) AS u,
		LATERAL (SELECT ` + strayColumns + ` FROM strays WHERE connection = u.a1 AND reference = u.a2 AND standing = 1 OFFSET 0) AS found`,
	Arrays: true})

var standingBySubject = db.Define(db.SQL{Name: "strays.standingBySubject",
	SQLite: `SELECT ` + strayColumns + ` FROM strays WHERE connection = $1 AND subject_id = $2 AND standing = 1`,
	Postgres: `SELECT u.nth, found.* FROM (SELECT unnest($1::text[]) AS a1, unnest($2::bytea[]) AS a2, unnest($3::bigint[]) AS nth LIMIT $4::bigint) AS u,
		LATERAL (SELECT ` + strayColumns + ` FROM strays WHERE connection = u.a1 AND subject_id = u.a2 AND standing = 1 OFFSET 0) AS found`,
	Arrays: true})

var standingByReceipt = db.Define(db.SQL{Name: "strays.standingByReceipt",
	SQLite: `SELECT ` + strayColumns + ` FROM strays WHERE connection = $1 AND receipt = $2 AND standing = 1`,
	Postgres: `SELECT u.nth, found.* FROM (SELECT unnest($1::text[]) AS a1, unnest($2::text[]) AS a2, unnest($3::bigint[]) AS nth LIMIT $4::bigint) AS u,
		LATERAL (SELECT ` + strayColumns + ` FROM strays WHERE connection = u.a1 AND receipt = u.a2 AND standing = 1 OFFSET 0) AS found`,
	Arrays: true})

var selectStraysAfter = db.Define(db.SQL{Name: "strays.selectAfter",
	SQLite: `SELECT ` + strayColumns + ` FROM strays WHERE id > $1 ORDER BY id LIMIT $2`})

var selectStray = db.Define(db.SQL{Name: "strays.select",
	SQLite: `SELECT ` + strayColumns + ` FROM strays WHERE id = $1`})

var openStrays = db.Define(db.SQL{Name: "strays.open",
	SQLite: `SELECT count(*) FROM (SELECT 1 FROM strays WHERE standing = 1 AND why IS NULL AND ($1 = '' OR connection = $2) LIMIT $3) AS open_ones`})

var insertStray = db.Define(db.SQL{Name: "strays.insert",
	SQLite: `INSERT INTO strays (connection, name, id, reference, subject_id, client_id, receipt, direction, source, seen_at, claimed, minor, currency,
		confirmed_at, confirmed, sealed, standing) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, 1) ON CONFLICT (connection, name) DO NOTHING`})

var confirmStray = db.Define(db.SQL{Name: "strays.confirm",
	SQLite: `UPDATE strays SET reference = $1, subject_id = $2, receipt = $3, direction = $4, minor = $5, currency = $6, confirmed_at = $7, confirmed = $8
		WHERE id = $9 AND why IS NULL AND confirmed_at IS NULL`})

var closeStrays = db.Define(db.SQL{Name: "strays.close",
	SQLite: `UPDATE strays SET why = $1, standing = $2, closed_at = $3, closed_by = $4, reason = $5, evidence = $6, owner_id = $7, given_id = $8, settled_id = $9, taken_back = $10,
		minor = $11, currency = $12, direction = $13 WHERE id = $14 AND coalesce(why, '') = $15`})

// Stray is money that names us and matches no subject. A callback, or a line of a
// statement, reports it. It is in no ledger until it has an owner.
type Stray struct {
	Connection string
	ID         till.ID

	// What it names, as far as it says: at least one of Reference, Subject and
	// Receipt.
	Reference till.ID // what we sent
	Subject   till.ID // the payment or payout
	Client    till.ID
	Receipt   string

	Direction string // StrayIn, StrayOut, or "" where it is unknown
	Source    string // StrayCallback or StrayStatement
	SeenAt    till.Time
	Claimed   string     // what a callback says became of it, "" where it does not
	Amount    till.Money // claimed; once it is confirmed, confirmed. Without a currency it is unknown
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
		return store.ReferenceName(s.Reference)
	case !s.Subject.IsZero():
		return "s" + s.Subject.String()
	}
	return "t" + s.Receipt
}

// standing reports whether a credit may still turn up for a stray.
func standing(why string) bool { return why == "" || why == StrayAttributed }

// StrayKey is what a payment, a payout, a callback or a line can be matched with a
// stray by. Two references decide; without them an id or a receipt does.
type StrayKey struct {
	Connection         string
	Reference, Subject till.ID
	Receipt            string
}

// Key returns what a stray is found by.
func (s *Stray) Key() StrayKey { return StrayKey{s.Connection, s.Reference, s.Subject, s.Receipt} }

// is reports whether a key names the stray's money. If both have a reference, the
// references decide. An operator that gives one receipt to two references reports
// two movements or is wrong, and a person has to decide.
func (s *Stray) is(k *StrayKey) bool {
	switch {
	case !s.Reference.IsZero() && !k.Reference.IsZero():
		return s.Reference == k.Reference
	case !s.Subject.IsZero() && s.Subject == k.Subject:
		return true
	}
	return s.Receipt != "" && s.Receipt == k.Receipt
}

func scanStray(r db.Row) (*Stray, error) {
	s := &Stray{}
	err := r.Scan(&s.Connection, db.ID(&s.ID), db.ID(&s.Reference), db.ID(&s.Subject), db.ID(&s.Client), db.Text(&s.Receipt), &s.Direction, &s.Source,
		&s.SeenAt, &s.Claimed, db.Int(&s.Amount.Minor), db.Text(&s.Amount.Currency), db.Int(&s.ConfirmedAt), db.Text(&s.Confirmed), &s.Sealed,
		db.Text(&s.Why), db.Int(&s.ClosedAt), db.Text(&s.ClosedBy), db.Text(&s.Reason), &s.Evidence, db.ID(&s.Owner), db.ID(&s.Given), db.ID(&s.Settled), db.Bool(&s.TakenBack))
	return s, err
}

// StrayFilter says which strays are wanted. Zero fields do not filter.
type StrayFilter struct {
	Connection string
	All        bool // closed ones too, newest first
	Limit      int
}

// Strays returns the open strays, the longest open first, or all of them.
func Strays(ctx context.Context, tx *store.Tx, f StrayFilter) ([]*Stray, error) {
	q := selectOpenStrays
	if f.All {
		q = selectStrays
	}
	return strays(ctx, tx, q, f.Connection, f.Limit)
}

// StraysAfter returns the next strays in the order of ids, beyond one.
func StraysAfter(ctx context.Context, tx *store.Tx, id till.ID, limit int) ([]*Stray, error) {
	return strays(ctx, tx, selectStraysAfter, id[:], limit)
}

func strays(ctx context.Context, tx *store.Tx, q *db.SQL, args ...any) (out []*Stray, err error) {
	err = tx.DB().Query(ctx, q, args, func(r db.Row) error {
		s, err := scanStray(r)
		out = append(out, s)
		return err
	})
	return out, err
}

// ReadStray returns the stray with an id; nil if there is none.
func ReadStray(ctx context.Context, tx *store.Tx, id till.ID) (*Stray, error) {
	found, err := strays(ctx, tx, selectStray, id[:])
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0], nil
}

// OpenStrays returns how many strays of a connection are open, or of all
// connections if it is "". It does not count beyond most.
func OpenStrays(ctx context.Context, tx *store.Tx, connection string, most int) (n int, err error) {
	_, err = tx.DB().QueryRow(ctx, openStrays,
		[]any{connection, connection, most}, &n)
	return n, err
}

// FindStrays returns the strays whose money any of the keys names, open or
// closed, by the number of the key. One may come several times.
func FindStrays(ctx context.Context, tx *store.Tx, keys []StrayKey) (map[int][]*Stray, error) {
	return findStrays(ctx, tx, keys, straysByReference, straysBySubject, straysByReceipt)
}

// StandingStrays is FindStrays for those that a credit may still turn up for.
func StandingStrays(ctx context.Context, tx *store.Tx, keys []StrayKey) (map[int][]*Stray, error) {
	return findStrays(ctx, tx, keys, standingByReference, standingBySubject, standingByReceipt)
}

func findStrays(ctx context.Context, tx *store.Tx, keys []StrayKey, byReference, bySubject, byReceipt *db.SQL) (map[int][]*Stray, error) {
	out := make(map[int][]*Stray)
	for _, by := range []struct {
		sql   *db.SQL
		value func(k *StrayKey) (v any, said bool)
	}{
		{byReference, func(k *StrayKey) (any, bool) { return k.Reference.Bytes(), !k.Reference.IsZero() }},
		{bySubject, func(k *StrayKey) (any, bool) { return k.Subject.Bytes(), !k.Subject.IsZero() }},
		{byReceipt, func(k *StrayKey) (any, bool) { return k.Receipt, k.Receipt != "" }},
	} {
		var args [][]any
		var of []int
		for i := range keys {
			if v, said := by.value(&keys[i]); said {
				args, of = append(args, []any{keys[i].Connection, v}), append(of, i)
			}
		}
		err := tx.DB().QueryEach(ctx, by.sql, args, func(i int, r db.Row) error {
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

// InsertStray writes a stray down, and reports whether it is new: what has its
// name already is left as it is.
func InsertStray(ctx context.Context, tx *store.Tx, s *Stray) (bool, error) {
	n, err := tx.DB().Exec(ctx, insertStray,
		s.Connection, s.name(), s.ID[:], db.OrNull(s.Reference), db.OrNull(s.Subject), db.OrNull(s.Client), db.OrNull(s.Receipt), s.Direction, s.Source, int64(s.SeenAt), s.Claimed,
		db.OrNull(s.Amount.Minor), db.OrNull(s.Amount.Currency), db.OrNull(s.ConfirmedAt), db.OrNull(s.Confirmed), db.BytesOrNull(s.Sealed))
	return n == 1, err
}

// ConfirmStray writes down what a statement says of an open stray, and reports
// whether it was open and not confirmed yet.
func ConfirmStray(ctx context.Context, tx *store.Tx, s *Stray) (bool, error) {
	n, err := tx.DB().Exec(ctx, confirmStray,
		db.OrNull(s.Reference), db.OrNull(s.Subject), db.OrNull(s.Receipt), s.Direction, db.OrNull(s.Amount.Minor), db.OrNull(s.Amount.Currency), int64(s.ConfirmedAt), s.Confirmed, s.ID[:])
	return n == 1, err
}

// CloseStrays closes strays that were open, or attributed, before. If another
// transaction has closed one, this one fails and may run again.
func CloseStrays(ctx context.Context, tx *store.Tx, before string, strays []*Stray) error {
	for _, s := range strays {
		n, err := tx.DB().Exec(ctx, closeStrays,
			s.Why, standing(s.Why), int64(s.ClosedAt), s.ClosedBy, db.OrNull(s.Reason), db.BytesOrNull(s.Evidence), db.OrNull(s.Owner), db.OrNull(s.Given), db.OrNull(s.Settled), s.TakenBack,
			db.OrNull(s.Amount.Minor), db.OrNull(s.Amount.Currency), s.Direction, s.ID[:], before)
		switch {
		case err != nil:
			return err
		case n != 1:
			return db.ErrRetry
		}
	}
	return nil
}
