package server_test

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"till"
	"till/internal/trace"
	"till/webhook"
)

// spans is a collector that keeps what it is sent.
type spans struct {
	t    *testing.T
	mu   sync.Mutex
	raw  bytes.Buffer
	seen []span
}

type span struct{ trace, id, parent, name, link string }

func collectSpans(t *testing.T) (*spans, trace.Config) {
	c := &spans{t: t}
	web := httptest.NewServer(c)
	t.Cleanup(web.Close)
	config, err := trace.FromEnvironment(web.URL, 1, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	return c, config
}

func (c *spans) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	z, err := gzip.NewReader(r.Body)
	if err != nil {
		c.t.Error(err)
		return
	}
	b, err := io.ReadAll(z)
	if err != nil {
		c.t.Error(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raw.Write(b)
	for _, all := range fields(b, 1) { // resource_spans, scope_spans, spans
		for _, scope := range fields(all, 2) {
			for _, s := range fields(scope, 2) {
				one := span{text(s, 1), text(s, 2), text(s, 4), string(fields(s, 5)[0]), ""}
				for _, l := range fields(s, 13) {
					one.link = text(l, 1) + " " + text(l, 2)
				}
				c.seen = append(c.seen, one)
			}
		}
	}
}

// fields returns the values of a message's field of bytes.
func fields(b []byte, field protowire.Number) (out [][]byte) {
	for len(b) > 0 {
		n, kind, length := protowire.ConsumeTag(b)
		b = b[length:]
		if n == field && kind == protowire.BytesType {
			v, _ := protowire.ConsumeBytes(b)
			out = append(out, v)
		}
		b = b[protowire.ConsumeFieldValue(n, kind, b):]
	}
	return out
}

func text(b []byte, field protowire.Number) string {
	for _, v := range fields(b, field) {
		return hex.EncodeToString(v)
	}
	return ""
}

// names returns the names of a payment's spans, once each, in order.
func (c *spans) names(id string) (out []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.seen {
		if s.trace == strings.ReplaceAll(id, "-", "") {
			out = append(out, s.name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// await waits until a payment has spans of these names.
func (c *spans) await(id string, want ...string) {
	c.t.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		names := c.names(id)
		if !slices.ContainsFunc(want, func(name string) bool { return !slices.Contains(names, name) }) {
			return
		}
	}
	c.t.Fatalf("the spans of %s are %v, want %v", id, c.names(id), want)
}

const (
	tracePhone  = "242069876543"
	traceParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
)

// F61: a payment's trace is its id, it is linked with the caller's trace both ways, and no
// phone, amount, name, key or client's URL is in it.
func TestAPaymentIsTraced(t *testing.T) {
	t.Parallel()
	sent, config := collectSpans(t)
	hook := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer hook.Close()
	c := testConfig(t)
	c.Trace, c.WebhookAllow = config, webhook.Loopback
	r := start(t, c)
	if status, v, err := r.do("POST", "/webhook-endpoints", fmt.Sprintf(`{"url": %q, "events": ["*"]}`, hook.URL+"/canary-path?canary-query=1")); status != http.StatusCreated {
		t.Fatal(status, v, err)
	}
	key := till.NewID(till.TimeOf(time.Now())).String()
	q, err := http.NewRequest("POST", r.BaseURL()+"/payments", strings.NewReader(fmt.Sprintf(`{"method": "mtn_momo", "country": "CG",
		"amount": {"value": "1765432", "currency": "XAF"}, "customer": {"phone": %q, "name": "Canary Mado"}, "reference": "canary-reference",
		"metadata": {"note": "canary-metadata"}, "description": "canary-description", "idempotency_key": %q}`, tracePhone, key)))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("X-Api-Key", r.Demo().APIKey)
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Traceparent", traceParent)
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	answer, _ := io.ReadAll(a.Body)
	a.Body.Close()
	if a.StatusCode != http.StatusAccepted {
		t.Fatal(a.Status, string(answer))
	}
	id := a.Header.Get("Location")[len(a.Header.Get("Location"))-36:]
	r.await(id, "success")
	sent.await(id, "apply", "check", "create", "payment", "submit", "webhook")
	sent.await("0af7651916cd43dd8448eb211c80319c", "POST /payments")
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}

	parsed, _ := till.ParseID(id)
	rootID := trace.RootID(parsed)
	root, trac := hex.EncodeToString(rootID[:]), strings.ReplaceAll(id, "-", "")
	var server span
	for _, s := range sent.seen {
		if s.name == "POST /payments" {
			server = s
		}
	}
	if server.parent != "b7ad6b7169203331" || server.link != trac+" "+root {
		t.Errorf("the request's span is %+v", server)
	}
	for _, s := range sent.seen {
		switch {
		case s.trace != trac:
		case s.name == "payment" && (s.id != root || s.parent != ""), s.name != "payment" && s.parent != root:
			t.Errorf("%+v; the root span is %s", s, root)
		case s.name == "create" && s.link != server.trace+" "+server.id:
			t.Errorf("%+v is not linked to %+v", s, server)
		}
	}
	raw := strings.ToLower(sent.raw.String())
	for _, secret := range []string{"canary", "mado", tracePhone, tracePhone[3:], "1765432", key, r.Demo().APIKey, r.Demo().APIKey[10:]} {
		if strings.Contains(raw, strings.ToLower(secret)) {
			t.Errorf("%q is in a span", secret)
		}
	}
}

// From the first trouble on, everything about a payment is sent, whatever the ratio; about
// others nothing is. A client without trouble cannot be seen, and nobody without a key can
// make spans.
func TestTroubleIsTraced(t *testing.T) {
	t.Parallel()
	sent, config := collectSpans(t)
	config.Ratio = 0
	c := testConfig(t)
	c.Trace = config
	r := start(t, c)
	plain := r.create("242061234567")
	r.await(plain, "success")
	lost := r.create("242061230011") // the answer to the send is lost
	r.await(lost, "success")
	sent.await(lost, "apply", "check", "payment", "submit")
	if names := sent.names(plain); len(names) > 0 {
		t.Errorf("a payment without trouble has %v", names)
	}
	q, err := http.NewRequest("GET", r.BaseURL()+"/payments", nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Traceparent", traceParent)
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	a.Body.Close()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if names := sent.names("0af7651916cd43dd8448eb211c80319c"); len(names) > 0 {
		t.Errorf("a request without a key has %v", names)
	}
}

// A collector that cannot be reached costs spans and nothing else.
func TestAnUnreachableCollectorLosesSpansOnly(t *testing.T) {
	t.Parallel()
	c := testConfig(t)
	c.Trace = trace.Config{Endpoint: "http://127.0.0.1:1/v1/traces", Ratio: 1}
	r := start(t, c)
	r.await(r.create("242061234567"), "success")
	for end := time.Now().Add(2 * time.Minute); r.metrics()["till_trace_dropped_total"] == "0"; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("no span was counted as dropped")
		}
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	verify(t, c.Database)
}
