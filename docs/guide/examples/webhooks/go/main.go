// A receiver of webhooks, with its sweep. It needs nothing but the standard
// library:
//
//	TILL_WEBHOOK_SECRET=whsec_… TILL_API_KEY=till_… TILL_URL=http://127.0.0.1:8080/v1 PORT=3000 go run .
package main

import (
	"cmp"
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
	Type string `json:"type"`
	Data struct {
		Payment *struct {
			ID        string `json:"id"`
			Reference string `json:"reference"`
		} `json:"payment"`
	} `json:"data"`
}

// The steps of a payment's money. It only goes forward: what comes twice, or in
// another order, tells a step that was taken before.
const (
	notPaid = 1 + iota
	paid
	takenBack
)

var steps = map[string]int{
	"payment.failed": notPaid, "payment.expired": notPaid,
	"payment.success": paid, "payment.late_success": paid,
	"payment.reversed": takenBack,
}

// shop stands for two tables of your database and a cursor. The file is written
// where you would commit.
type shop struct {
	sync.Mutex `json:"-"`
	path       string

	Steps  map[string]int    `json:"steps"`  // of each payment, the last step
	Orders map[string]string `json:"orders"` // of each order that is paid, the payment that paid it
	Log    string            `json:"log"`    // which event log
	Cursor int64             `json:"cursor"` // how far the sweep has read it
}

func openShop(path string) (*shop, error) {
	s := &shop{path: path, Steps: map[string]int{}, Orders: map[string]string{}}
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return s, nil
	} else if err != nil {
		return nil, err
	}
	return s, json.Unmarshal(b, s)
}

func (s *shop) commit() error {
	b, err := json.Marshal(s)
	if err == nil {
		err = os.WriteFile(s.path+".new", b, 0o600)
	}
	if err != nil {
		return err
	}
	return os.Rename(s.path+".new", s.path)
}

// react does what an event asks of us, once. Webhooks and the sweep both end
// here. It goes by the kind of the event: the status of a payment stays what it
// was when money comes late, or is taken back.
func (s *shop) react(e event) {
	p, step := e.Data.Payment, steps[e.Type]
	if p == nil || step <= s.Steps[p.ID] {
		return // nothing about money, or nothing new
	}
	s.Steps[p.ID] = step
	order := cmp.Or(p.Reference, p.ID)
	switch by := s.Orders[order]; {
	case step == notPaid && by == "":
		fmt.Printf("not paid: %s\n", order) // say so to the customer
	case step == paid && by == "":
		s.Orders[order] = p.ID
		fmt.Printf("ship: %s\n", order)
	case step == paid:
		fmt.Printf("give back: %s, %s is paid already\n", p.ID, order) // the customer tried twice
	case step == takenBack && by == p.ID:
		delete(s.Orders, order)
		fmt.Printf("stop: %s, the money was taken back\n", order)
	}
}

// sweep reads the event log from where it was left to its end: what no webhook
// brought is found here.
func (s *shop) sweep(base, apiKey string) error {
	client := http.Client{Timeout: 30 * time.Second}
	for {
		s.Lock()
		after := s.Cursor
		s.Unlock()
		req, err := http.NewRequest(http.MethodGet, fmt.Sprintf("%s/events?after=%d&limit=200", base, after), nil)
		if err != nil {
			return err
		}
		req.Header.Set("X-Api-Key", apiKey)
		res, err := client.Do(req)
		if err != nil {
			return err
		}
		var page struct {
			Items     []event `json:"items"`
			NextAfter int64   `json:"next_after"`
			Log       string  `json:"log_id"`
		}
		err = json.NewDecoder(res.Body).Decode(&page)
		res.Body.Close()
		if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusConflict {
			return errors.New(res.Status)
		}
		if err != nil {
			return err
		}
		if ended, err := s.read(page.Items, page.NextAfter, page.Log, res.StatusCode == http.StatusConflict); err != nil || ended {
			return err
		}
	}
}

// read takes a page of the log, and reports whether it was the last. A log that
// is another, or ends before our cursor, was restored from a backup: it is read
// from its beginning, which repeats nothing.
func (s *shop) read(items []event, next int64, name string, ahead bool) (ended bool, err error) {
	s.Lock()
	defer s.Unlock()
	if ahead || s.Log != "" && s.Log != name {
		log.Print("the log was set back: see the guide, 'Read the event log'")
		s.Log, s.Cursor = name, 0
		return false, s.commit()
	}
	for _, e := range items {
		s.react(e)
	}
	ended = next == s.Cursor
	s.Log, s.Cursor = name, next
	return ended, s.commit()
}

func main() {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(os.Getenv("TILL_WEBHOOK_SECRET"), "whsec_"))
	if err != nil || len(key) == 0 {
		log.Fatal("TILL_WEBHOOK_SECRET is missing")
	}
	s, err := openShop(cmp.Or(os.Getenv("SHOP"), "shop.json"))
	if err != nil {
		log.Fatal(err)
	}
	go func() { // at the start and every five minutes
		pause, err := time.ParseDuration(os.Getenv("SWEEP_SECONDS") + "s")
		if err != nil {
			pause = 5 * time.Minute
		}
		for ; ; time.Sleep(pause) {
			if err := s.sweep(os.Getenv("TILL_URL"), os.Getenv("TILL_API_KEY")); err != nil {
				log.Print("sweep: ", err) // the next one begins where this one ended
			}
		}
	}()
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
		s.Lock()
		defer s.Unlock()
		s.react(e)
		if err := s.commit(); err != nil {
			http.Error(w, "not stored", http.StatusInternalServerError) // it will come again
			return
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
