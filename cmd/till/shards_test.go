package main

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// maxMoveWait is how long a client may wait while a shard is moved. Citus holds up the writes
// of the shard at the end, when the copy has caught up, and the copy needs the processors.
const maxMoveWait = 30 * time.Second

// TestShardsMove moves three shards of Citus to another node under load: all clients are
// served meanwhile, and nothing that was answered is lost.
func TestShardsMove(t *testing.T) {
	c := startCluster(t)
	moved := map[int64]bool{}
	for _, s := range c.shops {
		place := c.placeOf(s)
		if moved[place.shard] || len(moved) == 3 {
			continue
		}
		moved[place.shard] = true
		to := c.addressOf(c.groups[1] + c.groups[2] - s.node)
		began := c.watch()
		c.onCoordinator(`SELECT citus_move_shard_placement($1, $2, $3, $4, $5)`, place.shard, place.host, place.port, to.host, to.port)
		c.t.Logf("shard %d moved to %s:%d in %s", place.shard, to.host, to.port, time.Since(began).Round(time.Millisecond))
		c.allServed("after a shard was moved")
		for _, other := range c.shops {
			gap := other.longestGap(began)
			t.Logf("a client waited at most %s (its own shard was moved: %v)", gap.Round(time.Millisecond), c.placeOf(other).shard == place.shard)
			if gap > maxMoveWait {
				t.Errorf("while a shard was moved, a client waited %s", gap)
			}
		}
	}
	if len(moved) != 3 {
		t.Errorf("%d shards were moved", len(moved))
	}
	c.finish()
}

// TestATransactionInDoubtEnds leaves a transaction prepared on a node, as a coordinator does
// that dies before it has written how the transaction ends. It holds a client's head. Citus
// ends it when it checks for such (citus.recover_2pc_interval), and the client is served again.
func TestATransactionInDoubtEnds(t *testing.T) {
	c := startCluster(t)
	s := c.shops[0]
	place := c.placeOf(s)
	u, err := url.Parse(c.database)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = net.JoinHostPort(place.host, strconv.Itoa(place.port))
	ctx := context.Background()
	node, err := pgx.Connect(ctx, u.String())
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close(ctx)
	// The name says: of the coordinator (0), by a process and in a transaction that are gone.
	for _, query := range []string{`SET citus.enable_manual_changes_to_shards = on`, `BEGIN`,
		fmt.Sprintf(`UPDATE %s SET last_time = last_time WHERE client_id = '\x%x'`, place.heads, s.id[:]), `PREPARE TRANSACTION 'citus_0_1_4000000000_1'`} {
		tag, err := node.Exec(ctx, query)
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		if tag.Update() && tag.RowsAffected() != 1 {
			t.Fatalf("%s: %s", query, tag)
		}
	}
	began := c.watch()
	c.allServed("after a transaction was left in doubt")
	for _, other := range c.shops {
		if other.node != s.node {
			other.expectServed(began, "a transaction of others was in doubt")
		} else {
			t.Logf("a client of the node waited at most %s (its own head was locked: %v)", other.longestGap(began).Round(time.Millisecond), other == s)
		}
	}
	var left int
	if err := node.QueryRow(ctx, `SELECT count(*) FROM pg_prepared_xacts WHERE gid = 'citus_0_1_4000000000_1'`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d such transactions are left, %v", left, err)
	}
	c.finish()
}

// place is where a client's rows are.
type place struct {
	host  string
	port  int
	shard int64  // of clients; those of the other tables are beside it
	heads string // the client's part of client_heads
}

// placeOf asks the coordinator where a shop's rows are.
func (c *cluster) placeOf(s *nodeShop) (p place) {
	c.t.Helper()
	c.ask(`SELECT n.nodename, n.nodeport, p.shardid, shard_name('client_heads', get_shard_id_for_distribution_column('client_heads', $1::bytea))
		FROM pg_dist_placement p JOIN pg_dist_node n USING (groupid) WHERE p.shardid = get_shard_id_for_distribution_column('clients', $1::bytea)`,
		[]any{s.id[:]}, &p.host, &p.port, &p.shard, &p.heads)
	return p
}

// addressOf returns the address of a node.
func (c *cluster) addressOf(group int) (p place) {
	c.t.Helper()
	c.ask(`SELECT nodename, nodeport FROM pg_dist_node WHERE groupid = $1`, []any{group}, &p.host, &p.port)
	return p
}

// ask reads one row on the coordinator.
func (c *cluster) ask(query string, args []any, dest ...any) {
	c.t.Helper()
	c.coordinator(func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, query, args...).Scan(dest...)
	})
}

// onCoordinator runs a command there.
func (c *cluster) onCoordinator(query string, args ...any) {
	c.t.Helper()
	c.coordinator(func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, query, args...)
		return err
	})
}

func (c *cluster) coordinator(f func(ctx context.Context, conn *pgx.Conn) error) {
	c.t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, c.database)
	if err == nil {
		defer conn.Close(ctx)
		err = f(ctx, conn)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}
