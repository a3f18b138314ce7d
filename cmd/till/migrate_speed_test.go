package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"till"
	"till/bench/seed"
	"till/internal/db"
	"till/store"
	"till/store/storetest"
)

// maxMigration is how long one migration may hold up everybody, per million rows.
const maxMigration = 30 * time.Second

// TestMigrationsOfManyRows fills a database of the release before and says how long each
// migration since then takes on it. TILL_MIGRATE_ROWS is how many payments there are, and as
// many deliveries with a kept answer; 'make migration-times' runs it.
func TestMigrationsOfManyRows(t *testing.T) {
	rows, err := strconv.ParseInt(os.Getenv("TILL_MIGRATE_ROWS"), 10, 64)
	if err != nil {
		t.Skip("TILL_MIGRATE_ROWS is not a number; make migration-times says one")
	}
	before := releaseBefore(t)
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			dir := t.TempDir()
			k := &killing{t: t, dir: dir, database: e.Empty(t).Path, book: filepath.Join(dir, "operator.db"), program: before, answered: map[string]string{}}
			s := k.start()
			told := k.receive()
			k.end(s, syscall.SIGTERM)
			k.fillMany(told, rows)
			began := till.TimeOf(time.Now())
			if code, out := k.run("", "migrate", "--database", k.database); code != 0 {
				t.Fatalf("migrate: %d %s", code, out)
			}
			ended := till.TimeOf(time.Now())
			versions, at, rolling := k.migrationsSince(began)
			if len(versions) == 0 {
				t.Fatal("there is no migration since the release before")
			}
			at = append([]till.Time{began}, at...) // each has the time at which its statements were done
			for i, version := range versions {
				kind := "stop"
				if rolling[i] {
					kind = "rolling"
				}
				took := at[i+1].Sub(at[i]) // with the commit of the one before; the first with the program's start
				t.Logf("%-24s %-8s %s", version, kind, took.Round(time.Millisecond))
				if most := maxMigration * time.Duration(rows/1_000_000+1); took > most {
					t.Errorf("%s takes %s, at most %s", version, took, most)
				}
			}
			t.Logf("%d payments: %d migrations in %s", rows, len(versions), ended.Sub(began).Round(time.Millisecond))
		})
	}
}

// fillMany writes payments, without their books, and a delivery of each.
func (k *killing) fillMany(told *receiver, rows int64) {
	k.t.Helper()
	ctx := k.t.Context()
	client, err := till.ParseID(k.firstClient())
	if err != nil {
		k.t.Fatal(err)
	}
	endpoint, err := till.ParseID(told.id)
	if err != nil {
		k.t.Fatal(err)
	}
	k.withStore(func(s *store.Store) error {
		now := s.Now()
		if err := seed.Payments(ctx, s, seed.Config{Client: client, Rows: rows, From: now.Add(-90 * 24 * time.Hour), To: now}); err != nil {
			return err
		}
		return s.Update(ctx, func(tx *store.Tx) error {
			tx.DB().WithoutTimeout()
			_, err := tx.DB().Exec(ctx, &db.SQL{Name: "test.deliveries", SQLite: `INSERT INTO webhook_deliveries
				(client_id, endpoint_id, sequence, kind, id, subject_id, status, attempts, due_at, created_at, updated_at, sent_at, answer_code, answer_text)
				SELECT client_id, $1, row_number() OVER (ORDER BY id), 'event', id, id, 'delivered', 1, updated_at, updated_at, updated_at, updated_at, 200, 'ok' FROM payments WHERE client_id = $2`},
				endpoint[:], client[:])
			return err
		})
	})
}

// migrationsSince returns what was applied since a moment, in order, with the time of each.
func (k *killing) migrationsSince(from till.Time) (versions []string, at []till.Time, rolling []bool) {
	k.t.Helper()
	k.withStore(func(s *store.Store) error {
		return s.View(k.t.Context(), func(tx *store.Tx) error {
			return tx.DB().Query(k.t.Context(), &db.SQL{Name: "test.migrations", SQLite: `SELECT version, applied_at, rolling FROM schema_migrations WHERE applied_at >= $1 ORDER BY version`},
				[]any{int64(from)}, func(r db.Row) error {
					var version string
					var applied, flag int64
					err := r.Scan(&version, &applied, &flag)
					if !strings.HasPrefix(version, "level") {
						versions, at, rolling = append(versions, version), append(at, till.Time(applied)), append(rolling, flag == 1)
					}
					return err
				})
		})
	})
	return versions, at, rolling
}
