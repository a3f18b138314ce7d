package books_test

import (
	"testing"
	"time"

	"till/books"
	"till/store"
)

// The time within which a share of approvals came is as exact as its buckets.
func TestApprovalTime(t *testing.T) {
	t.Parallel()
	sum := func(bucket string, n int64) store.HourSum {
		return store.HourSum{Noun: store.SumApproval, A: "mtn_momo", B: bucket, Sum: store.Sum{N: n}}
	}
	for _, c := range []struct {
		name string
		sums []store.HourSum
		at   int64
		want time.Duration
		more bool
		ok   bool
	}{
		{"none", nil, 50, 0, false, false},
		{"another noun", []store.HourSum{{Noun: store.SumIn, B: "XAF", Sum: store.Sum{N: 9}}}, 50, 0, false, false},
		{"one", []store.HourSum{sum("5", 1)}, 50, 5 * time.Second, false, true},
		{"the middle of a bucket", []store.HourSum{sum("20", 10)}, 50, 15 * time.Second, false, true},
		{"two methods", []store.HourSum{sum("5", 4), sum("5", 4), sum("60", 2)}, 90, 45 * time.Second, false, true},
		{"beyond the last", []store.HourSum{sum("5", 1), sum("more", 9)}, 90, 300 * time.Second, true, true},
	} {
		if d, more, ok := books.ApprovalTime(c.sums, c.at); d != c.want || more != c.more || ok != c.ok {
			t.Errorf("%s: %v %t %t, want %v %t %t", c.name, d, more, ok, c.want, c.more, c.ok)
		}
	}
}

// Troubles are what a person has to look at.
func TestTroubles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		s    books.Status
		want books.Trouble
	}{
		{"what test clients have is no trouble", books.Status{Test: books.Part{Clients: 1, Operators: []*books.OperatorStatus{{State: store.Stopped}}, Open: []store.OpenByAge{{N: 1, Day: 1, Hour: 1}},
			Cases: []store.OpenKind{{Count: 1}}, Webhooks: store.WebhookBacklog{Failing: 1}}}, ""},
		{"an operator is stopped", books.Status{Live: books.Part{Operators: []*books.OperatorStatus{{State: store.Stopped}}}}, books.TroubleOperator},
		{"something waits", books.Status{Live: books.Part{Open: []store.OpenByAge{{N: 1, Hour: 1}}}}, books.TroubleOpen},
		{"a case", books.Status{Live: books.Part{Cases: []store.OpenKind{{Count: 1}}}}, books.TroubleCases},
		{"a webhook fails", books.Status{Live: books.Part{Webhooks: store.WebhookBacklog{Failing: 1}}}, books.TroubleWebhooks},
		{"the books are wrong", books.Status{Verified: &store.Verification{Problems: 1}}, books.TroubleVerify},
		{"nobody proved live books", books.Status{Live: books.Part{Clients: 1}}, books.TroubleUnproven},
	} {
		got := c.s.Troubles()
		if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || got[0] != c.want) {
			t.Errorf("%s: %v, want %q", c.name, got, c.want)
		}
	}
}
