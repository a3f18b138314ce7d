package console

import (
	"context"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"till"
	"till/internal/seal"
	"till/store"
	"till/store/auditlog"
	"till/store/storetest"
	"till/webhook"
)

// addEndpoints gives the console endpoints that may be on this machine.
func (w *world) addEndpoints(secret []byte) {
	w.t.Helper()
	allow, err := webhook.ParseAllowed([]string{"127.0.0.1"})
	if err != nil {
		w.t.Fatal(err)
	}
	sealer, err := webhook.NewSecretSealer(seal.Single(secret))
	if err != nil {
		w.t.Fatal(err)
	}
	sender := webhook.NewSender(webhook.SenderConfig{Allow: allow})
	w.t.Cleanup(sender.Close)
	w.endpoints = &webhook.Endpoints{Store: w.store, Secrets: sealer, Sender: sender, Allow: allow}
}

// deliver sends what is due until the test ends.
func (w *world) deliver() {
	w.t.Helper()
	d := webhook.New(webhook.Config{Store: w.store, Secrets: w.endpoints.Secrets, Sender: w.endpoints.Sender, SweepInterval: 20 * time.Millisecond, NoHints: true})
	w.endpoints.Wake = d.Wake
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { d.Run(ctx); close(done) }()
	w.t.Cleanup(func() {
		cancel()
		<-done
		if err := d.Close(context.Background()); err != nil {
			w.t.Error(err)
		}
	})
}

func (w *world) newEndpoint(address string) till.ID {
	w.t.Helper()
	all, note := []string{till.AllEvents}, "the shop's "+hostile[:28]
	made, err := w.endpoints.Create(context.Background(), w.client, &webhook.Request{URL: &address, Events: &all, Description: &note},
		webhook.Requester{Actor: "a test", Scopes: till.EventScopes})
	if err != nil {
		w.t.Fatal(err)
	}
	return made.Endpoint.ID
}

// send sends a form and returns the answer, which must not be an error of ours.
func (w *world) send(path string, form url.Values) *httptest.ResponseRecorder {
	w.t.Helper()
	a := w.do(request(http.MethodPost, path, form))
	if a.Code >= 500 {
		w.t.Fatalf("POST %s: %d %s", path, a.Code, a.Body)
	}
	return a
}

// eventually asks for a page until it has a text.
func (w *world) eventually(path, want string) string {
	w.t.Helper()
	var page string
	if !comes(func() bool { page = w.get(path); return strings.Contains(page, want) }) {
		w.t.Fatalf("%s never has %q: %s", path, want, page)
	}
	return page
}

var (
	secretText = regexp.MustCompile(`whsec_[A-Za-z0-9+/=]+`)
	actText    = regexp.MustCompile(`name="act" value="([^"]+)"`)
)

// secretIn returns the secret that a page shows. Pages write + as a reference.
func secretIn(a *httptest.ResponseRecorder) string {
	return secretText.FindString(html.UnescapeString(a.Body.String()))
}

// E9: an endpoint fails, its delivery shows the answer, the reason stands in a
// sentence, it is sent again when the receiver is repaired, and its secret is
// replaced.
func TestAWebhookThatFails(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, e)
			var broken atomic.Bool
			broken.Store(true)
			var signed sync.Map // the signatures that arrived
			shop := httptest.NewServer(http.HandlerFunc(func(a http.ResponseWriter, r *http.Request) {
				signed.Store(r.Header.Get(webhook.HeaderSignature), true)
				if broken.Load() {
					a.WriteHeader(http.StatusInternalServerError)
					_, _ = io.WriteString(a, hostile+" 242061230001") // as one that sends back what it got
				}
			}))
			defer shop.Close()
			w.be(till.RoleDeveloper, "en")
			act := till.NewID(w.store.Now()).String()
			form := url.Values{"url": {shop.URL + "/hooks"}, "act": {act}}
			a := w.send(w.path("/webhooks"), form)
			secret := secretIn(a)
			if a.Code != http.StatusOK || secret == "" || a.Header().Get("Cache-Control") != "no-store" || !strings.Contains(a.Body.String(), "data-once") {
				t.Fatalf("a new endpoint is answered %d", a.Code)
			}
			if again := w.send(w.path("/webhooks"), form); secretIn(again) != secret {
				t.Error("a double click makes a second endpoint, or loses the secret")
			}
			w.console.Now = func() till.Time { return w.store.Now().Add(time.Minute) }
			again := w.send(w.path("/webhooks"), form)
			path := strings.TrimSuffix(again.Header().Get("Location"), "?refused=shown_once")
			if again.Code != http.StatusSeeOther || strings.Contains(again.Body.String(), "whsec_") || path == again.Header().Get("Location") {
				t.Errorf("the same form a minute later is answered %d %q", again.Code, again.Header().Get("Location"))
			}
			w.console.Now = w.store.Now
			if page := w.get(w.path("/webhooks")); strings.Count(page, "/hooks") != 1 || strings.Contains(html.UnescapeString(page), secret) {
				t.Error("the list has two endpoints, or the secret")
			}
			w.deliver()
			paid := w.pay("242061230001", 5000, "ORDER-1", hostile)
			w.until(paid, till.Success)
			page := w.eventually(path, "Your receiver failed (500)")
			checkPage(t, "endpoint", page)
			if !strings.Contains(page, "500 after") || !strings.Contains(page, "attempt 1 of 12") || !strings.Contains(page, "Will be tried again") {
				t.Errorf("the endpoint's page does not say what was answered: %s", page)
			}
			for when, shown := range map[string]bool{"?from=2020-01-01": true, "?to=2020-01-02": false, "?from=2020-01-01&to=2020-01-02": false} {
				page := w.get(path + when)
				if strings.Contains(page, path+`/events/1"`) != shown || strings.Contains(page, "Show all time") == shown {
					t.Errorf("the deliveries of %s are shown: %v", when, !shown)
				}
			}
			if tab := html.EscapeString(path + "?from=2020-01-01&state=delivered"); !strings.Contains(w.get(path+"?from=2020-01-01"), tab) {
				t.Error("a tab leads to another time")
			}
			event := w.get(path + "/events/1")
			checkPage(t, "delivery", event)
			for _, want := range []string{"payment.pending", "&lt;img src=x onerror=alert(1)&gt;", "webhook-timestamp: ", "242\u00a0•••\u00a0001", "/payments/" + paid.String()} {
				if !strings.Contains(event, want) {
					t.Errorf("the delivery's page lacks %q", want)
				}
			}
			if strings.Contains(event, "242061230001") {
				t.Error("the delivery's page has the whole phone")
			}
			_, shown, _ := strings.Cut(html.UnescapeString(event), "webhook-signature: ")
			shown, _, _ = strings.Cut(shown, "<")
			if _, arrived := signed.Load(shown); !arrived {
				t.Errorf("the page shows the signature %q, which did not arrive", shown)
			}
			timeline := w.get(w.path("/payments/" + paid.String()))
			for _, want := range []string{path + "/events/1", " wait", "fails since", ": 500 · ", "Try now"} {
				if !strings.Contains(timeline, want) {
					t.Errorf("the payment's timeline lacks %q", want)
				}
			}
			if n := strings.Count(timeline, `name="event" value="`); n != 1 || strings.Contains(timeline, "Waiting to be sent") {
				t.Errorf("what waits for one endpoint takes %d lines", n)
			}
			broken.Store(false)
			id := regexp.MustCompile(`name="event" value="([^"]+)"`).FindStringSubmatch(event)[1]
			if a := w.send(path+"/again", url.Values{"event": {id}}); a.Header().Get("Location") != path+"/events/1?done=sent_again" {
				t.Errorf("sending again leads to %d %q", a.Code, a.Header().Get("Location"))
			}
			w.eventually(path+"/events/1", "200 after")
			if a := w.send(path+"/again", url.Values{"from": {"1"}, "to": {"2"}}); !strings.HasSuffix(a.Header().Get("Location"), "?done=range_again") {
				t.Errorf("a range leads to %q", a.Header().Get("Location"))
			}
			w.eventually(path, "Events arrive.")
			if a := w.send(path+"/again", url.Values{"from": {"999"}}); !strings.HasSuffix(a.Header().Get("Location"), "?refused=value_invalid") {
				t.Errorf("a range beyond the log leads to %q", a.Header().Get("Location"))
			}
			act = actText.FindStringSubmatch(w.get(path))[1]
			a = w.send(path+"/rotate", url.Values{"act": {act}, "overlap": {"1"}})
			if rotated := secretIn(a); rotated == "" || rotated == secret || !strings.Contains(a.Body.String(), "The old secret also signs until") {
				t.Errorf("a new secret is answered %d: %s", a.Code, a.Body)
			}
			w.send(path+"/state", url.Values{})
			if page := w.get(path); !strings.Contains(page, "Somebody switched it off.") {
				t.Error("the endpoint is not off")
			}
			if a := w.send(path+"/test", url.Values{}); !strings.HasSuffix(a.Header().Get("Location"), "?refused=endpoint_disabled") {
				t.Errorf("a test of what is off leads to %q", a.Header().Get("Location"))
			}
			w.send(path+"/state", url.Values{"on": {"1"}})
			w.send(path+"/test", url.Values{})
			w.eventually(path, "webhook_endpoint.test")
			w.audited("webhook_endpoint.create", "webhook_endpoint.rotate", "event.redeliver", "webhook_endpoint.replay", "webhook_endpoint.test")
			w.send(path+"/delete", url.Values{"sure": {"1"}})
			if a := w.do(request(http.MethodGet, path, nil)); a.Code != http.StatusNotFound {
				t.Errorf("a deleted endpoint is answered %d", a.Code)
			}
		})
	}
}

// audited reports which of the acts the person's name does not stand beside.
func (w *world) audited(actions ...string) {
	w.t.Helper()
	var rows []*store.AuditRow
	err := w.store.View(context.Background(), func(tx *store.Tx) (err error) {
		rows, err = auditlog.Read(context.Background(), tx, w.client.ID, 0, 1000)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, action := range actions {
		found := false
		for _, a := range rows {
			found = found || a.Action == action && strings.HasPrefix(a.Actor, "person:") && strings.Contains(a.Actor, "Awa N.") && strings.HasPrefix(a.Cause, "console ")
		}
		if !found {
			w.t.Errorf("no audit row says that the person did %s", action)
		}
	}
}

// A form with mistakes comes back with what was typed and what is wrong.
func TestAnEndpointFormKeepsWhatWasTyped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	act := till.NewID(w.store.Now()).String()
	for address, want := range map[string]string{"ftp://x": "Events are not sent to such an address", "http://10.0.0.1/x": "Events are not sent to such an address", hostile: "This is no address"} {
		a := w.send(w.path("/webhooks"), url.Values{"url": {address}, "act": {act}, "description": {"kept words"}, "events": {"payment.success"}})
		page := a.Body.String()
		checkPage(t, address, page)
		if a.Code != http.StatusUnprocessableEntity || !strings.Contains(page, want) || !strings.Contains(page, "kept words") || !strings.Contains(page, `value="payment.success" checked`) {
			t.Errorf("%s is answered %d: %s", address, a.Code, page)
		}
	}
	if a := w.send(w.path("/webhooks"), url.Values{"url": {"http://127.0.0.1:65001/"}}); a.Code != http.StatusBadRequest {
		t.Errorf("a form without its act is answered %d", a.Code)
	}
}

// The pages about webhooks, keys, audit and settings, in both languages, with
// texts that strangers chose.
func TestManagingPagesEscapeWhatStrangersWrote(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	w.hook = w.newEndpoint("http://127.0.0.1:65001/?x=%3Cimg%20src=x%20onerror=alert(1)%3E")
	w.pay("242061230001", 5000, hostile, hostile)
	for _, lang := range []string{"en", "fr"} {
		w.be(till.RoleOwner, lang)
		for _, path := range w.managingPages() {
			page := w.get(w.path(path))
			checkPage(t, lang+" "+path, page)
			checkKeys(t, lang+" "+path, page)
			if strings.Contains(page, "242061230001") {
				t.Errorf("%s has a whole phone", path)
			}
		}
	}
}

// managingPages are the pages of this file's kind.
func (w *world) managingPages() []string {
	endpoint := "/webhooks/" + w.hook.String()
	return []string{"/webhooks", endpoint, endpoint + "?state=pending", endpoint + "?state=exhausted&before=9", endpoint + "/events/1", "/keys", "/audit", "/audit?who=all&range=all&name=%3Cimg%3E", "/settings"}
}

// checkKeys looks for a key of the catalogue that has no words.
func checkKeys(t *testing.T, name, page string) {
	t.Helper()
	if key := regexp.MustCompile(`[>"](hooks|trouble|problem|overlap|once|delivery|apikey|scope|audit|act|settings)\.[a-z_]+`).FindString(page); key != "" {
		t.Errorf("%s shows a key: %q", name, key)
	}
}

// A merchant without any of it is told what to do.
func TestEmptyManagingPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	for _, c := range []struct{ lang, path, want string }{{"en", "/webhooks", "No webhook yet"}, {"fr", "/webhooks", "Pas encore de webhook"},
		{"fr", "/audit?name=nobody", "Rien ne correspond"}} {
		w.be(till.RoleOwner, c.lang)
		page := w.get(w.path(c.path))
		checkPage(t, c.path, page)
		if !strings.Contains(page, c.want) {
			t.Errorf("%s lacks %q", c.path, c.want)
		}
	}
}

// Each page is at most 15 KB of gzip.
func TestManagingWeights(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	w.hook = w.newEndpoint("http://127.0.0.1:65001/hook")
	for range 60 {
		w.pay("242061230003", 5000, "ORDER-"+till.NewID(w.store.Now()).String(), "loaves and coffee")
	}
	for _, path := range w.managingPages() {
		q := request(http.MethodGet, w.path(path), nil)
		q.Header.Set("Accept-Encoding", "gzip")
		a := w.do(q)
		t.Logf("%s: %d bytes", path, a.Body.Len())
		if a.Code != http.StatusOK || a.Header().Get("Content-Encoding") != "gzip" || a.Body.Len() > 15<<10 {
			t.Errorf("%s is answered %d with %d bytes", path, a.Code, a.Body.Len())
		}
	}
}
