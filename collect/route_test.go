package collect_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"till"
	"till/engine"
	"till/provider"
	"till/store"
	"till/store/admin"
)

// twoWays gives an instance a second connection behind the first.
func twoWays(first, second *post) func(c *engine.Config) {
	return func(c *engine.Config) {
		c.Connections = map[string]provider.Provider{"post": first, "spare": second}
		c.Routes = func(client *till.Client, method, country, currency string) []string {
			if client.Mode != till.Live || method != "mtn_momo" || country != "CG" || currency != "XAF" {
				return nil
			}
			return []string{"gone", "post", "spare"} // the first is not configured here
		}
	}
}

// While the preferred connection is unreachable new payments take the second, and
// from time to time one tries whether the first is back.
func TestASecondConnectionIsTakenWhileTheFirstIsAway(t *testing.T) {
	t.Parallel()
	inFleet(t, habits(), func(t *testing.T, f *fleet) {
		spare := newPost(habits())
		i := f.start(twoWays(f.operator, spare))
		f.create(i)
		time.Sleep(3 * time.Second)
		if n, _ := spare.calls(); n != 0 {
			t.Errorf("the first is well, and the second was called %d times", n)
		}
		// What is sent arrives: nothing will have to be sent again, so that nothing
		// but a new payment can find out that it is back.
		f.operator.set(func(o *post) { o.lost = true })
		for range 12 {
			f.create(i)
		}
		for f.breaker().State != admin.Stopped {
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(heard)
		sent, _ := f.operator.calls()
		for range 10 {
			if p := f.create(i); p.Connection != "spare" {
				t.Errorf("the first is away, and a payment takes %s", p.Connection)
			}
		}
		if status(i) != "operational" {
			t.Errorf("one of two ways is well, and the method is %s", status(i))
		}
		time.Sleep(time.Second)
		if n, _ := spare.calls(); n != 10 {
			t.Errorf("%d were sent to the second", n)
		}
		if now, _ := f.operator.calls(); now != sent {
			t.Error("what was made for the second was sent to the first")
		}
		f.operator.set(func(o *post) { o.lost = false })
		for n := 0; f.breaker().State != admin.Passing; n++ {
			if n > 60 {
				t.Fatal("the first is back, and nobody has noticed")
			}
			f.create(i)
			time.Sleep(time.Second)
		}
		time.Sleep(2 * time.Second)
		if p := f.create(i); p.Connection != "post" {
			t.Errorf("the first is back, and a payment takes %s", p.Connection)
		}

		// Both are unreachable: refused, and a retry of what exists is not.
		key := till.NewID(1).String()
		if _, err := f.try(i, key); err != nil {
			t.Fatal(err)
		}
		f.operator.set(func(o *post) { o.down = true })
		spare.set(func(o *post) { o.down = true })
		refused := false
		for n := 0; n < 600 && !refused; n++ {
			refused = f.refused(i)
			time.Sleep(100 * time.Millisecond)
		}
		if again, err := f.try(i, key); !refused || err != nil || !again.Replayed {
			t.Errorf("both are away: refused %v, and the retry gets %v", refused, err)
		}
		f.operator.set(func(o *post) { o.down = false })
		spare.set(func(o *post) { o.down = false })
		time.Sleep(time.Minute)
		i.stop()
		f.operator.debits = merge(f.operator.debits, spare.debits)
	})
}

// refusing is an operator that does not let us in.
type refusing struct {
	*post
	mu   sync.Mutex
	lets bool
}

func (o *refusing) in() bool { o.mu.Lock(); defer o.mu.Unlock(); return o.lets }

func (o *refusing) Submit(ctx context.Context, r provider.Request) (provider.Result, error) {
	if !o.in() {
		return provider.Result{}, fmt.Errorf("401: %w", provider.ErrCredentials)
	}
	return o.post.Submit(ctx, r)
}

func (o *refusing) Check(ctx context.Context, q provider.Query) (provider.Result, error) {
	if !o.in() {
		return provider.Result{}, fmt.Errorf("401: %w", provider.ErrCredentials)
	}
	return o.post.Check(ctx, q)
}

func TestRefusedCredentialsAreACase(t *testing.T) {
	t.Parallel()
	inFleet(t, habits(), func(t *testing.T, f *fleet) {
		o := &refusing{post: f.operator}
		i := f.start(func(c *engine.Config) { c.Connections = map[string]provider.Provider{"post": o} })
		cases := func() (out []*store.OperatorCase) {
			err := f.store.View(context.Background(), func(tx *store.Tx) (err error) {
				out, err = tx.OperatorCases(context.Background(), false)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		for range 3 {
			f.create(i)
		}
		time.Sleep(3 * time.Second)
		if c := cases(); f.breaker().State != admin.Stopped || len(c) != 1 || c[0].Connection != "post" || c[0].Kind != store.CaseCredentials {
			t.Fatalf("the breaker is %s, the cases are %+v", f.breaker().State, c)
		}
		o.mu.Lock()
		o.lets = true
		o.mu.Unlock()
		for n := 0; f.breaker().State != admin.Passing && n < 60; n++ {
			f.refused(i)
			time.Sleep(time.Second)
		}
		if c := cases(); len(c) != 0 {
			t.Errorf("it lets us in, and there are %+v", c[0])
		}
	})
}

func TestLimitsOfTheConfiguration(t *testing.T) {
	t.Parallel()
	inFleet(t, habits(), func(t *testing.T, f *fleet) {
		limits := engine.Limits{Calls: 3, Submit: provider.Rate{PerSecond: 5, Burst: 5}}
		i := f.start(func(c *engine.Config) { c.Limits = map[string]engine.Limits{"post": limits} })
		f.operator.set(func(o *post) { o.takes = 2 * time.Second })
		for range 20 {
			f.create(i)
		}
		time.Sleep(1500 * time.Millisecond)
		if n, _ := f.operator.calls(); n != 3 {
			t.Errorf("%d calls at once, want 3", n)
		}
		time.Sleep(2 * time.Minute)
		if n := f.count()[till.Success]; n != 20 {
			t.Errorf("%d of 20 succeeded", n)
		}
		submits, _ := f.operator.times()
		withinRate(t, "submit", submits, limits.Submit)
	})
}

// handing is an operator that can be asked about by its own id alone, and
// whose callbacks say something.
type handing struct {
	*post
	mu      sync.Mutex
	queries []provider.Query
}

func (o *handing) Traits() provider.Traits {
	t := o.post.Traits()
	t.NeedsCallbackBody = true
	return t
}

func (o *handing) Submit(ctx context.Context, r provider.Request) (provider.Result, error) {
	res, err := o.post.Submit(ctx, r)
	res.Handle = "ws_" + r.ID.String()
	return res, err
}

func (o *handing) Check(ctx context.Context, q provider.Query) (provider.Result, error) {
	o.mu.Lock()
	o.queries = append(o.queries, q)
	o.mu.Unlock()
	return o.post.Check(ctx, q)
}

func (o *handing) last() provider.Query {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.queries[len(o.queries)-1]
}

// ReadCallback implements provider.CallbackReader.
func (o *handing) ReadCallback(provider.CallbackRequest) (provider.Callback, error) {
	return provider.Callback{}, nil
}

func TestHandlesAndMailComeBack(t *testing.T) {
	t.Parallel()
	inFleet(t, habits(), func(t *testing.T, f *fleet) {
		o := &handing{post: f.operator}
		i := f.start(func(c *engine.Config) { c.Connections = map[string]provider.Provider{"post": o} })
		f.operator.set(func(o *post) { o.approve = 30 * time.Second })
		p := f.create(i)
		ref := store.Ref{Client: f.client.ID, ID: p.ID}
		time.Sleep(6 * time.Second)
		if q := o.last(); q.Handle != "ws_"+p.ID.String() || q.CallbackBody != nil || q.ID != p.ID {
			t.Errorf("asked with %+v", q)
		}
		for _, find := range []func(tx *store.Tx) (*store.CallbackTarget, error){
			func(tx *store.Tx) (*store.CallbackTarget, error) {
				return tx.SubjectByHandle(context.Background(), "post", "ws_"+p.ID.String())
			},
			func(tx *store.Tx) (*store.CallbackTarget, error) {
				return tx.FindByReference(context.Background(), "post", i.ReferenceOf(p))
			},
		} {
			err := f.store.View(context.Background(), func(tx *store.Tx) error {
				found, err := find(tx)
				if err == nil && (found == nil || found.Ref != ref || found.Kind != till.SubjectPayment) {
					t.Errorf("found %+v", found)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		wake := func(connection string, body []byte) {
			t.Helper()
			if err := i.RecordCallback(context.Background(), connection, ref, body); err != nil {
				t.Fatal(err)
			}
		}
		wake("post", []byte(`{"ResultCode":0}`))
		wake("post", make([]byte, engine.MaxCallbackBody+1)) // too long to be kept
		time.Sleep(2 * time.Second)
		if q := o.last(); string(q.CallbackBody) != `{"ResultCode":0}` {
			t.Errorf("asked with the body %.40q", q.CallbackBody)
		}
		wake("another", []byte("not for this one's adapter"))
		time.Sleep(2 * time.Second)
		if q := o.last(); string(q.CallbackBody) != `{"ResultCode":0}` {
			t.Errorf("asked with the body %.40q", q.CallbackBody)
		}
		time.Sleep(time.Minute)
	})
}

// Once the late reads are over, the handle is gone with the step: the callback
// that wakes the payment is all that shows the adapter what to ask about.
func TestMailComesBackForAPaymentThatIsReadNoMore(t *testing.T) {
	t.Parallel()
	inFleet(t, habits(), func(t *testing.T, f *fleet) {
		o := &handing{post: f.operator}
		i := f.start(func(c *engine.Config) { c.Connections = map[string]provider.Provider{"post": o} })
		p := f.create(i)
		time.Sleep(time.Minute)
		if f.count()[till.Success] != 1 || f.step(p.ID) != nil {
			t.Fatalf("a minute later: %v, step %+v", f.count(), f.step(p.ID))
		}
		if err := i.RecordCallback(context.Background(), "post", store.Ref{Client: f.client.ID, ID: p.ID}, []byte(`{"id":"ws_1"}`)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if q := o.last(); string(q.CallbackBody) != `{"id":"ws_1"}` {
			t.Errorf("asked with the body %q and the handle %q", q.CallbackBody, q.Handle)
		}
	})
}

// A storm of callbacks asks the operator once a second, and what the last of
// them brings is seen.
func TestAStormOfCallbacksAsksOnceASecond(t *testing.T) {
	t.Parallel()
	traits := habits()
	traits.Poll, traits.ApprovalWindow = 10*time.Minute, time.Hour
	inFleet(t, traits, func(t *testing.T, f *fleet) {
		i := f.start()
		f.operator.set(func(o *post) { o.approve, o.takes = 5*time.Second, 100*time.Millisecond })
		p := f.create(i)
		time.Sleep(time.Second)
		_, before := f.operator.calls()
		for began := time.Now(); time.Since(began) < 4050*time.Millisecond; time.Sleep(20 * time.Millisecond) {
			if err := i.RecordCallback(context.Background(), "", store.Ref{Client: f.client.ID, ID: p.ID}, nil); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Second)
		_, after := f.operator.calls()
		if n := after - before; n < 4 || n > 6 {
			t.Errorf("four seconds of callbacks asked %d times, want about once a second", n)
		}
		if f.count()[till.Success] != 1 {
			t.Errorf("the last of the callbacks was in vain: %v", f.count())
		}
	})
}

// unreachable is an operator that cannot be dialled for a while, without client
// references: what was sent to it once is never sent again.
type unreachable struct {
	*post
	mu  sync.Mutex
	off bool
}

func (o *unreachable) Traits() provider.Traits {
	t := o.post.Traits()
	t.ClientReference = false
	return t
}

func (o *unreachable) Submit(ctx context.Context, r provider.Request) (provider.Result, error) {
	o.mu.Lock()
	off := o.off
	o.mu.Unlock()
	if off {
		return provider.Result{}, fmt.Errorf("%w: connection refused", provider.ErrNotSent)
	}
	return o.post.Submit(ctx, r)
}

// A send of which not one byte has left us was none: it is made again, also to
// an operator that would not notice it twice, and if it cannot be made in time
// the payment ends without a doubt.
func TestASendThatDidNotBeginIsNone(t *testing.T) {
	t.Parallel()
	inFleet(t, habits(), func(t *testing.T, f *fleet) {
		o := &unreachable{post: f.operator, off: true}
		i := f.start(func(c *engine.Config) { c.Connections = map[string]provider.Provider{"post": o} })
		other := f.start(func(c *engine.Config) { c.Connections = map[string]provider.Provider{"post": o} })
		first := f.create(i)
		time.Sleep(7 * time.Second)
		s := f.step(first.ID)
		if s == nil || s.Sends != 0 || s.Lane != store.Lane("post", store.OpSubmit) || s.Calls < 2 || s.Calls > 3 {
			t.Errorf("after seven seconds: %+v", s)
		}
		o.mu.Lock()
		o.off = false
		o.mu.Unlock()
		time.Sleep(15 * time.Second)
		if submits, _ := f.operator.calls(); submits != 1 || f.count()[till.Success] != 1 {
			t.Errorf("it is back: sent %d times, %v", submits, f.count())
		}
		o.mu.Lock()
		o.off = true
		o.mu.Unlock()
		f.create(other)
		time.Sleep(2 * time.Minute)
		if n := f.count(); n[till.Failed] != 1 {
			t.Errorf("it stayed away: %v", n)
		}
	})
}
