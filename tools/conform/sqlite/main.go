// Sqlite is the driver of the Go SDK with the SQL store on SQLite. It is here
// because it needs a driver of a database, and the SDK's module has no
// requirements.
package main

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite"

	"github.com/till-project/till/sdk/go/driver"
	"github.com/till-project/till/sdk/go/sqlstore"
)

func main() {
	driver.Main(func(folder string) (driver.Shop[*sql.Tx], error) {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return driver.Shop[*sql.Tx]{}, err
		}
		// A kill loses no commit without the sync, only a loss of power does.
		db, err := sql.Open("sqlite", filepath.Join(folder, "shop.db")+"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)&_pragma=synchronous(normal)&_txlock=immediate")
		if err != nil {
			return driver.Shop[*sql.Tx]{}, err
		}
		if _, err := db.Exec("CREATE TABLE IF NOT EXISTS acts (n INTEGER PRIMARY KEY, order_id TEXT, what TEXT)"); err != nil {
			return driver.Shop[*sql.Tx]{}, err
		}
		return driver.Shop[*sql.Tx]{
			Store: sqlstore.New(db, sqlstore.SQLite),
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
			Act: func(ctx context.Context, tx *sql.Tx, order, what string) error {
				_, err := tx.ExecContext(ctx, "INSERT INTO acts (order_id, what) VALUES (?, ?)", order, what)
				return err
			},
			Acted: func(ctx context.Context) (map[string][]string, error) {
				rows, err := db.QueryContext(ctx, "SELECT order_id, what FROM acts ORDER BY n")
				if err != nil {
					return nil, err
				}
				defer rows.Close()
				out := map[string][]string{}
				for rows.Next() {
					var order, what string
					if err := rows.Scan(&order, &what); err != nil {
						return nil, err
					}
					out[order] = append(out[order], what)
				}
				return out, rows.Err()
			},
		}, nil
	})
}
