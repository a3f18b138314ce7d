package main

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"till/internal/db/postgres"
	"till/store"
	"till/store/storetest"
)

// goodNode is a node of which nothing is to be said.
func goodNode(port int) postgres.Node {
	return postgres.Node{Address: fmt.Sprintf("127.0.0.1:%d", port), Coordinator: port == 1, Active: true, NodeState: postgres.NodeState{
		Prepared: 200, Connections: 100, LockTimeout: true, Durable: true, SynchronousCommit: "on", StandbyNames: "*", Standbys: 1, Synchronous: 1, Archives: true}}
}

func TestDoctorOnNodes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		change  func(c *postgres.Cluster)
		name    string
		verdict severity
		says    string
	}{
		{func(c *postgres.Cluster) {}, "nodes", isFine, "all 3 answer"},
		{func(c *postgres.Cluster) { c.Nodes[2].Problem = "failed to connect" }, "nodes", isWrong, "1 of 3 do not answer, and their clients cannot be served: 127.0.0.1:3: failed to connect"},
		{func(c *postgres.Cluster) { c.Nodes[2].Active = false }, "nodes", isWrong, "127.0.0.1:3 was disabled"},
		{func(c *postgres.Cluster) { c.Nodes[1].InDoubt = 2 }, "in doubt", isWrong, "127.0.0.1:2: transactions have been for more than a minute"},
		{func(c *postgres.Cluster) { c.Recovery = -time.Millisecond }, "recovery", isWrong, "stays locked for ever"},
		{func(c *postgres.Cluster) { c.Recovery = time.Minute }, "recovery", isRisky, "is 1m0s"},
		{func(c *postgres.Cluster) {}, "recovery", isFine, "every 5s"},
		{func(c *postgres.Cluster) { c.Nodes[0].Prepared, c.Nodes[2].Prepared = 0, 99 }, "prepared", isRisky, "127.0.0.1:1, 127.0.0.1:3: max_prepared_transactions"},
		{func(c *postgres.Cluster) { c.Nodes[2].LockTimeout = false }, "lock_timeout", isRisky, "127.0.0.1:3: none is set"},
		{func(c *postgres.Cluster) { c.Nodes[0].LockTimeout = false }, "lock_timeout", isFine, ""}, // each session to it has one
		{func(c *postgres.Cluster) { c.Nodes[2].Durable = false }, "nodes' fsync", isRisky, "127.0.0.1:3: fsync"},
		{func(c *postgres.Cluster) { c.Nodes[2].SynchronousCommit = "off" }, "nodes' commits", isWrong, "127.0.0.1:3: synchronous_commit"},
		{func(c *postgres.Cluster) { c.Nodes[2].SynchronousCommit = "local" }, "nodes' commits", isWrong, "127.0.0.1:3: synchronous_commit"},
		{func(c *postgres.Cluster) {}, "nodes' standbys", isFine, "each has a synchronous one"},
		{func(c *postgres.Cluster) { c.Nodes[1].Synchronous = 0 }, "nodes' standbys", isWrong, "127.0.0.1:2: synchronous_standby_names is set"},
		{func(c *postgres.Cluster) { c.Nodes[1].Synchronous, c.Nodes[1].StandbyNames = 0, "" }, "nodes' standbys", isRisky, "127.0.0.1:2: none is synchronous"},
		{func(c *postgres.Cluster) { c.Nodes[1].HiddenStates = 1 }, "nodes' standbys", isRisky, "127.0.0.1:2: this user may not see"},
		{func(c *postgres.Cluster) { c.Nodes[1].Archives = false }, "nodes' archives", isRisky, "127.0.0.1:2: archive_mode is off"},
	} {
		cluster := &postgres.Cluster{Nodes: []postgres.Node{goodNode(1), goodNode(2), goodNode(3)}, Recovery: 5 * time.Second}
		c.change(cluster)
		d := &doctor{}
		d.addCluster(cluster)
		found := findingOf(d, c.name)
		if found == nil || found.verdict != c.verdict || !strings.Contains(found.detail, c.says) || d.worst() != c.verdict {
			t.Errorf("%s: %+v, and the worst is %s; want %s: %s", c.name, found, d.worst(), c.verdict, c.says)
		}
		if d.silentNodes != (c.name == "nodes" && c.verdict == isWrong) {
			t.Errorf("%s: silent nodes: %v", c.says, d.silentNodes)
		}
	}
}

func findingOf(d *doctor, name string) *finding {
	for i := range d.findings {
		if d.findings[i].name == name {
			return &d.findings[i]
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
			if err := d.examineCluster(t.Context(), config.Path); err != nil {
				t.Fatal(err)
			}
			if err := d.examineStore(t.Context(), config.Path, ""); err != nil {
				t.Fatal(err)
			}
			return d
		}
		d := examine()
		for name, says := range map[string]string{"nodes": "all ", "in doubt": "no transaction", "prepared": "each connection", "identities": "every shard", "lock_timeout": "no lock"} {
			if f := findingOf(d, name); f == nil || f.verdict != isFine || !strings.HasPrefix(f.detail, says) {
				t.Errorf("%s: %+v", name, f)
			}
		}
		u, err := url.Parse(config.Path)
		if err != nil {
			t.Fatal(err)
		}
		storetest.Raw(t, config.Path, `ALTER DATABASE `+strings.Trim(u.Path, "/")+` RESET lock_timeout`)
		if f := findingOf(examine(), "lock_timeout"); f == nil || f.verdict != isRisky {
			t.Errorf("without lock_timeout: %+v", f)
		}
		pulse(t, s)
		if err := s.ReadyToDistribute(t.Context()); err != nil {
			t.Errorf("all is in its place, beside an instance: %v", err)
		}
		if err := e.Distribute(t, s); err != nil {
			t.Fatal(err)
		}
		if f := findingOf(examine(), "lock_timeout"); f == nil || f.verdict != isFine {
			t.Errorf("with lock_timeout: %+v", f)
		}
	}
}

// pulse leaves the sign of an instance that runs.
func pulse(t *testing.T, s *store.Store) {
	t.Helper()
	if err := s.Update(t.Context(), func(tx *store.Tx) error {
		return tx.PulseInstance(t.Context(), &store.Instance{ID: newUUID(), Version: "v0.9.0", Role: "all"})
	}); err != nil {
		t.Fatal(err)
	}
}

// A database is not distributed under an instance that took it for one server.
func TestDistributingWaitsForInstances(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		if e.Name == "sqlite" {
			continue
		}
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			config := e.Empty(t)
			s, err := store.Open(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if err := s.ReadyToDistribute(t.Context()); err != nil {
				t.Errorf("without a schema: %v", err)
			}
			if _, err := s.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := s.ReadyToDistribute(t.Context()); err != nil {
				t.Errorf("without instances: %v", err)
			}
			pulse(t, s)
			code, out := (&killing{t: t}).run("", "migrate", "--citus", "--database", config.Path)
			if code == 0 || !strings.Contains(out, "v0.9.0") || !strings.Contains(out, "stop them") {
				t.Errorf("with an instance: %d %s", code, out)
			}
		})
	}
}
