package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"till/books"
	"till/internal/logs"
	"till/server"
	"till/store"
)

// metrics scrapes a server and returns its series, by name and labels.
func (r *running) metrics() map[string]string {
	r.t.Helper()
	status, body := r.admin("/metrics")
	if status != http.StatusOK {
		r.t.Fatalf("metrics: %d %s", status, body)
	}
	out := map[string]string{}
	for line := range strings.Lines(body) {
		if i := strings.LastIndexByte(line, ' '); i > 0 && !strings.HasPrefix(line, "#") {
			out[line[:i]] = strings.TrimSpace(line[i:])
		}
	}
	return out
}

// counted scrapes until the series have these values, and returns all of them. What a commit
// changes is counted after it: a client can read the payment's status before that.
func (r *running) counted(want map[string]string) map[string]string {
	r.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		got := r.metrics()
		var wrong []string
		for series, value := range want {
			if got[series] != value {
				wrong = append(wrong, fmt.Sprintf("%s is %q, want %s", series, got[series], value))
			}
		}
		if len(wrong) == 0 {
			return got
		}
		if time.Now().After(end) {
			r.t.Fatal(strings.Join(wrong, "\n"))
		}
	}
}

func (r *running) admin(path string) (int, string) {
	r.t.Helper()
	a, err := http.Get("http://" + r.AdminAddr().String() + path)
	if err != nil {
		r.t.Fatal(err)
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return a.StatusCode, string(b)
}

func TestAPaymentIsCounted(t *testing.T) {
	t.Parallel()
	c := testConfig(t)
	c.AdminListen, c.Version = "127.0.0.1:0", "v9.9.9"
	c.Journal, c.JournalSync = t.TempDir(), true
	r := start(t, c)
	r.await(r.create("242061234567"), "success")
	m := r.counted(map[string]string{
		`till_http_requests_total{code="2xx",route="POST /payments"}`:                            "1",
		`till_http_request_duration_seconds_count{route="POST /payments"}`:                       "1",
		`till_moves_total{kind="payment",method="mtn_momo",status="pending"}`:                    "1",
		`till_moves_total{kind="payment",method="mtn_momo",status="success"}`:                    "1",
		`till_time_to_final_seconds_count{connection="sandbox",kind="payment",result="success"}`: "1",
		`till_operator_calls_total{connection="sandbox",operation="submit",outcome="accepted"}`:  "1",
		`till_batch_size_count{batch="create"}`:                                                  "1",
		`till_operator_state{connection="sandbox",kind="payment"}`:                               "0",
		`till_batch_queue{batch="create"}`:                                                       "0",
		`till_ready`:                                                                             "1",
		`till_db_transactions_total{kind="first",result="unknown_commit"}`:                       "0",
		`till_panics_total{where="request"}`:                                                     "0",
		`till_loop_late{loop="collector"}`:                                                       "0",
		`till_journal_records_total{result="written"}`:                                           "1",
		`till_journal_records_total{result="missing"}`:                                           "0",
		`till_journal_failing`:                                                                   "0",
	})
	for series := range m {
		if name, _, _ := strings.Cut(series, "{"); name == "till_build_info" && !strings.Contains(series, `version="v9.9.9"`) {
			t.Error(series)
		}
	}
	if m["till_db_bytes{part=\"main\"}"] == "0" || m["go_goroutines"] == "" || m["process_open_fds"] == "" || m[`till_disk_free_bytes{folder="journal"}`] == "" {
		t.Error("a number of the process or of the file is missing")
	}
}

// While the journal cannot be written the gauge says so, and creates are refused if it is
// synchronous. Both end when the folder is back.
func TestAJournalThatFailsIsTold(t *testing.T) {
	t.Parallel()
	for name, sync := range map[string]bool{"before the commit": true, "behind the commit": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := testConfig(t)
			c.Journal, c.JournalSync = filepath.Join(t.TempDir(), "journal"), sync
			r := start(t, c)
			failing := func(want string) {
				t.Helper()
				for end := time.Now().Add(time.Minute); r.metrics()["till_journal_failing"] != want; time.Sleep(20 * time.Millisecond) {
					if time.Now().After(end) {
						t.Fatalf("till_journal_failing is not %s", want)
					}
				}
			}
			r.create("242061234567")
			failing("0")
			if err := os.Rename(c.Journal, c.Journal+".away"); err != nil {
				t.Fatal(err)
			}
			if err := r.GiveUpJournalSegment(); err != nil {
				t.Fatal(err)
			}
			want := http.StatusAccepted
			if sync {
				want = http.StatusServiceUnavailable
			}
			if status, v, err := r.do(http.MethodPost, "/payments", order("242061234567")); err != nil || status != want {
				t.Errorf("a create is answered %d %v %v, want %d", status, v, err, want)
			}
			failing("1")
			r.tells(c.Database, books.TroubleJournal)
			if status, text := r.admin("/readyz"); sync && (status != http.StatusServiceUnavailable || strings.TrimSpace(text) != books.JournalStopsText) {
				t.Errorf("/readyz answers %d %s", status, text)
			}
			if err := os.Rename(c.Journal+".away", c.Journal); err != nil {
				t.Fatal(err)
			}
			failing("0")
			r.create("242061234567")
		})
	}
}

// tells waits until the admin address and a command beside the server tell a trouble. The
// command reads it where the pulse has written it.
func (r *running) tells(database string, want books.TroubleName) {
	r.t.Helper()
	s, err := store.Open(r.t.Context(), store.Config{Path: database, Readers: 1})
	if err != nil {
		r.t.Fatal(err)
	}
	defer s.Close()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		var here server.StatusJSON
		if status, body := r.admin("/status"); status != http.StatusOK || json.Unmarshal([]byte(body), &here) != nil {
			r.t.Fatalf("/status answers %d %s", status, body)
		}
		beside, err := server.ReadStatus(r.t.Context(), s, database)
		if err != nil {
			r.t.Fatal(err)
		}
		told := slices.ContainsFunc(beside.Troubles(), func(found books.Trouble) bool { return found.Name == want })
		if told && slices.Contains(here.Troubles, string(want)) {
			return
		}
		if time.Now().After(end) {
			r.t.Fatalf("%s is not told: %q here, %t beside", want, here.Troubles, told)
		}
	}
}

// F54, F55: what a client sends makes no series, and is in no label.
func TestAHostileClientAddsNoSeries(t *testing.T) {
	t.Parallel()
	c := testConfig(t)
	c.AdminListen = "127.0.0.1:0"
	r := start(t, c)
	r.await(r.create("242061234567"), "success")
	before := r.metrics()
	for _, try := range []struct{ method, path, key string }{
		{"GET", "/v1/canary", "till_live_canary_canary"},
		{"CANARY", "/v1/payments", "canary"},
		{"GET", "/v1/payments?x-api-key=till_live_canary_canarycanary", ""},
		{"POST", "/v1/callbacks/canary/canary", ""},
		{"PUT", "/v1/callbacks/sandbox/canary", ""},
		{"GET", "/v1/payments/canary", r.Demo().APIKey},
		{"GET", "/v1/payments?canary=1", r.Demo().APIKey},
		{"POST", "/v1/payments", r.Demo().APIKey},
		{"GET", "/", ""},
	} {
		q, err := http.NewRequest(try.method, "http://"+r.Addr().String()+try.path, strings.NewReader(`{"canary":1}`))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("X-Api-Key", try.key)
		q.Header.Set("User-Agent", "canary")
		a, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
	}
	after := r.metrics()
	if len(after) != len(before) {
		t.Errorf("%d series, before %d", len(after), len(before))
	}
	if len(after) > 2600 {
		t.Errorf("%d series", len(after))
	}
	for series := range after {
		if strings.Contains(strings.ToLower(series), "canary") {
			t.Error(series)
		}
	}
	r.counted(map[string]string{
		`till_auth_refused_total{why="in_url"}`:                      "1",
		`till_auth_refused_total{why="unknown"}`:                     "0",
		`till_callbacks_total{connection="other",result="forged"}`:   "1",
		`till_callbacks_total{connection="sandbox",result="forged"}`: "1",
		`till_http_requests_total{code="4xx",route="none"}`:          "4",
	})
}

// A scrape in the middle of a stop is answered, or refused as a connection: it neither
// hangs nor panics, and the stop ends in order.
func TestAScrapeInTheMiddleOfAStop(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	c := testConfig(t)
	c.AdminListen, c.Log = "127.0.0.1:0", slog.New(slog.NewTextHandler(&log, nil))
	r := start(t, c)
	r.await(r.create("242061234567"), "success")
	address := "http://" + r.AdminAddr().String() + "/metrics"
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	scraped, begun := make(chan int, 1), make(chan bool, 1)
	go func() {
		n := 0
		for {
			a, err := client.Get(address)
			if err != nil {
				scraped <- n
				return
			}
			if b, _ := io.ReadAll(a.Body); a.StatusCode == http.StatusOK && !bytes.Contains(b, []byte("till_ready")) {
				t.Errorf("half a scrape: %s", b)
			}
			a.Body.Close()
			if n++; n == 1 {
				begun <- true
			}
		}
	}()
	<-begun
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	t.Log(<-scraped, "scrapes, the last of them during the stop")
	if strings.Contains(log.String(), "panic") {
		t.Error(log.String())
	}
}

// The lines about a request and about an end have all their fields, always.
func TestWideLinesHaveTheirFields(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	c := testConfig(t)
	c.Log = logs.New(&log, true, slog.LevelDebug)
	r := start(t, c)
	r.await(r.create("242061234567"), "success")
	r.await(r.create("242060000002"), "failed")
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"request": "bytes_in bytes_out client code from key level msg others replayed request_id route status time took waited",
		"ended":   "by callbacks calls client connection currency id kind late level method minor msg reason resolution seconds sends status time",
		"changed": "from id level msg time to what why",
		"call":    "action code connection error id kind level msg others outcome sends time took",
	}
	seen := map[string]int{}
	for line := range strings.Lines(log.String()) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		message := fields["msg"].(string)
		if want[message] == "" {
			continue
		}
		seen[message]++
		if got := strings.Join(slices.Sorted(maps.Keys(fields)), " "); got != want[message] {
			t.Errorf("%s has %s", message, got)
		}
	}
	if seen["ended"] != 2 || seen["request"] < 4 || seen["call"] < 4 || seen["changed"] < 2 {
		t.Errorf("lines: %v", seen)
	}
}
