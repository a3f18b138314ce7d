package store

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"till"
)

// Step is the next call to an operator about a payment: when it is due, who
// holds it, and what the calls so far have shown. The row is narrow and lives
// only while a call is scheduled.
type Step struct {
	ClientID, SubjectID till.ID
	Kind                string // KindPayment or KindPayout
	Lane                string // where it waits; see Lane

	DueAt        till.Time
	LeaseUntil   till.Time // zero: nobody holds it
	LeaseVersion int64     // fences permissions: moves on with every claim
	WakeSeq      int64     // moves on with every callback

	Calls         int       // calls that have ended
	CheckedAt     till.Time // when the last one ended
	Sends         int       // sends that may have begun
	SendStartedAt till.Time // when the latest may have begun
	SendDeadline  till.Time // after it no byte of the latest send leaves us
	Acked         bool      // the operator was seen to hold the request
	Absent        int       // agreeing "not found" reads that count as proof
	AbsentAt      till.Time // when the latest of them ended
	Slow          int       // how often the pace of asking was halved
	LateFrom      till.Time // when the payment ended other than in success; see Settled
	LateReads     int       // late-money reads done

	Handle string // the operator's own id of the request, "" until it gives one
	// Restored says that an old database was put back while the step was open:
	// what was sent since the backup is not known here, so it is asked about and
	// never sent. Only MarkRestored writes it.
	Restored bool

	// HeldAt is since when it is kept from being sent because payouts are held, or
	// because its client is suspended; zero: it is not.
	HeldAt till.Time

	Mail     []byte    // the latest callback's body, where an adapter wants it
	MailedAt till.Time // when the latest callback makes, or made, it due
}

// The operations of an operator, each with a lane and a budget of its own.
const (
	OpSubmit       = "submit"
	OpCheck        = "check"
	OpPayoutSubmit = "payout_submit"
	OpPayoutCheck  = "payout_check"
)

// Lane names where the steps of an operator and operation wait. It is a hint
// for whoever looks for due steps; what a step asks for is decided when it is
// claimed.
func Lane(connection, operation string) string { return connection + " " + operation }

const stepColumns = `client_id, subject_id, kind, lane, due_at, lease_until, lease_version, wake_seq, calls, checked_at,
	sends, send_started_at, send_deadline, acked, absent, slow, late_from, late_reads, handle, mail, mailed_at, absent_at, restored, held_at`

func scanStep(r row) (*Step, error) {
	s := &Step{}
	err := r.Scan(idDest(&s.ClientID), idDest(&s.SubjectID), &s.Kind, &s.Lane, &s.DueAt, &s.LeaseUntil, &s.LeaseVersion, &s.WakeSeq,
		&s.Calls, &s.CheckedAt, &s.Sends, &s.SendStartedAt, &s.SendDeadline, boolDest(&s.Acked), &s.Absent, &s.Slow, &s.LateFrom, &s.LateReads,
		textDest(&s.Handle), &s.Mail, &s.MailedAt, &s.AbsentAt, boolDest(&s.Restored), &s.HeldAt)
	return s, err
}

const insertStep = `INSERT INTO steps (client_id, subject_id, kind, lane, due_at, lease_until, lease_version, sends, send_started_at, send_deadline)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// first returns the columns of a step that begins.
func (s *Step) first() []any {
	return []any{s.ClientID[:], s.SubjectID[:], s.Kind, s.Lane, int64(s.DueAt), int64(s.LeaseUntil), s.LeaseVersion,
		s.Sends, int64(s.SendStartedAt), int64(s.SendDeadline)}
}

// LaneView is a lane that is looked at, and which of its steps are seen.
type LaneView struct {
	Lane string
	// Account, if it is not "", leaves out the steps of what is pinned to another
	// account: under one name two configurations can mean two.
	Account string
	// From leaves out the steps that were due before: PostgreSQL keeps what was
	// removed from the low end of an index until it vacuums, and would go through
	// all of it at each look.
	From till.Time
}

// pinned is the condition that a step is about what is pinned to an account.
const pinned = ` AND (EXISTS (SELECT 1 FROM payments p WHERE p.client_id = steps.client_id AND p.id = steps.subject_id AND p.fingerprint = ?)
	OR EXISTS (SELECT 1 FROM payouts p WHERE p.client_id = steps.client_id AND p.id = steps.subject_id AND p.fingerprint = ?))`

// ofLanes runs a query of steps for lanes: its condition with the arguments of
// each lane, none where they are nil, and the rest of it with the last ones.
func (tx *Tx) ofLanes(ctx context.Context, lanes []LaneView, query, rest string, args [][]any, last [][]any, scan func(i int, r row) error) error {
	var plain, some [][]any
	var plainOf, someOf []int
	for i, v := range lanes {
		switch {
		case args[i] == nil:
		case v.Account == "":
			plain, plainOf = append(plain, append(args[i], last[i]...)), append(plainOf, i)
		default:
			some, someOf = append(some, append(append(args[i], v.Account, v.Account), last[i]...)), append(someOf, i)
		}
	}
	err := tx.rowsEach(ctx, query+rest, plain, func(n int, r row) error { return scan(plainOf[n], r) })
	if err != nil || len(some) == 0 {
		return err
	}
	return tx.rowsEach(ctx, query+pinned+rest, some, func(n int, r row) error { return scan(someOf[n], r) })
}

// DueSteps returns steps of some lanes that are due and that nobody holds,
// longest due first, up to a limit of each lane. It is a plain read: taking them
// is ClaimSteps.
func (tx *Tx) DueSteps(ctx context.Context, lanes []LaneView, limits []int) ([]*Step, error) {
	args, last := make([][]any, len(lanes)), make([][]any, len(lanes))
	for i, v := range lanes {
		args[i], last[i] = []any{v.Lane, int64(v.From), int64(tx.Now()), int64(tx.Now())}, []any{limits[i]}
	}
	var out []*Step
	err := tx.ofLanes(ctx, lanes, `SELECT `+stepColumns+` FROM steps WHERE lane = ? AND due_at >= ? AND due_at <= ? AND lease_until <= ?`, ` ORDER BY due_at LIMIT ?`+tx.s.e.skipLocked(),
		args, last, func(_ int, r row) error {
			s, err := scanStep(r)
			out = append(out, s)
			return err
		})
	slices.SortStableFunc(out, func(a, b *Step) int { return cmp.Compare(a.DueAt, b.DueAt) })
	return out, err
}

// MaxCrowd is how many clients of a lane can be looked beside.
const MaxCrowd = 16

// DueStepsBeside is DueSteps without the steps of some clients, up to MaxCrowd
// for each lane. It goes through all that is due before it finds others'.
func (tx *Tx) DueStepsBeside(ctx context.Context, lanes []LaneView, limits []int, clients [][]till.ID) ([]*Step, error) {
	args, last := make([][]any, len(lanes)), make([][]any, len(lanes))
	for i, v := range lanes {
		args[i], last[i] = []any{v.Lane, int64(v.From), int64(tx.Now()), int64(tx.Now())}, []any{limits[i]}
		for n := range MaxCrowd {
			var id till.ID // nobody's
			if n < len(clients[i]) {
				id = clients[i][n]
			}
			args[i] = append(args[i], id.Bytes())
		}
	}
	var out []*Step
	err := tx.ofLanes(ctx, lanes, `SELECT `+stepColumns+` FROM steps WHERE lane = ? AND due_at >= ? AND due_at <= ? AND lease_until <= ?
		AND client_id NOT IN (?`+strings.Repeat(", ?", MaxCrowd-1)+`)`, ` ORDER BY due_at LIMIT ?`,
		args, last, func(_ int, r row) error {
			s, err := scanStep(r)
			out = append(out, s)
			return err
		})
	return out, err
}

// NextDue returns for each lane when its next step can be taken: it is due,
// and nobody holds it any more; zero if there is no step.
func (tx *Tx) NextDue(ctx context.Context, lanes []LaneView) ([]till.Time, error) {
	next, free := make([]till.Time, len(lanes)), make([]bool, len(lanes))
	args, none := make([][]any, len(lanes)), make([][]any, len(lanes))
	for i, v := range lanes {
		args[i] = []any{v.Lane, int64(v.From), int64(tx.Now())}
	}
	// Held steps are passed over, so that the leases of another instance, or
	// of a dead one, do not hide what is free.
	err := tx.ofLanes(ctx, lanes, `SELECT due_at FROM steps WHERE lane = ? AND due_at >= ? AND lease_until <= ?`, ` ORDER BY due_at LIMIT 1`, args, none,
		func(i int, r row) error { free[i] = true; return r.Scan(&next[i]) })
	if err != nil {
		return nil, err
	}
	// All that is due before it is held: as many rows as calls are under way.
	for i, v := range lanes {
		end := int64(next[i])
		if !free[i] {
			end = math.MaxInt64
		}
		if args[i] = []any{v.Lane, int64(v.From), end}; free[i] && next[i] <= tx.Now() {
			args[i] = nil
		}
	}
	err = tx.ofLanes(ctx, lanes, `SELECT min(CASE WHEN due_at < lease_until THEN lease_until ELSE due_at END) FROM steps WHERE lane = ? AND due_at >= ? AND due_at < ?`, "", args, none,
		func(i int, r row) error {
			var held till.Time
			err := r.Scan(intDest(&held))
			if !held.IsZero() && (!free[i] || held < next[i]) {
				next[i] = held
			}
			return err
		})
	return next, err
}

// EarliestDue returns for each lane since when its first step is due, held or
// not; zero if there is none.
func (tx *Tx) EarliestDue(ctx context.Context, lanes []string) ([]till.Time, error) {
	out, args := make([]till.Time, len(lanes)), make([][]any, len(lanes))
	for i, lane := range lanes {
		args[i] = []any{lane}
	}
	err := tx.rowsEach(ctx, `SELECT min(due_at) FROM steps WHERE lane = ?`, args, func(i int, r row) error { return r.Scan(intDest(&out[i])) })
	return out, err
}

// maxLanes is how many lanes are looked for.
const maxLanes = 1000

// Lanes returns the lanes in which any step waits.
func (tx *Tx) Lanes(ctx context.Context) ([]string, error) {
	var out []string
	for last := ""; len(out) < maxLanes; {
		found, err := tx.one(ctx, `SELECT lane FROM steps WHERE lane > ? ORDER BY lane LIMIT 1`, []any{last}, &last)
		if err != nil || !found {
			return out, err
		}
		out = append(out, last)
	}
	return out, nil
}

// Stranded returns steps of a lane that have been due since a while and that nobody
// holds, of what is open, has ended its time before a moment, is pinned to another
// account than this one, and is on the attention list for nothing: up to a limit.
func (tx *Tx) Stranded(ctx context.Context, kind string, v LaneView, since, ended till.Time, limit int) (refs []Ref, err error) {
	table := "payments"
	if kind == KindPayout {
		table = "payouts"
	}
	err = tx.rows(ctx, `SELECT s.client_id, s.subject_id FROM steps s JOIN `+table+` p ON p.client_id = s.client_id AND p.id = s.subject_id
		WHERE s.lane = ? AND s.due_at <= ? AND s.lease_until <= ? AND p.final_event IS NULL AND p.expires_at <= ? AND p.fingerprint <> ?
		AND NOT EXISTS (SELECT 1 FROM cases c WHERE c.client_id = s.client_id AND c.subject_id = s.subject_id AND c.closed_at IS NULL)
		ORDER BY s.due_at LIMIT ?`, []any{v.Lane, int64(since), int64(tx.Now()), int64(ended), v.Account, limit}, func(r row) error {
		var ref Ref
		err := r.Scan(idDest(&ref.Client), idDest(&ref.ID))
		refs = append(refs, ref)
		return err
	})
	return refs, err
}

// lockSteps locks and reads those of the named steps that exist.
func (tx *Tx) lockSteps(refs []Ref, out map[Ref]*Step) read {
	return read{query: `SELECT ` + stepColumns + ` FROM steps WHERE client_id = ? AND subject_id = ?` + tx.s.e.lock(), args: refArgs(refs),
		scan: func(i int, r row) (err error) { out[refs[i]], err = scanStep(r); return err }}
}

// Step returns one step without locking it, nil if there is none.
func (tx *Tx) Step(ctx context.Context, ref Ref) (s *Step, err error) {
	err = tx.rows(ctx, `SELECT `+stepColumns+` FROM steps WHERE client_id = ? AND subject_id = ?`, []any{ref.Client[:], ref.ID[:]},
		func(r row) (err error) { s, err = scanStep(r); return err })
	return s, err
}

// Claim is a step as it is to be taken, and as it was seen.
type Claim struct {
	Step
	Seen Step
}

// ClaimSteps takes steps by compare-and-swap and reports which it won. What
// is compared moves on with every claim, every send and every answer: a claim
// never rests on what another instance has changed since it was read.
func (tx *Tx) ClaimSteps(ctx context.Context, claims []*Claim) ([]bool, error) {
	args := make([][]any, len(claims))
	for i, c := range claims {
		args[i] = []any{int64(c.LeaseUntil), c.LeaseVersion, c.Sends, int64(c.SendStartedAt), int64(c.SendDeadline), c.Absent,
			c.ClientID[:], c.SubjectID[:], c.Seen.LeaseVersion, c.Seen.Calls, c.Seen.Sends, int64(tx.Now())}
	}
	return tx.ses.touched(ctx, `UPDATE steps SET lease_until = ?, lease_version = ?, sends = ?, send_started_at = ?, send_deadline = ?, absent = ?
		WHERE client_id = ? AND subject_id = ? AND lease_version = ? AND calls = ? AND sends = ? AND lease_until <= ?`, args)
}

// SaveSteps writes steps back as they stand in memory, after they were locked
// in this transaction. Who may reschedule is the caller's rule.
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
			s.Sends, int64(s.SendStartedAt), int64(s.SendDeadline), s.Acked, s.Absent, s.Slow, int64(s.LateFrom), s.LateReads, orNull(s.Handle),
			int64(s.AbsentAt), int64(s.HeldAt), s.ClientID[:], s.SubjectID[:]}
	}
	return tx.setAll(ctx, `UPDATE steps SET lane = ?, due_at = ?, lease_until = ?, lease_version = ?, calls = ?, checked_at = ?,
		sends = ?, send_started_at = ?, send_deadline = ?, acked = ?, absent = ?, slow = ?, late_from = ?, late_reads = ?, handle = ?, absent_at = ?, held_at = ?
		WHERE client_id = ? AND subject_id = ?`, args)
}

// DeleteSteps removes steps: nothing is scheduled for them any more.
func (tx *Tx) DeleteSteps(ctx context.Context, refs []Ref) error {
	args := make([][]any, len(refs))
	for i := range refs {
		args[i] = []any{refs[i].Client[:], refs[i].ID[:]}
	}
	return tx.set(ctx, `DELETE FROM steps WHERE client_id = ? AND subject_id = ?`, args)
}

// Settled reports whether the step is a read of a row whose money has moved:
// nothing is owed but an answer to a callback.
func (s *Step) Settled() bool { return s.LateFrom.IsZero() && s.LateReads > 0 }

// WakePause is the shortest time between two reads that callbacks ask for: a
// storm of them asks an operator once a second about one payment, and the last
// of them is never in vain.
const WakePause = time.Second

// WakeStep makes a step due and moves its wake on, so that whoever is just
// rescheduling it sees that it must look again. It is due now, or WakePause
// after the last time that a callback made it so; a time further off than that
// was written before the clock was set back. Mail, if not nil, is kept in the
// place of what came before, unless it names a handle and the step has another.
// It reports whether the step exists.
func (tx *Tx) WakeStep(ctx context.Context, ref Ref, mail []byte, handle string) (bool, error) {
	now, pause := int64(tx.Now()), WakePause.Microseconds()
	n, err := tx.exec(ctx, `UPDATE steps SET wake_seq = wake_seq + 1, mail = CASE WHEN ? = '' OR coalesce(handle, ?) = ? THEN coalesce(?, mail) ELSE mail END,
		mailed_at = CASE WHEN mailed_at > ? AND mailed_at <= ? THEN mailed_at + ? WHEN mailed_at > ? AND mailed_at <= ? THEN mailed_at ELSE ? END
		WHERE client_id = ? AND subject_id = ?`,
		handle, handle, handle, bytesOrNull(mail), now-pause, now, pause, now, now+pause, now, ref.Client[:], ref.ID[:])
	if err != nil || n == 0 {
		return false, err
	}
	_, err = tx.exec(ctx, `UPDATE steps SET due_at = mailed_at WHERE client_id = ? AND subject_id = ? AND due_at > mailed_at`, ref.Client[:], ref.ID[:])
	return true, err
}

// ForgetMail drops the callbacks that steps, locked in this transaction, keep.
func (tx *Tx) ForgetMail(ctx context.Context, refs []Ref) error {
	return tx.set(ctx, `UPDATE steps SET mail = NULL WHERE client_id = ? AND subject_id = ?`, refArgs(refs))
}

// InsertWokenStep schedules a read of a row that had no step any more.
func (tx *Tx) InsertWokenStep(ctx context.Context, s *Step) error {
	_, err := tx.exec(ctx, `INSERT INTO steps (client_id, subject_id, kind, lane, due_at, wake_seq, calls, checked_at, sends, acked, late_from, late_reads, handle, mail, mailed_at)
		VALUES (?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		s.ClientID[:], s.SubjectID[:], s.Kind, s.Lane, int64(s.DueAt), s.Calls, int64(s.CheckedAt), s.Sends, s.Acked, int64(s.LateFrom), s.LateReads,
		orNull(s.Handle), bytesOrNull(s.Mail), int64(s.DueAt))
	return err
}

// SetAside makes a step wait until then and puts its subject on the attention
// list, without a look at either: for one about which nothing else can be
// written. A step that somebody has claimed since the version stays as it is.
func (tx *Tx) SetAside(ctx context.Context, version int64, until till.Time, c *Case) error {
	_, err := tx.exec(ctx, `UPDATE steps SET due_at = ?, lease_until = 0 WHERE client_id = ? AND subject_id = ? AND lease_version = ?`,
		int64(until), c.ClientID[:], c.SubjectID[:], version)
	if err != nil {
		return err
	}
	return tx.OpenCases(ctx, []*Case{c})
}
