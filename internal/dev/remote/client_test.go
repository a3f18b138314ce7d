package remote

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"till"
	"till/internal/dev/faulty"
)

// service answers with a status and a text, behind a proxy with faults.
func service(t *testing.T, status int, text string, rules ...faulty.Rule) (*Client, *atomic.Int32) {
	t.Helper()
	asked := &atomic.Int32{}
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		body, _ := io.ReadAll(r.Body)
		if r.Header.Get("X-Api-Key") != "till_test_k" || r.URL.Path != "/v1/payments" || r.Method == "POST" && string(body) != `{"a":1}` {
			t.Errorf("%s %s %q", r.Method, r.URL, body)
		}
		w.WriteHeader(status)
		io.WriteString(w, text)
	}))
	t.Cleanup(origin.Close)
	proxy, err := faulty.New(origin.URL, 1, rules...)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(proxy)
	t.Cleanup(func() { front.Close(); proxy.Close() })
	c, err := New(front.URL+"/v1/", "till_test_k")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, asked
}

// What passes is asked again with the same bytes.
func TestRepeats(t *testing.T) {
	t.Parallel()
	for _, fault := range []faulty.Rule{
		{First: 1, Do: faulty.LoseAnswer}, {First: 1, Do: faulty.LoseRequest}, {First: 1, Do: faulty.Cut},
		{First: 1, Do: faulty.Status, Status: 503}, {First: 1, Do: faulty.Status, Status: 200, Body: "<html>"},
	} {
		t.Run(string(fault.Do), func(t *testing.T) {
			t.Parallel()
			c, _ := service(t, 202, `{"id":"x"}`, fault)
			var out struct{ ID string }
			if err := c.Post(t.Context(), "/payments", []byte(`{"a":1}`), &out); err != nil || out.ID != "x" {
				t.Errorf("%+v, %v", out, err)
			}
		})
	}
}

// A refusal is said once, with its fields, as the service has it.
func TestRefusals(t *testing.T) {
	t.Parallel()
	c, asked := service(t, 422, `{"status":422,"code":"validation_failed","detail":"Some fields are wrong.","errors":[{"pointer":"/customer/phone","code":"invalid_phone","detail":"digits only"}]}`)
	err := c.Get(t.Context(), "/payments", 0, nil)
	var refused *till.Error
	if !errors.As(err, &refused) || refused.Code != till.CodeValidationFailed || len(refused.Fields) != 1 || refused.Fields[0].Pointer != "/customer/phone" || asked.Load() != 1 {
		t.Errorf("%v after %d", err, asked.Load())
	}
	c, _ = service(t, 404, "<html>not here</html>")
	if err := c.Get(t.Context(), "/payments", 0, nil); err == nil || !strings.Contains(err.Error(), "It ends in /v1") {
		t.Errorf("%v", err)
	}
}

// Nothing secret is in an error, and a caller that leaves is not kept.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	c, err := New("http://127.0.0.1:1/v1", "till_test_secret")
	if err != nil {
		t.Fatal(err)
	}
	err = c.Get(t.Context(), "/events", 0, nil)
	if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "http://127.0.0.1:1/v1 does not answer") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Get(ctx, "/events", 0, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	for _, bad := range [][2]string{{"", "k"}, {"127.0.0.1:8080", "k"}, {"ftp://a/v1", "k"}, {"http://u:p@a/v1", "k"}, {"http://a/v1?x", "k"}, {"http://a/v1", ""}, {"http://a/v1", "a b"}} {
		if _, err := New(bad[0], bad[1]); err == nil {
			t.Errorf("%q", bad)
		}
	}
}
