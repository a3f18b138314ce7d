package admin

import (
	"context"
	"strings"

	"till"
	"till/internal/db"
	"till/store"
	"till/store/schema"
)

var selectInstallation = db.Define(db.SQL{Name: "installation.select",
	SQLite: `SELECT log_id, secret_check, created_at FROM installation WHERE one = 1`})

var insertInstallation = db.Define(db.SQL{Name: "installation.insert",
	SQLite: `INSERT INTO installation (one, log_id, secret_check, created_at) VALUES (1, $1, $2, $3)`})

var lockInstallation = db.Define(db.SQL{Name: "installation.lock",
	SQLite:   `SELECT one FROM installation WHERE one = 1`,
	Postgres: `SELECT one FROM installation WHERE one = 1 FOR UPDATE`})

var setLogID = db.Define(db.SQL{Name: "installation.setLogID",
	SQLite: `UPDATE installation SET log_id = $1 WHERE one = 1`})

var setFingerprint = db.Define(db.SQL{Name: "installation.setFingerprint",
	SQLite: `INSERT INTO connections (name, fingerprint) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET fingerprint = excluded.fingerprint`})

var countOpenPayments = db.Define(db.SQL{Name: "installation.countOpenPayments",
	SQLite: `SELECT count(*) FROM steps s JOIN payments p ON p.client_id = s.client_id AND p.id = s.subject_id
		WHERE p.connection = $1 AND p.fingerprint <> $2`})

var countOpenPayouts = db.Define(db.SQL{Name: "installation.countOpenPayouts",
	SQLite: `SELECT count(*) FROM steps s JOIN payouts p ON p.client_id = s.client_id AND p.id = s.subject_id
		WHERE p.connection = $1 AND p.fingerprint <> $2`})

var selectConnections = db.Define(db.SQL{Name: "installation.selectConnections",
	SQLite: `SELECT name, fingerprint FROM connections ORDER BY name LIMIT $1`})

var lockOpenSteps = db.Define(db.SQL{Name: "restores.lockOpenSteps",
	SQLite: `SELECT ` + store.StepColumns + ` FROM steps WHERE client_id = $1 AND subject_id > $2 AND late_from = 0 AND late_reads = 0
		ORDER BY subject_id LIMIT $3`,
	Postgres: `SELECT ` + store.StepColumns + ` FROM steps WHERE client_id = $1 AND subject_id > $2 AND late_from = 0 AND late_reads = 0
		ORDER BY subject_id LIMIT $3 FOR UPDATE`})

var lockFreshSteps = db.Define(db.SQL{Name: "restores.lockFreshSteps",
	SQLite: `SELECT ` + store.StepColumns + ` FROM steps WHERE client_id = $1 AND subject_id > $2 AND late_from = 0 AND late_reads = 0 AND restored = 0
		ORDER BY subject_id LIMIT $3`,
	Postgres: `SELECT ` + store.StepColumns + ` FROM steps WHERE client_id = $1 AND subject_id > $2 AND late_from = 0 AND late_reads = 0 AND restored = 0
		ORDER BY subject_id LIMIT $3 FOR UPDATE`})

var insertRestore = db.Define(db.SQL{Name: "restores.insert",
	SQLite: `INSERT INTO restores (restored_at, lost_from, restored_by, log_id) VALUES ($1, $2, $3, $4)`})

var selectOpenRestores = db.Define(db.SQL{Name: "restores.selectOpenRestores",
	SQLite: `SELECT restored_at, lost_from, restored_by, log_id, keys_reviewed_at, journal_left FROM restores
		WHERE released_at IS NULL ORDER BY restored_at DESC LIMIT $1`})

var selectLostTimes = db.Define(db.SQL{Name: "restores.selectLostTimes",
	SQLite: `SELECT restored_at, lost_from FROM restores ORDER BY restored_at DESC LIMIT $1`})

var setJournalLeft = db.Define(db.SQL{Name: "restores.setJournalLeft",
	SQLite: `UPDATE restores SET journal_left = $1 WHERE released_at IS NULL`})

var selectRestoring = db.Define(db.SQL{Name: "restores.selectRestoring",
	SQLite: `SELECT restored_at FROM restores WHERE released_at IS NULL LIMIT 1`})

var reviewKeys = db.Define(db.SQL{Name: "restores.reviewKeys",
	SQLite: `UPDATE restores SET keys_reviewed_at = $1 WHERE released_at IS NULL AND keys_reviewed_at IS NULL`})

var releaseRestores = db.Define(db.SQL{Name: "restores.release",
	SQLite: `UPDATE restores SET released_at = $1, released_by = $2 WHERE released_at IS NULL`})

var markRestored = db.DefineByClient(8, db.SQL{Name: "restores.markRestored",
	SQLite: `UPDATE steps SET lane = $1, due_at = $2, lease_version = $3, sends = $4, send_started_at = $5, send_deadline = $6, absent = $7, restored = 1, held_at = 0
		WHERE client_id = $8 AND subject_id = $9`,
	Postgres: `UPDATE steps SET lane = u.a1, due_at = u.a2, lease_version = u.a3, sends = u.a4, send_started_at = u.a5, send_deadline = u.a6, absent = u.a7, restored = 1, held_at = 0
		FROM (SELECT unnest($1::text[]) AS a1, unnest($2::bigint[]) AS a2, unnest($3::bigint[]) AS a3, unnest($4::bigint[]) AS a4,
			unnest($5::bigint[]) AS a5, unnest($6::bigint[]) AS a6, unnest($7::bigint[]) AS a7, unnest($8::bytea[]) AS a8,
			unnest($9::bytea[]) AS a9 LIMIT $10::bigint) AS u
		WHERE client_id = ANY(ARRAY[u.a8]) AND subject_id = u.a9`,
	Arrays: true})

var selectUndecided = db.Define(db.SQL{Name: "restores.selectUndecided",
	SQLite: `SELECT client_id, subject_id FROM steps WHERE restored = 1 AND kind = $1 AND late_from = 0 AND late_reads = 0
		ORDER BY client_id, subject_id LIMIT $2`})

// Installation is what all instances on one database share.
type Installation struct {
	LogID       till.ID
	SecretCheck []byte // proves that an instance holds the installation's secret
	CreatedAt   till.Time
}

// ReadInstallation returns the installation, or nil before the first start.
func ReadInstallation(ctx context.Context, tx *store.Tx) (*Installation, error) {
	i := &Installation{}
	found, err := tx.DB().QueryRow(ctx, selectInstallation, nil,
		db.ID(&i.LogID), &i.SecretCheck, &i.CreatedAt)
	if err != nil || !found {
		return nil, err
	}
	return i, nil
}

// InsertInstallation writes the installation down at the first start.
func InsertInstallation(ctx context.Context, tx *store.Tx, i *Installation) error {
	_, err := tx.DB().Exec(ctx, insertInstallation,
		i.LogID[:], i.SecretCheck, int64(i.CreatedAt))
	return err
}

// LockInstallation keeps other changes of the level and of generations waiting until the
// commit. It comes before the lock of a client's log: in another order two changes could wait
// for each other.
func LockInstallation(ctx context.Context, tx *store.Tx) error {
	var one int
	_, err := tx.DB().QueryRow(ctx, lockInstallation, nil, &one)
	return err
}

// Level is the highest level that this program reads and writes.
const Level = schema.Level

// RaiseLevel lets all instances write what a level brings. Programs that do not know it
// stop, and start no more. It reports false if the level is that high already.
func RaiseLevel(ctx context.Context, tx *store.Tx, level int) (bool, error) {
	return schema.RaiseLevel(ctx, tx.DB(), level)
}

// NewestStop returns the newest migration that is not rolling. Until the level is raised,
// programs that know it can run on the database, and older ones cannot.
func NewestStop(ctx context.Context, tx *store.Tx) (string, error) {
	return schema.NewestStop(ctx, tx.DB())
}

// SetLogID gives the event logs a new identity. It reports whether there is an
// installation.
func SetLogID(ctx context.Context, tx *store.Tx, id till.ID) (bool, error) {
	n, err := tx.DB().Exec(ctx, setLogID, id[:])
	return n == 1, err
}

// SetConnectionFingerprint registers the account that a connection's name means.
func SetConnectionFingerprint(ctx context.Context, tx *store.Tx, name, fingerprint string) error {
	_, err := tx.DB().Exec(ctx, setFingerprint,
		name, fingerprint)
	return err
}

// companySuffix ends the names under which connections keep whose account they are.
const companySuffix = " company"

// ConnectionCompany returns the company whose account a connection is, as its operator reported
// it for the account with a fingerprint; "" if it never did.
func ConnectionCompany(ctx context.Context, tx *store.Tx, name string) (fingerprint, company string, err error) {
	kept, err := tx.ConnectionFingerprint(ctx, name+companySuffix)
	fingerprint, company, _ = strings.Cut(kept, "\n")
	return fingerprint, company, err
}

// SetConnectionCompany keeps the company whose account a connection is.
func SetConnectionCompany(ctx context.Context, tx *store.Tx, name, fingerprint, company string) error {
	return SetConnectionFingerprint(ctx, tx, name+companySuffix, fingerprint+"\n"+company)
}

// OpenOnConnection counts the payments, or the payouts, that still have a step on
// a connection under a fingerprint other than the given one.
func OpenOnConnection(ctx context.Context, tx *store.Tx, kind till.SubjectKind, name, fingerprint string) (n int, err error) {
	count := countOpenPayments
	if kind == till.SubjectPayout {
		count = countOpenPayouts
	}
	_, err = tx.DB().QueryRow(ctx, count, []any{name, fingerprint}, &n)
	return n, err
}

// Connections returns the account that each connection's name meant when it was
// last registered.
func Connections(ctx context.Context, tx *store.Tx) (map[string]string, error) {
	out := map[string]string{}
	err := tx.DB().Query(ctx, selectConnections, []any{maxConnections}, func(r db.Row) error {
		var name, fingerprint string
		if err := r.Scan(&name, &fingerprint); err != nil {
			return err
		}
		if !strings.HasSuffix(name, companySuffix) && !strings.HasSuffix(name, refundsSuffix) {
			out[name] = fingerprint
		}
		return nil
	})
	return out, err
}

// maxConnections is how many connections are listed.
const maxConnections = 1000

// Restore is an old database that was put back.
type Restore struct {
	At       till.Time // when it was reported; also its name
	LostFrom till.Time // what was written from then on is lost
	By       string
	LogID    till.ID // of the event logs since

	KeysReviewedAt till.Time // zero: the keys are not reviewed yet
	ReleasedAt     till.Time // zero: what was lost is not explained yet
	ReleasedBy     string

	// JournalLeft is how many rows of the journal are to be made again.
	JournalLeft int
}

// InsertRestore writes down that an old database was put back.
func InsertRestore(ctx context.Context, tx *store.Tx, r *Restore) error {
	_, err := tx.DB().Exec(ctx, insertRestore,
		int64(r.At), int64(r.LostFrom), r.By, r.LogID[:])
	return err
}

// maxRestores is how many restores are read. More than one that is not released is
// there only if an old database was put back while one was open.
const maxRestores = 100

// OpenRestores returns the restores that are not released, the latest first.
func OpenRestores(ctx context.Context, tx *store.Tx) ([]*Restore, error) {
	return db.ReadAll(ctx, tx.DB(), selectOpenRestores, []any{maxRestores}, func(r db.Row) (*Restore, error) {
		x := &Restore{}
		err := r.Scan(&x.At, &x.LostFrom, &x.By, db.ID(&x.LogID), db.Int(&x.KeysReviewedAt), &x.JournalLeft)
		return x, err
	})
}

// LostTimes returns the latest restores, also those that are released, with LostFrom
// and At only.
func LostTimes(ctx context.Context, tx *store.Tx) ([]*Restore, error) {
	return db.ReadAll(ctx, tx.DB(), selectLostTimes, []any{maxRestores}, func(r db.Row) (*Restore, error) {
		x := &Restore{}
		err := r.Scan(&x.At, &x.LostFrom)
		return x, err
	})
}

// Restoring reports whether an old database was put back and is not released.
func Restoring(ctx context.Context, tx *store.Tx) (bool, error) {
	var at till.Time
	return tx.DB().QueryRow(ctx, selectRestoring, nil, &at)
}

// ReviewKeys records that a person has reviewed the keys that work again.
func ReviewKeys(ctx context.Context, tx *store.Tx) error {
	_, err := tx.DB().Exec(ctx, reviewKeys, int64(tx.Now()))
	return err
}

// SetJournalLeft writes down how many rows of the journal are to be made again.
func SetJournalLeft(ctx context.Context, tx *store.Tx, n int) error {
	_, err := tx.DB().Exec(ctx, setJournalLeft, n)
	return err
}

// ReleaseRestores writes down that what was lost is explained.
func ReleaseRestores(ctx context.Context, tx *store.Tx, by string) error {
	_, err := tx.DB().Exec(ctx, releaseRestores, int64(tx.Now()), by)
	return err
}

// LockOpenSteps locks and returns the next steps of a client, by id, of what
// has not ended. Those that were marked as restored before are passed over if
// fresh is set.
func LockOpenSteps(ctx context.Context, tx *store.Tx, client, after till.ID, fresh bool, limit int) ([]*store.Step, error) {
	q := lockOpenSteps
	if fresh {
		q = lockFreshSteps
	}
	return db.ReadAll(ctx, tx.DB(), q, []any{client[:], after[:], limit}, store.ScanStep)
}

// MarkRestored writes steps that were open when an old database was put back,
// after they were locked in this transaction.
func MarkRestored(ctx context.Context, tx *store.Tx, steps []*store.Step) error {
	args := make([][]any, len(steps))
	for i, s := range steps {
		args[i] = []any{s.Lane, int64(s.DueAt), s.LeaseVersion, s.Sends, int64(s.SendStartedAt), int64(s.SendDeadline), s.NotFoundReads,
			s.ClientID[:], s.SubjectID[:]}
	}
	return tx.DB().Defer(markRestored, args)
}

// Undecided is a payment or payout that was open when an old database was put
// back, and is still.
type Undecided struct {
	Ref  store.Ref
	Kind till.SubjectKind

	// Of the payment or payout; Undecided leaves them empty.
	Connection string
	Amount     till.Money
}

// ListUndecided returns the first of a kind of those, by client and id.
func ListUndecided(ctx context.Context, tx *store.Tx, kind till.SubjectKind, limit int) ([]Undecided, error) {
	return db.ReadAll(ctx, tx.DB(), selectUndecided, []any{string(kind), limit}, func(r db.Row) (Undecided, error) {
		u := Undecided{Kind: kind}
		err := r.Scan(db.ID(&u.Ref.Client), db.ID(&u.Ref.ID))
		return u, err
	})
}
