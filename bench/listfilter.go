package main

import (
	"net/url"
	"strconv"
	"time"

	"till"
	"till/store"
)

// listFilter is a row of the table, for the API and for the store.
type listFilter struct {
	name      string
	filter    store.PaymentFilter
	ascending bool
}

// listFilters are the combinations that are asked for. The dates cut months,
// days and hours at both ends.
func listFilters(from, to till.Time) []listFilter {
	lo, hi := from.Add(9*24*time.Hour+7*time.Hour+13*time.Minute+5*time.Second), to.Add(-6*24*time.Hour-5*time.Hour-41*time.Minute-7*time.Second)
	return []listFilter{
		{"none", store.PaymentFilter{}, false},
		{"status=success (80 %)", store.PaymentFilter{Status: till.Success}, false},
		{"success, airtel_money (24 %)", store.PaymentFilter{Status: till.Success, Method: "airtel_money"}, false},
		{"status=pending (0.4 %)", store.PaymentFilter{Status: till.Pending}, false},
		{"method=mpesa (10 %)", store.PaymentFilter{Method: "mpesa"}, false},
		{"ragged dates", store.PaymentFilter{From: lo, To: hi}, false},
		{"expired, mpesa, ragged dates (0.7 %)", store.PaymentFilter{Status: till.Expired, Method: "mpesa", From: lo, To: hi}, false},
		{"pending, mpesa (0.04 %)", store.PaymentFilter{Status: till.Pending, Method: "mpesa"}, false},
		{"pending, mpesa, ragged dates (0.04 %)", store.PaymentFilter{Status: till.Pending, Method: "mpesa", From: lo, To: hi}, false},
	}
}

// query renders the filter for the API.
func (f listFilter) query() string {
	q := url.Values{"limit": {strconv.Itoa(listLimit)}}
	for name, value := range map[string]string{"status": string(f.filter.Status), "method": f.filter.Method} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if f.ascending {
		q.Set("order", "asc")
	}
	if !f.filter.From.IsZero() {
		q.Set("from_date", f.filter.From.String())
		q.Set("to_date", f.filter.To.String())
	}
	return q.Encode()
}

// isAll reports whether the filter lets everything pass.
func (f listFilter) isAll() bool { return f.filter == (store.PaymentFilter{}) }
