package collect_test

import (
	"testing"
	"time"

	"till"
	"till/engine"
	"till/provider"
)

func limitedTo(perSecond, burst int) provider.Traits {
	t := habits()
	t.SubmitRate = provider.Rate{PerSecond: perSecond, Burst: burst}
	t.CheckRate = t.SubmitRate
	return t
}

func TestInstancesShareAnOperatorsRate(t *testing.T) {
	t.Parallel()
	traits := limitedTo(20, 10)
	inFleet(t, traits, func(t *testing.T, f *fleet) {
		f.start()
		f.start()
		f.start(onlyAccepts)
		begun := time.Now()
		for n := range 90 {
			f.create(f.all[n%3])
			if n%10 == 0 {
				time.Sleep(50 * time.Millisecond)
			}
		}
		for f.count()[till.Success] < 90 {
			if time.Since(begun) > time.Minute {
				t.Fatalf("after a minute: %v", f.count())
			}
			time.Sleep(time.Second)
		}
		submits, checks := f.operator.times()
		withinRate(t, "submit", submits, traits.SubmitRate)
		withinRate(t, "check", checks, traits.CheckRate)
		// 80 beyond the burst take 4 s at the rate.
		if took := submits[89].Sub(begun); len(submits) != 90 || took > 6*time.Second {
			t.Errorf("%d sends took %s; the rate allows 4 s", len(submits), took)
		}
	})
}

func TestTheLongestDueIsSentFirst(t *testing.T) {
	t.Parallel()
	inFleet(t, limitedTo(5, 2), func(t *testing.T, f *fleet) {
		f.start()
		f.start()
		var order []till.ID
		for n := range 40 {
			order = append(order, f.create(f.all[n%2]).ID)
			time.Sleep(20 * time.Millisecond)
		}
		time.Sleep(4 * time.Second)
		sent, left := 0, 0
		for _, id := range order {
			if f.step(id) == nil || f.step(id).Sends > 0 {
				if sent++; left > 2 {
					t.Fatalf("%d have been waiting for longer than one that was sent", left)
				}
			} else {
				left++
			}
		}
		if sent < 15 || left < 10 {
			t.Errorf("%d sent, %d left", sent, left)
		}
	})
}

func TestACreateUsesATokenThatWasTakenAhead(t *testing.T) {
	t.Parallel()
	traits := limitedTo(20, 20)
	inFleet(t, traits, func(t *testing.T, f *fleet) {
		i := f.start()
		fast := 0
		for range 50 {
			if s := f.step(f.create(i).ID); s.Sends == 1 && s.LeaseVersion == 1 {
				fast++
			}
			time.Sleep(200 * time.Millisecond)
		}
		if fast < 10 {
			t.Errorf("%d of 50 creates were sent without a claim", fast)
		}
		submits, _ := f.operator.times()
		withinRate(t, "submit", submits, traits.SubmitRate)
	})
}

func TestTokensOfADeadInstanceAreVoid(t *testing.T) {
	t.Parallel()
	traits := limitedTo(10, 20)
	inFleet(t, traits, func(t *testing.T, f *fleet) {
		dies, other := f.start(), f.start()
		for range 4 {
			f.create(dies)
			time.Sleep(300 * time.Millisecond)
		}
		dies.stop() // with tokens in its hands
		time.Sleep(4 * time.Second)
		begun := time.Now()
		before, _ := f.operator.calls()
		for range 40 {
			f.create(other)
		}
		time.Sleep(10 * time.Millisecond)
		if now, _ := f.operator.calls(); now-before != 20 {
			t.Errorf("%d were sent at once, want the whole burst of 20", now-before)
		}
		for f.count()[till.Success] < 44 {
			if time.Since(begun) > time.Minute {
				t.Fatalf("after a minute: %v", f.count())
			}
			time.Sleep(100 * time.Millisecond)
		}
		submits, _ := f.operator.times()
		withinRate(t, "submit", submits, traits.SubmitRate)
	})
}

func TestOneSlowOperatorLeavesSlotsToTheOthers(t *testing.T) {
	t.Parallel()
	inFleet(t, habits(), func(t *testing.T, f *fleet) {
		slow := newPost(habits())
		slow.takes = 4 * time.Second
		i := f.start(func(c *engine.Config) {
			c.Slots = 8
			c.Connections = map[string]provider.Provider{"post": f.operator, "slow": slow}
			c.Routes = engine.ByMode(func(_ till.Mode, method, _, _ string) string {
				if f.toSlow.Load() {
					return "slow"
				}
				return "post"
			})
		})
		f.toSlow.Store(true)
		for range 20 {
			f.create(i)
		}
		time.Sleep(500 * time.Millisecond)
		if n, _ := slow.calls(); n < 3 || n > 5 {
			t.Errorf("the slow one holds %d of 8 slots", n)
		}
		f.toSlow.Store(false)
		f.create(i)
		time.Sleep(500 * time.Millisecond)
		if n, _ := f.operator.calls(); n != 1 {
			t.Error("the slow operator took all slots")
		}
		time.Sleep(2 * time.Minute)
		i.stop()
		f.operator.debits = merge(f.operator.debits, slow.debits)
	})
}

// What waits for the slots of an operator that does not answer does not keep
// the steps of another from being found when they are due.
func TestOneSlowOperatorDelaysNoQuestionsToTheOthers(t *testing.T) {
	t.Parallel()
	for name, calls := range map[string]int{"by its share": 0, "by its limit": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inFleet(t, habits(), func(t *testing.T, f *fleet) {
				slow := newPost(habits())
				slow.takes = 4900 * time.Millisecond
				i := f.start(func(c *engine.Config) {
					c.Slots, c.PollInterval = 8, 3*time.Second
					c.Limits = map[string]engine.Limits{"slow": {Calls: calls}}
					c.Connections = map[string]provider.Provider{"post": f.operator, "slow": slow}
					c.Routes = engine.ByMode(func(till.Mode, string, string, string) string {
						if f.toSlow.Load() {
							return "slow"
						}
						return "post"
					})
				})
				f.toSlow.Store(true)
				for range 40 {
					f.create(i)
				}
				f.toSlow.Store(false)
				for range 7 {
					f.create(i)
					time.Sleep(610 * time.Millisecond)
				}
				time.Sleep(10 * time.Second)
				submits, checks := f.operator.times()
				for n := range submits {
					if late := checks[n].Sub(submits[n]) - habits().Poll; late > 20*time.Millisecond {
						t.Errorf("question %d came %v after it was due", n, late)
					}
				}
				time.Sleep(2 * time.Minute)
				i.stop()
				f.operator.debits = merge(f.operator.debits, slow.debits)
			})
		})
	}
}

// What waits for a slot gets the next that is given back, also by a call whose
// payment has ended and will never be due again.
func TestASlotThatIsGivenBackIsTakenAtOnce(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(c *engine.Config){
		"of all slots":      func(c *engine.Config) { c.Slots = 1 },
		"of a connection's": func(c *engine.Config) { c.Limits = map[string]engine.Limits{"post": {Calls: 1}} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inFleet(t, habits(), func(t *testing.T, f *fleet) {
				const payments = 6
				f.operator.takes = time.Second
				i := f.start(func(c *engine.Config) { c.PollInterval = 10 * time.Minute }, change)
				for range payments {
					f.create(i)
				}
				// A send and a question each, one call at a time, and a little.
				time.Sleep(2*payments*time.Second + habits().Poll)
				if n := f.count()[till.Success]; n != payments {
					t.Errorf("%d of %d payments have succeeded", n, payments)
				}
			})
		})
	}
}

func merge(a, b map[till.ID]int) map[till.ID]int {
	for k, v := range b {
		a[k] = v
	}
	return a
}
