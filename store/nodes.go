package store

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"till"
	"till/internal/db"
)

// On Citus all rows of a client are on one node. A commit of one node's clients neither
// waits for another node nor needs a two-phase commit, so callers batch by Node. A read over
// all clients needs all nodes. While one is away, such a read asks each part of the table by
// itself and leaves out those that do not answer (ADR 0048).

var selectNodeOf = db.Define(db.SQL{Name: "citus.selectNodeOf",
	Postgres: `SELECT coalesce(min(groupid), 0) FROM pg_dist_placement WHERE shardid = get_shard_id_for_distribution_column('clients', $1::bytea)`})

var countNodes = db.Define(db.SQL{Name: "citus.countNodes",
	Postgres: `SELECT count(DISTINCT groupid) FROM pg_dist_placement`})

// These open a connection for each part, so they are asked only while a node is away.
var askPartsOfSteps = db.Define(db.SQL{Name: "citus.askPartsOfSteps",
	Postgres: `SELECT success, coalesce(result, '') FROM run_command_on_placements('steps', $1)`})

var askPartsOfEndpoints = db.Define(db.SQL{Name: "citus.askPartsOfEndpoints",
	Postgres: `SELECT success, coalesce(result, '') FROM run_command_on_colocated_placements('webhook_endpoints', 'client_heads', $1)`})

const (
	// nodeFor is how long a client's node is remembered. After a move, batches mix nodes
	// until then, which is slower and nothing worse.
	nodeFor = 30 * time.Second
	// maxNodesOf is of how many clients the node is remembered.
	maxNodesOf = 10_000
	// awayFor is how long reads over all clients leave out the nodes that do not answer,
	// before they ask all again.
	awayFor = 5 * time.Second
)

// nodes is what is known about the nodes of a distributed database.
type nodes struct {
	known     bool // the database is distributed
	awayUntil atomic.Int64

	mu sync.Mutex
	of map[till.ID]nodeOf
}

type nodeOf struct {
	node int
	at   time.Time
}

// Node returns the number of the node that a client's rows are on, 0 where there is one node
// or it is not known.
func (s *Store) Node(ctx context.Context, client till.ID) int {
	n := &s.nodes
	if !n.known {
		return 0
	}
	n.mu.Lock()
	was := n.of[client]
	n.mu.Unlock()
	if time.Since(was.at) < nodeFor {
		return was.node
	}
	now := nodeOf{at: time.Now()}
	err := s.View(ctx, func(tx *Tx) error {
		_, err := tx.db.QueryRow(ctx, selectNodeOf, []any{client.Bytes()}, &now.node)
		return err
	})
	if err != nil {
		return was.node
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.of == nil || len(n.of) >= maxNodesOf {
		n.of = make(map[till.ID]nodeOf)
	}
	n.of[client] = now
	return now.node
}

// away reports whether a node did not answer a moment ago.
func (n *nodes) away() bool { return time.Now().UnixNano() < n.awayUntil.Load() }

func (n *nodes) setAway(away bool) {
	if !away {
		n.awayUntil.Store(0)
		return
	}
	n.awayUntil.Store(time.Now().Add(awayFor).UnixNano())
}

// overAll runs a read over all clients. If a node is away, it runs rest instead, which
// reports whether it has left out any.
func (s *Store) overAll(ctx context.Context, read func(tx *Tx) error, rest func(tx *Tx) (leftOut bool, err error)) error {
	if !s.nodes.known {
		return s.View(ctx, read)
	}
	var cause error
	if !s.nodes.away() {
		if cause = s.View(ctx, read); !errors.Is(cause, ErrUnavailable) {
			return cause
		}
	}
	var leftOut bool
	err := s.View(ctx, func(tx *Tx) (err error) { leftOut, err = rest(tx); return err })
	s.nodes.setAway(err == nil && leftOut)
	if err != nil {
		return errors.Join(cause, err)
	}
	return nil
}

// LaneDue is when the steps of a lane are due; zero: none is, as far as was looked.
type LaneDue struct {
	Next     till.Time // the next that is not leased, or whose lease will have ended
	Earliest till.Time // the first, leased or not
}

// DueLanes returns when the steps of lanes are due that are due before horizon, in one
// question for all lanes, and the database's time. It does not look at accounts. While a
// node is away, it says of each lane that a step may be due now.
func (s *Store) DueLanes(ctx context.Context, lanes []LaneView, horizon time.Duration) (out []LaneDue, now till.Time, err error) {
	err = s.overAll(ctx, func(tx *Tx) (err error) {
		out, err = tx.dueLanes(ctx, lanes, horizon)
		now = tx.Now()
		return err
	}, func(tx *Tx) (bool, error) {
		out, now = make([]LaneDue, len(lanes)), tx.Now()
		for i := range out {
			out[i].Next = now
		}
		return true, nil
	})
	return out, now, err
}

// DueSteps is Tx.DueSteps in a transaction of its own. It leaves out the nodes that are
// away.
func (s *Store) DueSteps(ctx context.Context, lanes []LaneView, limits []int) (out []*Step, err error) {
	err = s.overAll(ctx, func(tx *Tx) (err error) {
		out, err = tx.DueSteps(ctx, lanes, limits)
		return err
	}, func(tx *Tx) (leftOut bool, err error) {
		out, leftOut, err = tx.dueStepsOfParts(ctx, lanes, limits)
		return leftOut, err
	})
	return out, err
}

// dueStepsOfParts finds the keys of due steps in each part, and reads the steps by them.
func (tx *Tx) dueStepsOfParts(ctx context.Context, lanes []LaneView, limits []int) (out []*Step, leftOut bool, err error) {
	keys, leftOut, err := tx.askParts(ctx, askPartsOfSteps, dueStepsCommand(lanes, limits, tx.Now()))
	if err != nil {
		return nil, false, err
	}
	slices.SortFunc(keys, func(a, b partKey) int { return cmp.Compare(a.due, b.due) })
	var refs []Ref
	taken := make([]int, len(lanes))
	for _, k := range keys {
		if taken[k.lane]++; taken[k.lane] <= limits[k.lane] {
			refs = append(refs, k.ref)
		}
	}
	err = tx.db.QueryEach(ctx, selectStep, refArgs(refs), func(_ int, r db.Row) error {
		s, err := scanStep(r)
		if s.DueAt <= tx.Now() && s.LeaseUntil <= tx.Now() { // it may have changed since
			out = append(out, s)
		}
		return err
	})
	slices.SortStableFunc(out, func(a, b *Step) int { return cmp.Compare(a.DueAt, b.DueAt) })
	return out, leftOut, err
}

// dueStepsCommand is what each part of steps is asked: its own name replaces %s.
func dueStepsCommand(lanes []LaneView, limits []int, now till.Time) string {
	values := make([]string, len(lanes))
	for i, v := range lanes {
		values[i] = fmt.Sprintf("(%d, %s, %d::bigint, %d)", i, literal(v.Lane), int64(v.From), limits[i])
	}
	return `SELECT string_agg(concat_ws('|', l.n, d.due_at, encode(d.client_id, 'hex'), encode(d.subject_id, 'hex')), ' ')
		FROM (VALUES ` + strings.Join(values, ", ") + `) AS l (n, lane, since, most),
		LATERAL (SELECT client_id, subject_id, due_at FROM %s WHERE lane = l.lane AND due_at >= l.since AND due_at <= ` + fmt.Sprint(int64(now)) + `
			AND lease_until <= ` + fmt.Sprint(int64(now)) + ` ORDER BY due_at LIMIT l.most) AS d`
}

// literal returns a text as it stands in a command for parts.
func literal(text string) string {
	return "'" + strings.NewReplacer("'", "''", "%", "%%", "\x00", "").Replace(text) + "'"
}

// DueEndpoints is Tx.DueEndpoints in a transaction of its own. It leaves out the nodes that
// are away.
func (s *Store) DueEndpoints(ctx context.Context, after Ref, limit int) (out []*Endpoint, err error) {
	err = s.overAll(ctx, func(tx *Tx) (err error) {
		out, err = tx.DueEndpoints(ctx, after, limit)
		return err
	}, func(tx *Tx) (leftOut bool, err error) {
		out, leftOut, err = tx.dueEndpointsOfParts(ctx, after, limit)
		return leftOut, err
	})
	return out, err
}

func (tx *Tx) dueEndpointsOfParts(ctx context.Context, after Ref, limit int) (out []*Endpoint, leftOut bool, err error) {
	keys, leftOut, err := tx.askParts(ctx, askPartsOfEndpoints, dueEndpointsCommand(after, limit, tx.Now()))
	if err != nil {
		return nil, false, err
	}
	slices.SortFunc(keys, func(a, b partKey) int {
		return cmp.Or(bytes.Compare(a.ref.Client[:], b.ref.Client[:]), bytes.Compare(a.ref.ID[:], b.ref.ID[:]))
	})
	for _, k := range keys[:min(len(keys), limit)] {
		e, err := tx.Endpoint(ctx, k.ref)
		if err != nil {
			return nil, false, err
		}
		if e != nil {
			out = append(out, e)
		}
	}
	return out, leftOut, nil
}

// dueEndpointsCommand is what each part of webhook_endpoints is asked, with the part of
// client_heads beside it.
func dueEndpointsCommand(after Ref, limit int, now till.Time) string {
	at, client, id := fmt.Sprint(int64(now)), hex.EncodeToString(after.Client[:]), hex.EncodeToString(after.ID[:])
	return `SELECT string_agg(concat_ws('|', 0, 0, encode(d.client_id, 'hex'), encode(d.id, 'hex')), ' ')
		FROM (SELECT e.client_id, e.id FROM %s AS e JOIN %s AS h ON h.client_id = e.client_id
			WHERE e.enabled = 1 AND e.lease_until <= ` + at + ` AND e.blocked_until <= ` + at + `
			AND (e.client_id, e.id) > ('\x` + client + `'::bytea, '\x` + id + `'::bytea)
			AND (e.cursor_sequence < h.last_event OR e.next_retry <= ` + at + ` OR e.replay_at <= ` + at + `)
			ORDER BY e.client_id, e.id LIMIT ` + strconv.Itoa(limit) + `) AS d`
}

// partKey is the key of a row that a part of a table has found.
type partKey struct {
	lane int
	due  till.Time
	ref  Ref
}

// askParts runs a command on each part of a table. It reports whether a part did not answer.
func (tx *Tx) askParts(ctx context.Context, ask *db.SQL, command string) (keys []partKey, leftOut bool, err error) {
	err = tx.db.Query(ctx, ask, []any{command}, func(r db.Row) error {
		var answered bool
		var text string
		if err := r.Scan(boolDest(&answered), &text); err != nil {
			return err
		}
		if !answered {
			leftOut = true
			return nil
		}
		for _, field := range strings.Fields(text) {
			k, err := parsePartKey(field)
			if err != nil {
				return err
			}
			keys = append(keys, k)
		}
		return nil
	})
	return keys, leftOut, err
}

func parsePartKey(field string) (k partKey, err error) {
	parts := strings.Split(field, "|")
	if len(parts) != 4 {
		return k, fmt.Errorf("store: a part of a table answered %q", field)
	}
	lane, err1 := strconv.Atoi(parts[0])
	due, err2 := strconv.ParseInt(parts[1], 10, 64)
	client, err3 := hex.DecodeString(parts[2])
	id, err4 := hex.DecodeString(parts[3])
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return k, fmt.Errorf("store: a part of a table answered %q: %w", field, err)
	}
	k.lane, k.due = lane, till.Time(due)
	copy(k.ref.Client[:], client)
	copy(k.ref.ID[:], id)
	return k, nil
}
