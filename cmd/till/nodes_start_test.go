package main

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"syscall"
	"testing"

	"till"
	"till/store"
	"till/store/storetest"
)

// An instance starts while a node of Citus is unreachable, and serves the clients of the others.
// The node is unreachable for this database alone: its coordinator has an address at which nobody
// listens. That nothing but the lock needed all nodes is held on PostgreSQL too, by
// TestAStartOnASchemaOfTodayTakesNoLock.
func TestAnInstanceStartsBesideADeadNode(t *testing.T) {
	dir := t.TempDir()
	k := &killing{t: t, dir: dir, database: citusEngine(t).Config(t).Path, book: filepath.Join(dir, "operator.db"), admin: "127.0.0.1:0", answered: map[string]string{}}
	k.end(k.start(), syscall.SIGTERM) // the first start of all makes its rows
	k.key = clientBeside(t, k.database, 1)
	storetest.Raw(t, k.database, `UPDATE pg_dist_node SET nodeport = 1 WHERE groupid = 1`)
	for _, role := range []string{"all", "api"} {
		s := k.start("--role", role)
		key := till.NewID(1).String()
		if !k.send(t.Context(), `{"method":"mtn_momo","country":"CG","amount":{"value":"5000","currency":"XAF"},"idempotency_key":"`+key+`","customer":{"phone":"242061234567"}}`, key) {
			t.Errorf("role %s: a client of another node is not served", role)
		}
		k.end(s, syscall.SIGTERM)
	}
}

// clientBeside makes clients until one is not on a node, and returns its key.
func clientBeside(t *testing.T, database string, node int) (key string) {
	t.Helper()
	onStore(t, database, func(s *store.Store) error {
		for {
			var out, errs bytes.Buffer
			if code := run(context.Background(), []string{"client", "create", "--database", database, "--name", "shop", "--json"}, &out, &errs); code != 0 {
				t.Fatal(errs.String())
			}
			var made struct {
				ID     string `json:"client_id"`
				APIKey string `json:"api_key"`
			}
			if err := json.Unmarshal(out.Bytes(), &made); err != nil {
				return err
			}
			id, err := till.ParseID(made.ID)
			if err != nil {
				return err
			}
			if s.Node(t.Context(), id) != node {
				key = made.APIKey
				return nil
			}
		}
	})
	return key
}
