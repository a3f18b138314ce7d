package server_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"till"
	"till/books"
	"till/server"
	"till/store"
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

// A server raises the level by itself, after a day in which it saw no older program. A
// program that does not know the level is kept out.
func TestTheLevelIsRaisedAfterADay(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			c := sharedConfig(t, e)
			if err := start(t, c).stop(); err != nil {
				t.Fatal(err)
			}
			s := storetest.Open(t, store.Config{Path: c.Database})
			levelIs := func(want int) bool {
				l, err := books.ReadLevels(t.Context(), s)
				if err != nil {
					t.Fatal(err)
				}
				return l.Level == want
			}
			if !levelIs(1) {
				t.Fatal("it was raised at once")
			}
			since := till.TimeOf(time.Now().Add(-25 * time.Hour))
			storetest.Raw(t, c.Database, `DELETE FROM turns WHERE name = 'level'`)
			storetest.Raw(t, c.Database, fmt.Sprintf(`INSERT INTO turns (name, version, lease_until, owner, ran_at, result) VALUES ('level', 1, 0, x'00', 1, '{"since":%d,"level":%d}')`,
				int64(since), store.Level))
			r := start(t, c)
			for end := time.Now().Add(time.Minute); !levelIs(store.Level); time.Sleep(20 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("it was not raised")
				}
			}
			if err := r.stop(); err != nil {
				t.Fatal(err)
			}
			if err := start(t, c).stop(); err != nil {
				t.Errorf("on its own level: %v", err)
			}
			storetest.Raw(t, c.Database, `INSERT INTO schema_migrations (version, checksum, applied_at, rolling) VALUES ('level_99', 'level', 1, 0)`)
			var schema *store.SchemaError
			if _, err := server.New(t.Context(), c); !errors.As(err, &schema) || !strings.Contains(err.Error(), "level 99") {
				t.Errorf("on a higher level: %v", err)
			}
		})
	}
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
			pulse(time.Now().Add(-store.InstanceGone))
			if err := start(t, c).stop(); err != nil {
				t.Errorf("after it has gone: %v", err)
			}
		})
	}
}
