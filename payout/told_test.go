package payout_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"till"
	"till/provider"
	"till/store"
	"till/store/storetest"
)

var toldMembers = regexp.MustCompile(`"(status|retryable|late_success_at)":("[^"]*"|\w+)`)

// A payout shows when it was paid after it had failed, on every road, and is not
// to be tried again then. An event shows what was known then.
func TestAPayoutTellsWhatHappenedToItsMoney(t *testing.T) {
	t.Parallel()
	failed := provider.Result{Outcome: provider.Failed, Reason: till.ProviderError, Code: "ERR", Retryable: true}
	for _, c := range []struct {
		name   string
		says   []provider.Result
		one    string
		events []string
	}{
		{"paid after all", []provider.Result{failed, storetest.Succeeded}, "failed false LATE",
			[]string{"pending null", "failed true null", "failed false LATE"}},
		{"not paid", []provider.Result{failed}, "failed true null", []string{"pending null", "failed true null"}},
		{"paid in time", []provider.Result{storetest.Succeeded}, "success null", []string{"pending null", "success null"}},
		{"another amount was paid after all", []provider.Result{failed, {Outcome: provider.Success, Amount: till.Money{Minor: 1, Currency: "XAF"}}},
			"failed false null", []string{"pending null", "failed true null"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, func(t *testing.T, s *store.Store) {
				collector, client := storetest.NewCollector(t, s), storetest.NewClient(t, s, till.Test)
				storetest.Apply(t, collector, s, storetest.NewPayment(t, collector, client, storetest.Body{}), storetest.Succeeded)
				master := storetest.NewDisburser(t, s)
				p := storetest.NewPayout(t, master, client, storetest.Body{Value: "1000"}, 0)
				for _, r := range c.says {
					storetest.ApplyPayout(t, master, s, p, r)
				}
				ref := store.Ref{Client: client.ID, ID: p.ID}
				err := s.View(t.Context(), func(tx *store.Tx) error {
					row, err := tx.Payout(t.Context(), ref)
					if err != nil {
						return err
					}
					late := ""
					line := func(body []byte) string {
						var words []string
						for _, m := range toldMembers.FindAllStringSubmatch(string(body), -1) {
							words = append(words, strings.Trim(m[2], `"`))
						}
						return strings.ReplaceAll(strings.Join(words, " "), late, "LATE")
					}
					events, err := tx.PayoutEvents(t.Context(), ref)
					if err != nil {
						return err
					}
					late = "there is none"
					var told []string
					for _, e := range events {
						if e.Kind == till.PayoutEventLateSuccess {
							late = e.CreatedAt.String()
						}
						told = append(told, line(e.AppendJSON(nil)))
					}
					rows, _, err := tx.ListPayouts(t.Context(), client.ID, store.PaymentFilter{}, store.Page{Limit: 10})
					if err != nil {
						return err
					}
					one, listed, created := line(row.AppendJSON(nil)), line(rows[0].AppendJSON(nil)), line(row.AsCreated().AppendJSON(nil))
					if one != c.one || listed != c.one || created != "pending null" || fmt.Sprint(told) != fmt.Sprint(c.events) {
						t.Errorf("it says %q, the list %q, want %q; the create call %q; its events %q, want %q", one, listed, c.one, created, told, c.events)
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}
