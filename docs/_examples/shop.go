package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	till "till/sdk/go"
	"till/sdk/go/filestore"
)

func main() {
	ctx := context.Background()
	client, err := till.New(os.Getenv("TILL_BASE_URL"), till.KeyFromEnv("TILL_API_KEY"), till.WithExpect("test"))
	if err != nil {
		log.Fatal(err)
	}
	store, err := filestore.Open("till-store")
	if err != nil {
		log.Fatal(err)
	}
	// Your one function. Webhooks, the event log and the sweep all end here, and
	// each change calls it once.
	teller := till.NewTeller(client, store, func(ctx context.Context, tx *filestore.Tx, c till.Change) error {
		switch {
		case c.Paid(): // success, or money that came late
			fmt.Println("ship:", c.Order)
		case c.TakenBack():
			fmt.Println("stop:", c.Order)
		case c.Failed():
			fmt.Println("not paid:", c.Order, till.Value(c.Payment.FailureReason))
		}
		return nil
	})
	// The wish and its key are written before anything is sent.
	err = store.Update(ctx, func(tx *filestore.Tx) error {
		return teller.Collect(ctx, tx, till.Collect{Order: "ORDER-1042", Method: "mtn_momo", Country: "CG",
			Amount: till.Minor("5000", "XAF"), Phone: "242061234567", Description: "Two loaves"})
	})
	if err != nil {
		log.Fatal(err)
	}
	payment, err := teller.Wait(ctx, "ORDER-1042", 90*time.Second) // sends, and reads until it is final
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the payment is", payment.Status)
}
