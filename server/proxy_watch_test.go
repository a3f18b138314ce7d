package server_test

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"
)

// A server whose API and console have addresses of their own tells at each of them that a
// proxy is in front which it does not know.
func TestAServerTellsOfAProxyAtEachAddress(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"API", "console"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			log := &syncBuffer{}
			c := testConfig(t)
			c.Log = slog.New(slog.NewTextHandler(log, nil))
			c.BaseURL, c.ConsoleURL, c.ConsoleListen = "https://pay.example.com/v1", "https://console.example.com/", "127.0.0.1:0"
			s := start(t, c)
			address := "http://" + s.Addr().String() + "/v1/payments"
			if at == "console" {
				address = "http://" + s.ConsoleAddr().String() + "/console/"
			}
			for n := range 2 {
				if n == 0 && strings.Contains(log.String(), "trusted_proxies does not name it") {
					t.Error("it is told before anybody comes through one")
				}
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("X-Forwarded-For", "203.0.113.7")
				a, err := http.DefaultTransport.RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				a.Body.Close()
			}
			if n := strings.Count(log.String(), "trusted_proxies does not name it"); n != 1 {
				t.Errorf("told %d times:\n%s", n, log.String())
			}
		})
	}
}
