package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"till/internal/db/postgres"
	"till/store"
)

// maxRecovery is how long a client whose node has crashed should wait for the
// transactions that the crash left in doubt.
const maxRecovery = 10 * time.Second

// workersToMove is how many processes of its own a server needs beside those that serve
// its databases: four that move shards, one that copies, one that starts them.
const workersToMove = 6

// addCluster checks each server of a database that Citus has distributed. The checks of
// PostgreSQL before it are of the coordinator alone.
func (d *doctor) addCluster(c *postgres.Cluster) {
	var answering, others []postgres.Node // others: without the coordinator
	var silent []string
	for _, n := range c.Nodes {
		switch {
		case !n.Active:
			silent = append(silent, n.Address+" was disabled")
		case n.Problem != "":
			silent = append(silent, n.Address+": "+n.Problem)
		default:
			if answering = append(answering, n); !n.Coordinator {
				others = append(others, n)
			}
		}
	}
	d.silentNodes = len(silent) > 0
	d.addIf("nodes", d.silentNodes, Wrong, fmt.Sprintf("all %d answer", len(c.Nodes)),
		fmt.Sprintf("%d of %d do not answer, and their clients cannot be served: %s", len(silent), len(c.Nodes), strings.Join(silent, "; ")))

	d.addNodes("in doubt", answering, Wrong, "no transaction has been for more than a minute",
		"transactions have been for more than a minute, and keep their rows locked; run SELECT recover_prepared_transactions() on the coordinator",
		func(n *postgres.Node) bool { return n.InDoubt > 0 })
	switch {
	case c.Recovery < 0:
		d.add("recovery", Wrong, "citus.recover_2pc_interval is off: what a crash leaves in doubt stays locked for ever; set it to 5s on the coordinator")
	case c.Recovery > maxRecovery:
		d.add("recovery", Risky, "citus.recover_2pc_interval is %s: after a crash clients may wait that long; set it to 5s on the coordinator", c.Recovery)
	default:
		d.add("recovery", Fine, "transactions in doubt are ended every %s", c.Recovery)
	}
	d.addNodes("prepared", answering, Risky, "each connection can prepare its commit",
		"max_prepared_transactions is below max_connections, so under load commits over two servers fail",
		func(n *postgres.Node) bool { return n.Prepared < n.Connections })
	d.addNodes("nodes' connections", others, Risky, "each connection to the coordinator can have one there",
		"max_connections is below the coordinator's, and each connection to it may open one there",
		func(n *postgres.Node) bool { return n.Connections < c.Nodes[0].Connections })
	d.addNodes("processes", answering, Risky, "Citus has processes left to move shards with",
		"max_worker_processes leaves none to move shards with: each database with Citus takes one for ever; set it to 16 or more",
		func(n *postgres.Node) bool { return n.Workers < n.Daemons+workersToMove })
	d.addNodes("lock_timeout", others, Risky, "no lock is waited for without an end",
		"none is set, so a lock that nobody releases holds up a client for ever; run 'till migrate --citus' once more",
		func(n *postgres.Node) bool { return !n.LockTimeout })
	d.addNodes("nodes' fsync", others, Risky, "commits reach their disks",
		"fsync or full_page_writes is off: a power cut can lose payments",
		func(n *postgres.Node) bool { return !n.Durable })
	d.addNodes("nodes' commits", others, Wrong, "a commit is answered when it is kept",
		"synchronous_commit lets payments be acknowledged before they are kept; set it to on",
		func(n *postgres.Node) bool {
			return n.SynchronousCommit == "off" || n.SynchronousCommit == "local" && n.StandbyNames != ""
		})
	d.addNodeStandbys(others)
	d.addNodes("nodes' archives", others, Risky, "their logs are archived",
		"archive_mode is off: a restore loses everything since the last base backup",
		func(n *postgres.Node) bool { return !n.Archives })
}

// addNodeStandbys warns if the loss of a node could lose acknowledged commits.
func (d *doctor) addNodeStandbys(nodes []postgres.Node) {
	const name = "nodes' standbys"
	before := len(d.All)
	for _, c := range []struct {
		verdict Severity
		says    string
		bad     func(n *postgres.Node) bool
	}{
		{Risky, "this user may not see how they follow; grant it pg_monitor there", func(n *postgres.Node) bool { return n.HiddenStates > 0 }},
		{Wrong, "synchronous_standby_names is set and no such standby is connected: every commit waits",
			func(n *postgres.Node) bool {
				return n.HiddenStates == 0 && n.StandbyNames != "" && n.Synchronous == 0
			}},
		{Risky, "none is synchronous: if the machine is lost, so are acknowledged payments",
			func(n *postgres.Node) bool {
				return n.HiddenStates == 0 && n.StandbyNames == "" && n.Synchronous == 0
			}},
	} {
		if where := addressesOf(nodes, c.bad); where != "" {
			d.add(name, c.verdict, "%s: %s", where, c.says)
		}
	}
	if len(d.All) == before {
		d.add(name, Fine, "each has a synchronous one")
	}
}

// addNodes adds a finding about the nodes for which bad holds.
func (d *doctor) addNodes(name string, nodes []postgres.Node, v Severity, otherwise, says string, bad func(n *postgres.Node) bool) {
	where := addressesOf(nodes, bad)
	d.addIf(name, where != "", v, otherwise, where+": "+says)
}

// addressesOf returns the addresses of the nodes for which bad holds.
func addressesOf(nodes []postgres.Node, bad func(n *postgres.Node) bool) string {
	var where []string
	for i := range nodes {
		if bad(&nodes[i]) {
			where = append(where, nodes[i].Address)
		}
	}
	return strings.Join(where, ", ")
}

// examineIdentities warns of tables that would keep a shard from being moved.
func (d *doctor) examineIdentities(ctx context.Context, s *store.Store) error {
	if !s.Distributed() {
		return nil
	}
	tables, err := s.WithoutIdentity(ctx)
	if err != nil {
		return err
	}
	d.addIf("identities", len(tables) > 0, Risky, "every shard can be moved while it is written",
		fmt.Sprintf("shards cannot be moved while %s are written; run 'till migrate --citus' once more", strings.Join(tables, ", ")))
	return nil
}
