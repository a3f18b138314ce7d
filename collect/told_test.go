package collect_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"till"
	"till/provider"
	"till/store"
	"till/store/storetest"
)

// told is what a client is shown of a payment's money.
type told struct {
	Status        string
	LateSuccessAt *string `json:"late_success_at"`
	ReversedAt    *string `json:"reversed_at"`
	FailureDetail *struct{ Retryable bool }
}

// UnmarshalJSON refuses a body that leaves one of the members out.
func (p *told) UnmarshalJSON(b []byte) error {
	for _, name := range []string{`"late_success_at":`, `"reversed_at":`} {
		if !strings.Contains(string(b), name) {
			return fmt.Errorf("there is no %s in %s", name, b)
		}
	}
	type plain told
	var failure struct {
		FailureDetail *struct{ Retryable bool } `json:"failure_detail"`
	}
	if err := json.Unmarshal(b, (*plain)(p)); err != nil {
		return err
	}
	err := json.Unmarshal(b, &failure)
	p.FailureDetail = failure.FailureDetail
	return err
}

// line prints it in one line, each time as the kind of the event of that time.
func (p told) line(names map[string]string) string {
	at := func(t *string) string {
		if t == nil {
			return "-"
		}
		return names[*t]
	}
	retryable := "-"
	if p.FailureDetail != nil {
		retryable = fmt.Sprint(p.FailureDetail.Retryable)
	}
	return fmt.Sprintf("%s late=%s reversed=%s retryable=%s", p.Status, at(p.LateSuccessAt), at(p.ReversedAt), retryable)
}

// toldOf returns what every road to a payment shows of its money: the payment
// itself, a list, the answer to a repeated create, and each of its events.
func toldOf(t *testing.T, s *store.Store, ref store.Ref) (one, listed, created string, events []string) {
	t.Helper()
	names := map[string]string{}
	line := func(body []byte) string {
		var p told
		if err := json.Unmarshal(body, &p); err != nil {
			t.Fatal(err)
		}
		return p.line(names)
	}
	err := s.View(t.Context(), func(tx *store.Tx) error {
		p, err := tx.Payment(t.Context(), ref)
		if err != nil {
			return err
		}
		log, err := tx.EventBodies(t.Context(), ref.Client, 0, 200) // the road of webhooks and GET /events
		if err != nil {
			return err
		}
		for _, e := range log {
			if e.SubjectID != ref.ID {
				continue
			}
			var body struct {
				Type      string
				CreatedAt string `json:"created_at"`
				Data      struct{ Payment json.RawMessage }
			}
			if err := json.Unmarshal(e.AppendJSON(nil), &body); err != nil {
				return err
			}
			names[body.CreatedAt] = strings.TrimPrefix(body.Type, "payment.")
			events = append(events, line(body.Data.Payment))
		}
		own, err := tx.PaymentEvents(t.Context(), ref)
		if err != nil || len(own) != len(events) {
			return fmt.Errorf("%d events by the payment, %d by the log: %w", len(own), len(events), err)
		}
		for i, e := range own {
			var body struct {
				Data struct{ Payment json.RawMessage }
			}
			if err := json.Unmarshal(e.AppendJSON(nil), &body); err != nil {
				return err
			}
			if got := line(body.Data.Payment); got != events[i] {
				t.Errorf("an event of the payment says %q, and the log %q", got, events[i])
			}
		}
		one, created = line(p.AppendJSON(nil)), line(p.AsCreated().AppendJSON(nil))
		rows, _, err := tx.ListPayments(t.Context(), ref.Client, store.PaymentFilter{}, store.Page{Limit: 10})
		for _, row := range rows {
			if row.ID == ref.ID {
				listed = line(row.AppendJSON(nil))
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return one, listed, created, events
}

// A payment shows what happened to its money after its end, on every road, and
// what was paid is not to be tried again. An event shows what was known then.
func TestAPaymentTellsWhatHappenedToItsMoney(t *testing.T) {
	t.Parallel()
	amount := func(minor int64) provider.Result {
		return provider.Result{Outcome: provider.Success, Amount: till.Money{Minor: minor, Currency: "XAF"}}
	}
	const open = "pending late=- reversed=- retryable=-"
	for _, c := range []struct {
		name   string
		says   []provider.Result
		one    string
		events []string
	}{
		{"late money that is taken back", []provider.Result{storetest.TimedOut, storetest.Succeeded, storetest.Reversed},
			"expired late=late_success reversed=reversed retryable=false",
			[]string{open, "expired late=- reversed=- retryable=true", "expired late=late_success reversed=- retryable=false",
				"expired late=late_success reversed=reversed retryable=false"}},
		{"money that is taken back", []provider.Result{storetest.Succeeded, storetest.Reversed},
			"success late=- reversed=reversed retryable=-",
			[]string{open, "success late=- reversed=- retryable=-", "success late=- reversed=reversed retryable=-"}},
		{"no money", []provider.Result{storetest.TimedOut}, "expired late=- reversed=- retryable=true",
			[]string{open, "expired late=- reversed=- retryable=true"}},
		{"other money than was asked for", []provider.Result{storetest.TimedOut, amount(4000)}, "expired late=- reversed=- retryable=false",
			[]string{open, "expired late=- reversed=- retryable=true"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, func(t *testing.T, s *store.Store) {
				collector, client := storetest.NewCollector(t, s), storetest.NewClient(t, s, till.Test)
				storetest.NewPayment(t, collector, client, storetest.Body{}) // of which nothing is known
				p := storetest.NewPayment(t, collector, client, storetest.Body{})
				for _, r := range c.says {
					storetest.Apply(t, collector, s, p, r)
				}
				one, listed, created, events := toldOf(t, s, store.Ref{Client: client.ID, ID: p.ID})
				if one != c.one || listed != c.one || created != open {
					t.Errorf("it says %q, the list %q, want %q; the create call %q", one, listed, c.one, created)
				}
				if fmt.Sprintf("%q", events) != fmt.Sprintf("%q", c.events) {
					t.Errorf("its events say\n%q, want\n%q", events, c.events)
				}
			})
		})
	}
}

// One receipt for two payments: the second is not credited, and yet its
// customer may have paid.
func TestWhatMayHaveBeenPaidIsNotRetryable(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		collector, client := storetest.NewCollector(t, s), storetest.NewClient(t, s, till.Test)
		paid := provider.Result{Outcome: provider.Success, Receipt: "R1"}
		storetest.Apply(t, collector, s, storetest.NewPayment(t, collector, client, storetest.Body{}), paid)
		p := storetest.NewPayment(t, collector, client, storetest.Body{})
		storetest.Apply(t, collector, s, p, storetest.TimedOut)
		row := storetest.Apply(t, collector, s, p, paid)
		if row.Credited() || row.FailureDetail.Retryable {
			t.Errorf("credited: %t, retryable: %t", row.Credited(), row.FailureDetail.Retryable)
		}
		storetest.CheckInvariants(t, s)
	})
}
