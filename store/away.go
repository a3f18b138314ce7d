package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"till"
	"till/internal/db"
)

// An unreachable node of Citus refuses connections, or neither answers nor refuses. A
// statement that waits for one of the second kind cannot be ended: the coordinator itself
// waits for it. So a read or claim for clients of several nodes gives up after a while,
// finds out which nodes are unreachable, and skips those until they answer (ADR 0071).

const (
	// allFor is how long a read over all clients, or a claim, waits for an answer before the
	// nodes are asked whether they are there.
	allFor = 2 * time.Second
	// askFor is how long one node may take to answer.
	askFor = 3 * time.Second
	// clientFor is how long a read of one client waits that takes one of few readers.
	clientFor = 5 * time.Second
	// askEvery is how often an unreachable node is asked whether it is back.
	askEvery = time.Second
)

var selectNodesOfClients = db.Define(db.SQL{Name: "citus.selectNodesOfClients",
	Postgres: `SELECT DISTINCT p.groupid FROM pg_dist_placement p JOIN pg_dist_shard s USING (shardid) WHERE s.logicalrelid = 'steps'::regclass ORDER BY p.groupid`})

// It opens a connection to the node, so it is asked only when something has failed.
var askNode = db.Define(db.SQL{Name: "citus.askNode",
	Postgres: `SELECT r.success FROM pg_dist_node n, LATERAL master_run_on_worker(ARRAY[n.nodename], ARRAY[n.nodeport], ARRAY['SELECT 1'], true) AS r
		WHERE n.groupid = $1::int AND n.noderole = 'primary'`})

// errAway is the error of a read that a node's absence makes useless.
var errAway = fmt.Errorf("%w: a node of the database is away", ErrUnavailable)

// away lists the nodes that do not answer.
type away struct {
	mu    sync.Mutex
	nodes map[int]*awayNode
}

type awayNode struct {
	askAt  time.Time
	asking bool
}

func (a *away) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.nodes)
}

func (a *away) is(node int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.nodes[node] != nil
}

// set notes whether a node is unreachable.
func (a *away) set(node int, is bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !is {
		delete(a.nodes, node)
		return
	}
	if a.nodes == nil {
		a.nodes = map[int]*awayNode{}
	}
	a.nodes[node] = &awayNode{askAt: time.Now().Add(askEvery)}
}

// toAsk returns the unreachable nodes whose turn it is to be asked. They must be set
// afterwards.
func (a *away) toAsk() (out []int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for node, n := range a.nodes {
		if !n.asking && time.Now().After(n.askAt) {
			n.asking = true
			out = append(out, node)
		}
	}
	return out
}

// Brief returns a context for reads of one client that give up early on a distributed
// database: those that wait for one node must not keep all readers busy.
func (s *Store) Brief(ctx context.Context) context.Context { return s.within(ctx, clientFor) }

func (s *Store) within(ctx context.Context, d time.Duration) context.Context {
	if !s.nodes.known {
		return ctx
	}
	return db.WithSilence(ctx, d)
}

// OnNode runs f, which is about clients of one node, with a context in which it gives up
// early. If it fails and the node answers, the node is only slow, and f runs once more with
// all the time that it needs.
func (s *Store) OnNode(ctx context.Context, node int, f func(ctx context.Context) error) error {
	err := f(s.within(ctx, allFor))
	if !s.nodes.known || !errors.Is(err, ErrUnavailable) {
		return err
	}
	if s.NoteSilence(ctx); s.nodes.away.is(node) {
		return err
	}
	return f(ctx)
}

// CheckNode returns ErrUnavailable if the node with a client's rows is unreachable. Call it
// outside of transactions.
func (s *Store) CheckNode(ctx context.Context, client till.ID) error {
	if !s.nodes.known || client.IsZero() || !s.anyAway(ctx) || !s.nodes.away.is(s.Node(ctx, client)) {
		return nil
	}
	return errAway
}

// anyAway reports whether a node is unreachable. It has those asked whose turn it is, and
// does not wait for the answer.
func (s *Store) anyAway(ctx context.Context) bool {
	if s.nodes.away.count() == 0 {
		return false
	}
	for _, node := range s.nodes.away.toAsk() {
		go s.ask(context.WithoutCancel(ctx), node)
	}
	return true
}

// ask finds out whether a node is reachable.
func (s *Store) ask(ctx context.Context, node int) {
	answers := false
	err := s.View(db.WithSilence(ctx, askFor), func(tx *Tx) error {
		_, err := tx.db.QueryRow(ctx, askNode, []any{node}, db.Bool(&answers))
		return err
	})
	s.nodes.away.set(node, err != nil || !answers)
}

// NoteSilence finds out which nodes are unreachable, after one did not answer.
func (s *Store) NoteSilence(ctx context.Context) {
	if !s.nodes.known {
		return
	}
	nodes, err := s.nodesOfClients(ctx)
	if err != nil {
		return // the coordinator itself is unreachable
	}
	var asked sync.WaitGroup
	for _, node := range nodes {
		if !s.nodes.away.is(node) {
			asked.Go(func() { s.ask(ctx, node) })
		}
	}
	asked.Wait()
}

func (s *Store) nodesOfClients(ctx context.Context) (nodes []int, err error) {
	err = s.View(s.within(ctx, allFor), func(tx *Tx) error {
		nodes = nil
		return tx.db.Query(ctx, selectNodesOfClients, nil, func(r db.Row) error {
			var node int
			err := r.Scan(&node)
			nodes = append(nodes, node)
			return err
		})
	})
	return nodes, err
}

// ViewAll is View for a read over all clients. On a distributed database it fails while a
// node is unreachable. If it takes long although all nodes answer, it has all the time that it
// needs.
func (s *Store) ViewAll(ctx context.Context, f func(tx *Tx) error) error {
	if s.nodes.known && s.anyAway(ctx) {
		return errAway
	}
	err := s.View(s.within(ctx, allFor), f)
	if !s.nodes.known || !errors.Is(err, ErrUnavailable) {
		return err
	}
	if s.NoteSilence(ctx); s.nodes.away.count() > 0 {
		return err
	}
	return s.View(ctx, f)
}

// OverAll runs a read over all clients. If a node is unreachable, it runs rest for each other node
// instead, at once, and then merge with what they found, in the order of the nodes.
func OverAll[T any](ctx context.Context, s *Store, read func(tx *Tx) error, rest func(tx *Tx, node int) (T, error), merge func(found []T) error) error {
	cause := s.ViewAll(ctx, read)
	if !s.nodes.known || !errors.Is(cause, ErrUnavailable) {
		return cause
	}
	nodes, err := s.nodesOfClients(ctx)
	if err != nil {
		return errors.Join(cause, err)
	}
	found, errs := make([]T, len(nodes)), make([]error, len(nodes))
	var asked sync.WaitGroup
	var answered atomic.Bool
	for i, node := range nodes {
		if s.nodes.away.is(node) {
			continue
		}
		asked.Go(func() {
			errs[i] = s.View(s.within(ctx, askFor), func(tx *Tx) (err error) { found[i], err = rest(tx, node); return err })
			if errors.Is(errs[i], ErrUnavailable) {
				s.nodes.away.set(node, true)
			} else {
				answered.Store(true)
			}
		})
	}
	asked.Wait()
	for _, err := range errs {
		if err != nil && !errors.Is(err, ErrUnavailable) {
			return err
		}
	}
	if !answered.Load() {
		return errors.Join(append(errs, cause)...)
	}
	return merge(found)
}
