package collect_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"till"
	"till/engine"
	"till/internal/trace"
	"till/meter"
	"till/provider"
)

// spanBytes keeps the spans that it is sent, as bytes.
type spanBytes struct {
	mu  sync.Mutex
	raw bytes.Buffer
}

func (c *spanBytes) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raw.Write(b)
}

// roots counts the root spans of a subject: its trace id, followed by the root's own id.
func (c *spanBytes) roots(id till.ID) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	root := trace.RootID(id)
	return bytes.Count(c.raw.Bytes(), append(append([]byte("\x0a\x10"), id[:]...), append([]byte("\x12\x08"), root[:]...)...))
}

func (c *spanBytes) holds(text string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Contains(c.raw.Bytes(), []byte(text))
}

// collectSpans returns a collector and its address. It must be made outside of a world:
// there, a wait for a connection would stop the time.
func collectSpans(t *testing.T) (*spanBytes, string) {
	c := &spanBytes{}
	web := httptest.NewServer(c)
	t.Cleanup(web.Close)
	return c, web.URL
}

// traced runs the world's collector with a tracer. Closing it sends all spans.
func (w *world) traced(endpoint string, ratio float64, change ...func(c *engine.Config)) *trace.Tracer {
	tracer := trace.New(trace.Config{Endpoint: endpoint, Ratio: ratio, Plain: true})
	w.stop()
	w.start(append(change, func(c *engine.Config) { c.Tracer = tracer })...)
	return tracer
}

// Money that comes after the end is trouble: the root span is sent then, although nobody
// wanted it at the end. If it was sent at the end, it is not sent twice.
func TestLateMoneySendsTheRootSpan(t *testing.T) {
	t.Parallel()
	spans, endpoint := collectSpans(t)
	for _, ratio := range []float64{0, 1} {
		inWorld(t, func(t *testing.T, w *world) {
			tracer := w.traced(endpoint, ratio)
			late, plain := w.create("0013").ID, w.create("4567").ID
			time.Sleep(window + 8*time.Second)
			if p := w.payment(late); p.LateSuccessAt.IsZero() || p.Status != till.Expired {
				t.Fatalf("it is %s", p.Status)
			}
			tracer.Close()
			if n := spans.roots(late); n != 1 {
				t.Errorf("at the ratio %v, %d root spans of a payment with late money", ratio, n)
			}
			if n := spans.roots(plain); n != int(ratio) {
				t.Errorf("at the ratio %v, %d root spans of a plain payment", ratio, n)
			}
		})
	}
}

// Operators write what they like as a code: a span has it only if it looks like one, and a
// metric never has.
func TestAnOperatorsCodeIsFiltered(t *testing.T) {
	t.Parallel()
	spans, endpoint := collectSpans(t)
	inWorld(t, func(t *testing.T, w *world) {
		m := meter.New(meter.Config{Connections: []string{"sandbox"}, Methods: []string{"mtn_momo"}})
		tracer := w.traced(endpoint, 1, func(c *engine.Config) { c.Meter = m })
		codes := []string{"CODE_OF-20.1", "242069990001", "Mado Canary owes us", "canary/12", strings.Repeat("canary", 20)}
		w.way.set(nil, func(ctx context.Context, q provider.Query, n int) (provider.Result, error) {
			r, err := w.way.Provider.Check(ctx, q)
			r.Code = codes[(n-1)%len(codes)]
			return r, err
		})
		for range codes {
			w.create("4567")
			time.Sleep(10 * time.Second)
		}
		if _, checks := w.way.counts(); checks < len(codes) {
			t.Fatalf("%d checks", checks)
		}
		tracer.Close()
		a := httptest.NewRecorder()
		m.Handler().ServeHTTP(a, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		if !spans.holds(codes[0]) {
			t.Errorf("no span has the code %q", codes[0])
		}
		for i, code := range codes {
			if i > 0 && spans.holds(code) {
				t.Errorf("a span has %q", code)
			}
			if strings.Contains(a.Body.String(), code) {
				t.Errorf("a metric has %q", code)
			}
		}
		if !strings.Contains(a.Body.String(), "till_operator_calls_total") {
			t.Error("nothing was counted")
		}
	})
}
