package store

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"till"
	"till/internal/db"
)

// On Citus all rows of a client are on one node. A commit of one node's clients neither
// waits for another node nor needs a two-phase commit, so callers batch by Node. A read over
// all clients needs all nodes. While one is unreachable, such a read asks each other node by itself
// (ADR 0071).

var selectNodeOf = db.Define(db.SQL{Name: "citus.selectNodeOf",
	Postgres: `SELECT coalesce(min(groupid), 0) FROM pg_dist_placement WHERE shardid = get_shard_id_for_distribution_column('clients', $1::bytea)`})

var countNodes = db.Define(db.SQL{Name: "citus.countNodes",
	// The coordinator has placements too, of what is not distributed.
	Postgres: `SELECT count(DISTINCT p.groupid) FROM pg_dist_placement p JOIN pg_dist_shard s USING (shardid) WHERE s.logicalrelid::oid = to_regclass('clients')::oid`})

// AskNodeAbout is a question to one node ($2) about all its parts of a table. A command ($1)
// is for one part and returns a text. It opens a connection, so it is asked only while
// another node is unreachable.
func AskNodeAbout(names, tables, table string) string {
	return `SELECT r.success, coalesce(r.result, '') FROM (
		SELECT min(n.nodename) AS host, min(n.nodeport) AS port,
			'SELECT string_agg(found, '' '') FROM (' || string_agg(format($1::text, ` + names + `), ' UNION ALL ') || ') AS parts (found)' AS command
		FROM pg_dist_shard s ` + tables + ` JOIN pg_dist_placement p ON p.shardid = s.shardid JOIN pg_dist_node n ON n.groupid = p.groupid AND n.noderole = 'primary'
		WHERE p.groupid = $2::int AND s.logicalrelid = '` + table + `'::regclass) AS node, LATERAL master_run_on_worker(ARRAY[host], ARRAY[port], ARRAY[command], true) AS r`
}

var askNodeOfSteps = db.Define(db.SQL{Name: "citus.askNodeOfSteps",
	Postgres: AskNodeAbout(`shard_name(s.logicalrelid, s.shardid)`, ``, "steps")})

const (
	// nodeFor is how long a client's node is remembered. After a move, batches mix nodes
	// until then, which is slower and nothing worse.
	nodeFor = 30 * time.Second
	// maxNodesOf is of how many clients the node is remembered.
	maxNodesOf = 10_000
)

// nodes is what is known about the nodes of a distributed database.
type nodes struct {
	known bool // the database is distributed
	away  away

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

// LaneDue is when the steps of a lane are due; zero: none is, as far as was looked.
type LaneDue struct {
	Next     till.Time // the next that is not leased, or whose lease will have ended
	Earliest till.Time // the first, leased or not
}

// DueLanes returns when the steps of lanes are due that are due before horizon, in one
// question for all lanes, and the database's time. It does not read accounts. While a
// node is unreachable, it says of each lane that a step may be due now.
func (s *Store) DueLanes(ctx context.Context, lanes []LaneView, horizon time.Duration) (out []LaneDue, now till.Time, err error) {
	err = OverAll(ctx, s, func(tx *Tx) (err error) {
		out, err = tx.dueLanes(ctx, lanes, horizon)
		now = tx.Now()
		return err
	}, func(tx *Tx, _ int) (till.Time, error) {
		return tx.Now(), tx.db.Flush(ctx)
	}, func(times []till.Time) error {
		out, now = make([]LaneDue, len(lanes)), slices.Max(times)
		for i := range out {
			out[i].Next = now
		}
		return nil
	})
	return out, now, err
}

// DueSteps is Tx.DueSteps in a transaction of its own. It leaves out unreachable
// nodes.
func (s *Store) DueSteps(ctx context.Context, lanes []LaneView, limits []int) (out []*Step, err error) {
	err = OverAll(ctx, s, func(tx *Tx) (err error) {
		out, err = tx.DueSteps(ctx, lanes, limits)
		return err
	}, func(tx *Tx, node int) ([]*Step, error) {
		return tx.dueStepsOf(ctx, node, lanes, limits)
	}, func(found [][]*Step) error {
		out = firstSteps(slices.Concat(found...), lanes, limits)
		return nil
	})
	return out, err
}

// dueStepsOf finds the keys of due steps on a node, and reads the steps by them.
func (tx *Tx) dueStepsOf(ctx context.Context, node int, lanes []LaneView, limits []int) (out []*Step, err error) {
	refs, err := tx.AskParts(ctx, askNodeOfSteps, dueStepsCommand(lanes, limits, tx.Now()), node)
	if err != nil {
		return nil, err
	}
	err = tx.db.QueryEach(ctx, selectStep, RefArgs(refs), func(_ int, r db.Row) error {
		s, err := ScanStep(r)
		if s.DueAt <= tx.Now() && s.LeaseUntil <= tx.Now() { // it may have changed since
			out = append(out, s)
		}
		return err
	})
	return out, err
}

// firstSteps returns the steps of lanes that are due first, as many of each lane as its limit.
func firstSteps(steps []*Step, lanes []LaneView, limits []int) []*Step {
	left := map[string]int{}
	for i, v := range lanes {
		left[v.Lane] = limits[i]
	}
	slices.SortStableFunc(steps, func(a, b *Step) int { return cmp.Compare(a.DueAt, b.DueAt) })
	return slices.DeleteFunc(steps, func(s *Step) bool {
		left[s.Lane]--
		return left[s.Lane] < 0
	})
}

// dueStepsCommand is what each part of steps is asked: its own name replaces %s.
func dueStepsCommand(lanes []LaneView, limits []int, now till.Time) string {
	values := make([]string, len(lanes))
	for i, v := range lanes {
		values[i] = fmt.Sprintf("(%s, %d::bigint, %d)", literal(v.Lane), int64(v.From), limits[i])
	}
	return `SELECT string_agg(encode(d.client_id, 'hex') || '|' || encode(d.subject_id, 'hex'), ' ')
		FROM (VALUES ` + strings.Join(values, ", ") + `) AS l (lane, since, most),
		LATERAL (SELECT client_id, subject_id, due_at FROM %s WHERE lane = l.lane AND due_at >= l.since AND due_at <= ` + fmt.Sprint(int64(now)) + `
			AND lease_until <= ` + fmt.Sprint(int64(now)) + ` ORDER BY due_at LIMIT l.most) AS d`
}

// literal returns a text as it is written in a command for parts.
func literal(text string) string {
	return "'" + strings.NewReplacer("'", "''", "%", "%%", "\x00", "").Replace(text) + "'"
}

// AskParts runs a command on each part of a table that a node has, and returns the keys that
// it answers.
func (tx *Tx) AskParts(ctx context.Context, ask *db.SQL, command string, node int) (refs []Ref, err error) {
	err = tx.db.Query(ctx, ask, []any{command, node}, func(r db.Row) error {
		var answered bool
		var text string
		if err := r.Scan(db.Bool(&answered), &text); err != nil {
			return err
		}
		if !answered {
			return fmt.Errorf("%w: node %d: %s", ErrUnavailable, node, text)
		}
		for _, field := range strings.Fields(text) {
			ref, err := parsePartKey(field)
			if err != nil {
				return err
			}
			refs = append(refs, ref)
		}
		return nil
	})
	return refs, err
}

func parsePartKey(field string) (ref Ref, err error) {
	client, id, _ := strings.Cut(field, "|")
	for dest, text := range map[*till.ID]string{&ref.Client: client, &ref.ID: id} {
		b, err := hex.DecodeString(text)
		if err != nil || len(b) != len(dest) {
			return ref, fmt.Errorf("store: a part of a table answered %q", field)
		}
		copy(dest[:], b)
	}
	return ref, nil
}
