package engine

import (
	"context"
	"strings"

	"till/store"
)

// What concerns one kind of subject is kept apart from the other's: an operator
// whose payouts fail takes payments still, and the other way round.

// operation names a kind of call for a kind of subject.
func operation(kind string, action Action) string {
	switch {
	case kind == store.KindPayout && action == Submit:
		return store.OpPayoutSubmit
	case kind == store.KindPayout:
		return store.OpPayoutCheck
	case action == Submit:
		return store.OpSubmit
	}
	return store.OpCheck
}

func (w *Worker) operation(connection string, action Action) store.Operation {
	return store.Operation{Connection: connection, Name: operation(w.kind, action)}
}

func (w *Worker) lane(connection string, action Action) string {
	return store.Lane(connection, operation(w.kind, action))
}

// kindOf returns whose steps wait in a lane.
func kindOf(lane string) string {
	if strings.HasSuffix(lane, " "+store.OpPayoutSubmit) || strings.HasSuffix(lane, " "+store.OpPayoutCheck) {
		return store.KindPayout
	}
	return store.KindPayment
}

// breaker returns the name of a connection's breaker.
func (w *Worker) breaker(connection string) string {
	if w.kind == store.KindPayout {
		return connection + " payouts"
	}
	return connection
}

// ownHealth returns what came of the calls of this engine's kind, under the names of
// its breakers and as what a breaker is judged by.
func (w *Worker) ownHealth(rows []store.HealthRow) []store.HealthRow {
	var out []store.HealthRow
	for _, r := range rows {
		for _, action := range []Action{Submit, Check} {
			if r.Name == operation(w.kind, action) {
				r.Connection, r.Name = w.breaker(r.Connection), operation(store.KindPayment, action)
				out = append(out, r)
				break
			}
		}
	}
	return out
}

// lockBreakers locks and returns the breakers of connections, by connection.
func (w *Worker) lockBreakers(ctx context.Context, tx *store.Tx, connections []string) (map[string]*store.Breaker, error) {
	names := make([]string, len(connections))
	for i, c := range connections {
		names[i] = w.breaker(c)
	}
	found, err := tx.LockBreakers(ctx, names)
	if err != nil {
		return nil, err
	}
	out := make(map[string]*store.Breaker, len(found))
	for i, c := range connections {
		if b := found[names[i]]; b != nil {
			out[c] = b
		}
	}
	return out, nil
}
