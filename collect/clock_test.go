package collect_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"till"
	"till/engine"
	"till/provider"
	"till/store"
)

// set turns the database's clock.
func (f *fleet) set(d time.Duration) { f.offset.Store(int64(d)) }

// A clock that is set back stops nothing: what is sent is asked about, the work
// of a dead instance is taken over, and what was not proven yet is proven.
func TestAClockThatIsSetBackKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	for _, back := range []time.Duration{time.Minute, time.Hour, 24 * time.Hour} {
		inFleet(t, habits(), func(t *testing.T, f *fleet) {
			i := f.start()
			f.operator.set(func(o *post) { o.approve = 30 * time.Second })
			for range 5 {
				f.create(i)
			}
			dying := &mortal{post: f.operator}
			j := f.start(func(c *engine.Config) { c.Connections = map[string]provider.Provider{"post": dying} })
			time.Sleep(heard) // so that it may send at once
			f.create(j)
			time.Sleep(6 * time.Second)
			f.set(-back)
			time.Sleep(30 * time.Second)
			if n := f.count(); n[till.Success] < 5 {
				t.Errorf("%s back, half a minute later: %v; want five successes", back, n)
			}
			// The dead one's: asked about when a lease is over, proven absent by two
			// reads that are a settle time apart, sent again, approved, asked about.
			time.Sleep(60 * time.Second)
			if n := f.count(); n[till.Success] != 6 || !dying.died.Load() {
				t.Errorf("%s back, a minute and a half later: %v; want six successes", back, n)
			}
		})
	}
}

// mortal is an operator whose first caller dies before a byte is sent.
type mortal struct {
	*post
	died atomic.Bool
}

func (m *mortal) Submit(ctx context.Context, r provider.Request) (provider.Result, error) {
	if m.died.CompareAndSwap(false, true) {
		runtime.Goexit()
	}
	return m.post.Submit(ctx, r)
}

// A clock that was a day ahead leaves no window a day too long, neither of what
// was made then nor of what is made after it: created_at cannot go back, but
// expires_at counts from now.
func TestAClockThatWasADayAheadLeavesNoLongWindows(t *testing.T) {
	t.Parallel()
	inFleet(t, habits(), func(t *testing.T, f *fleet) {
		window := till.Time(habits().ApprovalWindow.Microseconds())
		door := f.start(onlyAccepts)
		f.set(24 * time.Hour)
		unsent := f.create(door).ID
		f.set(0)
		ended := func(id till.ID) (at till.Time) { return f.payment(id).ExpiresAt }
		key := till.NewID(till.TimeOf(time.Now())).String()
		made, err := f.try(door, key)
		if err != nil {
			t.Fatal(err)
		}
		after := made.Payment.ID
		if p := f.payment(after); p.CreatedAt < f.store.Now().Add(time.Hour) || p.ExpiresAt > f.store.Now()+window {
			t.Errorf("after the day: made at %s, its time ends %s from now", p.CreatedAt, p.ExpiresAt.Sub(f.store.Now()))
		}
		again, err := f.try(door, key)
		if err != nil || !again.Replayed || again.Payment.ExpiresAt != made.Payment.ExpiresAt || made.Payment.ExpiresAt != ended(after) {
			t.Errorf("a repeated call is told %s, the first was told %s, the payment has %s; %v", again.Payment.ExpiresAt, made.Payment.ExpiresAt, ended(after), err)
		}

		// Nobody answers: both are on the list when their time is over.
		f.operator.set(func(o *post) { o.lost = true })
		f.start()
		time.Sleep(time.Second)
		for _, id := range []till.ID{unsent, after} {
			if at := ended(id); at > f.store.Now()+window {
				t.Errorf("its time ends %s from now", at.Sub(f.store.Now()))
			}
		}
		time.Sleep(habits().ApprovalWindow + habits().Grace + 2*habits().Poll)
		for _, id := range []till.ID{unsent, after} {
			if f.cases(id) != engine.CaseOverdue {
				t.Errorf("when its time is over, the cases are %q", f.cases(id))
			}
		}
		f.operator.set(func(o *post) { o.lost = false })
		time.Sleep(2 * time.Minute)
		if n := f.count(); n[till.Success] != 2 {
			t.Errorf("in the end: %v", n)
		}
	})
}

// A machine that was suspended between its claim and its send wakes up with a
// clock of its own that stood still. The database's did not: nothing is sent
// under a lease that is over.
func TestNothingIsSentUnderALeaseThatIsOverForTheDatabase(t *testing.T) {
	t.Parallel()
	inFleet(t, habits(), func(t *testing.T, f *fleet) {
		id := f.create(f.start(onlyAccepts)).ID
		o := &suspended{post: f.operator, f: f, id: id}
		f.start(func(c *engine.Config) { c.Connections = map[string]provider.Provider{"post": o} })
		time.Sleep(15 * time.Second)
		if p := f.payment(id); p.Status != till.Success || !o.slept.Load() || o.sends.Load() != 1 {
			t.Errorf("%s after %d sends; it slept: %v", p.Status, o.sends.Load(), o.slept.Load())
		}
	})
}

// suspended is an operator before whose first call the machine is suspended:
// there its habits are looked at a second time after the claim.
type suspended struct {
	*post
	f     *fleet
	id    till.ID
	looks atomic.Int32
	slept atomic.Bool
	sends atomic.Int32
}

func (o *suspended) Fingerprint() string {
	o.looks.Store(0)
	return o.post.Fingerprint()
}

func (o *suspended) Traits() provider.Traits {
	if o.looks.Add(1) == 2 && o.f.step(o.id).Sends == 1 && o.slept.CompareAndSwap(false, true) {
		o.f.set(engine.Lease + time.Second)
	}
	return o.post.Traits()
}

func (o *suspended) Submit(ctx context.Context, r provider.Request) (provider.Result, error) {
	o.sends.Add(1)
	if s := o.f.step(o.id); s.LeaseUntil <= o.f.store.Now() {
		o.f.t.Errorf("it is sent %s after the lease was over", o.f.store.Now().Sub(s.LeaseUntil))
	}
	return o.post.Submit(ctx, r)
}

// What was counted, leased and read in the future is mended, and nothing else:
// what is due in time stays.
func TestOnlyTimesThatCannotBeAreMended(t *testing.T) {
	t.Parallel()
	inFleet(t, habits(), func(t *testing.T, f *fleet) {
		id := f.create(f.start(onlyAccepts)).ID
		now, h := f.store.Now(), habits()
		ref := store.Ref{Client: f.client.ID, ID: id}
		save := func(change func(s *store.Step)) (before, after *store.Step) {
			before = f.step(id)
			*before = store.Step{ClientID: ref.Client, SubjectID: ref.ID, Kind: before.Kind, Lane: before.Lane, DueAt: now, WakeSeq: before.WakeSeq}
			change(before)
			err := f.store.Update(context.Background(), func(tx *store.Tx) error { return tx.SaveSteps(context.Background(), []*store.Step{before}) })
			if err != nil {
				t.Fatal(err)
			}
			i := f.start() // who starts checks
			synctest.Wait()
			i.stop()
			return before, f.step(id)
		}
		idle := func(s *store.Step) { s.Sends, s.LeaseUntil = 1, now.Add(engine.Lease) } // nobody takes it
		for name, c := range map[string]struct {
			change func(s *store.Step)
			due    till.Time
		}{
			"a poll":                         {func(s *store.Step) { s.DueAt = now.Add(h.Poll) }, now.Add(h.Poll)},
			"a poll that is an hour off":     {func(s *store.Step) { s.DueAt = now.Add(time.Hour) }, now},
			"a slow poll":                    {func(s *store.Step) { s.BackoffSteps, s.DueAt = 9, now.Add(h.PollMax) }, now.Add(h.PollMax)},
			"a slow poll that is a day off":  {func(s *store.Step) { s.BackoffSteps, s.DueAt = 9, now.Add(24*time.Hour) }, now},
			"a late read":                    {func(s *store.Step) { s.LateFrom, s.DueAt = now, now.Add(72*time.Hour) }, now.Add(72 * time.Hour)},
			"a late read from in the future": {func(s *store.Step) { s.LateFrom, s.DueAt = now.Add(time.Hour), now.Add(2*time.Hour) }, now},
		} {
			if _, s := save(func(s *store.Step) { idle(s); c.change(s) }); s.DueAt != c.due || s.LateFrom > now || s.LeaseUntil != now.Add(engine.Lease) {
				t.Errorf("%s: due in %s, want %s; the step is %+v", name, s.DueAt.Sub(now), c.due.Sub(now), s)
			}
		}
		far := now.Add(time.Hour)
		_, s := save(func(s *store.Step) {
			s.Sends, s.LeaseUntil, s.SendDeadline, s.CheckedAt, s.NotFoundReads, s.NotFoundAt = 1, far, far, far, 1, far
		})
		if most := now.Add(engine.Lease + store.ClockSlack); s.LeaseUntil != most || s.SendDeadline != most || s.CheckedAt != now || s.NotFoundReads != 0 {
			t.Errorf("a lease, a send and a read of an hour off are %+v", s)
		}
	})
}
