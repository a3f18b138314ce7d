package admin

import (
	"context"
	"slices"
	"strings"
	"time"

	"till"
	"till/internal/db"
	"till/store"
)

const breakerColumns = `connection, version, state, tries, changed_at, retry_at, round, owner, lease_until, probes_left`

var addHealth = db.Define(db.SQL{Name: "operators.addHealth",
	SQLite: `INSERT INTO operator_health (bucket, connection, operation, known, unknown, refused, took) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (bucket, connection, operation) DO UPDATE SET known = operator_health.known + excluded.known,
		unknown = operator_health.unknown + excluded.unknown, refused = operator_health.refused + excluded.refused,
		took = operator_health.took + excluded.took`})

var selectHealth = db.Define(db.SQL{Name: "operators.selectHealth",
	SQLite: `SELECT bucket, connection, operation, known, unknown, refused, took FROM operator_health WHERE bucket > $1 AND bucket <= $2`})

var deleteHealth = db.Define(db.SQL{Name: "operators.deleteHealth",
	SQLite: `DELETE FROM operator_health WHERE (bucket, connection, operation) IN (
		SELECT bucket, connection, operation FROM operator_health WHERE bucket < $1 OR bucket > $2 LIMIT $3)`})

var selectBreakers = db.Define(db.SQL{Name: "operators.selectBreakers",
	SQLite: `SELECT ` + breakerColumns + ` FROM operator_breakers`})

var lockBreakers = db.Define(db.SQL{Name: "operators.lockBreakers",
	SQLite:   `SELECT ` + breakerColumns + ` FROM operator_breakers WHERE connection = $1`,
	Postgres: `SELECT ` + breakerColumns + ` FROM operator_breakers WHERE connection = $1 FOR UPDATE`})

var insertBreaker = db.Define(db.SQL{Name: "operators.insertBreaker",
	SQLite: `INSERT INTO operator_breakers (` + breakerColumns + `) VALUES ($1, 1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (connection) DO NOTHING`})

var swapBreaker = db.Define(db.SQL{Name: "operators.swapBreaker",
	SQLite: `UPDATE operator_breakers SET version = version + 1, state = $1, tries = $2, changed_at = $3, retry_at = $4,
		round = $5, owner = $6, lease_until = $7, probes_left = $8 WHERE connection = $9 AND version = $10`})

var lockBudgets = db.Define(db.SQL{Name: "operators.lockBudgets",
	SQLite:   `SELECT tokens, filled_at, held_span, held, held_before FROM operator_budgets WHERE connection = $1 AND operation = $2`,
	Postgres: `SELECT tokens, filled_at, held_span, held, held_before FROM operator_budgets WHERE connection = $1 AND operation = $2 FOR UPDATE`})

var insertBudgets = db.Define(db.SQL{Name: "operators.insertBudgets",
	SQLite: `INSERT INTO operator_budgets (connection, operation, tokens, filled_at, held_span, held, held_before) VALUES ($1, $2, -1, $3, 0, 0, 0)
		ON CONFLICT (connection, operation) DO NOTHING`})

var saveBudgets = db.Define(db.SQL{Name: "operators.saveBudgets",
	SQLite: `UPDATE operator_budgets SET tokens = $1, filled_at = $2, held_span = $3, held = $4, held_before = $5 WHERE connection = $6 AND operation = $7`})

var selectOperatorToken = db.Define(db.SQL{Name: "operator_tokens.select",
	SQLite: `SELECT version, sealed, expires_at, refresh_at, lease_until, lease_owner FROM operator_tokens WHERE connection = $1 AND name = $2`})

var insertOperatorToken = db.Define(db.SQL{Name: "operator_tokens.insert",
	SQLite: `INSERT INTO operator_tokens (connection, name, version, sealed, expires_at, refresh_at, lease_until, lease_owner)
		VALUES ($1, $2, 1, $3, $4, $5, $6, $7) ON CONFLICT (connection, name) DO NOTHING`})

var swapOperatorToken = db.Define(db.SQL{Name: "operator_tokens.swap",
	SQLite: `UPDATE operator_tokens SET version = version + 1, sealed = $1, expires_at = $2, refresh_at = $3, lease_until = $4, lease_owner = $5
		WHERE connection = $6 AND name = $7 AND version = $8`})

var deleteOperatorTokens = db.Define(db.SQL{Name: "operator_tokens.delete",
	SQLite: `DELETE FROM operator_tokens WHERE connection = $1 AND expires_at < $2 AND lease_until < $3`})

// Operation is one kind of call to one operator.
type Operation struct {
	Connection string
	Name       string // OpSubmit, OpCheck
}

func compareOperations(a, b Operation) int {
	if c := strings.Compare(a.Connection, b.Connection); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}

// HealthBucket is the span of time over which calls are summed.
const HealthBucket = 10 * time.Second

// CallStats say what came of calls.
type CallStats struct {
	Answered     int64         // answered
	Unanswered   int64         // not answered
	AuthRefused  int64         // of those not answered: our credentials were refused
	TotalLatency time.Duration // of those that were answered, together
}

// Add adds other sums.
func (s *CallStats) Add(o CallStats) {
	s.Answered += o.Answered
	s.Unanswered += o.Unanswered
	s.AuthRefused += o.AuthRefused
	s.TotalLatency += o.TotalLatency
}

// MeanLatency returns how long a call that was answered took, 0 if none was.
func (s *CallStats) MeanLatency() time.Duration {
	return s.TotalLatency / time.Duration(max(s.Answered, 1))
}

// HealthRow is what came of one kind of call within a HealthBucket.
type HealthRow struct {
	Operation
	CallStats
	Start till.Time // of the bucket
}

func healthBucket(t till.Time) int64 { return int64(t) / HealthBucket.Microseconds() }

// AddHealth adds what came of an instance's calls to the current bucket.
func AddHealth(ctx context.Context, tx *store.Tx, sums map[Operation]CallStats) error {
	keys := make([]Operation, 0, len(sums))
	for k := range sums {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, compareOperations) // one order, as all locks are taken
	args := make([][]any, len(keys))
	for i, k := range keys {
		s := sums[k]
		args[i] = []any{healthBucket(tx.Now()), k.Connection, k.Name, s.Answered, s.Unanswered, s.AuthRefused, s.TotalLatency.Microseconds()}
	}
	return tx.DB().Defer(addHealth, args)
}

// Health returns what came of all instances' calls in the last span of time.
// What lies in the future was written before the clock was set back, and
// says nothing about now.
func Health(ctx context.Context, tx *store.Tx, span time.Duration) ([]HealthRow, error) {
	return db.ReadAll(ctx, tx.DB(), selectHealth, []any{healthBucket(tx.Now().Add(-span)), healthBucket(tx.Now())}, func(r db.Row) (HealthRow, error) {
		var h HealthRow
		var bucket int64
		err := r.Scan(&bucket, &h.Connection, &h.Name, &h.Answered, &h.Unanswered, &h.AuthRefused, db.Duration(&h.TotalLatency))
		h.Start = till.Time(bucket * HealthBucket.Microseconds())
		return h, err
	})
}

// DeleteHealth deletes up to limit rows that are older than keep, or that a
// clock that was set back has left in the future.
func DeleteHealth(ctx context.Context, tx *store.Tx, keep time.Duration, limit int) (int64, error) {
	return tx.DB().Exec(ctx, deleteHealth,
		healthBucket(tx.Now().Add(-keep)), healthBucket(tx.Now().Add(keep)), limit)
}

// BreakerState says whether new payments are let through to an operator. The
// words are not those of electricity, because there a closed breaker lets
// everything through, and a closed method lets nothing.
type BreakerState string

// The states.
const (
	Passing BreakerState = "passing" // payments go through
	Stopped BreakerState = "stopped" // none goes through until RetryAt
	Probing BreakerState = "probing" // a few go through, to see
)

// Breaker decides for all instances whether an operator is sent to.
type Breaker struct {
	Connection string
	Version    int64 // 0: it was never written
	State      BreakerState
	Tries      int       // how often it was stopped without lasting recovery
	ChangedAt  till.Time // when State last changed
	RetryAt    till.Time // when Stopped: from then on it may be probed

	// Who may let new payments in as probes, until when, and how many sends
	// are left for it.
	Round      int64
	Owner      till.ID
	LeaseUntil till.Time
	ProbesLeft int
}

func scanBreaker(r db.Row) (*Breaker, error) {
	b := &Breaker{}
	err := r.Scan(&b.Connection, &b.Version, &b.State, &b.Tries, &b.ChangedAt, &b.RetryAt, &b.Round, db.ID(&b.Owner), &b.LeaseUntil, &b.ProbesLeft)
	return b, err
}

// Breakers returns every breaker that was ever written, by connection.
func Breakers(ctx context.Context, tx *store.Tx) (map[string]*Breaker, error) {
	out := map[string]*Breaker{}
	err := tx.DB().Query(ctx, selectBreakers, nil, func(r db.Row) error {
		b, err := scanBreaker(r)
		out[b.Connection] = b
		return err
	})
	return out, err
}

// LockBreakers locks and returns the named breakers that exist. They are the
// first locks of a transaction, before budgets, before steps.
func LockBreakers(ctx context.Context, tx *store.Tx, connections []string) (map[string]*Breaker, error) {
	connections = slices.Sorted(slices.Values(connections))
	args := make([][]any, len(connections))
	for i, c := range connections {
		args[i] = []any{c}
	}
	out := map[string]*Breaker{}
	err := tx.DB().QueryEach(ctx, lockBreakers, args, func(_ int, r db.Row) error {
		b, err := scanBreaker(r)
		out[b.Connection] = b
		return err
	})
	return out, err
}

// SwapBreaker writes a breaker if its row is still of the version that was
// read, and reports whether it was.
func SwapBreaker(ctx context.Context, tx *store.Tx, b *Breaker) (bool, error) {
	var n int64
	var err error
	if b.Version == 0 {
		n, err = tx.DB().Exec(ctx, insertBreaker,
			b.Connection, string(b.State), b.Tries, int64(b.ChangedAt), int64(b.RetryAt), b.Round, b.Owner[:], int64(b.LeaseUntil), b.ProbesLeft)
	} else {
		n, err = tx.DB().Exec(ctx, swapBreaker,
			string(b.State), b.Tries, int64(b.ChangedAt), int64(b.RetryAt), b.Round, b.Owner[:], int64(b.LeaseUntil), b.ProbesLeft, b.Connection, b.Version)
	}
	return n == 1, err
}

// Budget is a token bucket that all instances share.
type Budget struct {
	Operation
	Tokens           int64     // in millionths; under zero: never used, so full
	FilledAt         till.Time // when tokens were last added
	PrefetchPeriod   int64     // the period that Prefetched counts
	Prefetched       int64     // whole tokens that instances took ahead in that span
	PrefetchedBefore int64     // and in the span before it
}

// LockBudgets locks and returns the budgets of operations; those that do not
// exist yet are made. They are locked after breakers and before steps.
func LockBudgets(ctx context.Context, tx *store.Tx, operations []Operation) (map[Operation]*Budget, error) {
	operations = slices.SortedFunc(slices.Values(operations), compareOperations)
	out := make(map[Operation]*Budget, len(operations))
	read := func() error {
		args := make([][]any, len(operations))
		for i, o := range operations {
			args[i] = []any{o.Connection, o.Name}
		}
		return tx.DB().QueryEach(ctx, lockBudgets,
			args, func(i int, r db.Row) error {
				b := &Budget{Operation: operations[i]}
				out[b.Operation] = b
				return r.Scan(&b.Tokens, &b.FilledAt, &b.PrefetchPeriod, &b.Prefetched, &b.PrefetchedBefore)
			})
	}
	if err := read(); err != nil || len(out) == len(operations) {
		return out, err
	}
	args := make([][]any, len(operations))
	for i, o := range operations {
		args[i] = []any{o.Connection, o.Name, int64(tx.Now())}
	}
	err := tx.DB().Defer(insertBudgets, args)
	if err != nil {
		return nil, err
	}
	return out, read()
}

// SaveBudgets writes back budgets that were locked in this transaction.
func SaveBudgets(ctx context.Context, tx *store.Tx, budgets map[Operation]*Budget) error {
	args := make([][]any, 0, len(budgets))
	for _, b := range budgets {
		args = append(args, []any{b.Tokens, int64(b.FilledAt), b.PrefetchPeriod, b.Prefetched, b.PrefetchedBefore, b.Connection, b.Name})
	}
	return tx.DB().Defer(saveBudgets, args)
}

// OperatorToken is what an operator lets us in by, sealed.
type OperatorToken struct {
	Connection, Name string
	Version          int64  // 0: it was never written
	Sealed           []byte // empty: there is none
	ExpiresAt        till.Time
	RefreshAt        till.Time // from then on it is renewed, while it still works
	LeaseUntil       till.Time // no other instance refreshes it before
	LeaseOwner       till.ID
}

// ReadOperatorToken returns a token of a connection; one of version 0 if it was
// never written.
func ReadOperatorToken(ctx context.Context, tx *store.Tx, connection, name string) (*OperatorToken, error) {
	t := &OperatorToken{Connection: connection, Name: name}
	_, err := tx.DB().QueryRow(ctx, selectOperatorToken,
		[]any{connection, name}, &t.Version, &t.Sealed, &t.ExpiresAt, &t.RefreshAt, &t.LeaseUntil, db.ID(&t.LeaseOwner))
	return t, err
}

// SwapOperatorToken writes a token if its row is still of the version that was
// read, moves the version on, and reports whether it was.
func SwapOperatorToken(ctx context.Context, tx *store.Tx, t *OperatorToken) (bool, error) {
	var n int64
	var err error
	if t.Sealed == nil {
		t.Sealed = []byte{}
	}
	if t.Version == 0 {
		n, err = tx.DB().Exec(ctx, insertOperatorToken,
			t.Connection, t.Name, t.Sealed, int64(t.ExpiresAt), int64(t.RefreshAt), int64(t.LeaseUntil), t.LeaseOwner[:])
	} else {
		n, err = tx.DB().Exec(ctx, swapOperatorToken,
			t.Sealed, int64(t.ExpiresAt), int64(t.RefreshAt), int64(t.LeaseUntil), t.LeaseOwner[:], t.Connection, t.Name, t.Version)
	}
	if n == 1 {
		t.Version++
	}
	return n == 1, err
}

// DeleteOperatorTokens deletes the tokens of a connection that expired before a
// moment and are not being refreshed. They are from earlier settings.
func DeleteOperatorTokens(ctx context.Context, tx *store.Tx, connection string, before till.Time) error {
	_, err := tx.DB().Exec(ctx, deleteOperatorTokens, connection, int64(before), int64(before))
	return err
}
