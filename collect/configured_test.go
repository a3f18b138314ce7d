package collect_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"till"
	"till/engine"
	"till/provider"
	"till/store"
	"till/store/storetest"
)

// without is an instance that does not have the operator's connection.
func without(c *engine.Config) {
	c.Connections = map[string]provider.Provider{"elsewhere": newPost(habits())}
}

// account is the operator under another account: the same name stands for
// something else there.
type account struct {
	*post
	name string
}

func (a account) Fingerprint() string { return a.name }

func (f *fleet) withAccount(name string) func(c *engine.Config) {
	return func(c *engine.Config) {
		c.Connections = map[string]provider.Provider{"post": account{f.operator, name}}
	}
}

func (f *fleet) cases(id till.ID) string {
	f.t.Helper()
	return readCases(f.t, f.store, id)
}

func (f *fleet) payment(id till.ID) *store.PaymentRow {
	f.t.Helper()
	return readPayment(f.t, f.store, store.Ref{Client: f.client.ID, ID: id})
}

// Workers that do not have a connection, as all have that are not restarted yet
// after it was added, change nothing of its steps: a worker that has it finds them
// due. Before, they postponed them by half a minute each, until the window was
// over.
func TestAnInstanceLeavesAloneWhatItHasNoConnectionFor(t *testing.T) {
	t.Parallel()
	inFleet(t, habits(), func(t *testing.T, f *fleet) {
		door := f.start(onlyAccepts)
		for range 3 {
			f.start(without)
		}
		steps := map[till.ID]*store.Step{}
		for range 60 {
			id := f.create(door).ID
			steps[id] = f.step(id)
		}
		time.Sleep(50 * time.Second) // of a window of a minute
		for id, s := range steps {
			if d := cmp.Diff(f.step(id), s); d != "" {
				t.Fatalf("a step that nobody could act on has changed (-now +before)\n%s", d)
			}
		}
		f.start()
		time.Sleep(8 * time.Second) // a send, a customer, a poll
		if n := f.count(); n[till.Success] != 60 {
			t.Errorf("%v; want 60 to succeed", n)
		}
	})
}

// The same where a name stands for another account here than there: the
// other's steps wait in the same lane, and hide nothing of ours.
func TestAnInstanceLeavesAloneWhatIsPinnedToAnotherAccount(t *testing.T) {
	t.Parallel()
	inFleet(t, habits(), func(t *testing.T, f *fleet) {
		door := f.start(onlyAccepts)
		steps := map[till.ID]*store.Step{}
		for range 300 { // more than are claimed at once
			id := f.create(door).ID
			steps[id] = f.step(id)
		}
		other := f.start(f.withAccount("other"))
		time.Sleep(time.Second)
		mine := f.create(f.start(onlyAccepts, f.withAccount("other")))
		time.Sleep(8 * time.Second)
		if p := f.payment(mine.ID); p.Status != till.Success {
			t.Errorf("behind another account's steps a payment is %s", p.Status)
		}
		for id, s := range steps {
			if d := cmp.Diff(f.step(id), s); d != "" {
				t.Fatalf("a step of another account has changed (-now +before)\n%s", d)
			}
		}
		f.start()
		time.Sleep(8 * time.Second)
		if n := f.count(); n[till.Success] != 301 {
			t.Errorf("%v; want all to succeed", n)
		}
		other.stop()
	})
}

// What nobody has a connection for comes before a person once its time is over:
// once, and without a change of when it is due. A worker that has the connection later
// goes on with it.
func TestWhatNobodyHasAConnectionForIsACaseOnceItsTimeIsOver(t *testing.T) {
	t.Parallel()
	for name, unable := range map[string]func(f *fleet) func(*engine.Config){
		"no connection":   func(*fleet) func(*engine.Config) { return without },
		"another account": func(f *fleet) func(*engine.Config) { return f.withAccount("other") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inFleet(t, habits(), func(t *testing.T, f *fleet) {
				id := f.create(f.start(onlyAccepts)).ID
				before := f.step(id)
				rarely := func(c *engine.Config) { c.PollInterval = 7 * time.Second } // not in step with the minutes
				f.start(unable(f), rarely)
				f.start(unable(f), rarely)
				time.Sleep(time.Minute)
				if p := f.payment(id); p.Attention || f.cases(id) != "" {
					t.Errorf("within its time it is on the list for %q", f.cases(id))
				}
				time.Sleep(3 * time.Minute)
				p := f.payment(id)
				if p.Status != till.Pending || p.Resolution.State != till.NeedsAttention || f.cases(id) != "overdue" {
					t.Fatalf("%s, %s, cases %q; want pending, needs_attention, overdue", p.Status, p.Resolution.State, f.cases(id))
				}
				if d := cmp.Diff(f.step(id), before); d != "" {
					t.Errorf("whoever told a person has changed the step (-now +before)\n%s", d)
				}
				f.start()
				time.Sleep(5 * time.Second)
				if p := f.payment(id); p.Status != till.Failed || p.FailureReason != till.ProviderUnavailable || f.cases(id) != "" {
					t.Errorf("with the connection: %s %s, cases %q; want it to end unsent", p.Status, p.FailureReason, f.cases(id))
				}
			})
		})
	}
}

// A callback that comes to an instance without the connection keeps its body
// for those who have it: it may be the only answer.
func TestACallbackToAnInstanceWithoutTheConnectionKeepsItsBody(t *testing.T) {
	t.Parallel()
	traits := habits()
	traits.NeedsCallbackBody = true
	inFleet(t, traits, func(t *testing.T, f *fleet) {
		id := f.create(f.start(onlyAccepts)).ID
		err := f.start(without).RecordCallback(context.Background(), "post", store.Ref{Client: f.client.ID, ID: id}, []byte(`{"said":1}`))
		if s := f.step(id); err != nil || string(s.CallbackBody) != `{"said":1}` || s.WakeSeq != 1 {
			t.Errorf("%v; the step has %q and %d wakes", err, s.CallbackBody, s.WakeSeq)
		}
	})
}

// A key whose payment was made by a release that compares more members can be
// answered by that release only: the client is asked to try again, and not shown that
// something is broken.
func TestAKeyThatANewerReleaseUsedIsToBeTriedAgain(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			database := e.Config(t)
			s := storetest.Open(t, database)
			c := storetest.NewCollector(t, s)
			who := engine.Client{Client: storetest.NewClient(t, s, till.Test), Enabled: func(string) bool { return true }}
			r := request(t, till.NewID(s.Now()).String(), "4567")
			if _, err := c.Create(t.Context(), who, r); err != nil {
				t.Fatal(err)
			}
			storetest.Allow(t, database.Path, "payments_fixed", "payments")
			storetest.Raw(t, database.Path, `UPDATE payments SET body_version = 99`)
			if _, err := c.Create(t.Context(), who, r); till.ErrorCode(err) != till.CodeServiceUnavailable {
				t.Errorf("got %v, want %s", err, till.CodeServiceUnavailable)
			}
		})
	}
}
