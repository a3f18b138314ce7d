package store

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"till"
	"till/internal/db"
)

// pinnedTo is the condition that a step is about what is pinned to an account.
func pinnedTo(account string) string {
	return ` AND (EXISTS (SELECT 1 FROM payments p WHERE p.client_id = steps.client_id AND p.id = steps.subject_id AND p.fingerprint = ` + account + `)
		OR EXISTS (SELECT 1 FROM payouts p WHERE p.client_id = steps.client_id AND p.id = steps.subject_id AND p.fingerprint = ` + account + `))`
}

const dueSteps = `SELECT ` + StepColumns + ` FROM steps WHERE lane = $1 AND due_at >= $2 AND due_at <= $3 AND lease_until <= $3`

// Rows that another instance has locked are passed over: it is just claiming
// them.
var selectDueSteps = db.Define(db.SQL{Name: "lanes.selectDueSteps",
	SQLite:   dueSteps + ` ORDER BY due_at LIMIT $4`,
	Postgres: dueSteps + ` ORDER BY due_at LIMIT $4 FOR UPDATE SKIP LOCKED`,
	Citus:    dueSteps + ` ORDER BY due_at LIMIT $4`})

var selectDueStepsPinned = db.Define(db.SQL{Name: "lanes.selectDueStepsPinned",
	SQLite:   dueSteps + pinnedTo("$4") + ` ORDER BY due_at LIMIT $5`,
	Postgres: dueSteps + pinnedTo("$4") + ` ORDER BY due_at LIMIT $5 FOR UPDATE SKIP LOCKED`,
	Citus:    dueSteps + pinnedTo("$4") + ` ORDER BY due_at LIMIT $5`})

var dueBeside = dueSteps + ` AND client_id NOT IN (` + db.Placeholders(4, MaxCrowd) + `)`

var selectDueBeside = db.Define(db.SQL{Name: "lanes.selectDueBeside",
	SQLite: dueBeside + ` ORDER BY due_at LIMIT $20`})

var selectDueBesidePinned = db.Define(db.SQL{Name: "lanes.selectDueBesidePinned",
	SQLite: dueBeside + pinnedTo("$20") + ` ORDER BY due_at LIMIT $21`})

var selectNextFree = db.Define(db.SQL{Name: "lanes.selectNextFree",
	SQLite: `SELECT due_at FROM steps WHERE lane = $1 AND due_at >= $2 AND lease_until <= $3 ORDER BY due_at LIMIT 1`})

var selectNextFreePinned = db.Define(db.SQL{Name: "lanes.selectNextFreePinned",
	SQLite: `SELECT due_at FROM steps WHERE lane = $1 AND due_at >= $2 AND lease_until <= $3` + pinnedTo("$4") + ` ORDER BY due_at LIMIT 1`})

const nextHeld = `SELECT min(CASE WHEN due_at < lease_until THEN lease_until ELSE due_at END) FROM steps WHERE lane = $1 AND due_at >= $2 AND due_at < $3`

var selectNextHeld = db.Define(db.SQL{Name: "lanes.selectNextHeld", SQLite: nextHeld})

var selectNextHeldPinned = db.Define(db.SQL{Name: "lanes.selectNextHeldPinned", SQLite: nextHeld + pinnedTo("$4")})

// maxLanesAsked is how many lanes one question names.
const maxLanesAsked = 16

// It goes through all that is due in these lanes, so it is not asked of a lane that is known
// to have more due than can be taken.
var selectLanesDue = db.Define(db.SQL{Name: "lanes.selectLanesDue",
	SQLite: `SELECT lane, min(due_at), min(CASE WHEN lease_until <= $1 THEN due_at WHEN due_at < lease_until THEN lease_until ELSE due_at END)
		FROM steps WHERE due_at >= $2 AND due_at < $3 AND lane IN (` + db.Placeholders(4, maxLanesAsked) + `) GROUP BY lane`})

const stranded = `
	WHERE s.lane = $1 AND s.due_at <= $2 AND s.lease_until <= $3 AND p.final_event IS NULL AND p.expires_at <= $4 AND p.fingerprint <> $5
	AND NOT EXISTS (SELECT 1 FROM cases c WHERE c.client_id = s.client_id AND c.subject_id = s.subject_id AND c.closed_at IS NULL)
	ORDER BY s.due_at LIMIT $6`

var selectStrandedPayments = db.Define(db.SQL{Name: "lanes.selectStrandedPayments",
	SQLite: `SELECT s.client_id, s.subject_id FROM steps s JOIN payments p ON p.client_id = s.client_id AND p.id = s.subject_id` + stranded})

var selectStrandedPayouts = db.Define(db.SQL{Name: "lanes.selectStrandedPayouts",
	SQLite: `SELECT s.client_id, s.subject_id FROM steps s JOIN payouts p ON p.client_id = s.client_id AND p.id = s.subject_id` + stranded})

var selectEarliestDue = db.Define(db.SQL{Name: "lanes.selectEarliestDue",
	SQLite: `SELECT min(due_at) FROM steps WHERE lane = $1`})

var selectNextLane = db.Define(db.SQL{Name: "lanes.selectNextLane",
	SQLite: `SELECT lane FROM steps WHERE lane > $1 ORDER BY lane LIMIT 1`})

// LaneView is a lane and which of its steps to read.
type LaneView struct {
	Lane string
	// Account, if it is not "", leaves out the steps of what is pinned to another
	// account: under one name two configurations can mean two.
	Account string
	// From leaves out the steps that were due before. PostgreSQL keeps deleted
	// entries at the low end of an index until it vacuums. Without From, each read
	// would go through all of them.
	From till.Time
}

// ofLanes runs a read of steps for each lane: all, or pinned for a lane with an
// account. The arguments are the lane's args, its account if it has one, and its
// last ones. A lane whose args are nil is skipped.
func (tx *Tx) ofLanes(ctx context.Context, lanes []LaneView, all, pinned *db.SQL, args, last [][]any, scan func(i int, r db.Row) error) error {
	var plain, some [][]any
	var plainOf, someOf []int
	for i, v := range lanes {
		switch {
		case args[i] == nil:
		case v.Account == "":
			plain, plainOf = append(plain, append(args[i], last[i]...)), append(plainOf, i)
		default:
			some, someOf = append(some, append(append(args[i], v.Account), last[i]...)), append(someOf, i)
		}
	}
	err := tx.db.QueryEach(ctx, all, plain, func(n int, r db.Row) error { return scan(plainOf[n], r) })
	if err != nil || len(some) == 0 {
		return err
	}
	return tx.db.QueryEach(ctx, pinned, some, func(n int, r db.Row) error { return scan(someOf[n], r) })
}

// DueSteps returns the due steps of some lanes that are not leased, longest due
// first, up to a limit for each lane. It is a plain read: ClaimSteps takes them.
func (tx *Tx) DueSteps(ctx context.Context, lanes []LaneView, limits []int) ([]*Step, error) {
	args, last := make([][]any, len(lanes)), make([][]any, len(lanes))
	for i, v := range lanes {
		args[i], last[i] = []any{v.Lane, int64(v.From), int64(tx.Now())}, []any{limits[i]}
	}
	var out []*Step
	err := tx.ofLanes(ctx, lanes, selectDueSteps, selectDueStepsPinned, args, last, func(_ int, r db.Row) error {
		s, err := ScanStep(r)
		out = append(out, s)
		return err
	})
	slices.SortStableFunc(out, func(a, b *Step) int { return cmp.Compare(a.DueAt, b.DueAt) })
	return out, err
}

// MaxCrowd is how many clients of a lane DueStepsBeside can leave out.
const MaxCrowd = 16

// DueStepsBeside is DueSteps without the steps of some clients, up to MaxCrowd
// for each lane. It goes through all that is due before it finds others'.
func (tx *Tx) DueStepsBeside(ctx context.Context, lanes []LaneView, limits []int, clients [][]till.ID) ([]*Step, error) {
	args, last := make([][]any, len(lanes)), make([][]any, len(lanes))
	for i, v := range lanes {
		args[i], last[i] = []any{v.Lane, int64(v.From), int64(tx.Now())}, []any{limits[i]}
		for n := range MaxCrowd {
			var id till.ID // no client's
			if n < len(clients[i]) {
				id = clients[i][n]
			}
			args[i] = append(args[i], id.Bytes())
		}
	}
	var out []*Step
	err := tx.ofLanes(ctx, lanes, selectDueBeside, selectDueBesidePinned, args, last, func(_ int, r db.Row) error {
		s, err := ScanStep(r)
		out = append(out, s)
		return err
	})
	return out, err
}

// NextDue returns for each lane when its next step is due and not leased; zero if
// the lane has no step.
func (tx *Tx) NextDue(ctx context.Context, lanes []LaneView) ([]till.Time, error) {
	next, free := make([]till.Time, len(lanes)), make([]bool, len(lanes))
	args, none := make([][]any, len(lanes)), make([][]any, len(lanes))
	for i, v := range lanes {
		args[i] = []any{v.Lane, int64(v.From), int64(tx.Now())}
	}
	// Prefetched steps are passed over, so that the leases of another instance, or
	// of a dead one, do not hide what is free.
	err := tx.ofLanes(ctx, lanes, selectNextFree, selectNextFreePinned, args, none,
		func(i int, r db.Row) error { free[i] = true; return r.Scan(&next[i]) })
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
	err = tx.ofLanes(ctx, lanes, selectNextHeld, selectNextHeldPinned, args, none,
		func(i int, r db.Row) error {
			var held till.Time
			err := r.Scan(db.Int(&held))
			if !held.IsZero() && (!free[i] || held < next[i]) {
				next[i] = held
			}
			return err
		})
	return next, err
}

// dueLanes reads when the steps of lanes are due that are due before horizon.
func (tx *Tx) dueLanes(ctx context.Context, lanes []LaneView, horizon time.Duration) ([]LaneDue, error) {
	out, places := make([]LaneDue, len(lanes)), make(map[string]int, len(lanes))
	var args [][]any
	for some := range slices.Chunk(lanes, maxLanesAsked) {
		from, names := some[0].From, make([]any, maxLanesAsked)
		for i := range names {
			names[i] = "" // no lane's
			if i < len(some) {
				from, names[i] = min(from, some[i].From), some[i].Lane
			}
		}
		args = append(args, append([]any{int64(tx.Now()), int64(from), int64(tx.Now().Add(horizon))}, names...))
	}
	for i, v := range lanes {
		places[v.Lane] = i
	}
	err := tx.db.QueryEach(ctx, selectLanesDue, args, func(_ int, r db.Row) error {
		var lane string
		var due LaneDue
		err := r.Scan(&lane, &due.Earliest, &due.Next)
		out[places[lane]] = due
		return err
	})
	return out, err
}

// EarliestDue returns for each lane since when its first step is due, held or
// not; zero if there is none.
func (tx *Tx) EarliestDue(ctx context.Context, lanes []string) ([]till.Time, error) {
	out, args := make([]till.Time, len(lanes)), make([][]any, len(lanes))
	for i, lane := range lanes {
		args[i] = []any{lane}
	}
	err := tx.db.QueryEach(ctx, selectEarliestDue, args, func(i int, r db.Row) error { return r.Scan(db.Int(&out[i])) })
	return out, err
}

// maxLanes is how many lanes are read.
const maxLanes = 1000

// Lanes returns the lanes in which any step waits.
func (tx *Tx) Lanes(ctx context.Context) ([]string, error) {
	var out []string
	for last := ""; len(out) < maxLanes; {
		found, err := tx.db.QueryRow(ctx, selectNextLane, []any{last}, &last)
		if err != nil || !found {
			return out, err
		}
		out = append(out, last)
	}
	return out, nil
}

// Stranded returns up to limit steps of a lane that no instance takes: due since a
// while, and not leased. Their subjects are open, their windows ended before a
// moment, and they are pinned to another account. None has an open case.
func (tx *Tx) Stranded(ctx context.Context, kind till.SubjectKind, v LaneView, since, ended till.Time, limit int) (refs []Ref, err error) {
	q := selectStrandedPayments
	if kind == till.SubjectPayout {
		q = selectStrandedPayouts
	}
	err = tx.db.Query(ctx, q, []any{v.Lane, int64(since), int64(tx.Now()), int64(ended), v.Account, limit}, func(r db.Row) error {
		var ref Ref
		err := r.Scan(db.ID(&ref.Client), db.ID(&ref.ID))
		refs = append(refs, ref)
		return err
	})
	return refs, err
}
