package access

import (
	"context"
	"time"

	"till"
	"till/internal/db"
	"till/store"
)

const sessionColumns = `s.token_hash, s.id, s.person_id, s.started_at, s.seen_at, s.expires_at, s.idle, s.proved_at, s.device, s.address`

var insertSession = db.Define(db.SQL{Name: "sessions.insert",
	SQLite: `INSERT INTO sessions (token_hash, id, person_id, started_at, seen_at, expires_at, idle, proved_at, device, address)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`})

var selectSession = db.Define(db.SQL{Name: "sessions.select",
	SQLite: `SELECT ` + sessionColumns + `, ` + personColumns + ` FROM sessions s JOIN people p ON p.person_id = s.person_id WHERE s.token_hash = $1`})

var selectSessionMemberships = db.Define(db.SQL{Name: "sessions.selectMemberships",
	SQLite: `SELECT m.client_id, m.person_id, m.role, m.granted_at, m.granted_by, coalesce(r.second_factor, 0)
		FROM sessions s JOIN memberships m ON m.person_id = s.person_id LEFT JOIN access_rules r ON r.client_id = m.client_id
		WHERE s.token_hash = $1 ORDER BY m.client_id`})

var selectSessionsOf = db.Define(db.SQL{Name: "sessions.selectOf",
	SQLite: `SELECT ` + sessionColumns + ` FROM sessions s
		WHERE s.person_id = $1 AND s.expires_at > $2 AND s.seen_at + s.idle > $3 ORDER BY s.started_at DESC, s.id LIMIT $4`})

var touchSession = db.Define(db.SQL{Name: "sessions.touch",
	SQLite: `UPDATE sessions SET seen_at = $1, address = $2 WHERE token_hash = $3 AND seen_at < $4`})

var replaceSession = db.Define(db.SQL{Name: "sessions.replace",
	SQLite: `UPDATE sessions SET token_hash = $1, seen_at = $2, expires_at = $3, idle = $4, proved_at = $5, address = $6 WHERE token_hash = $7`})

var deleteSession = db.Define(db.SQL{Name: "sessions.delete",
	SQLite: `DELETE FROM sessions WHERE person_id = $1 AND id = $2`})

var deleteSessionsOf = db.Define(db.SQL{Name: "sessions.deleteOf",
	SQLite: `DELETE FROM sessions WHERE person_id = $1 AND id <> $2`})

var deleteOldestSessions = db.Define(db.SQL{Name: "sessions.deleteOldest",
	SQLite: `DELETE FROM sessions WHERE person_id = $1 AND id NOT IN
		(SELECT k.id FROM sessions k WHERE k.person_id = $1 ORDER BY k.started_at DESC, k.id LIMIT $2)`})

var deleteAllSessions = db.Define(db.SQL{Name: "sessions.deleteAll", SQLite: `DELETE FROM sessions WHERE started_at >= $1`})

var deleteExpiredSessions = db.Define(db.SQL{Name: "sessions.deleteExpired",
	SQLite: `DELETE FROM sessions WHERE expires_at < $1`})

var lockGuesses = db.Define(db.SQL{Name: "sessions.lockGuesses",
	SQLite: `INSERT INTO guesses (name, count, since, last_at) VALUES ($1, 0, $2, $3)
		ON CONFLICT (name) DO UPDATE SET count = guesses.count`})

var selectGuesses = db.Define(db.SQL{Name: "sessions.selectGuesses",
	SQLite: `SELECT count, since, last_at FROM guesses WHERE name = $1`})

var updateGuesses = db.Define(db.SQL{Name: "sessions.updateGuesses",
	SQLite: `UPDATE guesses SET count = $1, since = $2, last_at = $3 WHERE name = $4`})

var forgiveGuess = db.Define(db.SQL{Name: "sessions.forgiveGuess",
	SQLite: `UPDATE guesses SET count = count - 1 WHERE name = $1 AND count > 0`})

var deleteGuesses = db.Define(db.SQL{Name: "sessions.deleteGuesses",
	SQLite: `DELETE FROM guesses WHERE name = $1`})

var deleteOldGuesses = db.Define(db.SQL{Name: "sessions.deleteOldGuesses",
	SQLite: `DELETE FROM guesses WHERE last_at < $1`})

var insertUsedOnce = db.Define(db.SQL{Name: "sessions.insertUsedOnce",
	SQLite: `INSERT INTO used_once (hash, expires_at) VALUES ($1, $2) ON CONFLICT DO NOTHING`})

var selectUsedOnce = db.Define(db.SQL{Name: "sessions.selectUsedOnce",
	SQLite: `SELECT expires_at FROM used_once WHERE hash = $1`})

var deleteUsedOnce = db.Define(db.SQL{Name: "sessions.deleteUsedOnce",
	SQLite: `DELETE FROM used_once WHERE expires_at < $1`})

// Session is a person who is signed in on one device.
type Session struct {
	TokenHash [32]byte
	ID        till.ID
	Person    till.ID
	StartedAt till.Time
	SeenAt    till.Time
	ExpiresAt till.Time
	Idle      time.Duration // it ends so long after SeenAt
	ProvedAt  till.Time
	Device    string
	Address   string
}

// Over reports whether the session has ended at now.
func (s *Session) Over(now till.Time) bool { return now >= s.ExpiresAt || now >= s.SeenAt.Add(s.Idle) }

func (s *Session) dest(hash *[]byte) []any {
	return []any{hash, db.ID(&s.ID), db.ID(&s.Person), &s.StartedAt, &s.SeenAt, &s.ExpiresAt, db.Duration(&s.Idle), db.Int(&s.ProvedAt), &s.Device, &s.Address}
}

// InsertSession writes a new session.
func InsertSession(ctx context.Context, tx *store.Tx, s *Session) error {
	_, err := tx.DB().Exec(ctx, insertSession, s.TokenHash[:], s.ID[:], s.Person[:], int64(s.StartedAt), int64(s.SeenAt), int64(s.ExpiresAt),
		s.Idle.Microseconds(), db.OrNull(s.ProvedAt), s.Device, s.Address)
	return err
}

// SessionByHash returns the session of a token with its person and the person's
// roles, in one round trip; nil if there is none. strict is as in Memberships.
func SessionByHash(ctx context.Context, tx *store.Tx, hash [32]byte) (s *Session, p *Person, of []till.Membership, strict bool, err error) {
	found := &Session{TokenHash: hash}
	person := &Person{}
	err = tx.DB().SendAll(ctx,
		db.Statement{SQL: selectSession, Rows: [][]any{{hash[:]}}, Scan: func(_ int, r db.Row) error {
			var same []byte
			s, p = found, person
			return r.Scan(append(found.dest(&same), person.dest()...)...)
		}},
		db.Statement{SQL: selectSessionMemberships, Rows: [][]any{{hash[:]}}, Scan: func(_ int, r db.Row) error {
			var m till.Membership
			var asks bool
			err := r.Scan(db.ID(&m.Client), db.ID(&m.Person), db.Text(&m.Role), &m.GrantedAt, &m.GrantedBy, db.Bool(&asks))
			of, strict = append(of, m), strict || asks
			return err
		}})
	person.complete()
	return s, p, of, strict, err
}

// SessionsOf returns up to limit sessions of a person that go on at now, newest
// first.
func SessionsOf(ctx context.Context, tx *store.Tx, person till.ID, now till.Time, limit int) (out []*Session, err error) {
	err = tx.DB().Query(ctx, selectSessionsOf, []any{person[:], int64(now), int64(now), limit}, func(r db.Row) error {
		s := &Session{}
		var hash []byte
		err := r.Scan(s.dest(&hash)...)
		copy(s.TokenHash[:], hash)
		out = append(out, s)
		return err
	})
	return out, err
}

// TouchSession records when a session was last used, and its person seen.
func TouchSession(ctx context.Context, tx *store.Tx, s *Session) error {
	if _, err := tx.DB().Exec(ctx, touchSession, int64(s.SeenAt), s.Address, s.TokenHash[:], int64(s.SeenAt)); err != nil {
		return err
	}
	_, err := tx.DB().Exec(ctx, touchPerson, int64(s.SeenAt), s.Person[:], int64(s.SeenAt))
	return err
}

// ReplaceSession lets a session go on under another token, and reports whether
// it was still there.
func ReplaceSession(ctx context.Context, tx *store.Tx, old [32]byte, s *Session) (bool, error) {
	n, err := tx.DB().Exec(ctx, replaceSession, s.TokenHash[:], int64(s.SeenAt), int64(s.ExpiresAt), s.Idle.Microseconds(), db.OrNull(s.ProvedAt), s.Address, old[:])
	return n == 1, err
}

// DeleteSession ends one session of a person and reports whether there was
// one.
func DeleteSession(ctx context.Context, tx *store.Tx, person, id till.ID) (bool, error) {
	n, err := tx.DB().Exec(ctx, deleteSession, person[:], id[:])
	return n == 1, err
}

// DeleteSessions ends all sessions of a person but one; the zero id keeps none.
func DeleteSessions(ctx context.Context, tx *store.Tx, person, keep till.ID) (n int64, err error) {
	return tx.DB().Exec(ctx, deleteSessionsOf, person[:], keep[:])
}

// KeepSessions ends the oldest sessions of a person beyond a number.
func KeepSessions(ctx context.Context, tx *store.Tx, person till.ID, n int) error {
	_, err := tx.DB().Exec(ctx, deleteOldestSessions, person[:], n)
	return err
}

// EndAllAccess ends every session and every open link: of an older database
// nobody knows which of them had been ended, and after a change of the
// installation's secret nobody knows who had the one before.
func EndAllAccess(ctx context.Context, tx *store.Tx) error {
	if _, err := tx.DB().Exec(ctx, deleteAllSessions, int64(0)); err != nil {
		return err
	}
	_, err := tx.DB().Exec(ctx, withdrawAll, int64(tx.Now()))
	return err
}

// Guesses is how often somebody guessed.
type Guesses struct {
	Count  int64
	Since  till.Time // when the count began
	LastAt till.Time
}

// LockGuesses returns the count of a name and locks it until the commit; a
// count of 0 if there was none.
func LockGuesses(ctx context.Context, tx *store.Tx, name [32]byte, now till.Time) (g Guesses, err error) {
	if _, err := tx.DB().Exec(ctx, lockGuesses, name[:], int64(now), int64(now)); err != nil {
		return g, err
	}
	_, err = tx.DB().QueryRow(ctx, selectGuesses, []any{name[:]}, &g.Count, &g.Since, &g.LastAt)
	return g, err
}

// ReadGuesses reads a count without locking it; the zero count if there is none.
func ReadGuesses(ctx context.Context, tx *store.Tx, name [32]byte) (g Guesses, err error) {
	_, err = tx.DB().QueryRow(ctx, selectGuesses, []any{name[:]}, &g.Count, &g.Since, &g.LastAt)
	return g, err
}

// SaveGuesses writes a count that LockGuesses has locked.
func SaveGuesses(ctx context.Context, tx *store.Tx, name [32]byte, g Guesses) error {
	_, err := tx.DB().Exec(ctx, updateGuesses, g.Count, int64(g.Since), int64(g.LastAt), name[:])
	return err
}

// ForgiveGuess takes one off a count.
func ForgiveGuess(ctx context.Context, tx *store.Tx, name [32]byte) error {
	_, err := tx.DB().Exec(ctx, forgiveGuess, name[:])
	return err
}

// ForgetGuesses ends a count.
func ForgetGuesses(ctx context.Context, tx *store.Tx, name [32]byte) error {
	_, err := tx.DB().Exec(ctx, deleteGuesses, name[:])
	return err
}

// UseOnce records that something was used, for as long as it could be used
// again, and reports whether it is the first time.
func UseOnce(ctx context.Context, tx *store.Tx, hash [32]byte, until till.Time) (bool, error) {
	n, err := tx.DB().Exec(ctx, insertUsedOnce, hash[:], int64(until))
	return n == 1, err
}

// Used reports whether UseOnce has recorded something.
func Used(ctx context.Context, tx *store.Tx, hash [32]byte) (bool, error) {
	var until till.Time
	return tx.DB().QueryRow(ctx, selectUsedOnce, []any{hash[:]}, &until)
}

// DeleteExpiredAccess deletes the sessions, counts and marks that a moment has
// left behind.
func DeleteExpiredAccess(ctx context.Context, tx *store.Tx, now, guessesBefore till.Time) error {
	for _, d := range []struct {
		sql    *db.SQL
		before till.Time
	}{{deleteExpiredSessions, now}, {deleteUsedOnce, now}, {deleteOldGuesses, guessesBefore}} {
		if _, err := tx.DB().Exec(ctx, d.sql, int64(d.before)); err != nil {
			return err
		}
	}
	return nil
}
