package store

import (
	"bytes"
	"context"
	"slices"
	"time"

	"till"
	"till/internal/db"
)

const StepColumns = `client_id, subject_id, kind, lane, due_at, lease_until, lease_version, wake_seq, calls, checked_at,
	sends, send_started_at, send_deadline, acked, absent, slow, late_from, late_reads, handle, mail, mailed_at, absent_at, restored, held_at, callback_at, last_callback_at, sent_seq, absent_seq, refusals`

var insertStep = db.DefineByClient(1, db.SQL{Name: "steps.insert",
	SQLite: `INSERT INTO steps (client_id, subject_id, kind, lane, due_at, lease_until, lease_version, sends, send_started_at, send_deadline)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
	Postgres: `INSERT INTO steps (client_id, subject_id, kind, lane, due_at, lease_until, lease_version, sends, send_started_at, send_deadline)
		SELECT u.a1, u.a2, u.a3, u.a4, u.a5, u.a6, u.a7, u.a8, u.a9, u.a10
		FROM (SELECT unnest($1::bytea[]) AS a1, unnest($2::bytea[]) AS a2, unnest($3::text[]) AS a3, unnest($4::text[]) AS a4,
			unnest($5::bigint[]) AS a5, unnest($6::bigint[]) AS a6, unnest($7::bigint[]) AS a7, unnest($8::bigint[]) AS a8,
			unnest($9::bigint[]) AS a9, unnest($10::bigint[]) AS a10 LIMIT $11::bigint) AS u`,
	Arrays: true})

var lockSteps = db.Define(db.SQL{Name: "steps.lock",
	SQLite: `SELECT ` + StepColumns + ` FROM steps WHERE client_id = $1 AND subject_id = $2`,
	Postgres: `SELECT u.nth, ` + StepColumns + ` FROM steps,
		(SELECT unnest($1::bytea[]) AS a1, unnest($2::bytea[]) AS a2, unnest($3::bigint[]) AS nth LIMIT $4::bigint) AS u
		WHERE client_id = ANY(ARRAY[u.a1]) AND subject_id = u.a2 FOR UPDATE OF steps`,
	Citus: `SELECT ` + StepColumns + ` FROM steps WHERE client_id = $1 AND subject_id = $2 FOR UPDATE`,
	// The nodes do not have our settings for plans, so the order of the locks is said.
	OneClient: `SELECT ($3::bigint[])[array_position($2::bytea[], subject_id)] AS nth, ` + StepColumns + ` FROM steps
		WHERE client_id = $1 AND subject_id = ANY($2::bytea[]) ORDER BY subject_id LIMIT $4::bigint FOR UPDATE`,
	Client: 1,
	Arrays: true})

var selectStep = db.Define(db.SQL{Name: "steps.select",
	SQLite: `SELECT ` + StepColumns + ` FROM steps WHERE client_id = $1 AND subject_id = $2`})

var claimSteps = db.DefineByClient(8, db.SQL{Name: "steps.claim",
	SQLite: `UPDATE steps SET lease_until = $1, lease_version = $2, sends = $3, send_started_at = $4, send_deadline = $5, absent = $6, sent_seq = $7
		WHERE client_id = $8 AND subject_id = $9 AND lease_version = $10 AND calls = $11 AND sends = $12 AND lease_until <= $13`,
	Postgres: `UPDATE steps SET lease_until = u.a1, lease_version = u.a2, sends = u.a3, send_started_at = u.a4, send_deadline = u.a5, absent = u.a6, sent_seq = u.a7
		FROM (SELECT unnest($1::bigint[]) AS a1, unnest($2::bigint[]) AS a2, unnest($3::bigint[]) AS a3, unnest($4::bigint[]) AS a4,
			unnest($5::bigint[]) AS a5, unnest($6::bigint[]) AS a6, unnest($7::bigint[]) AS a7, unnest($8::bytea[]) AS a8, unnest($9::bytea[]) AS a9,
			unnest($10::bigint[]) AS a10, unnest($11::bigint[]) AS a11, unnest($12::bigint[]) AS a12, unnest($13::bigint[]) AS a13,
			unnest($14::bigint[]) AS nth LIMIT $15::bigint) AS u
		WHERE client_id = ANY(ARRAY[u.a8]) AND subject_id = u.a9 AND lease_version = u.a10 AND calls = u.a11 AND sends = u.a12 AND lease_until <= u.a13
		RETURNING u.nth`,
	Arrays: true})

var saveSteps = db.DefineByClient(20, db.SQL{Name: "steps.save",
	SQLite: `UPDATE steps SET lane = $1, due_at = $2, lease_until = $3, lease_version = $4, calls = $5, checked_at = $6,
		sends = $7, send_started_at = $8, send_deadline = $9, acked = $10, absent = $11, slow = $12, late_from = $13, late_reads = $14, handle = $15, absent_at = $16, held_at = $17,
		absent_seq = $18, refusals = $19
		WHERE client_id = $20 AND subject_id = $21`,
	Postgres: `WITH changed AS (UPDATE steps SET lane = u.a1, due_at = u.a2, lease_until = u.a3, lease_version = u.a4, calls = u.a5, checked_at = u.a6,
			sends = u.a7, send_started_at = u.a8, send_deadline = u.a9, acked = u.a10, absent = u.a11, slow = u.a12, late_from = u.a13, late_reads = u.a14, handle = u.a15, absent_at = u.a16, held_at = u.a17,
			absent_seq = u.a18, refusals = u.a19
		FROM (SELECT unnest($1::text[]) AS a1, unnest($2::bigint[]) AS a2, unnest($3::bigint[]) AS a3, unnest($4::bigint[]) AS a4,
			unnest($5::bigint[]) AS a5, unnest($6::bigint[]) AS a6, unnest($7::bigint[]) AS a7, unnest($8::bigint[]) AS a8,
			unnest($9::bigint[]) AS a9, unnest($10::bigint[]) AS a10, unnest($11::bigint[]) AS a11, unnest($12::bigint[]) AS a12,
			unnest($13::bigint[]) AS a13, unnest($14::bigint[]) AS a14, unnest($15::text[]) AS a15, unnest($16::bigint[]) AS a16,
			unnest($17::bigint[]) AS a17, unnest($18::bigint[]) AS a18, unnest($19::bigint[]) AS a19,
			unnest($20::bytea[]) AS a20, unnest($21::bytea[]) AS a21 LIMIT $22::bigint) AS u
		WHERE client_id = ANY(ARRAY[u.a20]) AND subject_id = u.a21
		RETURNING 1)
		SELECT till_expect_rows(count(*), $22) FROM changed`,
	Arrays: true})

var deleteSteps = db.DefineByClient(1, db.SQL{Name: "steps.delete",
	SQLite: `DELETE FROM steps WHERE client_id = $1 AND subject_id = $2`,
	Postgres: `DELETE FROM steps
		USING (SELECT unnest($1::bytea[]) AS a1, unnest($2::bytea[]) AS a2 LIMIT $3::bigint) AS u
		WHERE client_id = ANY(ARRAY[u.a1]) AND subject_id = u.a2`,
	Arrays: true})

var wakeStep = db.Define(db.SQL{Name: "steps.wake",
	SQLite: `UPDATE steps SET wake_seq = wake_seq + 1, mail = CASE WHEN $1 = '' OR coalesce(handle, $2) = $3 THEN coalesce($4, mail) ELSE mail END,
		mailed_at = CASE WHEN mailed_at > $5 AND mailed_at <= $6 THEN mailed_at + $7 WHEN mailed_at > $8 AND mailed_at <= $9 THEN mailed_at ELSE $10 END,
		callback_at = CASE WHEN callback_at > 0 AND callback_at < $11 THEN callback_at ELSE $12 END,
		last_callback_at = CASE WHEN last_callback_at > $13 THEN last_callback_at ELSE $14 END
		WHERE client_id = $15 AND subject_id = $16`})

var hastenWoken = db.Define(db.SQL{Name: "steps.hastenWoken",
	SQLite: `UPDATE steps SET due_at = mailed_at WHERE client_id = $1 AND subject_id = $2 AND due_at > mailed_at`})

var forgetMail = db.DefineByClient(1, db.SQL{Name: "steps.forgetMail",
	SQLite: `UPDATE steps SET mail = NULL WHERE client_id = $1 AND subject_id = $2`,
	Postgres: `UPDATE steps SET mail = NULL
		FROM (SELECT unnest($1::bytea[]) AS a1, unnest($2::bytea[]) AS a2 LIMIT $3::bigint) AS u
		WHERE client_id = ANY(ARRAY[u.a1]) AND subject_id = u.a2`,
	Arrays: true})

var insertWokenStep = db.Define(db.SQL{Name: "steps.insertWokenStep",
	SQLite: `INSERT INTO steps (client_id, subject_id, kind, lane, due_at, wake_seq, calls, checked_at, sends, acked, late_from, late_reads, handle, mail, mailed_at,
		callback_at, last_callback_at)
		VALUES ($1, $2, $3, $4, $5, 1, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) ON CONFLICT DO NOTHING`})

var setAside = db.Define(db.SQL{Name: "steps.setAside",
	SQLite: `UPDATE steps SET due_at = $1, lease_until = 0, handle = coalesce($2, handle) WHERE client_id = $3 AND subject_id = $4 AND lease_version = $5`})

// Step is the next call to an operator about a subject: when it is due, its lease,
// and what the calls so far have shown. The row is narrow and exists only while a
// call is scheduled.
type Step struct {
	ClientID, SubjectID till.ID
	Kind                till.SubjectKind
	Lane                string // where it waits; see Lane

	DueAt        till.Time
	LeaseUntil   till.Time // zero: it is not leased
	LeaseVersion int64     // fences permissions: moves on with every claim
	WakeSeq      int64     // moves on with every callback

	Calls         int       // calls that have ended
	CheckedAt     till.Time // when the last one ended
	Sends         int       // sends that may have begun
	SendStartedAt till.Time // when the latest may have begun
	SendDeadline  till.Time // after it no byte of the latest send leaves us
	SentSeq       int64     // WakeSeq before the latest may have begun: a higher one is a callback since
	Refusals      int       // sends that left us and that the operator's gateway refused to take
	Acked         bool      // the operator was seen to hold the request
	NotFoundReads int       // agreeing "not found" reads that count as proof
	NotFoundAt    till.Time // when the latest of them ended
	NotFoundSeq   int64     // WakeSeq before the latest of them: a higher one is a callback since
	BackoffSteps  int       // how often the pace of asking was halved
	LateFrom      till.Time // when the payment ended other than in success; see Settled
	LateReads     int       // late-money reads done

	Handle string // the operator's own id of the request, "" until it gives one
	// Restored says that an old database was put back while the step was open.
	// What was sent since the backup is unknown, so the subject is checked and
	// never sent. Only MarkRestored writes it.
	Restored bool

	// HeldAt is since when it is kept from being sent because payouts are held, or
	// because its client is suspended; zero: it is not.
	HeldAt till.Time

	CallbackBody  []byte    // the latest callback's body, where an adapter wants it
	CallbackDueAt till.Time // when the latest callback makes, or made, it due
	FirstCallback till.Time // when the first one came; zero: none did
	LastCallback  till.Time
}

// The operations of an operator, each with a lane and a budget of its own.
const (
	OpSubmit       = "submit"
	OpCheck        = "check"
	OpPayoutSubmit = "payout_submit"
	OpPayoutCheck  = "payout_check"
)

// Lane names the queue of a connection's steps for one operation. It only helps to
// find due steps; the action is decided when the step is claimed.
func Lane(connection, operation string) string { return connection + " " + operation }

func ScanStep(r db.Row) (*Step, error) {
	s := &Step{}
	err := r.Scan(db.ID(&s.ClientID), db.ID(&s.SubjectID), &s.Kind, &s.Lane, &s.DueAt, &s.LeaseUntil, &s.LeaseVersion, &s.WakeSeq,
		&s.Calls, &s.CheckedAt, &s.Sends, &s.SendStartedAt, &s.SendDeadline, db.Bool(&s.Acked), &s.NotFoundReads, &s.BackoffSteps, &s.LateFrom, &s.LateReads,
		db.Text(&s.Handle), &s.CallbackBody, &s.CallbackDueAt, &s.NotFoundAt, db.Bool(&s.Restored), &s.HeldAt, &s.FirstCallback, &s.LastCallback,
		&s.SentSeq, &s.NotFoundSeq, &s.Refusals)
	return s, err
}

// first returns the columns of a step that begins.
func (s *Step) first() []any {
	return []any{s.ClientID[:], s.SubjectID[:], string(s.Kind), s.Lane, int64(s.DueAt), int64(s.LeaseUntil), s.LeaseVersion,
		s.Sends, int64(s.SendStartedAt), int64(s.SendDeadline)}
}

// lockSteps locks and reads those of the named steps that exist.
func (tx *Tx) lockSteps(refs []Ref, out map[Ref]*Step) db.Statement {
	return db.Statement{SQL: lockSteps, Rows: RefArgs(refs),
		Scan: func(i int, r db.Row) (err error) { out[refs[i]], err = ScanStep(r); return err }}
}

// LockSteps locks and returns those of the named steps that exist. It waits for those that are
// changing them, also for a transaction whose program is gone.
func (tx *Tx) LockSteps(ctx context.Context, refs []Ref) (map[Ref]*Step, error) {
	out := make(map[Ref]*Step, len(refs))
	var b db.Batch
	b.Add(tx.lockSteps(SortedRefs(refs), out)) // in the order in which all take these locks
	return out, tx.db.Send(ctx, &b)
}

// Step returns one step without locking it, nil if there is none.
func (tx *Tx) Step(ctx context.Context, ref Ref) (s *Step, err error) {
	err = tx.db.Query(ctx, selectStep, []any{ref.Client[:], ref.ID[:]},
		func(r db.Row) (err error) { s, err = ScanStep(r); return err })
	return s, err
}

// Claim is a step as it is to be taken, and as it was seen.
type Claim struct {
	Step
	Seen Step
}

// ClaimSteps takes steps by compare-and-swap and reports which it won. Every
// claim, send and answer changes what is compared. So a claim never uses a step
// that another instance has changed since it was read.
func (tx *Tx) ClaimSteps(ctx context.Context, claims []*Claim) ([]bool, error) {
	args := make([][]any, len(claims))
	for i, c := range claims {
		args[i] = []any{int64(c.LeaseUntil), c.LeaseVersion, c.Sends, int64(c.SendStartedAt), int64(c.SendDeadline), c.NotFoundReads, c.SentSeq,
			c.ClientID[:], c.SubjectID[:], c.Seen.LeaseVersion, c.Seen.Calls, c.Seen.Sends, int64(tx.Now())}
	}
	return tx.db.ExecReport(ctx, claimSteps, args)
}

// SaveSteps writes steps back as they are in memory, after they were locked in
// this transaction. The caller decides who may reschedule.
func (tx *Tx) SaveSteps(ctx context.Context, steps []*Step) error {
	slices.SortFunc(steps, func(a, b *Step) int {
		if c := bytes.Compare(a.ClientID[:], b.ClientID[:]); c != 0 {
			return c
		}
		return bytes.Compare(a.SubjectID[:], b.SubjectID[:])
	})
	args := make([][]any, len(steps))
	for i, s := range steps {
		args[i] = []any{s.Lane, int64(s.DueAt), int64(s.LeaseUntil), s.LeaseVersion, s.Calls, int64(s.CheckedAt),
			s.Sends, int64(s.SendStartedAt), int64(s.SendDeadline), s.Acked, s.NotFoundReads, s.BackoffSteps, int64(s.LateFrom), s.LateReads, db.OrNull(s.Handle),
			int64(s.NotFoundAt), int64(s.HeldAt), s.NotFoundSeq, s.Refusals, s.ClientID[:], s.SubjectID[:]}
	}
	return tx.db.DeferExactly(saveSteps, args)
}

// DeleteSteps removes steps: nothing is scheduled for them any more.
func (tx *Tx) DeleteSteps(ctx context.Context, refs []Ref) error {
	args := make([][]any, len(refs))
	for i := range refs {
		args[i] = []any{refs[i].Client[:], refs[i].ID[:]}
	}
	return tx.db.Defer(deleteSteps, args)
}

// MinCallbackInterval is the shortest time between two checks that callbacks
// cause. Many callbacks make one check a second for one payment. A check always
// follows the last callback.
const MinCallbackInterval = time.Second

// WakeStep makes a step due and increases its wake sequence, so that an instance
// that is rescheduling it checks again. It is due now, or MinCallbackInterval
// after the last callback made it due. A due time beyond that was written before
// the clock was set back. A callback body, if not nil, replaces the one before,
// unless it names another handle than the step has. came is when it came, which may
// be a while ago if it could not be recorded then. WakeStep reports whether the step
// exists.
func (tx *Tx) WakeStep(ctx context.Context, ref Ref, body []byte, handle string, came till.Time) (bool, error) {
	now, pause := int64(tx.Now()), MinCallbackInterval.Microseconds()
	n, err := tx.db.Exec(ctx, wakeStep,
		handle, handle, handle, db.BytesOrNull(body), now-pause, now, pause, now, now+pause, now,
		int64(came), int64(came), int64(came), int64(came), ref.Client[:], ref.ID[:])
	if err != nil || n == 0 {
		return false, err
	}
	_, err = tx.db.Exec(ctx, hastenWoken, ref.Client[:], ref.ID[:])
	return true, err
}

// ForgetCallbackBodies drops the callbacks that steps, locked in this transaction, keep.
func (tx *Tx) ForgetCallbackBodies(ctx context.Context, refs []Ref) error {
	return tx.db.Defer(forgetMail, RefArgs(refs))
}

// InsertCallbackStep schedules a read of a row that had no step any more.
func (tx *Tx) InsertCallbackStep(ctx context.Context, s *Step) error {
	_, err := tx.db.Exec(ctx, insertWokenStep,
		s.ClientID[:], s.SubjectID[:], string(s.Kind), s.Lane, int64(s.DueAt), s.Calls, int64(s.CheckedAt), s.Sends, s.Acked, int64(s.LateFrom), s.LateReads,
		db.OrNull(s.Handle), db.BytesOrNull(s.CallbackBody), int64(s.DueAt), int64(s.FirstCallback), int64(s.LastCallback))
	return err
}

// SetAside makes a step wait until then, keeps the operator's handle if there
// is one, and opens a case about its subject, without reading either. It is for
// a step about which nothing else can be written. A step that was claimed after
// the version stays as it is.
func (tx *Tx) SetAside(ctx context.Context, version int64, until till.Time, handle string, c *Case) error {
	_, err := tx.db.Exec(ctx, setAside,
		int64(until), db.OrNull(handle), c.ClientID[:], c.SubjectID[:], version)
	if err != nil {
		return err
	}
	return tx.OpenCases(ctx, []*Case{c})
}

var hastenSteps = db.Define(db.SQL{Name: "restores.hastenSteps",
	SQLite: `UPDATE steps SET due_at = $1 WHERE client_id = $2 AND subject_id = $3 AND due_at > $4`})

// HastenSteps makes steps due now that wait for later.
func (tx *Tx) HastenSteps(ctx context.Context, refs []Ref) error {
	args := make([][]any, len(refs))
	for i := range refs {
		args[i] = []any{int64(tx.Now()), refs[i].Client[:], refs[i].ID[:], int64(tx.Now())}
	}
	return tx.db.Defer(hastenSteps, args)
}
