package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"till"
	"till/provider"
)

// mailbox receives callbacks; it refuses the first ones if told to.
type mailbox struct {
	mu     sync.Mutex
	refuse int
	got    []map[string]string
}

func (m *mailbox) post(_ context.Context, _ string, body []byte) error {
	var b map[string]string
	if err := json.Unmarshal(body, &b); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.got = append(m.got, b)
	if m.refuse > 0 {
		m.refuse--
		return errors.New("refused")
	}
	return nil
}

func (m *mailbox) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.got)
}

// send sends what is due and returns how many were received.
func send(t *testing.T, o *Operator) int {
	t.Helper()
	n, _, err := o.SendCallbacks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestACallbackTellsTheFirstFinal(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		for digits, want := range map[string]string{
			"4567": "success", "0002": "failed", "0003": "expired", "0018": "success",
		} {
			clock, box := newClock(), &mailbox{}
			o := newOperator(t, e, clock, Config{Post: box.post})
			r := newPayment(clock, digits)
			submit(t, o, r, provider.Accepted)
			if n := send(t, o); n != 0 {
				t.Errorf("%s: %d callbacks came before the decision", digits, n)
			}
			_, next, err := o.SendCallbacks(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			clock.Advance(next.Sub(clock.Now()) - time.Microsecond)
			if n := send(t, o); n != 0 {
				t.Errorf("%s: %d callbacks came early", digits, n)
			}
			clock.Advance(time.Microsecond)
			if n := send(t, o); n != 1 {
				t.Errorf("%s: %d callbacks came, want 1", digits, n)
			}
			receipt := ""
			if want == "success" {
				receipt = (&request{id: 1, reference: r.Reference}).receipt()
			}
			if diff := cmp.Diff([]map[string]string{{
				"payment_id": r.ID.String(), "reference": r.Reference.String(), "status": want, "receipt": receipt,
			}}, box.got); diff != "" {
				t.Errorf("%s: want -, got +:\n%s", digits, diff)
			}
			clock.Advance(time.Hour)
			if n := send(t, o); n != 0 {
				t.Errorf("%s: %d more came later", digits, n)
			}
		}
	})
}

func TestSomeStoriesNeverCallBack(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		clock, box := newClock(), &mailbox{}
		o := newOperator(t, e, clock, Config{Post: box.post})
		for _, digits := range []string{"0013", "0014", "0017"} {
			submit(t, o, newPayment(clock, digits), provider.Accepted)
		}
		silent := newPayment(clock, "4567")
		silent.CallbackURL = ""
		submit(t, o, silent, provider.Accepted)
		clock.Advance(time.Hour)
		n, next, err := o.SendCallbacks(t.Context())
		if n != 0 || !next.IsZero() || err != nil || box.count() != 0 {
			t.Errorf("sent %d, next %v, error %v, received %d; want nothing", n, next, err, box.count())
		}
	})
}

func TestFiveCallbacksComeAtOnce(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		// Nobody is answered before all five are here.
		var here sync.WaitGroup
		here.Add(5)
		clock := newClock()
		o := newOperator(t, e, clock, Config{Post: func(context.Context, string, []byte) error {
			here.Done()
			here.Wait()
			return nil
		}})
		submit(t, o, newPayment(clock, "0015"), provider.Accepted)
		clock.Advance(decisionTime)
		if n := send(t, o); n != 5 {
			t.Errorf("%d callbacks came, want 5", n)
		}
	})
}

func TestTheCallbackComesBeforeTheAnswer(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		clock := newClock()
		var told provider.Outcome
		var toldAt till.Time
		var o *Operator
		r := newPayment(clock, "0016")
		o = newOperator(t, e, clock, Config{Post: func(ctx context.Context, _ string, _ []byte) error {
			result, err := o.Check(ctx, provider.Query{Reference: r.Reference})
			told, toldAt = result.Outcome, clock.Now()
			return err
		}})
		before := clock.Now()
		submit(t, o, r, provider.Accepted)
		if told != provider.Success || toldAt.Sub(before) != earlyCallbackDelay {
			t.Errorf("the callback came after %v on %q, want %v and success", toldAt.Sub(before), told, earlyCallbackDelay)
		}
		if got := clock.Now().Sub(before); got != slowAnswerDelay {
			t.Errorf("the answer took %v, want %v", got, slowAnswerDelay)
		}
		clock.Advance(time.Hour)
		if n := send(t, o); n != 0 {
			t.Errorf("%d more callbacks came", n)
		}
	})
}

func TestARefusedEarlyCallbackIsLeftToRun(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		clock, box := newClock(), &mailbox{refuse: 1}
		o := newOperator(t, e, clock, Config{Post: box.post})
		submit(t, o, newPayment(clock, "0016"), provider.Accepted)
		clock.Advance(callbackPause)
		if n := send(t, o); n != 1 || box.count() != 2 {
			t.Errorf("%d came of %d tries, want 1 of 2", n, box.count())
		}
	})
}

func TestARefusedCallbackIsTriedThreeTimes(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		clock, box := newClock(), &mailbox{refuse: 99}
		o := newOperator(t, e, clock, Config{Post: box.post})
		submit(t, o, newPayment(clock, "4567"), provider.Accepted)
		clock.Advance(decisionTime)
		for try := 1; try <= maxCallbackTries; try++ {
			send(t, o)
			send(t, o) // too early for the next
			if box.count() != try {
				t.Fatalf("after try %d there were %d", try, box.count())
			}
			clock.Advance(callbackPause)
		}
		clock.Advance(time.Hour)
		n, next, err := o.SendCallbacks(t.Context())
		if n != 0 || !next.IsZero() || err != nil || box.count() != maxCallbackTries {
			t.Errorf("sent %d, next %v, error %v, tries %d; want it given up", n, next, err, box.count())
		}
	})
}

func TestACallbackOfADeadProcessIsSentByAnother(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		clock, box := newClock(), &mailbox{}
		o := newOperator(t, e, clock, Config{Post: box.post})
		submit(t, o, newPayment(clock, "4567"), provider.Accepted)
		clock.Advance(decisionTime)
		batch, err := o.book.claimCallbacks(t.Context(), clock.Now())
		if err != nil || len(batch) != 1 {
			t.Fatalf("claimed %d: %v", len(batch), err)
		}
		// Its process is gone now; nobody reschedules.
		clock.Advance(callbackLease - time.Microsecond)
		if n := send(t, o); n != 0 {
			t.Errorf("%d were sent under the lease", n)
		}
		clock.Advance(time.Microsecond)
		if n := send(t, o); n != 1 {
			t.Errorf("%d were sent after the lease, want 1", n)
		}
	})
}

func TestCallbacksComeInBatches(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		clock, box := newClock(), &mailbox{}
		o := newOperator(t, e, clock, Config{Post: box.post})
		for range callbackBatch + 3 {
			submit(t, o, newPayment(clock, "4567"), provider.Accepted)
		}
		clock.Advance(decisionTime)
		n, next, err := o.SendCallbacks(t.Context())
		if n != callbackBatch || next != clock.Now() || err != nil {
			t.Errorf("sent %d, next %v, error %v; want %d and more now", n, next, err, callbackBatch)
		}
		if n := send(t, o); n != 3 {
			t.Errorf("then sent %d, want 3", n)
		}
	})
}

func TestRunSendsInRealTimeOverHTTP(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		bodies := make(chan string, 10)
		endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			bodies <- r.Method + " " + r.Header.Get("Content-Type") + " " + string(b)
			w.WriteHeader(http.StatusAccepted)
		}))
		defer endpoint.Close()
		o, err := Open(t.Context(), Config{Path: e.newBook(t)})
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		ctx, stop := context.WithCancel(t.Context())
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			o.Run(ctx)
		}()

		// A decision is due at once, so Run is woken for it.
		clock := &clock{now: till.TimeOf(time.Now())}
		r := newPayment(clock, "0000")
		r.CallbackURL = endpoint.URL
		submit(t, o, r, provider.Accepted)
		if err := o.Decide(t.Context(), r.Client, r.ID, Decline); err != nil {
			t.Fatal(err)
		}
		want := `POST application/json {"payment_id":"` + r.ID.String() + `","reference":"` +
			r.Reference.String() + `","status":"failed","receipt":""}`
		if got := <-bodies; got != want {
			t.Errorf("the callback was %s, want %s", got, want)
		}
		stop()
		<-stopped
	})
}

func TestAWakeIsNeverLost(t *testing.T) {
	t.Parallel()
	clock := newClock()
	o := newOperator(t, sqliteEngine, clock, Config{})
	// This sleep ends only when it is woken.
	o.sleep = func(ctx context.Context, _ time.Duration) error {
		<-ctx.Done()
		return ctx.Err()
	}
	for range 1000 {
		go o.wakeFor(clock.Now(), clock.Now())
		o.pause(t.Context(), time.Hour)
	}
	o.wakeFor(clock.Now().Add(callbackPollInterval), clock.Now())
	if len(o.wake) != 0 {
		t.Error("Run is woken for what it sees by itself")
	}
}

func TestAnHTTPErrorIsARefusal(t *testing.T) {
	t.Parallel()
	status := http.StatusNoContent
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
	}))
	defer endpoint.Close()
	if err := postHTTP(t.Context(), endpoint.URL, nil); err != nil {
		t.Errorf("204: %v", err)
	}
	for _, status = range []int{302, 307, 404, 500} {
		if err := postHTTP(t.Context(), endpoint.URL, nil); err == nil {
			t.Errorf("%d was taken as received", status)
		}
	}
}
