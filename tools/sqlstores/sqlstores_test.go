// Package sqlstores runs the suite of the Go SDK's SQL store on real databases.
// It stands here and not in the SDK because it needs their drivers, and the SDK's
// module has no requirements.
package sqlstores

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	till "github.com/till-project/till/sdk/go"
	"github.com/till-project/till/sdk/go/sqlstore"
	"github.com/till-project/till/sdk/go/storetest"
	"till/internal/db/pgtest"
)

// suite runs the suite on databases that open makes, each empty.
func suite(t *testing.T, d sqlstore.Dialect, open func(t *testing.T) *sql.DB) {
	storetest.Run(t, func(t *testing.T) storetest.Env[*sql.Tx] {
		db := open(t)
		s := sqlstore.New(db, d)
		if err := s.Install(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec("CREATE TABLE yours (value VARCHAR(20))"); err != nil {
			t.Fatal(err)
		}
		return storetest.Env[*sql.Tx]{
			Store: s, Open: func() till.Store[*sql.Tx] { return sqlstore.New(db, d) },
			Update: func(ctx context.Context, fn func(*sql.Tx) error) error {
				tx, err := db.BeginTx(ctx, nil)
				if err != nil {
					return err
				}
				defer func() { _ = tx.Rollback() }()
				if err := fn(tx); err != nil {
					return err
				}
				return tx.Commit()
			},
			Set: func(ctx context.Context, tx *sql.Tx, value string) error {
				_, err := tx.ExecContext(ctx, "INSERT INTO yours VALUES ('"+value+"')")
				return err
			},
			Get: func(ctx context.Context) (value string, err error) {
				if err = db.QueryRowContext(ctx, "SELECT value FROM yours").Scan(&value); errors.Is(err, sql.ErrNoRows) {
					err = nil
				}
				return value, err
			},
		}
	})
}

func TestSQLite(t *testing.T) {
	t.Parallel()
	suite(t, sqlstore.SQLite, func(t *testing.T) *sql.DB {
		db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "shop.db")+"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(2000)")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return db
	})
}

func TestPostgres(t *testing.T) {
	t.Parallel()
	cluster, err := pgtest.NewInMemory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Remove)
	admin := postgres(t, cluster, "public")
	n := 0
	suite(t, sqlstore.Postgres, func(t *testing.T) *sql.DB {
		n++
		name := fmt.Sprintf("shop%d", n)
		if _, err := admin.Exec("CREATE SCHEMA " + name); err != nil {
			t.Fatal(err)
		}
		return postgres(t, cluster, name)
	})
}

// postgres opens a schema, which is as good as a database and made faster.
func postgres(t *testing.T, cluster *pgtest.Cluster, schema string) *sql.DB {
	t.Helper()
	config, err := pgx.ParseConfig(fmt.Sprintf("postgres://till@127.0.0.1:%d/postgres?sslmode=disable", cluster.Port))
	if err != nil {
		t.Fatal(err)
	}
	config.RuntimeParams["search_path"] = schema
	db := stdlib.OpenDB(*config)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// The Go SDK carries the schemas with it; they are those that all SDKs share.
func TestSchemasAreTheSame(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"sqlite.sql", "postgres.sql", "mysql.sql"} {
		want, err := os.ReadFile(filepath.Join("../../sdk/schema", name))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join("../../sdk/go/sqlstore/schema", name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: sdk/go/sqlstore/schema differs from sdk/schema, %v", name, err)
		}
	}
}
