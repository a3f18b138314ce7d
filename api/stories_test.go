package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"till/store/storetest"
)

// GET /sandbox/stories says what the sandbox plays: every line of it is played and
// compared.
func TestStoriesEndAsTheTableSays(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			database := e.Config(t)
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, options{database: database, quiet: true})
				defer w.stop()
				w.addKey("test", "all", "payments:read", "payments:write", "payouts:read", "payouts:write", "refunds:write")
				w.created("test", "00000000-0000-4000-8000-00000000ffff", "242064000001") // what is paid out of
				time.Sleep(3 * time.Second)
				playStories(t, w)
				storetest.CheckInvariants(t, w.store)
			})
		})
	}
}

type story struct {
	Subject, Name, Status string
	EndsIn                *string `json:"ends_in"`
	Reason                *string `json:"failure_reason"`
	Events                []string
}

// accepted creates something and returns its id.
func accepted(t *testing.T, w *world, subject, body string) string {
	t.Helper()
	a := w.do(http.MethodPost, "/v1/"+subject+"s", w.keys["all"], body)
	var made struct{ ID string }
	if err := json.Unmarshal(a.Body.Bytes(), &made); err != nil || a.Code != http.StatusAccepted {
		t.Fatalf("%s %s: %d %s", subject, body, a.Code, a.Body)
	}
	return made.ID
}

func playStories(t *testing.T, w *world) {
	var table struct{ Items []story }
	a := w.do(http.MethodGet, "/v1/sandbox/stories", w.keys["all"], "")
	if err := json.Unmarshal(a.Body.Bytes(), &table); err != nil || len(table.Items) < 25 {
		t.Fatalf("%d %s", a.Code, a.Body)
	}
	ids := make([]string, len(table.Items))
	pay := func(subject, who, phone string, i int) (id string) {
		t.Helper()
		body := fmt.Sprintf(`{"method":"mtn_momo","country":"CG","amount":{"value":"100","currency":"XAF"},%q:{"phone":%q},"idempotency_key":"00000000-0000-4000-8000-%012d"}`, who, phone, i)
		return accepted(t, w, subject, body)
	}
	for i, s := range table.Items {
		phone := "242064004567"
		if s.EndsIn != nil {
			phone = "24206400" + *s.EndsIn
		}
		switch s.Subject {
		case "payment":
			ids[i] = pay(s.Subject, "customer", phone, i)
		case "payout":
			ids[i] = pay(s.Subject, "recipient", phone, i)
		case "refund": // of a payment by this phone, which succeeds
			payment := pay("payment", "customer", phone, i)
			time.Sleep(3 * time.Second)
			ids[i] = accepted(t, w, s.Subject, fmt.Sprintf(`{"payment_id":%q,"idempotency_key":"00000000-0000-4000-8000-%012d"}`, payment, i))
		}
	}
	time.Sleep(window + 10*time.Second)
	for i, s := range table.Items {
		at := "/v1/" + s.Subject + "s/" + ids[i]
		var p struct {
			Status string
			Reason *string `json:"failure_reason"`
		}
		_ = json.Unmarshal(w.do(http.MethodGet, at, w.keys["all"], "").Body.Bytes(), &p)
		var log struct{ Items []loggedEvent }
		_ = json.Unmarshal(w.do(http.MethodGet, at+"/events", w.keys["all"], "").Body.Bytes(), &log)
		var kinds []string
		for _, e := range log.Items {
			if processing := s.Subject + ".processing"; e.Type != processing || slices.Contains(s.Events, processing) {
				kinds = append(kinds, e.Type)
			}
		}
		if p.Status != s.Status || !cmp.Equal(p.Reason, s.Reason) || !cmp.Equal(kinds, s.Events) {
			t.Errorf("%s %s ended as %s with %s; the table says %s with %s", s.Subject, s.Name, p.Status, strings.Join(kinds, ", "), s.Status, strings.Join(s.Events, ", "))
		}
	}
}
