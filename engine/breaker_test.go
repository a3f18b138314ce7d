package engine

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"till"
	"till/provider"
	"till/store"
	"till/store/admin"
)

var (
	here  = till.NewID(start)
	there = till.NewID(start + 1)
)

func TestTheBreaker(t *testing.T) {
	t.Parallel()
	passing := admin.Breaker{State: admin.Passing, ChangedAt: start.Add(-time.Hour)}
	stopped := admin.Breaker{State: admin.Stopped, Tries: 2, ChangedAt: start, RetryAt: start.Add(pause(2))}
	probing := admin.Breaker{State: admin.Probing, Tries: 2, ChangedAt: start, Round: 7, Owner: there, LeaseUntil: start.Add(probeLease), ProbesLeft: 1}
	sums := func(known, unknown int64) admin.CallStats {
		return admin.CallStats{Answered: known, Unanswered: unknown}
	}
	for _, c := range []struct {
		name  string
		b     admin.Breaker
		ev    evidence
		after time.Duration
		want  admin.BreakerState
		tries int
	}{
		{"half of the submits without an answer stop it", passing, evidence{submits: sums(5, 5)}, 0, admin.Stopped, 1},
		{"fewer than half do not", passing, evidence{submits: sums(51, 49)}, 0, admin.Passing, 0},
		{"too few say nothing", passing, evidence{submits: sums(0, 9)}, 0, admin.Passing, 0},
		{"checks alone do not stop it", passing, evidence{checks: sums(0, 1000)}, 0, admin.Passing, 0},
		{"refused credentials stop it at once", passing, evidence{checks: admin.CallStats{Unanswered: 3, AuthRefused: 3}}, 0, admin.Stopped, 1},
		{"not if some are answered", passing, evidence{checks: admin.CallStats{Answered: 1, Unanswered: 3, AuthRefused: 3}}, 0, admin.Passing, 0},
		{"soon after a recovery the pauses go on", admin.Breaker{State: admin.Passing, Tries: 3, ChangedAt: start}, evidence{submits: sums(0, 10)}, time.Minute, admin.Stopped, 4},
		{"after a lasting one they begin again", admin.Breaker{State: admin.Passing, Tries: 3, ChangedAt: start}, evidence{submits: sums(0, 10)}, lastingRecovery, admin.Stopped, 1},
		{"nobody probes in the pause", stopped, evidence{wanted: true}, pause(2) - 1, admin.Stopped, 2},
		{"nobody probes without a payment", stopped, evidence{}, time.Hour, admin.Stopped, 2},
		{"after the pause somebody may", stopped, evidence{wanted: true}, pause(2), admin.Probing, 2},
		{"a pause from before the clock was set back is over", stopped, evidence{wanted: true}, -time.Hour, admin.Probing, 2},
		{"a probe that was answered lets all through", probing, evidence{probed: probed{7, true}}, time.Second, admin.Passing, 2},
		{"one that was not stops all", probing, evidence{probed: probed{7, false}}, time.Second, admin.Stopped, 3},
		{"another round's probe says nothing", probing, evidence{probed: probed{6, false}}, time.Second, admin.Probing, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := nextState(c.b, c.ev, here, start.Add(c.after)); got.State != c.want || got.Tries != c.tries {
				t.Errorf("got %+v, want %s, %d tries", got, c.want, c.tries)
			}
		})
	}
	t.Run("a permission is one instance's until its lease ends", func(t *testing.T) {
		t.Parallel()
		if got := nextState(probing, evidence{wanted: true}, here, start.Add(probeLease-1)); got != probing {
			t.Errorf("under the lease: %+v", got)
		}
		for _, at := range []till.Time{start.Add(probeLease), start.Add(-time.Hour)} {
			if got := nextState(probing, evidence{wanted: true}, here, at); got.Owner != here || got.Round != 8 || got.ProbesLeft != probes {
				t.Errorf("after it: %+v", got)
			}
		}
	})
	t.Run("pauses grow to a bound", func(t *testing.T) {
		t.Parallel()
		for n, want := range map[int]time.Duration{1: firstPause, 2: 2 * firstPause, 3: 4 * firstPause, 6: maxPause, 1 << 40: maxPause} {
			if got := pause(n); got != want {
				t.Errorf("pause %d is %s, want %s", n, got, want)
			}
		}
	})
	t.Run("what was judged before does not count again", func(t *testing.T) {
		t.Parallel()
		b := &admin.Breaker{Connection: "a", ChangedAt: start}
		row := func(connection string, at till.Time) admin.HealthRow {
			return admin.HealthRow{Operation: admin.Operation{Connection: connection, Name: store.OpSubmit}, CallStats: sums(0, 1), Start: at}
		}
		ev := since(b, []admin.HealthRow{row("a", start-1), row("a", start), row("b", start), row("a", start.Add(time.Second))}, start.Add(60*time.Second))
		if ev.submits.Unanswered != 2 {
			t.Errorf("%d count, want 2", ev.submits.Unanswered)
		}
	})
}

func TestStatusWords(t *testing.T) {
	t.Parallel()
	retry := start.Add(60 * time.Second)
	for _, c := range []struct {
		name string
		b    admin.Breaker
		ev   evidence
		want Status
	}{
		{"nothing is known against it", admin.Breaker{State: admin.Passing}, evidence{}, Operational},
		{"one call in ten is not answered", admin.Breaker{State: admin.Passing}, evidence{checks: admin.CallStats{Answered: 9, Unanswered: 1}}, Degraded},
		{"calls take half of their time", admin.Breaker{State: admin.Passing}, evidence{submits: admin.CallStats{Answered: 10, TotalLatency: 5 * time.Second}}, Degraded},
		{"it is stopped", admin.Breaker{State: admin.Stopped, RetryAt: retry}, evidence{}, Closed},
		{"its pause is over", admin.Breaker{State: admin.Stopped, RetryAt: start}, evidence{}, Degraded},
		{"it is probed", admin.Breaker{State: admin.Probing}, evidence{}, Degraded},
	} {
		if got := statusOf(&c.b, c.ev, traits, start); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// Whatever is taken, at once or ahead, and whatever the clock does, calls stay
// within the rate: tokens that were taken ahead may be used until they end.
func TestABudgetIsNeverExceeded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		r := provider.Rate{PerSecond: rapid.SampledFrom([]int{1, 2, 5, 50}).Draw(rt, "rate"), Burst: rapid.IntRange(1, 60).Draw(rt, "burst")}
		b := &admin.Budget{Tokens: -1}
		type call struct{ from, to till.Time } // it may be made in this span
		var calls []call
		now := start
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			now += till.Time(rapid.OneOf(rapid.Int64Range(0, 5000), rapid.Int64Range(0, 3_000_000)).Draw(rt, "passed"))
			refill(b, r, now)
			if rapid.Bool().Draw(rt, "ahead") {
				for range prefetch(b, r) {
					calls = append(calls, call{now, now.Add(prefetchedLife)})
				}
				continue
			}
			n := min(b.Tokens/token, rapid.SampledFrom([]int64{0, 1, 20, 60}).Draw(rt, "wanted"))
			b.Tokens -= n * token
			for range n {
				calls = append(calls, call{now, now})
			}
		}
		for i := range calls {
			for j := i; j < len(calls); j++ {
				// The worst: in the span from when i may still be made to when j
				// is, all that can fall into it does.
				lo, hi := calls[i].to, max(calls[j].from, calls[i].to)
				n := int64(0)
				for _, c := range calls {
					if c.from <= hi && c.to >= lo {
						n++
					}
				}
				if (n-burstOf(r))*token > int64(r.PerSecond)*int64(hi-lo) {
					rt.Fatalf("%d calls within %d µs at %+v", n, hi-lo, r)
				}
			}
		}
	})
}

// The bucket has less room while tokens are in instances' hands, also when
// nobody reads it until they no longer are.
func TestWhatIsHeldLeavesLessRoom(t *testing.T) {
	t.Parallel()
	r := provider.Rate{PerSecond: 1, Burst: 4}
	b := &admin.Budget{Tokens: -1}
	begin := start - start%till.Time(prefetchPeriod.Microseconds())
	refill(b, r, begin)
	if held := prefetch(b, r) + prefetch(b, r); held != 2 || b.Tokens != 2*token {
		t.Fatalf("%d taken ahead and %d left, want 2 and 2", held, b.Tokens/token)
	}
	for _, c := range []struct {
		after  time.Duration
		tokens int64
	}{
		{2 * prefetchPeriod, 2 * token}, // held until then
		{2*prefetchPeriod + time.Second, 3 * token},
		{3 * prefetchPeriod, 4 * token},
	} {
		unseen := *b
		refill(&unseen, r, begin.Add(c.after))
		if unseen.Tokens != c.tokens {
			t.Errorf("after %s: %d, want %d", c.after, unseen.Tokens, c.tokens)
		}
	}
}

func TestAClockThatIsSetBackNeitherFillsNorDries(t *testing.T) {
	t.Parallel()
	r := provider.Rate{PerSecond: 10, Burst: 10}
	b := &admin.Budget{Tokens: -1}
	refill(b, r, start)
	b.Tokens = 0
	refill(b, r, start.Add(-time.Hour))
	if b.Tokens != 0 {
		t.Errorf("%d came from nowhere", b.Tokens)
	}
	refill(b, r, start.Add(-time.Hour+time.Second/2))
	if b.Tokens != 5*token {
		t.Errorf("%d after half a second, want 5", b.Tokens)
	}
}

func TestTheReserveIsVoidInTime(t *testing.T) {
	t.Parallel()
	r := &prefetchedTokens{n: 2, end: time.Now().Add(time.Hour)}
	end, ok := r.take()
	if !ok {
		t.Fatal("a token could not be used")
	}
	r.put(end)
	r.put(end.Add(time.Second)) // of another filling
	if r.n != 2 {
		t.Errorf("%d tokens, want 2", r.n)
	}
	r.end = time.Now().Add(-time.Second)
	if _, ok := r.take(); ok || r.n != 0 || !r.wanted {
		t.Error("a token was used after its time")
	}
}
