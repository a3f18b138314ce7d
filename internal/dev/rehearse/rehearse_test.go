package rehearse

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"till/webhook"
)

// shop is a handler. It is right, unless a test breaks it.
type shop struct {
	secret    webhook.Secret
	verify    func(h http.Header, body []byte) error
	before    func(w http.ResponseWriter, r *http.Request, body []byte) bool // answers by itself, and reports so
	react     func(s *shop, e *shopEvent) error
	refuse    func(w http.ResponseWriter, r *http.Request, body []byte)
	get       int // status of a GET
	unguarded bool
	slow      time.Duration // longest good answer
	wait      time.Duration // for what is done later

	mu      sync.Mutex
	steps   map[string]int
	acted   map[string]int
	amounts map[string]string
}

type shopEvent struct {
	ID, Type string
	Data     struct {
		Payment *struct {
			ID, Status string
			Amount     struct{ Value string }
		}
	}
}

func newShop() *shop {
	s := &shop{secret: webhook.NewSecret(), get: 405, slow: postTimeout, wait: time.Second, steps: map[string]int{}, acted: map[string]int{}, amounts: map[string]string{}}
	s.verify = func(h http.Header, body []byte) error {
		return webhook.Verify(h, body, time.Now(), webhook.Tolerance, s.secret)
	}
	s.refuse = func(w http.ResponseWriter, _ *http.Request, _ []byte) { http.Error(w, "refused", 400) }
	s.react = bySteps
	return s
}

// readPages returns the parts of the page about webhooks, in both languages.
func readPages(t *testing.T) map[string]bool {
	t.Helper()
	count := map[string]int{}
	for _, language := range []string{"en", "fr"} {
		text, err := os.ReadFile("../../../docs/pages/" + language + "/webhooks.md")
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range regexp.MustCompile(`\{#([a-z]+)\}`).FindAllStringSubmatch(string(text), -1) {
			count["/docs/webhooks#"+id[1]]++
		}
	}
	pages := map[string]bool{}
	for page, n := range count {
		pages[page] = n == 2
	}
	return pages
}

var shopSteps = map[string]int{"payment.failed": 1, "payment.expired": 1, "payment.success": 2, "payment.late_success": 2, "payment.reversed": 3}

// bySteps acts on each step of a payment's money once.
func bySteps(s *shop, e *shopEvent) error {
	p, step := e.Data.Payment, shopSteps[e.Type]
	if p == nil || step <= s.steps[p.ID] {
		return nil
	}
	s.steps[p.ID] = step
	if step == 2 {
		s.pay(e)
	}
	return nil
}

func (s *shop) pay(e *shopEvent) {
	s.acted[e.Data.Payment.ID]++
	s.amounts[e.Data.Payment.ID] = e.Data.Payment.Amount.Value
}

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(s.get)
		return
	}
	body, _ := io.ReadAll(r.Body)
	if s.before != nil && s.before(w, r, body) {
		return
	}
	if err := s.verify(r.Header, body); err != nil {
		s.refuse(w, r, body)
		return
	}
	e := &shopEvent{}
	if json.Unmarshal(body, e) != nil {
		http.Error(w, "no JSON", 400)
		return
	}
	if !s.unguarded {
		s.mu.Lock()
		defer s.mu.Unlock()
	}
	if err := s.react(s, e); err != nil {
		http.Error(w, "not done", 500)
		return
	}
	w.WriteHeader(204)
}

func (s *shop) observe(_ context.Context, payment, _ string) (int, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.acted[payment], s.amounts[payment], nil
}

// check runs all checks and returns what failed, and what was not seen.
func (s *shop) check(t *testing.T, observed bool) (all []Result, failed, unseen []string) {
	t.Helper()
	server := httptest.NewServer(s)
	defer server.Close()
	c := Config{URL: server.URL, Secret: s.secret, Slow: s.slow, Wait: s.wait}
	if observed {
		c.Observe = s.observe
	}
	all, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	pages := readPages(t)
	for _, r := range all {
		switch r.Verdict {
		case Failed:
			failed = append(failed, r.Name)
			if r.Advice == "" || !pages[r.See] {
				t.Errorf("%s failed without advice, or names no page: %q %q", r.Name, r.Advice, r.See)
			}
		case NotSeen:
			unseen = append(unseen, r.Name)
		}
	}
	return all, failed, unseen
}

func TestAGoodHandlerPasses(t *testing.T) {
	t.Parallel()
	all, failed, unseen := newShop().check(t, true)
	if len(all) != 24 || failed != nil || unseen != nil {
		t.Errorf("%d checks, failed %v, not seen %v", len(all), failed, unseen)
	}
	_, failed, unseen = newShop().check(t, false)
	if want := []string{"again", "at-once", "stale", "late-money", "reversed", "exact-amount"}; failed != nil || !slices.Equal(unseen, want) {
		t.Errorf("without --observe: failed %v, not seen %v", failed, unseen)
	}
}

// byEventID acts on what pays, once for each event.
func byEventID(pays func(*shopEvent) bool) func(*shop, *shopEvent) error {
	return func(s *shop, e *shopEvent) error {
		if e.Data.Payment == nil || s.steps[e.ID] > 0 || !pays(e) {
			return nil
		}
		s.steps[e.ID] = 1
		s.pay(e)
		return nil
	}
}

// refusals are the checks in which a delivery must be refused.
var refusals = []string{"wrong-secret", "one-byte", "other-body", "missing-headers", "old", "ahead"}

// Each broken handler is told the right reason, and no other.
func TestBrokenHandlers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		broken func(s *shop)
		failed []string
		says   string // a part of the advice to the first of them
	}{
		{"verifies nothing", func(s *shop) { s.verify = func(http.Header, []byte) error { return nil } }, refusals, "anybody can say that an order is paid"},
		{"verifies what it has parsed", func(s *shop) {
			s.verify = func(h http.Header, body []byte) error {
				var parsed strings.Builder
				// Members stay in their order, as most languages have it; white space does not.
				e := json.NewEncoder(&parsed)
				e.SetEscapeHTML(false)
				e.Encode(json.RawMessage(body))
				compact := strings.TrimSuffix(parsed.String(), "\n")
				return webhook.Verify(h, []byte(compact), time.Now(), webhook.Tolerance, s.secret)
			}
		}, []string{"white-space"}, "Verify the bytes as they came"},
		{"any signature will do", func(s *shop) {
			s.verify = func(h http.Header, body []byte) error {
				var e shopEvent
				json.Unmarshal(body, &e)
				for _, field := range strings.Fields(h.Get(webhook.HeaderSignature)) { // any signature of the right length
					if len(field) == 47 && e.ID == h.Get(webhook.HeaderID) {
						if err := webhook.Verify(h, body, time.Now(), webhook.Tolerance, s.secret); !errors.Is(err, webhook.ErrNoMatch) {
							return err
						}
						return nil
					}
				}
				return webhook.ErrNoMatch
			}
		}, []string{"wrong-secret", "one-byte", "other-body"}, "Verify the signature before anything else"},
		{"no age", func(s *shop) {
			s.verify = func(h http.Header, body []byte) error {
				return webhook.Verify(h, body, time.Now(), 24*time.Hour, s.secret)
			}
		}, []string{"old", "ahead"}, "can send it for ever"},
		{"age in one direction", func(s *shop) {
			s.verify = func(h http.Header, body []byte) error {
				if err := webhook.Verify(h, body, time.Now(), webhook.Tolerance, s.secret); !errors.Is(err, webhook.ErrTooNew) {
					return err
				}
				return nil
			}
		}, []string{"ahead"}, "in both directions"},
		{"one minute", func(s *shop) {
			s.verify = func(h http.Header, body []byte) error {
				return webhook.Verify(h, body, time.Now(), 61*time.Second, s.secret)
			}
		}, []string{"just-inside"}, "Allow five minutes"},
		{"first signature only", func(s *shop) {
			s.verify = func(h http.Header, body []byte) error {
				first, _, _ := strings.Cut(h.Get(webhook.HeaderSignature), " ")
				h = h.Clone()
				h.Set(webhook.HeaderSignature, first)
				return webhook.Verify(h, body, time.Now(), webhook.Tolerance, s.secret)
			}
		}, []string{"two-signatures"}, "accept if one matches"},
		{"fails without headers", func(s *shop) {
			s.before = func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
				if r.Header.Get(webhook.HeaderTimestamp) == "" {
					w.WriteHeader(500)
					return true
				}
				return false
			}
		}, []string{"missing-headers"}, "Answer 400"},
		{"acts twice", func(s *shop) {
			s.react = func(s *shop, e *shopEvent) error {
				if e.Type == "payment.success" || e.Type == "payment.late_success" {
					s.pay(e)
				}
				return nil
			}
		}, []string{"again", "at-once"}, "acted on again"},
		{"looks, then acts", func(s *shop) {
			s.unguarded = true
			looked := make(chan struct{})
			s.react = func(s *shop, e *shopEvent) error {
				s.mu.Lock()
				known := e.Data.Payment == nil || shopSteps[e.Type] <= s.steps[e.Data.Payment.ID]
				s.mu.Unlock()
				if known {
					return nil
				}
				select { // a query, between looking and acting: here another request looks, if there is one
				case looked <- struct{}{}:
				case <-looked:
				case <-time.After(300 * time.Millisecond):
				}
				s.mu.Lock()
				defer s.mu.Unlock()
				s.steps[e.Data.Payment.ID] = shopSteps[e.Type]
				if shopSteps[e.Type] == 2 {
					s.pay(e)
				}
				return nil
			}
		}, []string{"at-once"}, "unique in the database"},
		{"goes back", func(s *shop) {
			s.react = func(s *shop, e *shopEvent) error {
				if e.Type == "payment.processing" {
					s.acted[e.Data.Payment.ID] = 0 // not paid any more
				}
				return bySteps(s, e)
			}
		}, []string{"stale"}, "only goes forward"},
		{"by the status", func(s *shop) {
			s.react = byEventID(func(e *shopEvent) bool { return e.Data.Payment.Status == "success" })
		}, []string{"unknown-kind", "late-money", "reversed"}, "Act on the kinds that you know"},
		{"unknown status is paid", func(s *shop) {
			s.react = func(s *shop, e *shopEvent) error {
				if p := e.Data.Payment; p != nil && p.Status != "pending" && p.Status != "processing" && p.Status != "expired" && p.Status != "failed" && s.steps[p.ID] < 2 {
					if e.Type == "payment.celebrated" {
						return nil
					}
					s.steps[p.ID] = 2
					s.pay(e)
				}
				return bySteps(s, e)
			}
		}, []string{"unknown-status"}, "taken as paid"},
		{"unknown kinds fail", func(s *shop) {
			s.react = func(s *shop, e *shopEvent) error {
				if e.Data.Payment == nil {
					return errors.New("nil")
				}
				return bySteps(s, e)
			}
		}, []string{"unknown-kind"}, "accept and ignore"},
		{"closed schema", func(s *shop) {
			s.before = func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
				if strings.Contains(string(body), "new_member") {
					w.WriteHeader(422)
					return true
				}
				return false
			}
		}, []string{"unknown-members"}, "ignore them"},
		{"no late money", func(s *shop) {
			s.react = func(s *shop, e *shopEvent) error {
				if e.Type == "payment.late_success" {
					return nil
				}
				return bySteps(s, e)
			}
		}, []string{"late-money"}, "payment.late_success"},
		{"small bodies", func(s *shop) {
			s.before = func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
				if len(body) > 8<<10 {
					w.WriteHeader(413)
					return true
				}
				return false
			}
		}, []string{"large"}, "1 MiB"},
		{"floats", func(s *shop) {
			s.react = func(s *shop, e *shopEvent) error {
				err := bySteps(s, e)
				if p := e.Data.Payment; p != nil {
					f, _ := strconv.ParseFloat(p.Amount.Value, 32)
					s.amounts[p.ID] = strconv.FormatFloat(f, 'f', 0, 64)
				}
				return err
			}
		}, []string{"exact-amount"}, "never as floating point"},
		{"answers GET", func(s *shop) { s.get = 200 }, []string{"get"}, "POST only"},
		{"redirects", func(s *shop) {
			s.before = func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
				http.Redirect(w, r, "/till/", http.StatusPermanentRedirect)
				return true
			}
		}, []string{"good", "no-redirect"}, "do not follow"},
		{"tells the signature", func(s *shop) {
			s.refuse = func(w http.ResponseWriter, r *http.Request, body []byte) {
				at, _ := parseSeconds(r.Header.Get(webhook.HeaderTimestamp))
				if id := r.Header.Get(webhook.HeaderID); id != "" {
					http.Error(w, "expected "+webhook.Sign(id, at, body, s.secret).Get(webhook.HeaderSignature), 400)
					return
				}
				http.Error(w, "no", 400)
			}
		}, []string{"nothing-secret"}, "tells the signature"},
		{"tells the secret", func(s *shop) {
			s.refuse = func(w http.ResponseWriter, _ *http.Request, _ []byte) { http.Error(w, "with "+s.secret.Reveal(), 400) }
		}, []string{"nothing-secret"}, "shows the webhook secret"},
		{"echoes", func(s *shop) {
			s.refuse = func(w http.ResponseWriter, _ *http.Request, body []byte) { http.Error(w, string(body), 400) }
		}, []string{"nothing-secret"}, "phone number"},
		{"slow", func(s *shop) {
			s.slow = 100 * time.Millisecond
			s.before = func(_ http.ResponseWriter, _ *http.Request, body []byte) bool {
				if len(body) > 8<<10 {
					time.Sleep(s.slow + 10*time.Millisecond)
				}
				return false
			}
		}, []string{"fast"}, "work later"},
		{"needs a session", func(s *shop) {
			s.before = func(w http.ResponseWriter, _ *http.Request, _ []byte) bool { w.WriteHeader(419); return true }
		}, []string{"good"}, "CSRF"},
		{"another secret", func(s *shop) {
			other := webhook.NewSecret()
			s.verify = func(h http.Header, body []byte) error {
				return webhook.Verify(h, body, time.Now(), webhook.Tolerance, other)
			}
		}, []string{"good"}, "Is --secret the secret"},
		{"does nothing", func(s *shop) { s.react = func(*shop, *shopEvent) error { return nil } },
			[]string{"good", "again", "at-once", "stale", "just-inside", "two-signatures", "white-space", "unknown-members", "late-money", "large", "exact-amount"}, "nothing is done"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newShop()
			c.broken(s)
			all, failed, _ := s.check(t, true)
			if !slices.Equal(failed, c.failed) {
				t.Fatalf("failed %v, want %v", failed, c.failed)
			}
			i := slices.IndexFunc(all, func(r Result) bool { return r.Verdict == Failed })
			if !strings.Contains(all[i].Advice, c.says) {
				t.Errorf("the advice is %q", all[i].Advice)
			}
		})
	}
}

// A handler that answers first and acts later is waited for.
func TestLaterEffects(t *testing.T) {
	t.Parallel()
	s := newShop()
	s.wait = time.Minute
	s.react = func(s *shop, e *shopEvent) error {
		go func() {
			time.Sleep(50 * time.Millisecond)
			s.mu.Lock()
			defer s.mu.Unlock()
			bySteps(s, e)
		}()
		return nil
	}
	if _, failed, unseen := s.check(t, true); failed != nil || unseen != nil {
		t.Errorf("failed %v, not seen %v", failed, unseen)
	}
}

func TestOnlySomeChecks(t *testing.T) {
	t.Parallel()
	s := newShop()
	server := httptest.NewServer(s)
	defer server.Close()
	all, err := Run(t.Context(), Config{URL: server.URL, Secret: s.secret, Only: []string{"nothing-secret", "old"}})
	if err != nil || len(all) != 2 || all[0].Name != "old" || all[0].Number != 9 || all[1].Verdict != Passed {
		t.Errorf("%+v, %v", all, err)
	}
	for _, c := range []struct {
		Config
		says string
	}{
		{Config{URL: server.URL, Secret: s.secret, Only: []string{"olds"}}, "there is no check"},
		{Config{URL: "localhost:3000", Secret: s.secret}, "is no address of a handler"},
		{Config{URL: "http://192.0.2.1:80/till", Secret: s.secret}, "--anywhere"},
	} {
		if _, err := Run(t.Context(), c.Config); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v", err)
		}
	}
	gone := httptest.NewServer(s)
	gone.Close()
	all, err = Run(t.Context(), Config{URL: gone.URL, Secret: s.secret})
	if err != nil || all[0].Verdict != Failed || !strings.Contains(all[0].Advice, "nothing listens") || slices.ContainsFunc(all[1:], func(r Result) bool { return r.Verdict != NotSeen }) {
		t.Errorf("%v, %v", all[0], err)
	}
	failing := func(context.Context, string, string) (int, string, error) { return 0, "", fmt.Errorf("no such table") }
	if _, err := Run(t.Context(), Config{URL: server.URL, Secret: s.secret, Observe: failing}); err == nil || !strings.Contains(err.Error(), "no such table") {
		t.Errorf("%v", err)
	}
}
