package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// topPage is /metrics of a server that has done n calls.
func topPage(n int) string {
	return fmt.Sprintf(`# HELP till_build_info Always 1.
till_build_info{revision="a\"b",version="v1"} 1
till_http_requests_total{code="2xx",route="POST /payments"} %[1]d
till_http_requests_total{code="503",route="POST /payments"} 0
till_operator_in_flight{connection="mtn"} 3
till_operator_in_flight{connection="sandbox"} 0
till_operator_state{connection="mtn",kind="payment"} 0
till_operator_state{connection="mtn",kind="payout"} 2
till_operator_calls_total{connection="mtn",operation="submit",outcome="accepted"} %[1]d
till_operator_calls_total{connection="mtn",operation="submit",outcome="error"} %[1]d
till_operator_calls_total{connection="mtn",operation="submit",outcome="lease_over"} %[1]d
till_operator_call_seconds_bucket{connection="mtn",operation="submit",le="0.1"} %[1]d
till_operator_call_seconds_bucket{connection="mtn",operation="submit",le="0.5"} %[1]d
till_operator_call_seconds_bucket{connection="mtn",operation="submit",le="+Inf"} %[2]d
till_operator_call_seconds_count{connection="mtn",operation="submit"} %[2]d
till_step_oldest_due_seconds{connection="mtn",operation="check"} 2.5
till_oldest_unknown_seconds{connection="mtn",kind="payout"} 1.2e+03
till_open{connection="mtn",kind="payout"} 7
till_ready 1
till_gauges_timestamp_seconds 1000
till_trouble{name="held"} 1
till_trouble{name="cases"} 0
`, n, 2*n)
}

func TestTopComparesTwoReads(t *testing.T) {
	t.Parallel()
	at := time.Now()
	before, err1 := parseMetrics(strings.NewReader(topPage(100)), at)
	after, err2 := parseMetrics(strings.NewReader(topPage(120)), at.Add(2*time.Second))
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	v := newTopView(before, after)
	mtn := v.Connections[0]
	switch {
	case v.Requests != 10 || v.Errors != 0 || v.Open != 7 || v.OldestUnknown != 1200 || v.Ready != 1:
		t.Errorf("%+v", v)
	case len(v.Connections) != 2 || mtn.Name != "mtn" || mtn.State != "stopped" || mtn.Calls != 20 || mtn.NoAnswer != 10 || mtn.InFlight != 3 || mtn.OldestDue != 2.5:
		t.Errorf("%+v", v.Connections)
	case mtn.P50 != 0.1 || mtn.P95 != 0.5: // half of the calls are beyond all buckets
		t.Errorf("p50 %v, p95 %v", mtn.P50, mtn.P95)
	}
	// After a restart counters begin anew.
	if v := newTopView(after, &scraped{at.Add(3 * time.Second), before.all}); v.Requests != 100 {
		t.Errorf("after a restart %v requests a second", v.Requests)
	}
}

func TestTopOnce(t *testing.T) {
	t.Parallel()
	var reads atomic.Int64
	var away atomic.Bool
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintln(w, "the database is away")
			return
		}
		if r.URL.Path == "/status" {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintln(w, "the database does not answer")
			return
		}
		page := topPage(100 + 10*int(reads.Add(1)))
		if away.Load() {
			page = strings.Replace(page, "till_ready 1", "till_ready 0", 1)
		}
		fmt.Fprint(w, page)
	}))
	defer s.Close()
	address := strings.TrimPrefix(s.URL, "http://")
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"top", "--once", "--every", "100ms", "--admin-listen", address}, &out, &errs); code != 0 {
		t.Fatal(code, errs.String())
	}
	for _, want := range []string{"CONNECTION", "mtn", "stopped", "oldest unknown 20m0s", "2.5s", " old: the database does not answer): open 7,", "; trouble: held\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is missing in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "NOT READY") {
		t.Error("a server that is ready is told as not ready")
	}
	away.Store(true)
	out.Reset()
	if code := run(t.Context(), []string{"top", "--once", "--every", "100ms", "--admin-listen", address}, &out, &errs); code != 0 || !strings.Contains(out.String(), "NOT READY: the database is away\n") {
		t.Errorf("without its database: %d\n%s", code, out.String())
	}
	out.Reset()
	if code := run(t.Context(), []string{"top", "--once", "--every", "100ms", "--json", "--admin-listen", address}, &out, &errs); code != 0 || !json.Valid(out.Bytes()) {
		t.Errorf("%d %s", code, out.String())
	}
}

// A page that is none of ours, a wrong address and wrong flags are reported in a sentence.
func TestTopRefuses(t *testing.T) {
	t.Parallel()
	pages := map[string]string{"/": "hello", "half": "till_build_info{version=\"v", "number": "till_build_info x", "others": "up 1\n", "long": "x" + strings.Repeat("y", 100_000)}
	for name, page := range pages {
		if _, err := parseMetrics(strings.NewReader(page), time.Now()); err == nil {
			t.Errorf("%s is taken for metrics", name)
		}
	}
	for _, args := range [][]string{{"--every", "1ms"}, {"--admin-listen", ""}, {"--admin-listen", "127.0.0.1:1"}, {"--admin-listen", "no address"}} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), append([]string{"top", "--once"}, args...), &out, &errs); code != 2 || !strings.HasPrefix(errs.String(), "till: ") {
			t.Errorf("%q ends with %d: %s", args, code, errs.String())
		}
	}
}
