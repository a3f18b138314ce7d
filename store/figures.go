package store

import (
	"context"

	"till"
	"till/internal/db"
)

// Open payments of a client by where they are: on the customer's phone, at the operator,
// which does not say more or is too late, or not sent.
var countOpenOf = db.Define(db.SQL{Name: "figures.countOpen",
	SQLite: `SELECT CASE WHEN s.acked = 1 AND p.attention = 0 THEN 'phone' WHEN s.sends > 0 THEN 'asked' ELSE 'unsent' END, count(*),
			CAST(sum(CASE WHEN s.subject_id < $1 THEN 1 ELSE 0 END) AS BIGINT)
		FROM (SELECT client_id, subject_id, acked, sends FROM steps WHERE client_id = $2 AND kind = 'payment' AND late_from = 0 AND late_reads = 0 ORDER BY subject_id LIMIT $3) AS s
		JOIN payments p ON p.client_id = s.client_id AND p.id = s.subject_id
		WHERE p.status = 'pending' OR p.status = 'processing' GROUP BY 1`})

var countOpenByAge = db.Define(db.SQL{Name: "figures.countOpenByAge",
	SQLite: `SELECT c.mode, o.kind, count(*), CAST(sum(CASE WHEN o.subject_id < $1 THEN 1 ELSE 0 END) AS BIGINT), CAST(sum(CASE WHEN o.subject_id < $2 THEN 1 ELSE 0 END) AS BIGINT),
			CAST(sum(CASE WHEN o.subject_id < $3 THEN 1 ELSE 0 END) AS BIGINT)
		FROM (SELECT client_id, kind, subject_id FROM steps WHERE held_at >= 0 AND late_from = 0 AND late_reads = 0 LIMIT $4) AS o
		JOIN clients c ON c.client_id = o.client_id GROUP BY c.mode, o.kind ORDER BY c.mode, o.kind`})

var sumWallets = db.Define(db.SQL{Name: "figures.sumWallets",
	SQLite: `SELECT w.currency, CAST(sum(w.balance) AS BIGINT), CAST(sum(w.reserved) AS BIGINT), CAST(sum(w.owed) AS BIGINT) FROM clients c
		JOIN wallets w ON w.client_id = c.client_id WHERE c.mode = $1 AND c.client_id BETWEEN $2 AND $3 GROUP BY w.currency ORDER BY w.currency`})

var sumSuspense = db.Define(db.SQL{Name: "figures.sumSuspense",
	SQLite: `SELECT p.currency, CAST(sum(p.amount) AS BIGINT) FROM postings p JOIN clients c ON c.client_id = p.client_id
		WHERE p.account = 'suspense' AND c.mode = $1 AND p.client_id BETWEEN $2 AND $3 GROUP BY p.currency ORDER BY p.currency`})

var sumFeesTaken = db.Define(db.SQL{Name: "figures.sumFeesTaken",
	SQLite: `SELECT b, CAST(sum(sum) AS BIGINT) FROM (
		SELECT k.b, k.sum FROM clients c JOIN counters k ON k.client_id = c.client_id AND k.noun = 'fee' AND k.width = 0 WHERE c.mode = $1 AND c.client_id BETWEEN $2 AND $3
		UNION ALL SELECT t.b, t.sum FROM clients c JOIN tallies t ON t.client_id = c.client_id AND t.noun = 'fee' WHERE c.mode = $1 AND c.client_id BETWEEN $2 AND $3) AS fees
		GROUP BY b ORDER BY b`})

var countClients = db.Define(db.SQL{Name: "figures.countClients",
	SQLite: `SELECT mode, count(*) FROM clients GROUP BY mode`})

// How many open payments are looked at for a count: of all clients, and of one,
// whose home page is read again each time that something changes.
const (
	maxOpenCounted  = 100_000
	MaxOpenOfClient = 1000
)

// OpenOf is how many open payments of a client are somewhere.
type OpenOf struct {
	Where string // phone, asked, unsent
	N     int64
	Older int64 // of them, made before a moment
}

// OpenPayments counts the open payments of a client, the oldest ones up to
// MaxOpenOfClient, by where they are.
func (tx *Tx) OpenPayments(ctx context.Context, client till.ID, before till.Time) ([]OpenOf, error) {
	oldest := till.FirstID(before)
	return db.ReadAll(ctx, tx.db, countOpenOf, []any{oldest[:], client[:], MaxOpenOfClient}, func(r db.Row) (o OpenOf, err error) {
		err = r.Scan(&o.Where, &o.N, &o.Older)
		return o, err
	})
}

// OpenByAge is how many payments or payouts of a mode wait for an operator's word.
type OpenByAge struct {
	Mode till.Mode
	Kind till.SubjectKind
	N    int64

	// Of them, how many are older.
	FiveMinutes, Hour, Day int64
}

// OpenByAge counts what is open of all clients, up to a bound.
func (tx *Tx) OpenByAge(ctx context.Context) ([]OpenByAge, error) {
	now := tx.Now()
	m, h, d := till.FirstID(now-5*60*1_000_000), till.FirstID(now-till.Time(hourMicros)), till.FirstID(now-till.Time(24*hourMicros))
	return db.ReadAll(ctx, tx.db, countOpenByAge, []any{m[:], h[:], d[:], maxOpenCounted}, func(r db.Row) (o OpenByAge, err error) {
		err = r.Scan(&o.Mode, &o.Kind, &o.N, &o.FiveMinutes, &o.Hour, &o.Day)
		return o, err
	})
}

// Scope is one client, or with the zero id all clients of a mode.
type Scope struct {
	Client till.ID
	Mode   till.Mode
}

func (s Scope) args() []any {
	lo, hi := s.Client, s.Client
	if s.Client.IsZero() {
		hi = till.LastID(1<<47*1000 - 1)
	}
	return []any{string(s.Mode), lo[:], hi[:]}
}

// Balance is what the wallets of a currency hold together.
type Balance struct {
	Currency                string
	Balance, Reserved, Owed int64
}

// Balances adds up wallets by currency.
func (tx *Tx) Balances(ctx context.Context, s Scope) ([]Balance, error) {
	return db.ReadAll(ctx, tx.db, sumWallets, s.args(), func(r db.Row) (b Balance, err error) {
		err = r.Scan(&b.Currency, &b.Balance, &b.Reserved, &b.Owed)
		return b, err
	})
}

// Suspense returns what is on the suspense account, by currency.
func (tx *Tx) Suspense(ctx context.Context, s Scope) ([]till.Money, error) {
	return tx.moneys(ctx, sumSuspense, s)
}

// FeesTaken returns all fees that were ever taken, by currency.
func (tx *Tx) FeesTaken(ctx context.Context, s Scope) ([]till.Money, error) {
	return tx.moneys(ctx, sumFeesTaken, s)
}

func (tx *Tx) moneys(ctx context.Context, q *db.SQL, s Scope) ([]till.Money, error) {
	return db.ReadAll(ctx, tx.db, q, s.args(), func(r db.Row) (m till.Money, err error) {
		err = r.Scan(&m.Currency, &m.Minor)
		return m, err
	})
}

// CountClients returns how many clients of each mode there are.
func (tx *Tx) CountClients(ctx context.Context) (live, test int64, err error) {
	err = tx.db.Query(ctx, countClients, nil, func(r db.Row) error {
		var mode string
		var n int64
		err := r.Scan(&mode, &n)
		if till.Mode(mode) == till.Live {
			live = n
		} else {
			test = n
		}
		return err
	})
	return live, test, err
}
