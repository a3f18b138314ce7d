package collect_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"till"
	"till/provider"
	"till/store/admin"
)

func TestAnOutageThatOneInstanceSeesIsRefusedByAll(t *testing.T) {
	t.Parallel()
	inFleet(t, habits(), func(t *testing.T, f *fleet) {
		worker, accepts := f.start(), f.start(onlyAccepts)
		key := till.NewID(1).String()
		first, err := f.try(worker, key)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		if status(worker) != "operational" || status(accepts) != "operational" {
			t.Fatalf("all is well, and the method is %s and %s", status(worker), status(accepts))
		}
		f.operator.set(func(o *post) { o.down = true })
		for range 12 {
			f.create(worker)
		}
		for f.breaker().State != admin.Stopped {
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(heard) // no longer than this may instances disagree
		before := f.total()
		for _, i := range f.all {
			if status(i) != "closed" || !f.refused(i) {
				t.Errorf("the method is %s", status(i))
			}
			again, err := f.try(i, key)
			if err != nil || !again.Replayed || again.Payment.ID != first.Payment.ID {
				t.Errorf("a key that made a payment: %+v, %v; want its replay", again, err)
			}
		}
		if f.total() != before {
			t.Error("a refused request left a payment behind")
		}
	})
}

func TestChecksThatFailDegradeAndDoNotClose(t *testing.T) {
	t.Parallel()
	inFleet(t, habits(), func(t *testing.T, f *fleet) {
		i := f.start()
		f.operator.set(func(o *post) { o.approve = time.Hour })
		for range 12 {
			f.create(i)
		}
		time.Sleep(12 * time.Second)
		f.operator.set(func(o *post) { o.down = true })
		time.Sleep(12 * time.Second)
		if status(i) != "degraded" || f.refused(i) {
			t.Errorf("only checks fail, and the method is %s", status(i))
		}
	})
}

func TestAnOperatorThatIsUnwatchedIsNeverClosed(t *testing.T) {
	t.Parallel()
	traits := habits()
	traits.NoBreaker = true
	inFleet(t, traits, func(t *testing.T, f *fleet) {
		i := f.start()
		f.operator.set(func(o *post) { o.down = true })
		for range 40 {
			f.create(i)
		}
		time.Sleep(5 * time.Second)
		if status(i) != "operational" || f.refused(i) {
			t.Errorf("the method is %s", status(i))
		}
	})
}

func TestOneInstanceProbesAtATime(t *testing.T) {
	t.Parallel()
	inFleet(t, habits(), func(t *testing.T, f *fleet) {
		f.start()
		f.start()
		f.start(onlyAccepts)
		f.fall(f.all[0])
		sent, _ := f.operator.calls()

		// The pause is over: the first that asks may probe, and nobody else.
		time.Sleep(5 * time.Second)
		for _, i := range f.all {
			if status(i) != "degraded" {
				t.Errorf("the pause is over, and the method is %s", status(i))
			}
		}
		f.operator.set(func(o *post) { o.takes = 4 * time.Second }) // the probes are under way for a while
		accepted := map[int]int{}
		for range 30 {
			for n, i := range f.all {
				if !f.refused(i) {
					accepted[n]++
				}
			}
			time.Sleep(100 * time.Millisecond)
		}
		total := 0
		for _, n := range accepted {
			total += n
		}
		if len(accepted) != 1 || total != 3 {
			t.Errorf("accepted by instance: %v; want three by one", accepted)
		}
		if now, _ := f.operator.calls(); now-sent != 3 {
			t.Errorf("%d sends to probe, want 3", now-sent)
		}

		// They were not answered: it is closed again, for longer.
		time.Sleep(3 * time.Second)
		b := f.breaker()
		if wait := b.RetryAt.Sub(b.ChangedAt); b.State != admin.Stopped || wait != 10*time.Second || status(f.all[1]) != "closed" {
			t.Fatalf("after the probes: %s for %s, the method is %s", b.State, wait, status(f.all[1]))
		}

		// The operator is back: the next probe opens the method everywhere.
		f.operator.set(func(o *post) { o.down, o.takes = false, 0 })
		for f.breaker().State != admin.Passing {
			if time.Sleep(time.Second); f.store.Now() > b.RetryAt.Add(10*time.Second) {
				t.Fatal("the operator is back, and nobody has noticed")
			}
			f.refused(f.all[2])
		}
		time.Sleep(heard)
		for _, i := range f.all {
			if f.refused(i) {
				t.Errorf("the operator is back, and the method is %s", status(i))
			}
		}
		time.Sleep(2 * time.Minute)
		if status(f.all[0]) != "operational" {
			t.Errorf("two minutes later the method is %s", status(f.all[0]))
		}
	})
}

func TestAnInstanceThatDiesProbingIsReplaced(t *testing.T) {
	t.Parallel()
	inFleet(t, habits(), func(t *testing.T, f *fleet) {
		first, dies := f.start(), f.start(onlyAccepts)
		f.fall(first)
		first.stop() // and with it everything that is waiting to be sent
		time.Sleep(10 * time.Second)
		f.refused(dies)
		time.Sleep(heard)
		b := f.breaker()
		if b.State != admin.Probing {
			t.Fatalf("the breaker is %s", b.State)
		}
		dies.stop()
		other := f.start(onlyAccepts)
		for time.Sleep(2 * time.Second); f.store.Now() < b.LeaseUntil.Add(-time.Second); time.Sleep(time.Second) {
			if !f.refused(other) {
				t.Fatal("two instances let probes in")
			}
		}
		f.operator.set(func(o *post) { o.down = false })
		accepted := 0
		for range 6 {
			if !f.refused(other) {
				accepted++
			}
			time.Sleep(time.Second)
		}
		if accepted != 3 || f.breaker().Round != b.Round+1 {
			t.Errorf("%d were let in in round %d, want 3 in round %d", accepted, f.breaker().Round, b.Round+1)
		}
		f.start()
		time.Sleep(3 * time.Second)
		if b := f.breaker(); b.State != admin.Passing || f.refused(other) {
			t.Errorf("the breaker is %s", b.State)
		}
	})
}

// What was accepted and not sent waits while the operator is unreachable, and ends
// as every payment that was provably never sent.
func TestPaymentsThatWaitEndWithTheirWindow(t *testing.T) {
	t.Parallel()
	traits := habits()
	traits.SubmitRate = provider.Rate{PerSecond: 1, Burst: 12}
	inFleet(t, traits, func(t *testing.T, f *fleet) {
		i := f.start()
		f.operator.set(func(o *post) { o.down = true })
		for range 40 {
			f.create(i)
		}
		time.Sleep(2 * time.Second)
		if f.breaker().State != admin.Stopped {
			t.Fatal("the operator is down, and sends go on")
		}
		sent, _ := f.operator.calls()
		f.operator.set(func(o *post) { o.takes = 4 * time.Second }) // so that a round lasts
		time.Sleep(50 * time.Second)
		if now, _ := f.operator.calls(); int64(now-sent) > 3*f.breaker().Round {
			t.Errorf("%d sends to probe in %d rounds", now-sent, f.breaker().Round)
		}
		if n := f.count(); n[till.Pending] != 40 {
			t.Errorf("before their time is over: %v", n)
		}
		time.Sleep(12 * time.Second)
		sent, _ = f.operator.calls()
		if n := f.count(); n[till.Failed] != 40-sent || n[till.Failed] < 10 {
			t.Errorf("after their time: %v with %d sends; want those never sent to have failed", n, sent)
		}
	})
}

// F42. On PostgreSQL the outage lasts an hour, unless TILL_OUTAGE says how long:
// what it costs there is virtual time's thousands of polls.
func TestSixHoursOfOutage(t *testing.T) {
	t.Parallel()
	traits := habits()
	traits.SubmitRate, traits.CheckRate = provider.Rate{PerSecond: 2, Burst: 4}, provider.Rate{PerSecond: 2, Burst: 4}
	traits.Poll = 30 * time.Second
	inFleet(t, traits, func(t *testing.T, f *fleet) {
		outage := 6 * time.Hour
		if d, err := time.ParseDuration(os.Getenv("TILL_OUTAGE")); err == nil {
			outage = d
		} else if testing.Short() || strings.HasSuffix(t.Name(), "/postgres") {
			outage = time.Hour
		}
		f.pulse, f.look = 10*time.Second, 10*time.Second
		a, b := f.start(), f.start()
		// Customers who have not decided yet when it happens.
		f.operator.set(func(o *post) { o.approve = 30 * time.Second })
		for n := range 40 {
			f.create(f.all[n%2])
			time.Sleep(500 * time.Millisecond)
		}
		f.operator.set(func(o *post) { o.lost = true })
		accepted, refusals := 0, 0
		every := 5 * time.Second
		for end := time.Now().Add(outage); time.Now().Before(end); time.Sleep(every) {
			if f.refused(f.all[refusals%2]) {
				refusals++
				every = 30 * time.Second // clients have noticed
			} else {
				accepted++
			}
		}
		if f.breaker().State == admin.Passing || accepted > refusals/2 {
			t.Errorf("in %s %d were accepted and %d refused", outage, accepted, refusals)
		}
		f.operator.set(func(o *post) { o.lost = false })
		for range 3 * 60 {
			f.refused(a)
			time.Sleep(time.Second)
		}
		if f.refused(a) || f.refused(b) || status(a) != "operational" {
			t.Errorf("three minutes later the method is %s", status(a))
		}
		time.Sleep(2 * time.Hour) // as long as the slowest pace of asking
		if n := f.count(); n[till.Success] < 40 || n[till.Pending]+n[till.Processing] > 0 {
			t.Errorf("two hours later: %v; want all decided", n)
		}
		submits, checks := f.operator.times()
		withinRate(t, "submit", submits, traits.SubmitRate)
		withinRate(t, "check", checks, traits.CheckRate)
	})
}

func TestAClockThatIsSetBackKeepsNothingClosed(t *testing.T) {
	t.Parallel()
	traits := habits()
	traits.SubmitRate = provider.Rate{PerSecond: 10, Burst: 20}
	inFleet(t, traits, func(t *testing.T, f *fleet) {
		a, b := f.start(), f.start()
		f.fall(a)
		f.offset.Store(int64(-time.Hour))
		f.operator.set(func(o *post) { o.down = false })
		for range 10 {
			time.Sleep(time.Second)
			f.refused(a)
			f.refused(b)
		}
		if f.refused(a) || f.breaker().State != admin.Passing {
			t.Errorf("an hour back, the method is %s", status(a))
		}
		before, _ := f.operator.calls()
		for range 20 {
			f.create(b)
		}
		time.Sleep(5 * time.Second)
		if now, _ := f.operator.calls(); now-before < 20 {
			t.Errorf("an hour back, %d of 20 were sent", now-before)
		}
		submits, _ := f.operator.times()
		withinRate(t, "submit", submits, traits.SubmitRate)
	})
}
