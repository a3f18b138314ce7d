package postgres

import (
	"context"
	"net"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// Cluster is the state of the servers over which Citus has distributed the database.
type Cluster struct {
	Nodes    []Node        // the coordinator first
	Recovery time.Duration // how often Citus ends transactions in doubt; negative: never

	ClientNodes int // on which clients are
}

// Node is one server of a cluster, as the coordinator sees it.
type Node struct {
	Address     string // host:port
	Coordinator bool
	Active      bool   // false: citus_disable_node has taken it out
	Problem     string // why the coordinator could not ask it; "": it answered, and the rest is known
	NodeState
}

// NodeState is what a node says of itself.
type NodeState struct {
	Prepared          int    `json:"prepared"`     // max_prepared_transactions
	Connections       int    `json:"connections"`  // max_connections
	LockTimeout       bool   `json:"lock_timeout"` // there is one in what Citus runs there
	InDoubt           int    `json:"in_doubt"`     // transactions that were prepared more than a minute ago
	Durable           bool   `json:"durable"`      // fsync and full_page_writes are on
	SynchronousCommit string `json:"synchronous_commit"`
	StandbyNames      string `json:"standby_names"` // synchronous_standby_names
	Standbys          int    `json:"standbys"`      // that are connected
	Synchronous       int    `json:"synchronous"`   // of them
	HiddenStates      int    `json:"hidden"`        // of those whose state this user may not see
	Archives          bool   `json:"archives"`      // its log is archived
	Workers           int    `json:"workers"`       // max_worker_processes
	Daemons           int    `json:"daemons"`       // of them look after databases with Citus
}

// maxNodes is how many nodes are read.
const maxNodes = 1000

// askNode is what each node is asked. Connections that move shards, and backups, are no standbys.
const askNode = `SELECT json_build_object('prepared', current_setting('max_prepared_transactions')::int, 'connections', current_setting('max_connections')::int,
	'lock_timeout', current_setting('lock_timeout') <> '0',
	'in_doubt', (SELECT count(*) FROM pg_prepared_xacts WHERE database = current_database() AND prepared < clock_timestamp() - interval '1 minute'),
	'durable', current_setting('fsync')::bool AND current_setting('full_page_writes')::bool,
	'synchronous_commit', current_setting('synchronous_commit'), 'standby_names', current_setting('synchronous_standby_names'),
	'standbys', count(*), 'synchronous', count(*) FILTER (WHERE sync_state IN ('sync', 'quorum')), 'hidden', count(*) FILTER (WHERE sync_state IS NULL),
	'archives', current_setting('archive_mode') <> 'off', 'workers', current_setting('max_worker_processes')::int,
	'daemons', (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'Citus Maintenance Daemon'))
	FROM pg_stat_replication WHERE application_name <> 'pg_basebackup' AND application_name NOT LIKE 'citus\_shard\_%'`

// DiagnoseCluster reads the state of the cluster whose coordinator is behind a URL. It
// returns nil if the database is not distributed. It changes nothing.
func DiagnoseCluster(ctx context.Context, url string) (*Cluster, error) {
	conn, err := connectOnce(ctx, url)
	if err != nil {
		return nil, err
	}
	defer hangup(conn)
	var yes bool
	err = conn.QueryRow(ctx, `SELECT to_regclass('pg_dist_partition') IS NOT NULL`).Scan(&yes)
	if err == nil && yes {
		err = conn.QueryRow(ctx, `SELECT count(*) > 0 FROM pg_dist_partition WHERE logicalrelid = to_regclass('payments')`).Scan(&yes)
	}
	if err != nil || !yes {
		return nil, err
	}
	c := &Cluster{}
	var recovery int64
	if err := conn.QueryRow(ctx, `SELECT setting::bigint FROM pg_settings WHERE name = 'citus.recover_2pc_interval'`).Scan(&recovery); err != nil {
		return nil, err
	}
	c.Recovery = time.Duration(recovery) * time.Millisecond
	if err := conn.QueryRow(ctx, `SELECT count(DISTINCT p.groupid) FROM pg_dist_placement p JOIN pg_dist_shard s USING (shardid)
			WHERE s.logicalrelid = to_regclass('payments')`).Scan(&c.ClientNodes); err != nil {
		return nil, err
	}
	c.Nodes, err = askNodes(ctx, conn)
	return c, err
}

// askNodes asks each node. A node that cannot be reached is no error of the statement.
func askNodes(ctx context.Context, conn *pgx.Conn) (nodes []Node, err error) {
	rows, err := conn.Query(ctx, `SELECT n.nodename, n.nodeport, n.groupid = 0, n.isactive,
			CASE WHEN r.success THEN r.result::json END, CASE WHEN r.success THEN '' ELSE COALESCE(r.result, 'it was not asked') END
		FROM pg_dist_node n LEFT JOIN run_command_on_all_nodes($1) r ON r.nodeid = n.nodeid
		WHERE n.noderole = 'primary' ORDER BY n.groupid, n.nodeid LIMIT $2`, askNode, maxNodes)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var n Node
		var host string
		var port int
		var state *NodeState
		if err := rows.Scan(&host, &port, &n.Coordinator, &n.Active, &state, &n.Problem); err != nil {
			return nil, err
		}
		n.Address = net.JoinHostPort(host, strconv.Itoa(port))
		if state != nil {
			n.NodeState = *state
		}
		nodes = append(nodes, n)
	}
	return nodes, rows.Err()
}
