package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"till"
	"till/account"
	"till/api"
	"till/store/storetest"
)

// from sends a request from an address.
func (w *world) from(h http.Handler, address, forwarded, target, key string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	r.RemoteAddr = netip.AddrPortFrom(netip.MustParseAddr(address), 4711).String()
	if key != "" {
		r.Header.Set("X-Api-Key", key)
	}
	if forwarded != "" {
		r.Header.Set("X-Forwarded-For", forwarded)
	}
	a := httptest.NewRecorder()
	h.ServeHTTP(a, r)
	return a
}

func invented() string {
	text, _ := account.NewKey(till.Test)
	return text
}

// An address may try out 20 keys at once and one more every three seconds. Who
// has a good key that this instance has seen never notices.
func TestInventedKeysAreLimitedByAddress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, options{quiet: true})
		defer w.stop()
		ask := func(address, key string) int { return w.from(w.handler, address, "", "/v1/payments", key).Code }
		try := func(address string) int { return ask(address, invented()) }
		if got := ask("192.0.2.7", w.keys["test"]); got != http.StatusOK {
			t.Fatal("a good key: ", got)
		}
		for n := range 20 {
			if got := try("192.0.2.7"); got != http.StatusUnauthorized {
				t.Fatalf("key %d: %d", n, got)
			}
		}
		a := w.from(w.handler, "192.0.2.7", "", "/v1/payments", invented())
		if wait, _ := strconv.Atoi(a.Header().Get("Retry-After")); a.Code != http.StatusTooManyRequests || wait != 3 || !strings.Contains(a.Body.String(), `"code":"rate_limited"`) {
			t.Fatalf("key 21: %d, %q, %s", a.Code, a.Header(), a.Body)
		}
		for _, target := range []string{"/v1/payments", "/v1/wallets", "/v1/payouts"} {
			if a := w.from(w.handler, "192.0.2.7", "", target, w.keys["test"]); a.Code == http.StatusTooManyRequests || a.Code == http.StatusUnauthorized {
				t.Errorf("a good key from the same address, %s: %d %s", target, a.Code, a.Body)
			}
		}
		if got := ask("192.0.2.7", w.keys["other"]); got != http.StatusTooManyRequests {
			t.Errorf("a key that was never seen: %d", got)
		}
		if got := ask("192.0.2.8", w.keys["other"]); got != http.StatusOK {
			t.Errorf("the same from another address: %d", got)
		}
		if got := ask("192.0.2.7", w.keys["other"]); got != http.StatusOK {
			t.Errorf("and then from the first: %d", got)
		}
		// What is no key at all is a failure like any other, or it could be distinguished.
		if got := ask("192.0.2.7", "nonsense"); got != http.StatusTooManyRequests {
			t.Errorf("nonsense: %d", got)
		}
		time.Sleep(3 * time.Second)
		if first, second := try("192.0.2.7"), try("192.0.2.7"); first != http.StatusUnauthorized || second != http.StatusTooManyRequests {
			t.Errorf("three seconds later: %d, %d", first, second)
		}

		// An IPv6 address is a network of 64 bits.
		for n := range 20 {
			if got := try("2001:db8:1:2:" + strconv.Itoa(n) + "::1"); got != http.StatusUnauthorized {
				t.Fatalf("key %d: %d", n, got)
			}
		}
		if same, other := try("2001:db8:1:2:ffff::"), try("2001:db8:1:3::1"); same != http.StatusTooManyRequests || other != http.StatusUnauthorized {
			t.Errorf("of the same network %d, of the next %d", same, other)
		}
		if mapped := try("::ffff:192.0.2.7"); mapped != http.StatusTooManyRequests {
			t.Errorf("IPv4 in IPv6: %d", mapped)
		}
	})
}

// A known key passes while all slots for unknown keys are taken. An unknown key waits
// for five seconds and gets 503, which says nothing about the key.
func TestKnownKeysPassWhileUnknownOnesWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, options{quiet: true})
		defer w.stop()
		get := func(key string) int { return w.from(w.handler, "192.0.2.7", "", "/v1/payments", key).Code }
		if got := get(w.keys["test"]); got != http.StatusOK {
			t.Fatal("a good key: ", got)
		}
		free := api.FillLookups(w.handler)
		time.Sleep(2 * time.Second) // the key has to be read again
		began := time.Now()
		if got := get(w.keys["test"]); got != http.StatusOK || time.Since(began) != 0 {
			t.Errorf("a known key: %d after %s", got, time.Since(began))
		}
		for _, key := range []string{invented(), w.keys["other"]} {
			began := time.Now()
			if got := get(key); got != http.StatusServiceUnavailable || time.Since(began) < 5*time.Second {
				t.Errorf("an unknown key: %d after %s", got, time.Since(began))
			}
		}
		free()
		if got := get(w.keys["other"]); got != http.StatusOK {
			t.Errorf("a good key when there are slots again: %d", got)
		}
	})
}

// Hundreds at once have no more tries than one after the other, and a good key
// from the same address is let in each time.
func TestManyInventedKeysAtOnceAreLooksOfOneAddress(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, options{quiet: true, database: e.Config(t)})
			defer w.stop()
			if got := w.do("GET", "/v1/payouts", w.keys["other_manager"], "").Code; got != http.StatusOK {
				t.Fatal("a good key: ", got)
			}
			began := time.Now()
			var all sync.WaitGroup
			var mu sync.Mutex
			codes := map[int]int{}
			ask := func(address, key string) {
				all.Go(func() {
					got := w.from(w.handler, address, "", "/v1/payouts", key).Code
					mu.Lock()
					defer mu.Unlock()
					codes[got]++
				})
			}
			for n := range 300 {
				ask("192.0.2.7", invented())
				if n%10 == 0 { // from the same address, and read from the database each time
					ask("192.0.2.7", w.keys["other_manager"])
				}
			}
			all.Wait()
			most := 21 + int(time.Since(began)/(3*time.Second))
			if tried := codes[http.StatusUnauthorized]; tried < 20 || tried > most || tried+codes[http.StatusTooManyRequests] != 300 || codes[http.StatusOK] != 30 {
				t.Errorf("answered %v", codes)
			}
		})
	}
}

// A URL with four keys in it costs one lookup, and is one try of its address. A
// key that is known here is flagged whatever is beside it.
func TestAURLWithFourKeysCostsOneLook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, options{quiet: true})
		defer w.stop()
		if got := w.do("GET", "/v1/payments", w.keys["test"], "").Code; got != http.StatusOK {
			t.Fatal(got)
		}
		url := func(more string) string {
			return fmt.Sprintf("/v1/payments?a=%s&b=%s&c=%s&d=%s", invented(), invented(), invented(), more)
		}
		for n := range 3 {
			if a := w.from(w.handler, "192.0.2.7", "", url(invented()), ""); a.Code != http.StatusBadRequest {
				t.Fatalf("URL %d: %d %s", n, a.Code, a.Body)
			}
		}
		for n := range 17 {
			if got := w.from(w.handler, "192.0.2.7", "", "/v1/payments", invented()).Code; got != http.StatusUnauthorized {
				t.Fatalf("three URLs and %d keys: %d", n, got)
			}
		}
		if got := w.from(w.handler, "192.0.2.7", "", "/v1/payments", invented()).Code; got != http.StatusTooManyRequests {
			t.Errorf("three URLs and 17 keys were not 20 tries: %d", got)
		}
		// There is no lookup left, and the answer is the same.
		a := w.from(w.handler, "192.0.2.7", "", url(w.keys["test"]), "")
		if a.Code != http.StatusBadRequest || a.Header().Get("Retry-After") != "" {
			t.Errorf("answered %d %q", a.Code, a.Header())
		}
		if rows := w.audit(w.clients["test"].ID); rows[len(rows)-1].Action != "key.exposed" {
			t.Error("a known key in a URL was not flagged")
		}
	})
}

// The address is that of who talks to our proxy, wherever it counts: in limits,
// in the log and in the audit trail. Nobody else's word for it is taken.
func TestTheAddressBehindATrustedProxyCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, options{})
		defer w.stop()
		h := w.behind("10.0.0.0/8")
		for n := range 20 {
			if got := w.from(h, "10.0.0.1", "6.6.6.6, 203.0.113.5", "/v1/payments", invented()).Code; got != http.StatusUnauthorized {
				t.Fatalf("key %d: %d", n, got)
			}
		}
		for _, c := range []struct {
			name, from, forwarded string
			want                  int
		}{
			{"the same behind the proxy", "10.0.0.1", "203.0.113.5", http.StatusTooManyRequests},
			{"the same behind another proxy of ours", "10.0.0.2", "203.0.113.5, 10.0.0.3", http.StatusTooManyRequests},
			{"the same with a story of its own", "10.0.0.1", "7.7.7.7,203.0.113.5", http.StatusTooManyRequests},
			{"the same without a proxy, which claims another", "203.0.113.5", "198.51.100.1", http.StatusTooManyRequests},
			{"another behind the proxy", "10.0.0.1", "203.0.113.6", http.StatusUnauthorized},
			{"another that claims to be the first", "203.0.113.7", "203.0.113.5", http.StatusUnauthorized},
		} {
			if got := w.from(h, c.from, c.forwarded, "/v1/payments", invented()).Code; got != c.want {
				t.Errorf("%s: %d, want %d", c.name, got, c.want)
			}
		}
		w.from(h, "10.0.0.1", "203.0.113.9", "/v1/payments?x="+w.keys["test"], "")
		rows := w.audit(w.clients["test"].ID)
		if last := rows[len(rows)-1]; last.Action != "key.exposed" || !strings.HasSuffix(last.Cause, " from 203.0.113.9") {
			t.Errorf("the audit trail says %+v", last)
		}
		time.Sleep(2 * time.Second)
		if !strings.Contains(w.log.String(), "from=203.0.113.5") {
			t.Error("the log names another address")
		}
	})
}

// behind returns the API of the same world, behind proxies.
func (w *world) behind(networks ...string) http.Handler {
	c := api.Config{
		Store: w.store, Collector: w.collector, Payouts: w.payouts, Accounts: w.accounts, Endpoints: w.endpoints, BaseURL: baseURL, ErrorPages: errorPages, Log: w.logger,
	}
	for _, n := range networks {
		c.TrustedProxies = append(c.TrustedProxies, netip.MustParsePrefix(n))
	}
	return api.New(c)
}

// Who is refused and asks again at once waits for his answer, so that his
// thousands of connections leave the cores to others. Who is let in does not.
func TestAFloodOfRefusalsIsSlowedDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, options{quiet: true, rate: 1000})
		defer w.stop()
		if got := w.do("GET", "/v1/payments", w.keys["test"], "").Code; got != http.StatusOK {
			t.Fatal(got)
		}
		began := time.Now()
		var flood sync.WaitGroup
		for range 2500 {
			flood.Go(func() {
				for range 3 {
					w.from(w.handler, "192.0.2.7", "", "/v1/payments", invented())
				}
			})
		}
		for range 50 {
			if got := w.do("GET", "/v1/payments", w.keys["test"], "").Code; got != http.StatusOK {
				t.Fatal(got)
			}
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("a good key waited %s", took)
		}
		flood.Wait()
		if took := time.Since(began); took < 4*time.Second {
			t.Errorf("7 500 refusals were answered within %s", took)
		}
	})
}
