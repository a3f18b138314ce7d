package doctor

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"till"
	"till/internal/db/postgres"
	"till/store"
	"till/store/admin"
	"till/store/storetest"
)

// goodNode is a node of which nothing is to be said.
func goodNode(port int) postgres.Node {
	return postgres.Node{Address: fmt.Sprintf("127.0.0.1:%d", port), Coordinator: port == 1, Active: true, NodeState: postgres.NodeState{
		Prepared: 200, Connections: 100, LockTimeout: true, Durable: true, SynchronousCommit: "on", StandbyNames: "*", Standbys: 1, Synchronous: 1, Archives: true, Workers: 8, Daemons: 1}}
}

func TestDoctorOnNodes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		change  func(c *postgres.Cluster)
		name    string
		verdict Severity
		says    string
	}{
		{func(c *postgres.Cluster) {}, "nodes", Fine, "all 3 answer"},
		{func(c *postgres.Cluster) { c.Nodes[2].Problem = "failed to connect" }, "nodes", Wrong, "1 of 3 do not answer, and their clients cannot be served: 127.0.0.1:3: failed to connect"},
		{func(c *postgres.Cluster) { c.Nodes[2].Active = false }, "nodes", Wrong, "127.0.0.1:3 was disabled"},
		{func(c *postgres.Cluster) { c.Nodes[1].InDoubt = 2 }, "in doubt", Wrong, "127.0.0.1:2: transactions have been for more than a minute"},
		{func(c *postgres.Cluster) { c.Recovery = -time.Millisecond }, "recovery", Wrong, "stays locked for ever"},
		{func(c *postgres.Cluster) { c.Recovery = time.Minute }, "recovery", Risky, "is 1m0s"},
		{func(c *postgres.Cluster) {}, "recovery", Fine, "every 5s"},
		{func(c *postgres.Cluster) { c.Nodes[0].Prepared, c.Nodes[2].Prepared = 0, 99 }, "prepared", Risky, "127.0.0.1:1, 127.0.0.1:3: max_prepared_transactions"},
		{func(c *postgres.Cluster) { c.Nodes[2].Connections = 99 }, "nodes' connections", Risky, "127.0.0.1:3: max_connections is below the coordinator's"},
		{func(c *postgres.Cluster) { c.Nodes[1].Daemons = 6 }, "processes", Risky, "127.0.0.1:2: max_worker_processes"},
		{func(c *postgres.Cluster) { c.Nodes[2].LockTimeout = false }, "lock_timeout", Risky, "127.0.0.1:3: none is set"},
		{func(c *postgres.Cluster) { c.Nodes[0].LockTimeout = false }, "lock_timeout", Fine, ""}, // each session to it has one
		{func(c *postgres.Cluster) { c.Nodes[2].Durable = false }, "nodes' fsync", Risky, "127.0.0.1:3: fsync"},
		{func(c *postgres.Cluster) { c.Nodes[2].SynchronousCommit = "off" }, "nodes' commits", Wrong, "127.0.0.1:3: synchronous_commit"},
		{func(c *postgres.Cluster) { c.Nodes[2].SynchronousCommit = "local" }, "nodes' commits", Wrong, "127.0.0.1:3: synchronous_commit"},
		{func(c *postgres.Cluster) {}, "nodes' standbys", Fine, "each has a synchronous one"},
		{func(c *postgres.Cluster) { c.Nodes[1].Synchronous = 0 }, "nodes' standbys", Wrong, "127.0.0.1:2: synchronous_standby_names is set"},
		{func(c *postgres.Cluster) { c.Nodes[1].Synchronous, c.Nodes[1].StandbyNames = 0, "" }, "nodes' standbys", Risky, "127.0.0.1:2: none is synchronous"},
		{func(c *postgres.Cluster) { c.Nodes[1].HiddenStates = 1 }, "nodes' standbys", Risky, "127.0.0.1:2: this user may not see"},
		{func(c *postgres.Cluster) { c.Nodes[1].Archives = false }, "nodes' archives", Risky, "127.0.0.1:2: archive_mode is off"},
	} {
		cluster := &postgres.Cluster{Nodes: []postgres.Node{goodNode(1), goodNode(2), goodNode(3)}, Recovery: 5 * time.Second}
		c.change(cluster)
		d := &doctor{}
		d.addCluster(cluster)
		found := findingOf(d, c.name)
		if found == nil || found.Verdict != c.verdict || !strings.Contains(found.Detail, c.says) || d.Worst() != c.verdict {
			t.Errorf("%s: %+v, and the worst is %s; want %s: %s", c.name, found, d.Worst(), c.verdict, c.says)
		}
		if d.silentNodes != (c.name == "nodes" && c.verdict == Wrong) {
			t.Errorf("%s: silent nodes: %v", c.says, d.silentNodes)
		}
	}
}

// Connections are counted by nodes, as the pools are made. A node can be added only while less
// than half of the coordinator's are in use.
func TestDoctorCountsConnectionsByNodes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		nodes, used, most int // nodes 0: no Citus
		verdict           Severity
		says              string
	}{
		{0, 5, 100, Fine, "5 of 100 are in use; an instance takes up to 20"},
		{0, 81, 100, Risky, "takes up to 20; raise max_connections"},
		{2, 65, 200, Fine, "an instance takes up to 30"},
		{3, 60, 200, Fine, "an instance takes up to 40"},
		{3, 61, 200, Risky, "less than half of them"},
		{8, 20, 200, Risky, "an instance takes up to 90"},
		{20, 20, 400, Fine, "an instance takes up to 90"},
	} {
		d := &doctor{}
		var cluster *postgres.Cluster
		if c.nodes > 0 {
			cluster = &postgres.Cluster{ClientNodes: c.nodes}
		}
		d.addConnections(&postgres.Diagnosis{Connections: c.used, MaxConnections: c.most}, cluster)
		if f := findingOf(d, "connections"); f.Verdict != c.verdict || !strings.Contains(f.Detail, c.says) {
			t.Errorf("%+v: %+v", c, f)
		}
	}
}

func findingOf(d *doctor, name string) *Finding {
	for i := range d.All {
		if d.All[i].Name == name {
			return &d.All[i]
		}
	}
	return nil
}

// On a cluster: all nodes are asked, and a setting that they lack is said until
// 'till migrate --citus' has run once more. It may, beside instances.
func TestDoctorOnACluster(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		if e.Name != "citus" {
			continue
		}
		config := e.Empty(t) // and no copy: the settings of a copied database do not reach the nodes
		s, err := store.Open(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if _, err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := e.Distribute(t, s); err != nil {
			t.Fatal(err)
		}
		examine := func() *doctor {
			t.Helper()
			d := &doctor{}
			if err := d.examinePostgres(t.Context(), config.Path); err != nil {
				t.Fatal(err)
			}
			if err := d.examineStore(t.Context(), config.Path, ""); err != nil {
				t.Fatal(err)
			}
			return d
		}
		d := examine()
		for name, says := range map[string]string{"nodes": "all ", "nodes' connections": "each ", "processes": "Citus has", "in doubt": "no transaction", "prepared": "each connection", "identities": "every shard", "lock_timeout": "no lock"} {
			if f := findingOf(d, name); f == nil || f.Verdict != Fine || !strings.HasPrefix(f.Detail, says) {
				t.Errorf("%s: %+v", name, f)
			}
		}
		u, err := url.Parse(config.Path)
		if err != nil {
			t.Fatal(err)
		}
		storetest.Raw(t, config.Path, `ALTER DATABASE `+strings.Trim(u.Path, "/")+` RESET lock_timeout`)
		if f := findingOf(examine(), "lock_timeout"); f == nil || f.Verdict != Risky {
			t.Errorf("without lock_timeout: %+v", f)
		}
		if err := s.Update(t.Context(), func(tx *store.Tx) error {
			return admin.PulseInstance(t.Context(), tx, &admin.Instance{ID: till.NewID(tx.Now()), Version: "v0.9.0", Role: "all"})
		}); err != nil {
			t.Fatal(err)
		}
		if err := admin.ReadyToDistribute(t.Context(), s); err != nil {
			t.Errorf("all is in its place, beside an instance: %v", err)
		}
		if err := e.Distribute(t, s); err != nil {
			t.Fatal(err)
		}
		if f := findingOf(examine(), "lock_timeout"); f == nil || f.Verdict != Fine {
			t.Errorf("with lock_timeout: %+v", f)
		}
	}
}
