package collect_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"till"
	"till/collect"
	"till/engine"
	"till/internal/jsonx"
	"till/provider"
	"till/provider/sandbox"
	"till/store"
	"till/store/admin"
	"till/store/flows"
	"till/store/storetest"
)

const (
	firstURL = "https://pay.wave.com/c/cos-1"
	laterURL = "https://pay.wave.com/c/cos-2"
	// canary is a code that must be nowhere but in the request to the operator.
	canary = "QXJ7390142"
)

func flowBody(t *testing.T, key, rest string) *collect.Request {
	t.Helper()
	r := &collect.Request{}
	if err := jsonx.Decode([]byte(`{"amount":{"value":"5000","currency":"XOF"},"idempotency_key":"`+key+`",`+rest+`}`), r); err != nil {
		t.Fatal(err)
	}
	return r
}

const (
	byWave   = `"method":"wave","country":"SN","customer":{"phone":"221773456789"}`
	byOrange = `"method":"orange_money","country":"BF","customer":{"phone":"22607345678"}`
	back     = `,"return_url":"https://shop.example/orders/1042?done=1"`
	code     = `,"authorization_code":"` + canary + `"`
)

func (w *world) createBy(rest string) *till.Payment {
	w.t.Helper()
	c, err := w.collector.Create(context.Background(), w.who(), flowBody(w.t, till.NewID(w.store.Now()).String(), rest))
	if err != nil {
		w.t.Fatal(err)
	}
	return c.Payment
}

// inFlowWorld is inWorld on an installation whose level allows such payments.
func inFlowWorld(t *testing.T, tell func(t *testing.T, w *world)) {
	t.Helper()
	inWorld(t, func(t *testing.T, w *world) {
		w.raise()
		tell(t, w)
	})
}

func (w *world) raise() {
	w.t.Helper()
	err := w.store.Update(context.Background(), func(tx *store.Tx) error {
		err := admin.InsertInstallation(context.Background(), tx, &admin.Installation{LogID: till.NewID(tx.Now()), SecretCheck: []byte("not looked at"), CreatedAt: tx.Now()})
		if err == nil {
			_, err = admin.RaiseLevel(context.Background(), tx, admin.Level)
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) flow(id till.ID) *flows.Row {
	w.t.Helper()
	ref := store.Ref{Client: w.client.ID, ID: id}
	var f *flows.Row
	w.view(func(ctx context.Context, tx *store.Tx) error {
		found, err := flows.Of(ctx, tx, []store.Ref{ref})
		f = found[ref]
		return err
	})
	return f
}

// next returns the address that a payment's client is shown, "" if none.
func (w *world) next(id till.ID) string {
	w.t.Helper()
	p := w.payment(id)
	w.view(func(ctx context.Context, tx *store.Tx) error {
		return engine.NextActions(ctx, tx, []*store.PaymentRow{p})
	})
	if p.NextAction == nil {
		return ""
	}
	return p.NextAction.URL
}

// bodyOf returns the bodies of a payment's events of a kind.
func (w *world) bodiesOf(id till.ID, kind till.EventKind) (out []string) {
	w.t.Helper()
	w.view(func(ctx context.Context, tx *store.Tx) error {
		all, err := tx.PaymentEvents(ctx, store.Ref{Client: w.client.ID, ID: id})
		for _, e := range all {
			if e.Kind == kind {
				out = append(out, string(e.AppendJSON(nil)))
			}
		}
		return err
	})
	return out
}

// The first address that is recorded is the one that is shown, from then until the payment ends,
// and one event tells of it. A later address is dropped.
func TestTheFirstAddressIsShown(t *testing.T) {
	t.Parallel()
	inFlowWorld(t, func(t *testing.T, w *world) {
		var returned string
		w.way.set(func(_ context.Context, r provider.Request, _ int) (provider.Result, error) {
			returned = r.ReturnURL
			return provider.Result{Outcome: provider.Accepted}, nil
		}, func(_ context.Context, q provider.Query, n int) (provider.Result, error) {
			switch n {
			case 1:
				return provider.Result{Outcome: provider.Open}, nil
			case 2:
				return provider.Result{Outcome: provider.Open, NextURL: firstURL}, nil
			case 3, 4:
				return provider.Result{Outcome: provider.Open, NextURL: laterURL}, nil
			}
			return provider.Result{Outcome: provider.Success, Amount: q.Amount, Receipt: "R1", NextURL: laterURL}, nil
		})
		p := w.createBy(byWave + back)
		time.Sleep(time.Millisecond)
		if returned != "https://shop.example/orders/1042?done=1" || w.next(p.ID) != "" {
			t.Errorf("sent with %q; shown before there is an address: %q", returned, w.next(p.ID))
		}
		for range 100 { // it is asked soon: the customer waits
			if w.next(p.ID) != "" {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		if took := w.store.Now().Sub(p.CreatedAt); took > 5*time.Second {
			t.Errorf("the address is shown after %s", took)
		}
		for _, checks := w.way.counts(); checks < 4; _, checks = w.way.counts() {
			if got := w.next(p.ID); got != firstURL {
				t.Errorf("after %d checks %q is shown", checks, got)
			}
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		if got := w.kinds(p.ID); got != "pending processing action_required success" {
			t.Errorf("its events are %q", got)
		}
		bodies := w.bodiesOf(p.ID, till.PaymentActionRequired)
		if len(bodies) != 1 || !strings.Contains(bodies[0], `"next_action":{"type":"redirect","url":"`+firstURL+`","expires_at":"`) || !strings.Contains(bodies[0], `"status":"processing"`) ||
			!strings.Contains(bodies[0], `"return_url":"https://shop.example/orders/1042?done=1"`) || !json.Valid([]byte(bodies[0])) {
			t.Errorf("it was told %q", bodies)
		}
		if f := w.flow(p.ID); w.next(p.ID) != "" || f.NextURL != "" || f.Event == 0 {
			t.Errorf("after its end: %+v", f)
		}
		if body := w.bodiesOf(p.ID, till.PaymentSuccess); len(body) != 1 || strings.Contains(body[0], "next_action") {
			t.Errorf("its end was told as %q", body)
		}
		if submits, _ := w.way.counts(); submits != 1 {
			t.Errorf("it was sent %d times", submits)
		}
	})
}

// A send whose answer was lost is asked about where the operator looks up our reference: it is
// the same request, and the address that it made is adopted.
func TestALostAnswerIsAskedForItsAddress(t *testing.T) {
	t.Parallel()
	inFlowWorld(t, func(t *testing.T, w *world) {
		w.way.set(func(context.Context, provider.Request, int) (provider.Result, error) {
			return provider.Result{}, errors.New("lost")
		},
			func(_ context.Context, q provider.Query, n int) (provider.Result, error) {
				if n < 3 {
					return provider.Result{Outcome: provider.Open, NextURL: firstURL}, nil
				}
				return provider.Result{Outcome: provider.Success, Amount: q.Amount, Receipt: "R1"}, nil
			})
		p := w.createBy(byWave + back)
		for range 300 {
			if w.next(p.ID) == firstURL {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		if submits, _ := w.way.counts(); submits != 1 || w.next(p.ID) != firstURL {
			t.Errorf("it was sent %d times, and %q is shown", submits, w.next(p.ID))
		}
		time.Sleep(time.Minute)
		if got := w.credits(p.ID); got != "collection" {
			t.Errorf("it was credited by %q", got)
		}
	})
}

// redirecting is an operator that does not look up our reference, and whose customers pay on its
// page.
type redirecting struct {
	*way
	push bool
}

func (r redirecting) Traits() provider.Traits {
	t := r.way.Traits()
	t.ClientReference, t.Redirect = false, !r.push
	return t
}

// Where the operator cannot be asked by our reference, a send whose answer was lost is made
// again if nobody can pay without the address in the answer, and never if it may have asked on
// a phone.
func TestOnlyARedirectIsSentAgainUnasked(t *testing.T) {
	t.Parallel()
	for _, push := range []bool{false, true} {
		inFlowWorld(t, func(t *testing.T, w *world) {
			w.stop()
			w.start(func(c *engine.Config) {
				c.Connections = map[string]provider.Provider{"sandbox": redirecting{w.way, push}}
			})
			var handles []string
			var mu sync.Mutex
			w.way.set(func(_ context.Context, _ provider.Request, n int) (provider.Result, error) {
				if n == 1 {
					return provider.Result{}, errors.New("lost")
				}
				return provider.Result{Outcome: provider.Accepted, Handle: "session-2", NextURL: firstURL}, nil
			}, func(_ context.Context, q provider.Query, n int) (provider.Result, error) {
				mu.Lock()
				handles = append(handles, q.Handle)
				mu.Unlock()
				if q.Handle == "" {
					return provider.Result{Outcome: provider.NotFound}, nil
				}
				if n < 4 {
					return provider.Result{Outcome: provider.Open, Handle: "session-9", NextURL: laterURL}, nil
				}
				return provider.Result{Outcome: provider.Success, Amount: q.Amount, Receipt: "R1"}, nil
			})
			var p *till.Payment
			if push {
				p = w.create("4567")
			} else {
				p = w.createBy(byWave + back)
			}
			time.Sleep(time.Minute)
			submits, _ := w.way.counts()
			mu.Lock()
			defer mu.Unlock()
			if push {
				if submits != 1 {
					t.Errorf("a push was sent %d times", submits)
				}
				return
			}
			if submits != 2 || w.credits(p.ID) != "collection" {
				t.Errorf("a redirect was sent %d times and credited by %q", submits, w.credits(p.ID))
			}
			for _, h := range handles {
				if h != "session-2" {
					t.Errorf("it was asked about as %q, not as the one whose address was shown", h)
				}
			}
		})
	}
}

// A one-time code is in the request to the operator and nowhere else: not in the database, in
// events, in the log or in the journal, and in no row once the operator has answered.
func TestACodeIsNowhereElse(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			database := e.Config(t)
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, database, sandbox.Config{})
				defer func() {
					w.stop()
					storetest.CheckInvariants(t, w.store)
					w.operator.Close()
					w.store.Close()
				}()
				w.raise()
				var log bytes.Buffer
				w.stop()
				w.start(func(c *engine.Config) {
					c.Log = slog.New(slog.NewTextHandler(&lockedWriter{w: &log}, &slog.HandlerOptions{Level: slog.LevelDebug}))
				})
				var sent []string
				w.way.set(func(_ context.Context, r provider.Request, n int) (provider.Result, error) {
					sent = append(sent, string(r.Code))
					if n == 1 {
						return provider.Result{}, provider.ErrNotSent
					}
					if f := w.flow(r.ID); f == nil || f.Code == nil || bytes.Contains(f.Code, []byte(canary)) {
						t.Errorf("before the answer the row has %+v", f)
					}
					slog.New(slog.NewTextHandler(&log, nil)).Info("a request", "request", r, "code", r.Code)
					return provider.Result{Outcome: provider.Accepted, Message: "the code " + canary + " was taken"}, nil
				}, func(_ context.Context, q provider.Query, n int) (provider.Result, error) {
					if n == 1 {
						return provider.Result{Outcome: provider.Open}, nil
					}
					return provider.Result{Outcome: provider.Failed, Reason: till.NotApproved, Code: "WRONG"}, nil
				})
				p := w.createBy(byOrange + code)
				time.Sleep(3 * time.Second)
				if len(sent) != 2 || sent[0] != canary || sent[1] != canary {
					t.Errorf("sent with %q", sent)
				}
				if f := w.flow(p.ID); f == nil || f.Code != nil {
					t.Errorf("after the answer the row has %+v", f)
				}
				time.Sleep(time.Minute)
				for _, k := range []till.EventKind{till.PaymentPending, till.PaymentProcessing, till.PaymentFailed} {
					if bodies := w.bodiesOf(p.ID, k); len(bodies) != 1 || strings.Contains(bodies[0], canary) || strings.Contains(bodies[0], "authorization") {
						t.Errorf("%s was told as %q", k, bodies)
					}
				}
				if strings.Contains(log.String(), canary) || log.Len() == 0 {
					t.Errorf("the log has the code, or nothing: %s", &log)
				}
				if database.Path != "" {
					files, _ := filepath.Glob(filepath.Join(filepath.Dir(database.Path), "*"))
					for _, f := range files {
						if text, err := os.ReadFile(f); err == nil && bytes.Contains(text, []byte(canary)) {
							t.Errorf("%s has the code", filepath.Base(f))
						}
					}
				}
			})
		})
	}
}

type lockedWriter struct {
	mu sync.Mutex
	w  *bytes.Buffer
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// A retry with the same code is a replay, and one with another code is another body.
func TestACodeIsPartOfTheBody(t *testing.T) {
	t.Parallel()
	inFlowWorld(t, func(t *testing.T, w *world) {
		w.way.set(func(context.Context, provider.Request, int) (provider.Result, error) {
			return provider.Result{Outcome: provider.Accepted}, nil
		}, func(context.Context, provider.Query, int) (provider.Result, error) {
			return provider.Result{Outcome: provider.Failed, Reason: till.NotApproved}, nil
		})
		for rest, others := range map[string][]string{
			byOrange + code: {byOrange + `,"authorization_code":"367025"`, byOrange},
			byWave + back:   {byWave + `,"return_url":"https://shop.example/"`, byWave},
		} {
			key := till.NewID(w.store.Now()).String()
			first, err := w.collector.Create(context.Background(), w.who(), flowBody(t, key, rest))
			if err != nil {
				t.Fatal(err)
			}
			again, err := w.collector.Create(context.Background(), w.who(), flowBody(t, key, rest))
			if err != nil || !again.Replayed || again.Payment.ID != first.Payment.ID || again.Payment.NextAction != nil {
				t.Errorf("the same again: %+v, %v", again, err)
			}
			for _, other := range others {
				_, err = w.collector.Create(context.Background(), w.who(), flowBody(t, key, other))
				if e, ok := errors.AsType[*till.Error](err); !ok || e.Code != till.CodeKeyReused {
					t.Errorf("%s after %s: %v", other, rest, err)
				}
			}
		}
		time.Sleep(time.Minute)
	})
}

// Before the level allows it, an older release may run beside this one, which would send such a
// payment without what it needs: none is made, and the key stays free.
func TestNoFlowBeforeTheLevel(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		key := till.NewID(w.store.Now()).String()
		_, err := w.collector.Create(context.Background(), w.who(), flowBody(t, key, byWave+back))
		if e, ok := errors.AsType[*till.Error](err); !ok || e.Code != till.CodeServiceUnavailable {
			t.Errorf("below the level: %v", err)
		}
		w.raise()
		w.way.set(func(context.Context, provider.Request, int) (provider.Result, error) {
			return provider.Result{Outcome: provider.Rejected, Reason: till.ProviderRejected}, nil
		}, nil)
		if c, err := w.collector.Create(context.Background(), w.who(), flowBody(t, key, byWave+back)); err != nil || c.Replayed {
			t.Errorf("after it was raised: %+v, %v", c, err)
		}
		time.Sleep(time.Second)
	})
}

// What the flow needs is required, what another flow needs is refused, and nothing is made.
func TestWhatAFlowNeeds(t *testing.T) {
	t.Parallel()
	inFlowWorld(t, func(t *testing.T, w *world) {
		w.stop()
		w.start(func(c *engine.Config) { c.Hosts = []string{"pay.till.test"} })
		live := engine.Client{Client: &till.Client{ID: w.client.ID, Name: "Live", Mode: till.Live}, Enabled: func(string) bool { return true }}
		push := `"method":"mtn_momo","country":"CI","customer":{"phone":"2250503456789"}`
		for _, c := range []struct{ rest, wrong string }{
			{byWave, "/return_url required"},
			{byWave + back + code, "/authorization_code not_taken"},
			{byOrange, "/authorization_code required"},
			{byOrange + back, "/return_url not_taken /authorization_code required"},
			{byOrange + code + back, "/return_url not_taken"},
			{push + back, "/return_url not_taken"},
			{push + code, "/authorization_code not_taken"},
			{byOrange + `,"authorization_code":""`, "/authorization_code invalid_format"},
			{byOrange + `,"authorization_code":"12 34"`, "/authorization_code invalid_format"},
			{byOrange + `,"authorization_code":"` + strings.Repeat("1", 37) + `"`, "/authorization_code invalid_format"},
			{byWave + `,"return_url":"javascript:alert(1)"`, "/return_url url_not_allowed"},
			{byWave + `,"return_url":"/orders"`, "/return_url url_not_allowed"},
			{byWave + `,"return_url":"http://shop.example/"`, "/return_url url_not_allowed"},
			{byWave + `,"return_url":"https://shop.example@evil.example/"`, "/return_url url_not_allowed"},
			{byWave + `,"return_url":"https://10.0.0.1/"`, "/return_url url_not_allowed"},
			{byWave + `,"return_url":"https://pay.till.test/p/abc"`, "/return_url url_not_allowed"},
			{byWave + `,"return_url":"https://shop.example/` + strings.Repeat("a", 512) + `"`, "/return_url too_long"},
		} {
			_, err := w.collector.Create(context.Background(), live, flowBody(t, till.NewID(w.store.Now()).String(), c.rest))
			var got []string
			if e, ok := errors.AsType[*till.Error](err); ok {
				for _, f := range e.Fields {
					got = append(got, f.Pointer+" "+string(f.Code))
					if strings.Contains(f.Detail, canary) {
						t.Errorf("an error repeats the code: %s", f.Detail)
					}
				}
			}
			if strings.Join(got, " ") != c.wrong {
				t.Errorf("%s: %q, want %q (%v)", c.rest, got, c.wrong, err)
			}
		}
		if submits, _ := w.way.counts(); submits != 0 {
			t.Errorf("%d were sent", submits)
		}
	})
}
