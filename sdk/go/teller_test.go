package till_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	till "github.com/till-project/till/sdk/go"
	"github.com/till-project/till/sdk/go/filestore"
)

const secret = "whsec_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc="

// service is a little Till: it takes payments and shows them.
type service struct {
	mu       sync.Mutex
	payments map[string]map[string]any // by key
	posts    int
	reads    int
	skew     time.Duration
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Date", time.Now().Add(s.skew).UTC().Format(http.TimeFormat))
	switch {
	case r.Method == http.MethodPost:
		s.posts++
		var body map[string]any
		_ = json.NewDecoder(r.Body).Decode(&body)
		key := body["idempotency_key"].(string)
		if s.payments[key] == nil {
			body["id"], body["status"], body["resolution"] = "p-"+key[:8], "pending", map[string]any{"state": "waiting"}
			s.payments[key] = body
		}
		w.WriteHeader(http.StatusAccepted)
		_ = json.NewEncoder(w).Encode(s.payments[key])
	case r.URL.Query().Has("wait"):
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"code":"invalid_parameter","status":400}`)
	default:
		s.reads++
		for _, p := range s.payments {
			if strings.HasSuffix(r.URL.Path, p["id"].(string)) {
				_ = json.NewEncoder(w).Encode(p)
				return
			}
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"code":"payment_not_found","status":404}`)
	}
}

// set changes every payment.
func (s *service) set(status string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.payments {
		p["status"] = status
	}
}

// world is a shop with its service.
type world struct {
	*testing.T
	service *service
	store   *filestore.Store
	teller  *till.Teller[*filestore.Tx]
	changes []till.Change
	fail    error
}

func newWorld(t *testing.T, options ...till.TellerOption) *world {
	t.Helper()
	w := &world{T: t, service: &service{payments: map[string]map[string]any{}}}
	server := httptest.NewServer(w.service)
	t.Cleanup(server.Close)
	client, err := till.New(server.URL, till.Key("till_test_a_b"), till.WithExpect("test"))
	if err != nil {
		t.Fatal(err)
	}
	if w.store, err = filestore.Open(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.store.Close() })
	w.teller = till.NewTeller(client, w.store, func(_ context.Context, _ *filestore.Tx, c till.Change) error {
		w.changes = append(w.changes, c)
		return w.fail
	}, options...)
	return w
}

func wish(order string) till.Collect {
	return till.Collect{Order: order, Method: "mtn_momo", Country: "CG", Amount: till.Minor("5000", "XAF"), Phone: "242061234567", Metadata: map[string]any{"cart": 88}}
}

func (w *world) collect(c till.Collect) error {
	w.Helper()
	return w.store.Update(w.Context(), func(tx *filestore.Tx) error { return w.teller.Collect(w.Context(), tx, c) })
}

func (w *world) send(order string) till.Progress {
	w.Helper()
	p, err := w.teller.Send(w.Context(), order)
	if err != nil {
		w.Fatal(err)
	}
	return p
}

// deliver posts an event to the shop's webhook.
func (w *world) deliver(id, kind string, payment map[string]any, change func(*http.Request)) *httptest.ResponseRecorder {
	w.Helper()
	body, err := json.Marshal(map[string]any{"id": id, "type": kind, "sequence": 1, "api_version": "1.1", "created_at": "2026-11-15T05:51:53.123456Z", "data": map[string]any{"payment": payment}})
	if err != nil {
		w.Fatal(err)
	}
	stamp := strconv.FormatInt(time.Now().Unix(), 10)
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", id, stamp, body)
	r := httptest.NewRequest(http.MethodPost, "/till", strings.NewReader(string(body)))
	r.Header.Set("webhook-id", id)
	r.Header.Set("webhook-timestamp", stamp)
	r.Header.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	if change != nil {
		change(r)
	}
	rec := httptest.NewRecorder()
	w.teller.Webhook(secret).ServeHTTP(rec, r)
	return rec
}

func (w *world) payment() map[string]any {
	w.service.mu.Lock()
	defer w.service.mu.Unlock()
	for _, p := range w.service.payments {
		return p
	}
	w.Fatal("there is no payment")
	return nil
}

func TestCollectSendWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := w.collect(wish("o-1")); err != nil {
		t.Fatal(err)
	}
	if w.service.posts != 0 {
		t.Error("collect made a call")
	}
	if p := w.send("o-1"); p.State != till.Taken || p.Payment == nil || p.ID == "" {
		t.Errorf("%+v", p)
	}
	if p := w.send("o-1"); p.State != till.Taken || w.service.posts != 1 {
		t.Errorf("%+v after %d posts", p, w.service.posts)
	}
	w.service.set(till.Success)
	p, err := w.teller.Wait(t.Context(), "o-1", time.Second)
	if err != nil || p.Status != till.Success || len(w.changes) != 1 || !w.changes[0].Paid() || w.changes[0].Order != "o-1" || w.changes[0].Attempt != 1 {
		t.Errorf("%v, %v, %+v", p, err, w.changes)
	}
	var paid *till.AlreadyPaid
	if err := w.collect(wish("o-1")); !errors.As(err, &paid) {
		t.Error(err)
	}
	if got := w.payment(); got["reference"] != "o-1" || fmt.Sprint(got["metadata"]) != "map[cart:88]" {
		t.Errorf("%v", got)
	}
}

// A wish that the service would refuse is not written.
func TestInvalidWishes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for member, change := range map[string]func(*till.Collect){
		"order":    func(c *till.Collect) { c.Order = "" },
		"method":   func(c *till.Collect) { c.Method = "" },
		"amount":   func(c *till.Collect) { c.Amount = till.Minor("50.00", "KES") },
		"phone":    func(c *till.Collect) { c.Phone = "+242061234567" },
		"metadata": func(c *till.Collect) { c.Metadata = map[string]any{"f": func() {}} },
	} {
		c := wish("o-1")
		change(&c)
		var invalid *till.InvalidWish
		if err := w.collect(c); !errors.As(err, &invalid) || invalid.Member != member {
			t.Errorf("%s: %v", member, err)
		}
	}
	if _, err := w.teller.Send(t.Context(), "o-1"); !errors.Is(err, till.ErrNoAttempt) {
		t.Error(err)
	}
}

// A wish to be paid on a page that the service would refuse is not written, either.
func TestInvalidCheckouts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for member, change := range map[string]func(*till.CheckoutWish){
		"order":                    func(c *till.CheckoutWish) { c.Order = strings.Repeat("é", 65) },
		"amount":                   func(c *till.CheckoutWish) { c.Amount = till.Minor("0", "XAF") },
		"phone":                    func(c *till.CheckoutWish) { c.PhoneFixed = true },
		"description or reference": func(c *till.CheckoutWish) { c.Description = strings.Repeat("x", 256) },
		"metadata":                 func(c *till.CheckoutWish) { c.Metadata = map[string]any{"f": func() {}} },
	} {
		c := till.CheckoutWish{Order: "o-1", Amount: till.Minor("5000", "XAF")}
		change(&c)
		err := w.store.Update(t.Context(), func(tx *filestore.Tx) error { return w.teller.Checkout(t.Context(), tx, c) })
		var invalid *till.InvalidWish
		if !errors.As(err, &invalid) || invalid.Member != member {
			t.Errorf("%s: %v", member, err)
		}
	}
	if _, err := w.teller.SendCheckout(t.Context(), "o-1"); !errors.Is(err, till.ErrNoAttempt) {
		t.Error(err)
	}
}

// A request that is not what it should be gets one word.
func TestWebhookAnswers(t *testing.T) {
	t.Parallel()
	var told error
	w := newWorld(t, till.WithForeign(), till.WithOnReport(func(_ till.Report, err error) { told = err }))
	p := map[string]any{"id": "p-1", "status": "success", "idempotency_key": "k", "reference": "other shop"}
	for name, c := range map[string]struct {
		change func(*http.Request)
		status int
		text   string
	}{
		"good":          {nil, 204, ""},
		"again":         {nil, 204, ""},
		"no post":       {func(r *http.Request) { r.Method = http.MethodGet }, 405, "post"},
		"no header":     {func(r *http.Request) { r.Header.Del("Webhook-Id") }, 400, "missing_header"},
		"forged":        {func(r *http.Request) { r.Header.Set("Webhook-Id", "x") }, 400, "bad_signature"},
		"body was read": {func(r *http.Request) { _, _ = io.ReadAll(r.Body) }, 500, "body_was_read: put the Till webhook before what parses bodies"},
	} {
		rec := w.deliver("e-1", till.PaymentSuccess, p, c.change)
		if rec.Code != c.status || strings.TrimSpace(rec.Body.String()) != c.text {
			t.Errorf("%s: %d %q", name, rec.Code, rec.Body)
		}
	}
	if len(w.changes) != 1 || w.changes[0].Order != "" || w.changes[0].Reference != "other shop" {
		t.Errorf("%+v", w.changes)
	}
	w.fail = errors.New("no")
	p["id"] = "p-2"
	if rec := w.deliver("e-2", till.PaymentSuccess, p, nil); rec.Code != 500 || !errors.Is(told, w.fail) || strings.TrimSpace(rec.Body.String()) != "not done" {
		t.Errorf("%d %s, told %v", rec.Code, rec.Body, told)
	}
}

// A delivery that is refused for its age names the clocks, if an answer of the
// service told their difference.
func TestClockHint(t *testing.T) {
	t.Parallel()
	w := newWorld(t, till.WithClock(func() time.Time { return time.Now().Add(10 * time.Minute) }))
	p := map[string]any{"id": "p-1", "status": "success", "idempotency_key": "k"}
	if rec := w.deliver("e-1", till.PaymentSuccess, p, nil); rec.Code != 400 || strings.TrimSpace(rec.Body.String()) != "too_old" {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	w.service.skew = -10 * time.Minute
	if err := w.collect(wish("o-1")); err != nil {
		t.Fatal(err)
	}
	w.send("o-1")
	if rec := w.deliver("e-1", till.PaymentSuccess, p, nil); rec.Code != 400 || !strings.Contains(rec.Body.String(), "this machine's clock is 10m") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}

// A payment that this store did not make is no news, unless it is asked for.
func TestForeign(t *testing.T) {
	t.Parallel()
	p := map[string]any{"id": "p-1", "status": "success", "idempotency_key": "k", "reference": "other shop"}
	for _, c := range []struct {
		options []till.TellerOption
		told    int
	}{{nil, 0}, {[]till.TellerOption{till.WithForeign()}, 1}} {
		w := newWorld(t, c.options...)
		if rec := w.deliver("e-1", till.PaymentSuccess, p, nil); rec.Code != 204 || len(w.changes) != c.told {
			t.Errorf("%d, %+v", rec.Code, w.changes)
		}
	}
}

// Other kinds go to OnOther once each, progress to OnProgress once each.
func TestOtherAndProgress(t *testing.T) {
	t.Parallel()
	w := newWorld(t, till.WithForeign())
	var others, progress []string
	w.teller.OnOther(func(_ context.Context, _ *filestore.Tx, e till.Event) error {
		others = append(others, e.Type)
		return nil
	})
	w.teller.OnProgress(func(_ context.Context, _ *filestore.Tx, c till.Change) error {
		progress = append(progress, c.Kind)
		return nil
	})
	p := map[string]any{"id": "p-1", "status": "processing", "idempotency_key": "k"}
	for _, e := range [][2]string{
		{"e-1", till.PaymentPending}, {"e-1", till.PaymentPending}, {"e-2", till.PaymentProcessing}, {"e-9", till.PaymentPending},
		{"e-3", till.PaymentUpdated}, {"e-3", till.PaymentUpdated}, {"e-4", till.PaymentUpdated}, {"e-5", "moon.rises"}, {"e-6", "payment.blessed"}, {"e-6", "payment.blessed"},
	} {
		if rec := w.deliver(e[0], e[1], p, nil); rec.Code != 204 {
			t.Errorf("%v: %d", e, rec.Code)
		}
	}
	if want := []string{till.PaymentPending, till.PaymentProcessing}; !slices.Equal(progress, want) {
		t.Errorf("progress %v", progress)
	}
	if want := []string{till.PaymentUpdated, till.PaymentUpdated, "moon.rises", "payment.blessed"}; !slices.Equal(others, want) {
		t.Errorf("others %v", others)
	}
	if len(w.changes) != 0 {
		t.Errorf("%+v", w.changes)
	}
}

// A payment that a restored service made again under another id is told again
// only if it brings money where there was none.
func TestAnotherLife(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		first, then string
		want        []string
	}{
		{till.Success, till.Success, []string{"payment.success"}},
		{till.Success, till.Failed, []string{"payment.success"}},
		{till.Failed, till.Failed, []string{"payment.failed"}},
		{till.Failed, till.Success, []string{"payment.failed", "payment.success"}},
		{till.Expired, "late_success", []string{"payment.expired", "payment.late_success"}},
		{"reversed", till.Success, []string{"payment.reversed"}},
	} {
		w := newWorld(t)
		if err := w.collect(wish("o-1")); err != nil {
			t.Fatal(err)
		}
		w.send("o-1")
		p := w.payment()
		w.deliver("e-1", "payment."+c.first, p, nil)
		again := map[string]any{"id": "p-again", "status": "x", "idempotency_key": p["idempotency_key"]}
		for range 2 {
			w.deliver("e-2", "payment.pending", again, nil)
			w.deliver("e-3", "payment."+c.then, again, nil)
		}
		var got []string
		for _, change := range w.changes {
			got = append(got, change.Kind)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s, then %s: %v, want %v", c.first, c.then, got, c.want)
		}
	}
}

// A payment that the service does not know any more is lost, not posted again.
func TestLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, till.WithOpenAfter(-time.Second))
	if err := w.collect(wish("o-1")); err != nil {
		t.Fatal(err)
	}
	w.send("o-1")
	w.service.mu.Lock()
	clear(w.service.payments)
	w.service.mu.Unlock()
	report, _ := w.teller.Sweep(t.Context()) // there is no log here
	if len(report.Attention) != 1 || report.Attention[0].State != till.StateLost || w.service.posts != 1 {
		t.Errorf("%+v, %d posts", report, w.service.posts)
	}
	var open *till.AttemptOpen
	c := wish("o-1")
	c.Phone = "242061111111"
	if err := w.collect(c); !errors.As(err, &open) {
		t.Error(err)
	}
	if p, err := w.teller.Resend(t.Context(), "o-1"); err != nil || p.State != till.Taken || w.service.posts != 2 {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := w.teller.Resend(t.Context(), "o-1"); !errors.Is(err, till.ErrNotLost) {
		t.Error(err)
	}
}
