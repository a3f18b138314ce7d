// Command cost makes creates through the SDK and bare ones, in turns, and prints how many
// microseconds each took as JSON. Its arguments are the base address, the key and how many.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"time"

	till "github.com/till-project/till/sdk/go"
)

func main() {
	log.SetFlags(0)
	base, key := os.Args[1], os.Args[2]
	n, err := strconv.Atoi(os.Args[3])
	if err != nil {
		log.Fatal(err)
	}
	client, err := till.New(base, till.Key(key))
	if err != nil {
		log.Fatal(err)
	}
	took := map[string][]int64{}
	for range n {
		for _, one := range []struct {
			name string
			make func() error
		}{{"bare", func() error { return bare(base, key) }}, {"sdk", func() error {
			_, err := client.Payments.Create(context.Background(), wish())
			return err
		}}} {
			began := time.Now()
			if err := one.make(); err != nil {
				log.Fatal(one.name, ": ", err)
			}
			took[one.name] = append(took[one.name], time.Since(began).Microseconds())
		}
	}
	_ = json.NewEncoder(os.Stdout).Encode(took)
}

func wish() till.CreatePayment {
	var b [16]byte
	_, _ = rand.Read(b[:])
	return till.CreatePayment{
		Method: "mtn_momo", Country: till.Ptr("CG"), Amount: till.Minor("5000", "XAF"), Customer: till.CreatePaymentCustomer{Phone: "242061234567"},
		IdempotencyKey: fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]),
	}
}

// bare is what a program without the SDK does: one request, and its answer read.
func bare(base, key string) error {
	body, err := json.Marshal(wish())
	if err != nil {
		return err
	}
	req, err := http.NewRequest(http.MethodPost, base+"/payments", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("X-Api-Key", key)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	var answer map[string]any
	text, err := io.ReadAll(res.Body)
	if err == nil {
		err = json.Unmarshal(text, &answer)
	}
	if err == nil && res.StatusCode != http.StatusAccepted {
		err = fmt.Errorf("%s", res.Status)
	}
	return err
}
