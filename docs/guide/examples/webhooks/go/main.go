// A receiver of webhooks. It needs nothing but the standard library:
//
//	TILL_WEBHOOK_SECRET=whsec_… PORT=3000 go run .
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	tolerance = 5 * time.Minute
	maxBody   = 1 << 20
)

// verify returns an error unless this very delivery was signed with our
// secret, a short time ago. The body is the bytes as they came.
func verify(key []byte, h http.Header, body []byte) error {
	id, timestamp := h.Get("webhook-id"), h.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if id == "" || err != nil {
		return errors.New("a header is missing or wrong")
	}
	if age := time.Since(time.Unix(seconds, 0)); age > tolerance || age < -tolerance {
		return errors.New("too old, or from the future")
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", id, timestamp, body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for _, given := range strings.Fields(h.Get("webhook-signature")) { // two during a rotation
		if hmac.Equal([]byte(given), []byte(want)) {
			return nil
		}
	}
	return errors.New("no signature matches")
}

type event struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Sequence int64  `json:"sequence"`
	Data     struct {
		Payment *struct {
			ID     string `json:"id"`
			Status string `json:"status"`
		} `json:"payment"`
	} `json:"data"`
}

// inbox stands for a table of your database, with a unique key on the id.
type inbox struct {
	sync.Mutex
	seen map[string]bool
	work chan event
}

// add stores an event and reports whether it is new.
func (i *inbox) add(e event) bool {
	i.Lock()
	defer i.Unlock()
	if i.seen[e.ID] {
		return false
	}
	i.seen[e.ID] = true
	return true
}

// run does the work, after the answer was given.
func (i *inbox) run() {
	latest := map[string]int64{} // of each payment, the newest sequence that was used
	for e := range i.work {
		p := e.Data.Payment
		if p == nil || e.Sequence <= latest[p.ID] {
			continue // not about a payment, or older than what we know already
		}
		latest[p.ID] = e.Sequence
		fmt.Printf("payment %s is %s\n", p.ID, p.Status) // ship the goods here
	}
}

func main() {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(os.Getenv("TILL_WEBHOOK_SECRET"), "whsec_"))
	if err != nil || len(key) == 0 {
		log.Fatal("TILL_WEBHOOK_SECRET is missing")
	}
	box := &inbox{seen: map[string]bool{}, work: make(chan event, 1000)}
	go box.run()
	http.HandleFunc("POST /", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err == nil {
			err = verify(key, r.Header, body)
		}
		var e event
		if err == nil {
			err = json.Unmarshal(body, &e)
		}
		if err != nil {
			http.Error(w, "refused", http.StatusBadRequest)
			return
		}
		if box.add(e) {
			box.work <- e
		}
		w.WriteHeader(http.StatusNoContent) // also for what came before
	})
	l, err := net.Listen("tcp", "127.0.0.1:"+os.Getenv("PORT"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("listening on http://%s\n", l.Addr())
	log.Fatal(http.Serve(l, nil))
}
