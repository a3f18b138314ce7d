package trace

import (
	"compress/gzip"
	"context"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"till"
)

func TestSamplingIsAFunctionOfTheID(t *testing.T) {
	t.Parallel()
	one, other := New(Config{Endpoint: "http://127.0.0.1:1", Ratio: 0.01}), New(Config{Endpoint: "http://127.0.0.1:2", Ratio: 0.01})
	const n = 200_000
	chosen := 0
	for i := range n {
		id := till.NewID(till.Time(i))
		if one.sampled(id) != other.sampled(id) {
			t.Fatalf("two instances disagree about %s", id)
		}
		if one.sampled(id) {
			chosen++
		}
	}
	if share := float64(chosen) / n; math.Abs(share-0.01) > 0.002 {
		t.Errorf("%.4f of all were sampled", share)
	}
	for _, c := range []struct {
		ratio float64
		id    string
		want  bool
	}{
		{0, "019a8e0c-3c52-7cc0-bfff-ffffffffffff", false},
		{1, "019a8e0c-3c52-7cc0-8000-000000000000", true},
		{0.5, "019a8e0c-3c52-7cc0-807f-ffffffffffff", false},
		{0.5, "019a8e0c-3c52-7cc0-8080-000000000000", true},
		{0.5, "019a8e0c-3c52-7cc0-bf7f-ffffffffffff", false}, // the bits before the last 56 do not count
	} {
		id, err := till.ParseID(c.id)
		if err != nil {
			t.Fatal(err)
		}
		if got := New(Config{Endpoint: "http://127.0.0.1:1", Ratio: c.ratio}).sampled(id); got != c.want {
			t.Errorf("%s at %v: %v", c.id, c.ratio, got)
		}
	}
}

func TestTroubleIsFollowed(t *testing.T) {
	t.Parallel()
	tr := New(Config{Endpoint: "http://127.0.0.1:1"})
	id := till.NewID(1)
	if tr.Wants(id) {
		t.Fatal("wanted before there was trouble")
	}
	tr.Follow(id)
	if !tr.Wants(id) || tr.Wants(till.NewID(1)) {
		t.Error("exactly the one with trouble should be wanted")
	}
	for i := range 3 * maxFollowed {
		tr.Follow(till.NewID(till.Time(i)))
	}
	if tr.Wants(id) || len(tr.followed)+len(tr.old) > 2*maxFollowed {
		t.Errorf("%d are remembered", len(tr.followed)+len(tr.old))
	}
}

func TestParent(t *testing.T) {
	t.Parallel()
	const trace, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	for text, want := range map[string]bool{
		"00-" + trace + "-" + span + "-01":                    true,
		"00-" + trace + "-" + span + "-03":                    true,
		"00-" + trace + "-" + span + "-00":                    false, // not sampled
		"00-" + trace + "-" + span + "-01-more":               false,
		"01-" + trace + "-" + span + "-01-more":               true, // a later version
		"01-" + trace + "-" + span + "-01more":                false,
		"ff-" + trace + "-" + span + "-01":                    false,
		"00-" + strings.ToUpper(trace) + "-" + span + "-01":   false,
		"00-" + strings.Repeat("0", 32) + "-" + span + "-01":  false,
		"00-" + trace + "-" + strings.Repeat("0", 16) + "-01": false,
		"00-" + trace + "-" + span + "-0g":                    false,
		"zz-" + trace + "-" + span + "-01":                    false,
		"00_" + trace + "-" + span + "-01":                    false,
		"":                                                    false,
	} {
		tr := New(Config{Endpoint: "http://127.0.0.1:1"})
		if got := tr.Accept([]string{text}, time.Now()).Asks(); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	tr, now, asked := New(Config{Endpoint: "http://127.0.0.1:1"}), time.Now(), 0
	for range 3 * maxCallers {
		if tr.Accept([]string{"00-" + trace + "-" + span + "-01"}, now).Asks() {
			asked++
		}
	}
	if asked != maxCallers {
		t.Errorf("%d callers in a second got a trace", asked)
	}
}

// collector is an OTLP collector that answers as told.
type collector struct {
	*httptest.Server
	mu     sync.Mutex
	answer []int // of the next requests; then 200
	bodies [][]byte
	header http.Header
	reply  []byte
}

func newCollector(t *testing.T, answers ...int) *collector {
	c := &collector{answer: answers}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := io.Reader(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(r.Body)
			if err != nil {
				t.Error(err)
				return
			}
			body = z
		}
		b, err := io.ReadAll(body)
		if err != nil {
			t.Error(err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.bodies, c.header = append(c.bodies, b), r.Header
		if len(c.answer) > 0 {
			status := c.answer[0]
			c.answer = c.answer[1:]
			w.WriteHeader(status)
			return
		}
		w.Write(c.reply)
	}))
	t.Cleanup(c.Close)
	return c
}

func tracerTo(t *testing.T, url string, dropped *atomic.Int64) *Tracer {
	t.Helper()
	c, err := FromEnvironment(url, 1, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	c.Dropped = func(n int) { dropped.Add(int64(n)) }
	return New(c)
}

func TestOnlyABusyCollectorIsSentTheSameAgain(t *testing.T) {
	t.Parallel()
	for status, again := range map[int]bool{429: true, 502: true, 503: true, 504: true, 500: false, 400: false, 404: false, 302: false} {
		var dropped atomic.Int64
		c := newCollector(t, status)
		tr := tracerTo(t, c.URL, &dropped)
		s := Child(till.NewID(1), "create", Internal)
		tr.Record(&s)
		now := time.Now()
		tr.step(t.Context(), now)
		if tr.step(t.Context(), now); len(c.bodies) != 1 {
			t.Errorf("%d: sent again at once", status)
		}
		tr.step(t.Context(), now.Add(2*maxPause))
		want, lost := 1, int64(1)
		if again {
			want, lost = 2, 0
		}
		if len(c.bodies) != want || dropped.Load() != lost {
			t.Errorf("%d: %d requests, %d lost", status, len(c.bodies), dropped.Load())
		}
		if again && string(c.bodies[0]) != string(c.bodies[1]) {
			t.Errorf("%d: another request", status)
		}
	}
}

func TestACollectorThatStaysBusyIsGivenUp(t *testing.T) {
	t.Parallel()
	var dropped atomic.Int64
	c := newCollector(t, 503, 503, 503, 503, 503, 503, 503)
	tr := tracerTo(t, c.URL, &dropped)
	s := Child(till.NewID(1), "create", Internal)
	tr.Record(&s)
	for i := range 2 * maxTries {
		tr.step(t.Context(), time.Now().Add(time.Duration(i)*2*maxPause))
	}
	if len(c.bodies) != maxTries || dropped.Load() != 1 {
		t.Errorf("%d requests, %d lost", len(c.bodies), dropped.Load())
	}
}

func TestRejectedSpansAreCounted(t *testing.T) {
	t.Parallel()
	var dropped atomic.Int64
	c := newCollector(t)
	c.reply = message(nil, 1, func(b []byte) []byte {
		b = appendNumber(b, 1, 3)
		return appendText(b, 2, "too old")
	})
	tr := tracerTo(t, c.URL, &dropped)
	for range 5 {
		s := Child(till.NewID(1), "create", Internal)
		tr.Record(&s)
	}
	tr.step(t.Context(), time.Now())
	if dropped.Load() != 3 {
		t.Errorf("%d counted", dropped.Load())
	}
	for _, hostile := range [][]byte{nil, {0xff}, {0x0a, 0x05, 0x08}, protowire.AppendVarint(nil, 1<<63)} {
		if n := rejected(hostile); n != 0 {
			t.Errorf("%x: %d", hostile, n)
		}
	}
}

// An unreachable or silent collector costs spans and nothing else: no Record waits, and a
// stop takes at most a second.
func TestASilentCollectorHoldsUpNobody(t *testing.T) {
	t.Parallel()
	silent := make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-silent }))
	defer web.Close()
	defer close(silent)
	for _, url := range []string{web.URL, "http://127.0.0.1:1"} {
		var dropped atomic.Int64
		tr := tracerTo(t, url, &dropped)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { tr.Run(ctx); close(ended) }()
		const n = 10 * ringSize
		for range n {
			s := Child(till.NewID(1), "create", Internal)
			tr.Record(&s)
		}
		if dropped.Load() < n/2 {
			t.Errorf("%s: %d of %d lost; the ring holds %d", url, dropped.Load(), n, ringSize)
		}
		stop()
		<-ended
		began := time.Now()
		tr.Close()
		if took := time.Since(began); took > 30*closeTimeout {
			t.Errorf("%s: the stop took %s", url, took)
		}
	}
}

func TestALongQueueIsSentInSeveralRequests(t *testing.T) {
	t.Parallel()
	var dropped atomic.Int64
	c := newCollector(t)
	tr := tracerTo(t, c.URL, &dropped)
	for range ringSize {
		s := Child(till.NewID(1), "create", Internal)
		tr.Record(&s)
	}
	tr.Close()
	if len(c.bodies) != ringSize/maxPost || dropped.Load() != 0 {
		t.Errorf("%d requests, %d lost", len(c.bodies), dropped.Load())
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flag string
		env  map[string]string
		want string // the endpoint
		err  string
	}{
		{"", nil, "", ""},
		{"http://127.0.0.1:4318", nil, "http://127.0.0.1:4318/v1/traces", ""},
		{"https://otel.example.com/a/", nil, "https://otel.example.com/a/v1/traces", ""},
		{"http://127.0.0.1:4318/v1/traces", nil, "http://127.0.0.1:4318/v1/traces", ""},
		{"", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:4318"}, "http://a:4318/v1/traces", ""},
		{"", map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://a:4318/x", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://b"}, "http://a:4318/x", ""},
		{"http://c:1", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:4318"}, "http://c:1/v1/traces", ""},
		{"", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:4318", "OTEL_SDK_DISABLED": "true"}, "", ""},
		{"", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:4318", "OTEL_TRACES_EXPORTER": "none"}, "", ""},
		{"127.0.0.1:4318", nil, "", "--otlp-endpoint: the address of a collector must look like"},
		{"http://me:secret@a", nil, "", "must not hold a password"},
		{"http://a", map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "", `OTEL_EXPORTER_OTLP_PROTOCOL: the protocol "grpc" is not supported`},
		{"http://a", map[string]string{"OTEL_EXPORTER_OTLP_TIMEOUT": "soon"}, "", "OTEL_EXPORTER_OTLP_TIMEOUT"},
		{"http://a", map[string]string{"OTEL_EXPORTER_OTLP_COMPRESSION": "zip"}, "", "is not gzip or none"},
		{"http://a", map[string]string{"OTEL_EXPORTER_OTLP_CERTIFICATE": "/nowhere"}, "", "OTEL_EXPORTER_OTLP_CERTIFICATE"},
		{"http://a", map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "secret"}, "", "key=value"},
		{"http://a", map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "a=b%0Ac: d"}, "", "not allowed"},
		{"http://a", map[string]string{"OTEL_RESOURCE_ATTRIBUTES": "=x"}, "", "OTEL_RESOURCE_ATTRIBUTES"},
	} {
		got, err := FromEnvironment(c.flag, 0.01, func(name string) string { return c.env[name] })
		switch {
		case c.err == "" && err != nil, c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%q %v: %v", c.flag, c.env, err)
		case err != nil && strings.Contains(err.Error(), "secret"):
			t.Errorf("%q: %v", c.flag, err)
		case err == nil && got.Endpoint != c.want:
			t.Errorf("%q %v: %q", c.flag, c.env, got.Endpoint)
		}
	}
	for _, ratio := range []float64{-0.1, 1.1, math.NaN()} {
		if _, err := FromEnvironment("", ratio, func(string) string { return "" }); err == nil {
			t.Errorf("the ratio %v is taken", ratio)
		}
	}
	c, err := FromEnvironment("http://a", 1, func(name string) string {
		return map[string]string{"OTEL_SERVICE_NAME": "pay", "OTEL_RESOURCE_ATTRIBUTES": "service.name=x, host.name=a%20b", "OTEL_EXPORTER_OTLP_HEADERS": "Authorization=Basic%20eA=="}[name]
	})
	if err != nil || len(c.Resource) != 2 || c.Resource[0].Text != "a b" || c.Resource[1].Text != "pay" || c.Headers["Authorization"] != "Basic eA==" {
		t.Errorf("%v %v", c, err)
	}
}

// What the engine does for each call: choose, and record. Off, it allocates nothing; on, it
// copies into the ring.
func observe(tr *Tracer, id till.ID) {
	if tr == nil || !tr.Wants(id) {
		return
	}
	s := Child(id, "submit", Client)
	s.Text("till.connection", "sandbox")
	s.Int("till.attempt", 1)
	tr.Record(&s)
}

func TestNoAllocations(t *testing.T) {
	id := till.NewID(1)
	for name, tr := range map[string]*Tracer{"off": nil, "not sampled": New(Config{Endpoint: "http://127.0.0.1:1"}), "sampled": New(Config{Endpoint: "http://127.0.0.1:1", Ratio: 1})} {
		if n := testing.AllocsPerRun(1000, func() { observe(tr, id) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
		if tr == nil && (tr.Wants(id) || tr.sampled(id) || tr.Accept([]string{"x"}, time.Time{}).Asks()) {
			t.Error("a nil tracer wants something")
		}
	}
	var off *Tracer
	off.Follow(id)
	off.Record(&Span{})
	off.Close()
}

func BenchmarkOff(b *testing.B) {
	b.ReportAllocs()
	id := till.NewID(1)
	for b.Loop() {
		observe(nil, id)
	}
}

func BenchmarkNotSampled(b *testing.B) {
	b.ReportAllocs()
	tr, id := New(Config{Endpoint: "http://127.0.0.1:1"}), till.NewID(1)
	for b.Loop() {
		observe(tr, id)
	}
}
