package server_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"till"
	"till/server"
	"till/store/admin"
	"till/store/storetest"
)

// sharedConfig is testConfig on a database of an engine.
func sharedConfig(t *testing.T, e storetest.Engine) server.Config {
	c := testConfig(t)
	if e.Name != "sqlite" {
		dir := t.TempDir()
		c.Database, c.SecretFile, c.SandboxPath, c.DemoFile = e.Config(t).Path, filepath.Join(dir, "till.secret"), filepath.Join(dir, "sandbox.db"), ""
	}
	return c
}

// A server does not run a migration under others that could not go on with it.
func TestAStopMigrationWaitsForOtherInstances(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		if e.Name == "sqlite" {
			continue // the file's lock keeps others out
		}
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			c := sharedConfig(t, e)
			if err := start(t, c).stop(); err != nil {
				t.Fatal(err)
			}
			// As if a migration from before the flag were still to come.
			storetest.Raw(t, c.Database, `DELETE FROM schema_migrations WHERE version = '0052_backups'`)
			storetest.Raw(t, c.Database, `DROP TABLE backup_results`)
			pulse := func(seen time.Time) {
				storetest.Raw(t, c.Database, `DELETE FROM instances`)
				storetest.Raw(t, c.Database, fmt.Sprintf(`INSERT INTO instances (id, version, level, role, started_at, seen_at) VALUES (x'00112233445566778899aabbccddeeff', 'v0.9.0', 0, 'all', 1, %d)`,
					int64(till.TimeOf(seen))))
			}
			pulse(time.Now())
			refused(t, c, "0052_backups")
			refused(t, c, "v0.9.0")
			pulse(time.Now().Add(-admin.InstanceGone))
			if err := start(t, c).stop(); err != nil {
				t.Errorf("after it has gone: %v", err)
			}
		})
	}
}
