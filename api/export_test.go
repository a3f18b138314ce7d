package api_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"till/bench/seed"
)

// newStatement is a world in which the client test has a statement of several
// slices.
func newStatement(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, options{})
	from := w.store.Now().Add(time.Hour)
	err := seed.Payments(t.Context(), w.store, seed.Config{Client: w.clients["test"].ID, Rows: 6000, From: from, To: from.Add(24 * time.Hour), Books: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.stop)
	return w
}

// hooked is an answer that does something after its first write.
type hooked struct {
	http.ResponseWriter
	then   func()
	writes int
	err    error // what writes after the first say
}

func (h *hooked) Write(b []byte) (int, error) {
	if h.writes++; h.writes > 1 && h.err != nil {
		return 0, h.err
	}
	n, err := h.ResponseWriter.Write(b)
	if h.writes == 1 && h.then != nil {
		h.then()
	}
	return n, err
}

// Unwrap lets a response controller find the writer inside.
func (h *hooked) Unwrap() http.ResponseWriter { return h.ResponseWriter }

// export serves an export to a writer and reports whether it was broken off.
func (w *world) export(ctx context.Context, out http.ResponseWriter, accept string) (broken bool) {
	r := httptest.NewRequest(http.MethodGet, "/v1/transactions", nil).WithContext(ctx)
	r.Header.Set("X-Api-Key", w.keys["test"])
	r.Header.Set("Accept", accept)
	defer func() {
		switch v := recover(); v {
		case nil:
		case http.ErrAbortHandler:
			broken = true
		default:
			panic(v)
		}
	}()
	w.handler.ServeHTTP(out, r)
	return false
}

func TestAnExportIsWhole(t *testing.T) {
	t.Parallel()
	w := newStatement(t)
	a := httptest.NewRecorder()
	out := &hooked{ResponseWriter: a}
	if w.export(t.Context(), out, "text/csv") || out.writes != 3 || strings.Count(a.Body.String(), "\r\n") != 4801 {
		t.Errorf("%d writes, %d lines", out.writes, strings.Count(a.Body.String(), "\r\n"))
	}
}

// Once bytes are out, whatever goes wrong must not look like the end.
func TestAnExportThatFailsIsBrokenOff(t *testing.T) {
	t.Parallel()
	w := newStatement(t)
	ctx, cancel := context.WithCancel(t.Context())
	for _, c := range []struct {
		name string
		out  *hooked
	}{
		{"the client hangs up", &hooked{then: cancel}},
		{"nobody reads on", &hooked{err: errors.New("no space left in the pipe")}},
	} {
		c.out.ResponseWriter = httptest.NewRecorder()
		if !w.export(ctx, c.out, "application/jsonl") || c.out.writes > 2 {
			t.Errorf("%s: not broken off after %d writes", c.name, c.out.writes)
		}
		ctx = t.Context()
	}
	// A key that is revoked meanwhile is shown no more; over a real connection,
	// its reader notices.
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.handler.ServeHTTP(&hooked{ResponseWriter: rw, then: func() {
			key := strings.Split(w.keys["test"], "_")[2]
			if _, err := w.accounts.RevokeKey(context.Background(), w.clients["test"].ID, key, false, "a test"); err != nil {
				t.Error(err)
			}
		}}, r)
	}))
	defer server.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/v1/transactions", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Api-Key", w.keys["test"])
	r.Header.Set("Accept", "text/csv")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if !errors.Is(err, io.ErrUnexpectedEOF) || answer.StatusCode != http.StatusOK || strings.Count(string(b), "\n") > 4000 {
		t.Errorf("%d with %d lines, %v; want an end that is none", answer.StatusCode, strings.Count(string(b), "\n"), err)
	}
}

// Two exports of a client run at once, a third is refused; when they have
// ended there is room again.
func TestExportsAreBounded(t *testing.T) {
	t.Parallel()
	w := newStatement(t)
	var third *httptest.ResponseRecorder
	outer := &hooked{ResponseWriter: httptest.NewRecorder(), then: func() {
		inner := &hooked{ResponseWriter: httptest.NewRecorder(), then: func() {
			third = httptest.NewRecorder()
			w.export(t.Context(), third, "text/csv")
		}}
		w.export(t.Context(), inner, "text/csv")
	}}
	w.export(t.Context(), outer, "text/csv")
	if third == nil || third.Code != http.StatusTooManyRequests || third.Header().Get("Retry-After") == "" {
		t.Errorf("the third was answered %v", third)
	}
	after := httptest.NewRecorder()
	if w.export(t.Context(), after, "text/csv") || after.Code != http.StatusOK {
		t.Errorf("afterwards: %d", after.Code)
	}
}
