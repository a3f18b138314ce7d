// Nethttp is a shop that receives webhooks with net/http and the SDK for Go.
package main

import (
	"context"
	"database/sql"
	"log"
	"net/http"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite"

	till "github.com/till-project/till/sdk/go"
	"github.com/till-project/till/sdk/go/sqlstore"
)

func main() {
	db, err := sql.Open("sqlite", filepath.Join(os.Getenv("FOLDER"), "shop.db")+"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)&_txlock=immediate")
	if err != nil {
		log.Fatal(err)
	}
	store := sqlstore.New(db, sqlstore.SQLite)
	if err := store.Install(context.Background()); err != nil {
		log.Fatal(err)
	}
	if _, err := db.Exec("CREATE TABLE acted (payment TEXT, amount TEXT)"); err != nil {
		log.Fatal(err)
	}
	client, err := till.New("http://127.0.0.1:1/v1", till.Key("till_test_a_b"))
	if err != nil {
		log.Fatal(err)
	}
	teller := till.NewTeller(client, store, func(ctx context.Context, tx *sql.Tx, c till.Change) error {
		if !c.Paid() {
			return nil
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO acted VALUES (?, ?)", c.Payment.ID, c.Payment.Amount.Value)
		return err
	}, till.WithForeign())
	http.Handle("POST /till", teller.Webhook(os.Getenv("TILL_WEBHOOK_SECRET")))
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
