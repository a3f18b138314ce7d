package store_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"till"
	"till/store"
	"till/store/storetest"
)

// newSteps makes payments, one after the other a second apart, and returns
// the names of their steps in the order in which they are due.
func newSteps(t *testing.T, s *store.Store, clock *storetest.Clock, n int) []store.Ref {
	t.Helper()
	c, client := storetest.NewCollector(t, s), storetest.NewClient(t, s, till.Test)
	refs := make([]store.Ref, n)
	for i := range refs {
		clock.Advance(time.Second)
		refs[i] = store.Ref{Client: client.ID, ID: storetest.NewPayment(t, c, client, storetest.Body{}).ID}
	}
	return refs
}

// claim takes a step for a while, as its holder would.
func claim(t *testing.T, s *store.Store, ref store.Ref, seen int64, until till.Time) bool {
	t.Helper()
	var won bool
	err := s.Update(t.Context(), func(tx *store.Tx) error {
		st, err := tx.Step(t.Context(), ref)
		if err != nil {
			return err
		}
		c := &store.Claim{Step: *st, Seen: *st}
		c.Seen.LeaseVersion, c.LeaseVersion, c.LeaseUntil = seen, seen+1, until
		all, err := tx.ClaimSteps(t.Context(), []*store.Claim{c})
		if err == nil {
			won = all[0]
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return won
}

func due(t *testing.T, s *store.Store, limit int) (refs []store.Ref, next till.Time) {
	t.Helper()
	err := s.Update(t.Context(), func(tx *store.Tx) error {
		lane := []store.LaneView{{Lane: store.Lane(storetest.Connection, store.OpSubmit)}}
		steps, err := tx.DueSteps(t.Context(), lane, []int{limit})
		if err != nil {
			return err
		}
		refs = nil
		for _, st := range steps {
			refs = append(refs, store.Ref{Client: st.ClientID, ID: st.SubjectID})
		}
		times, err := tx.NextDue(t.Context(), lane)
		if err == nil {
			next = times[0]
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return refs, next
}

func TestClaimStep(t *testing.T) {
	t.Parallel()
	storetest.RunAt(t, &noon, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		ref := newSteps(t, s, clock, 1)[0]
		until := clock.Now().Add(20 * time.Second)
		if !claim(t, s, ref, 0, until) {
			t.Fatal("a free step could not be taken")
		}
		if claim(t, s, ref, 0, until) {
			t.Error("two took the step under one version")
		}
		if claim(t, s, ref, 1, until) {
			t.Error("a step was taken while somebody held it")
		}
		if refs, next := due(t, s, 10); len(refs) != 0 || next != until {
			t.Errorf("a held step is due: %v, next %s; want the end of the lease", refs, next)
		}
		clock.Set(until)
		if refs, _ := due(t, s, 10); len(refs) != 1 {
			t.Error("a step whose lease ended is not due")
		}
		if claim(t, s, ref, 0, until.Add(time.Minute)) {
			t.Error("whoever saw an old version took the step")
		}
		if !claim(t, s, ref, 1, until.Add(time.Minute)) {
			t.Error("a step whose lease ended could not be taken")
		}
	})
}

// What has been recorded since a step was read, by the instance that held it before, may
// change what is to be done about it: a claim that rests on the older step fails.
func TestAClaimDoesNotRestOnWhatWasBeforeAnAnswer(t *testing.T) {
	t.Parallel()
	storetest.RunAt(t, &noon, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		ref := newSteps(t, s, clock, 1)[0]
		for name, since := range map[string]func(st *store.Step){
			"an answer": func(st *store.Step) { st.Calls++ },
			"a send":    func(st *store.Step) { st.Sends++ },
			"a claim":   func(st *store.Step) { st.LeaseVersion++ },
			"nothing":   func(*store.Step) {},
		} {
			var won []bool
			err := s.Update(t.Context(), func(tx *store.Tx) error {
				seen, err := tx.Step(t.Context(), ref)
				if err != nil {
					return err
				}
				now := *seen
				since(&now)
				if err := tx.SaveSteps(t.Context(), []*store.Step{&now}); err != nil {
					return err
				}
				c := &store.Claim{Step: *seen, Seen: *seen}
				c.LeaseVersion++
				won, err = tx.ClaimSteps(t.Context(), []*store.Claim{c})
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if won[0] != (name == "nothing") {
				t.Errorf("after %s a claim of the step as it was before wins: %v", name, won[0])
			}
		}
	})
}

func TestDueStepsAreTakenLongestDueFirst(t *testing.T) {
	t.Parallel()
	storetest.RunAt(t, &noon, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		refs := newSteps(t, s, clock, 5)
		got, next := due(t, s, 3)
		if len(got) != 3 || got[0] != refs[0] || got[2] != refs[2] || next > clock.Now() {
			t.Errorf("got %v, next %s; want the first three of %v", got, next, refs)
		}
		clock.Set(noon)
		if got, next := due(t, s, 10); len(got) != 0 || next != noon.Add(time.Second) {
			t.Errorf("before its time %d steps are due, and the next at %s", len(got), next)
		}
	})
}

// Another instance's leases, or a dead one's, must not hide what is free.
func TestHeldStepsDoNotHideFreeOnes(t *testing.T) {
	t.Parallel()
	storetest.RunAt(t, &noon, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		refs := newSteps(t, s, clock, 70)
		until := clock.Now().Add(20 * time.Second)
		for _, ref := range refs[:69] {
			claim(t, s, ref, 0, until)
		}
		got, next := due(t, s, 10)
		if len(got) != 1 || got[0] != refs[69] {
			t.Errorf("got %v, want the free one", got)
		}
		if next > clock.Now() {
			t.Errorf("a step is free and due, and the next is said to be due at %s", next)
		}
	})
}

// Whatever is due and no matter who holds it, the next moment at which something
// can be done is known exactly: a worker sleeps until then.
func TestNextDueIsExact(t *testing.T) {
	t.Parallel()
	storetest.RunAt(t, &noon, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		refs := newSteps(t, s, clock, 6)
		now := clock.Now()
		around := rapid.OneOf(rapid.Int64Range(-3, 3), rapid.Int64Range(-1e9, 1e9))
		rapid.Check(t, func(rt *rapid.T) {
			var want till.Time
			err := s.Update(t.Context(), func(tx *store.Tx) error {
				want = 0
				var steps []*store.Step
				for _, ref := range refs {
					st := &store.Step{ClientID: ref.Client, SubjectID: ref.ID, Lane: store.Lane(storetest.Connection, store.OpSubmit), DueAt: now + till.Time(around.Draw(rt, "due"))}
					if rapid.Bool().Draw(rt, "held") {
						st.LeaseUntil = now + till.Time(around.Draw(rt, "lease"))
					}
					if at := max(st.DueAt, st.LeaseUntil); want.IsZero() || at < want {
						want = at
					}
					steps = append(steps, st)
				}
				return tx.SaveSteps(t.Context(), steps)
			})
			if err != nil {
				rt.Fatal(err)
			}
			got, next := due(t, s, 10)
			if want <= now && (next > now || len(got) == 0) {
				rt.Errorf("something could be taken since %s, and the next is said to be due at %s; %d are due", want, next, len(got))
			}
			if want > now && (next != want || len(got) > 0) {
				rt.Errorf("got %s and %d that are due, want %s and none", next, len(got), want)
			}
		})
	})
}

func TestWakeStep(t *testing.T) {
	t.Parallel()
	storetest.RunAt(t, &noon, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		ref := newSteps(t, s, clock, 1)[0]
		read := func() (st store.Step) {
			err := s.View(t.Context(), func(tx *store.Tx) error {
				found, err := tx.Step(t.Context(), ref)
				if err == nil {
					st = *found
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return st
		}
		wake := func(ref store.Ref) (woken bool) {
			err := s.Update(t.Context(), func(tx *store.Tx) (err error) {
				woken, err = tx.WakeStep(t.Context(), ref, nil, "", clock.Now())
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return woken
		}
		created := read().DueAt
		clock.Advance(time.Minute)
		first := clock.Now()
		if !wake(ref) || read().DueAt != created || read().WakeSeq != 1 {
			t.Errorf("a step that is due already must keep its place: %+v", read())
		}
		later := read()
		later.DueAt = clock.Now().Add(time.Hour)
		if err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.SaveSteps(t.Context(), []*store.Step{&later}) }); err != nil {
			t.Fatal(err)
		}
		clock.Advance(store.MinCallbackInterval)
		if !wake(ref) || read().DueAt != clock.Now() || read().WakeSeq != 2 {
			t.Errorf("a step that is due later must be due now: %+v", read())
		}
		if st, want := read(), (store.Callbacks{Count: 2, First: first, Last: clock.Now()}); st.Callbacks() != want {
			t.Errorf("the callbacks are %+v, want %+v", st.Callbacks(), want)
		}
		early := first.Add(-time.Second) // it came before, and could not be recorded then
		err := s.Update(t.Context(), func(tx *store.Tx) error { _, err := tx.WakeStep(t.Context(), ref, nil, "", early); return err })
		if st, want := read(), (store.Callbacks{Count: 3, First: early, Last: clock.Now()}); st.Callbacks() != want || err != nil {
			t.Errorf("with a late one the callbacks are %+v, want %+v: %v", st.Callbacks(), want, err)
		}
		later.WakeSeq = 0
		if err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.SaveSteps(t.Context(), []*store.Step{&later}) }); err != nil {
			t.Fatal(err)
		}
		if read().WakeSeq != 3 {
			t.Error("saving a step lost a wake")
		}
		if wake(store.Ref{Client: ref.Client, ID: till.NewID(1)}) {
			t.Error("a step that is not there was woken")
		}
	})
}

// At most once a second callbacks make a step due, the last of them is not
// lost, and a clock that was set back delays none.
func TestAStormOfWakes(t *testing.T) {
	t.Parallel()
	storetest.RunAt(t, &noon, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		ref := newSteps(t, s, clock, 1)[0]
		var st *store.Step
		read := func() {
			t.Helper()
			err := s.View(t.Context(), func(tx *store.Tx) (err error) { st, err = tx.Step(t.Context(), ref); return err })
			if err != nil {
				t.Fatal(err)
			}
		}
		// A check has just been made, and the next is far off.
		rest := func() {
			read()
			st.DueAt = clock.Now().Add(time.Hour)
			if err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.SaveSteps(t.Context(), []*store.Step{st}) }); err != nil {
				t.Fatal(err)
			}
		}
		wake := func(mail string, want till.Time) {
			t.Helper()
			err := s.Update(t.Context(), func(tx *store.Tx) error {
				_, err := tx.WakeStep(t.Context(), ref, []byte(mail), "", clock.Now())
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if read(); st.DueAt != want {
				t.Errorf("due in %s, want %s", st.DueAt.Sub(clock.Now()), want.Sub(clock.Now()))
			}
		}
		clock.Advance(time.Minute)
		first := clock.Now()
		rest()
		wake("one", first)
		wake("two", first) // it is due still
		rest()
		clock.Advance(300 * time.Millisecond)
		wake("three", first.Add(store.MinCallbackInterval))
		rest()
		wake("", first.Add(store.MinCallbackInterval))
		if string(st.CallbackBody) != "three" || st.WakeSeq != 4 {
			t.Errorf("after four callbacks, the last without a body: %q, %d", st.CallbackBody, st.WakeSeq)
		}
		rest()
		clock.Advance(time.Hour)
		wake("five", clock.Now())
		clock.Advance(-30 * time.Minute)
		rest()
		wake("six", clock.Now())
	})
}

func TestHandlesAndReferencesFindTheirSubject(t *testing.T) {
	t.Parallel()
	storetest.RunAt(t, &noon, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		refs := newSteps(t, s, clock, 2)
		reference := till.NewID(clock.Now())
		find := func(connection, handle string) (f *store.CallbackTarget) {
			t.Helper()
			err := s.View(t.Context(), func(tx *store.Tx) (err error) {
				if handle == "" {
					f, err = tx.FindByReference(t.Context(), connection, reference)
				} else {
					f, err = tx.SubjectByHandle(t.Context(), connection, handle)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
		save := func(ref store.Ref, handle string) {
			t.Helper()
			err := s.Update(t.Context(), func(tx *store.Tx) error {
				st, err := tx.Step(t.Context(), ref)
				if err != nil {
					return err
				}
				st.Handle = handle
				if err := tx.NameHandles(t.Context(), []store.Named{{Connection: "a", Handle: handle, Ref: ref, Kind: st.Kind}}); err != nil {
					return err
				}
				return tx.SaveSteps(t.Context(), []*store.Step{st})
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		save(refs[0], "ws_CO_1")
		save(refs[1], "ws_CO_1") // an operator that gives one handle twice
		if f := find("a", "ws_CO_1"); f == nil || f.Ref != refs[0] || f.Kind != till.SubjectPayment {
			t.Errorf("the handle finds %+v, want the first", f)
		}
		if f := find("b", "ws_CO_1"); f != nil {
			t.Errorf("another connection's handle finds %+v", f)
		}
		if f := find("a", ""); f != nil {
			t.Errorf("a reference that was not sent finds %+v", f)
		}
		send := func(ref store.Ref, n int, as till.SubjectKind) {
			t.Helper()
			err := s.Update(t.Context(), func(tx *store.Tx) error {
				return tx.InsertSends(t.Context(), []*store.Attempt{{ClientID: ref.Client, SubjectID: ref.ID, N: n, Connection: "a", Reference: reference,
					StartedAt: clock.Now(), First: n == 90, LookupKind: as}})
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		send(refs[1], 90, till.SubjectPayment)
		send(refs[1], 91, till.SubjectPayment)
		if f := find("a", ""); f == nil || f.Ref != refs[1] {
			t.Errorf("the reference finds %+v", f)
		}
	})
}

func TestEqualAnswersInARowAreOneAttempt(t *testing.T) {
	t.Parallel()
	storetest.RunAt(t, &noon, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		c, client := storetest.NewCollector(t, s), storetest.NewClient(t, s, till.Test)
		p := storetest.NewPayment(t, c, client, storetest.Body{})
		for range 5 {
			clock.Advance(time.Second)
			storetest.Apply(t, c, s, p, storetest.Opened)
		}
		storetest.Apply(t, c, s, p, storetest.Succeeded)
		err := s.View(t.Context(), func(tx *store.Tx) error {
			as, err := tx.Attempts(t.Context(), store.Ref{Client: client.ID, ID: p.ID})
			if err != nil {
				return err
			}
			if len(as) != 2 || as[0].N != 1 || as[0].Repeats != 5 || as[0].Outcome != "open" || as[0].LastAt != clock.Now() ||
				as[0].EndedAt != clock.Now().Add(-4*time.Second) || as[1].Outcome != "success" || as[1].Repeats != 1 {
				t.Errorf("got %+v", as)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// What is due beside some clients is what is due of the others, longest first.
func TestDueStepsBesideACrowd(t *testing.T) {
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		c := storetest.NewCollector(t, s)
		a, b, d := storetest.NewClient(t, s, till.Test), storetest.NewClient(t, s, till.Test), storetest.NewClient(t, s, till.Test)
		var want []till.ID
		for _, client := range []*till.Client{a, b, a, d, a, b} {
			p := storetest.NewPayment(t, c, client, storetest.Body{})
			if client == b {
				want = append(want, p.ID)
			}
			// An instance's idea of the server's time may be ahead of it by a little.
			err := s.Update(t.Context(), func(tx *store.Tx) error {
				step, err := tx.Step(t.Context(), store.Ref{Client: client.ID, ID: p.ID})
				if err != nil {
					return err
				}
				step.DueAt = step.DueAt.Add(-time.Minute)
				return tx.SaveSteps(t.Context(), []*store.Step{step})
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		lane := []store.LaneView{{Lane: store.Lane(storetest.Connection, store.OpSubmit)}}
		err := s.View(t.Context(), func(tx *store.Tx) error {
			for limit, n := range map[int]int{10: 2, 1: 1} {
				steps, err := tx.DueStepsBeside(t.Context(), lane, []int{limit}, [][]till.ID{{a.ID, d.ID}})
				if err != nil {
					return err
				}
				if len(steps) != n || steps[0].SubjectID != want[0] || n == 2 && steps[1].SubjectID != want[1] {
					t.Errorf("up to %d: %d steps, want %d of client %s", limit, len(steps), n, b.ID)
				}
			}
			steps, err := tx.DueStepsBeside(t.Context(), lane, []int{10}, [][]till.ID{nil})
			if err == nil && len(steps) != 6 {
				t.Errorf("beside nobody there are %d steps, want 6", len(steps))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
