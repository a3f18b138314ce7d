package store_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"till/store"
	"till/store/storetest"
)

// A migration that replaces an index lets those go on who have read the table and then write
// to it: it builds the new one and drops the old one in two commits. In one, the drop would
// wait for who has read, and who has read for the lock of the build.
func TestAMigrationHoldsUpNobodyWhoHasRead(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		if e.Name != "postgres" { // a file has one writer, and a cluster has no plain sessions
			continue
		}
		for _, table := range []string{"payments", "payouts"} {
			t.Run(table, func(t *testing.T) {
				t.Parallel()
				c := e.Config(t)
				s := storetest.Open(t, c)
				for _, query := range []string{
					`DROP INDEX payments_issued`, `DROP INDEX payouts_issued`, // as a database from before 0082 is
					`CREATE UNIQUE INDEX payments_receipt ON payments (client_id, provider_reference)`,
					`CREATE UNIQUE INDEX payouts_receipt ON payouts (provider_reference, client_id)`,
					`DELETE FROM schema_migrations WHERE version IN ('0082_issuers', '0084_payments_receipt', '0085_payouts_receipt')`,
				} {
					storetest.Raw(t, c.Path, query)
				}
				writer, err := pgx.Connect(t.Context(), c.Path)
				if err != nil {
					t.Fatal(err)
				}
				defer writer.Close(context.WithoutCancel(t.Context()))
				must := func(query string) {
					t.Helper()
					if _, err := writer.Exec(t.Context(), query); err != nil {
						t.Fatalf("%s: %v", query, err)
					}
				}
				must(`SET deadlock_timeout = '10ms'`) // so that who writes is the one that is ended
				must(`BEGIN`)
				must(`SELECT count(*) FROM ` + table)
				migrated := make(chan error, 1)
				go func() { _, err := s.Migrate(context.WithoutCancel(t.Context())); migrated <- err }()
				awaitWaiting(t, c, table)
				must(`UPDATE ` + table + ` SET client_id = client_id`)
				must(`COMMIT`)
				if err := <-migrated; err != nil {
					t.Error(err)
				}
				indexes := ""
				if err := writer.QueryRow(t.Context(), `SELECT string_agg(indexname, ' ') FROM pg_indexes WHERE schemaname = current_schema() AND tablename = $1`, table).Scan(&indexes); err != nil {
					t.Fatal(err)
				}
				if !strings.Contains(indexes, table+"_issued") || strings.Contains(indexes, table+"_receipt ") || strings.HasSuffix(indexes, table+"_receipt") {
					t.Errorf("%s has the indexes %s", table, indexes)
				}
			})
		}
	}
}

// awaitWaiting waits until somebody waits for the lock of a table.
func awaitWaiting(t *testing.T, c store.Config, table string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		var n int
		if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND relation = $1::regclass`, table).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			return
		}
	}
	t.Fatalf("nobody waits for %s", table)
}
