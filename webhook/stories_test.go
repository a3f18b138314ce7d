package webhook

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"till/store"
	"till/store/storetest"
	"till/store/webhooks"
)

func TestEventsArriveInOrderAndLeaveNoRows(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		early := w.pay() // before there was an endpoint
		all, finals := w.shop(), w.shop("payment.success", "payment.failed")
		a, b := w.pay(), w.pay()
		w.move(a, storetest.Succeeded)
		w.move(b, storetest.Declined)
		w.move(early, storetest.Succeeded)
		time.Sleep(2 * time.Second)
		expect(t, "all", fmt.Sprint(all.sequences()), "[2 3 4 5 6]")
		expect(t, "finals", fmt.Sprint(finals.sequences()), "[4 5 6]")
		for _, s := range []*shop{all, finals} {
			expect(t, "rows", s.rows(), "")
			if e := s.endpoint(); e.Cursor != 6 || e.LeaseUntil != 0 || e.LastSuccessAt == 0 || e.Status() != "active" {
				t.Errorf("the endpoint is left as %+v", e)
			}
		}
	})
}

// What arrives at once leaves a row of test clients, with its answer: a developer reads it.
func TestAnswersToTestClientsAreKept(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		w.acts.asLive = false
		s := w.shop()
		id := w.pay()
		w.move(id, storetest.Succeeded)
		time.Sleep(2 * time.Second)
		expect(t, "rows", s.rows(), "1 event delivered 1, 2 event delivered 1")
		w.view(func(ctx context.Context, tx *store.Tx) error {
			views, err := DeliveriesAt(ctx, tx, s.endpoint(), 2)
			if err == nil && (len(views) != 1 || !views[0].HasRow || views[0].Last.Code != http.StatusOK || views[0].Last.SentAt == 0) {
				t.Errorf("the delivery is %+v", views)
			}
			return err
		})
		expect(t, "sequences", fmt.Sprint(s.sequences()), "[1 2]")
	})
}

func TestAFailedEventIsTriedAgainBySchedule(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		s := w.shop()
		s.answer = func(r *receipt) int {
			if r.n < 4 {
				return http.StatusInternalServerError
			}
			return http.StatusOK
		}
		w.pay()
		time.Sleep(time.Hour)
		expect(t, "rows", s.rows(), "1 event delivered 5")
		want := []time.Duration{0, 5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute}
		for i := 1; i < len(s.receipts()); i++ {
			gap := s.receipts()[i].at.Sub(s.receipts()[i-1].at)
			if low, high := want[i]*9/10, want[i]*11/10+20*time.Second; gap < low || gap > high && gap > maxProbe {
				t.Errorf("attempt %d came after %s, want %s", i+1, gap, want[i])
			}
		}
	})
}

func TestOlderStatesAreSupersededByANewerOne(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		s := w.shop()
		s.answer = func(r *receipt) int {
			if r.Type == "payment.pending" {
				return http.StatusBadGateway
			}
			return http.StatusOK
		}
		p := w.pay()
		time.Sleep(time.Second)
		expect(t, "rows", s.rows(), "1 event pending 1")
		w.move(p, storetest.Succeeded)
		time.Sleep(time.Hour)
		expect(t, "received", s.got(), "2")
		expect(t, "rows", s.rows(), "1 event superseded 1")
		if len(s.receipts()) != 2 {
			t.Errorf("%d deliveries were tried, want 2", len(s.receipts()))
		}
		s.everythingArrived()
	})
}

func TestOnePaymentsEventsGoOneAtATime(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		s := w.shop()
		under, most, mostOfAll := map[string]int{}, 0, 0
		s.answer = func(r *receipt) int {
			id := r.Data.Payment.ID
			s.set(func() { under[id]++; most, mostOfAll = max(most, under[id]), max(mostOfAll, len(under)) })
			time.Sleep(300 * time.Millisecond)
			s.set(func() {
				if under[id]--; under[id] == 0 {
					delete(under, id)
				}
			})
			return http.StatusOK
		}
		p := w.pay()
		w.move(p, storetest.Opened)
		w.move(p, storetest.Succeeded)
		for range 15 { // enough for an endpoint that starts with one at a time
			w.pay()
		}
		time.Sleep(5 * time.Second)
		s.set(func() {
			if most != 1 || mostOfAll < 3 {
				t.Errorf("%d of one payment at once, want 1; %d of all, want several", most, mostOfAll)
			}
		})
		if got := s.sequences(); len(got) != 18 {
			t.Errorf("received %v, want 18 events", got)
		}
		order := ""
		for _, r := range s.receipts() {
			if r.Data.Payment.ID == p.ID.String() {
				order += r.Data.Payment.Status + " "
			}
		}
		expect(t, "order", order, "pending processing success ")
	})
}

func TestAHandlerThatAnswersAfterTheDeadline(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		s := w.shop()
		s.prove()
		slow := true
		s.answer = func(r *receipt) int {
			if r.Sequence == 1 && r.n == 0 && slow {
				time.Sleep(20 * time.Second)
			}
			return http.StatusOK
		}
		p := w.pay()
		time.Sleep(3 * time.Second) // the window is closed, the attempt goes on
		expect(t, "rows", s.rows(), "1 event pending 0")
		w.move(p, storetest.Succeeded) // waits for it
		other := w.pay()               // does not
		_ = other
		time.Sleep(2 * time.Second)
		if got := s.sequences(); len(got) != 1 || got[0] != 3 {
			t.Errorf("received %v, want the other payment's event only", got)
		}
		time.Sleep(12 * time.Second) // 17 s after the start: the deadline is over
		if r := s.rows(); !strings.HasPrefix(r, "1 event superseded 1") {
			t.Errorf("rows are %q, want the first superseded after one attempt", r)
		}
		time.Sleep(time.Minute)
		s.everythingArrived()
	})
}

// F39.
func TestAnEndpointIsDownForADay(t *testing.T) {
	if testing.Short() {
		t.Skip("plays a long story")
	}
	inWorld(t, func(c *Config) { c.SweepInterval = time.Minute }, func(t *testing.T, w *world) {
		s := w.shop()
		w.pay()
		time.Sleep(2 * time.Minute)
		s.goDown(true)
		for range 24 {
			p := w.pay()
			time.Sleep(20 * time.Minute)
			w.move(p, storetest.Opened)
			time.Sleep(20 * time.Minute)
			w.move(p, storetest.Succeeded)
			for range 5 {
				w.pay()
			}
			time.Sleep(20 * time.Minute)
		}
		if e := s.endpoint(); e.Status() != "failing" || e.FailingSince == 0 {
			t.Errorf("after a day the endpoint is %s", e.Status())
		}
		if s.tried() > 24*12+50 {
			t.Errorf("a dead endpoint was tried %d times in a day", s.tried())
		}
		s.goDown(false)
		back := time.Now()
		time.Sleep(10 * time.Minute)
		s.everythingArrived()
		e := s.endpoint()
		if e.Status() != "active" || e.FailingSince != 0 || e.ThrottleUntil != 0 || e.NextRetry != 0 || e.Cursor != e.LastEvent {
			t.Errorf("ten minutes later it is %+v", e)
		}
		perSecond := map[int64]int{}
		for _, r := range s.receipts() {
			if r.age > 5*time.Second {
				t.Errorf("event %d was %s old at its receipt", r.Sequence, r.age)
			}
			if r.at.After(back) {
				perSecond[r.at.Unix()]++
			}
		}
		for at, n := range perSecond {
			if n > 2*drainRate { // two windows may touch one second of the clock
				t.Errorf("%d deliveries in the second %d", n, at)
			}
		}
		if s.refusals() > 0 {
			t.Errorf("%d deliveries were refused", s.refusals())
		}
		last := ""
		for _, r := range s.receipts() { // of one payment the newest comes last
			if r.Data.Payment.ID == last && r.Data.Payment.Status == "pending" {
				t.Errorf("event %d came after a newer one", r.Sequence)
			}
			last = r.Data.Payment.ID
		}
	})
}

// F40.
func TestAnEndpointIsDownForFiveDays(t *testing.T) {
	if testing.Short() {
		t.Skip("plays a long story")
	}
	inWorld(t, func(c *Config) { c.SweepInterval = 5 * time.Minute }, func(t *testing.T, w *world) {
		s, other := w.shop(), w.shop("webhook_endpoint.disabled")
		w.pay()
		time.Sleep(6 * time.Minute)
		s.goDown(true)
		for range 13 { // few events, so that there are few probes and the days pass quickly
			w.move(w.pay(), storetest.Succeeded)
			time.Sleep(10 * time.Hour)
		}
		e := s.endpoint()
		expect(t, "status", e.Status()+" "+string(e.DisableReason), "disabled failing")
		expect(t, "cases", w.cases(e.ID), "endpoint_disabled endpoint_exhausted")
		w.checkGivenUp(t, e)
		if d := e.DisabledAt.Sub(e.FailingSince); d < failingLimit || d > failingLimit+time.Hour {
			t.Errorf("it was disabled after %s", d)
		}
		if len(other.receipts()) != 1 || other.receipts()[0].Type != "webhook_endpoint.disabled" || other.receipts()[0].Data.Endpoint["id"] != e.ID.String() ||
			other.receipts()[0].Data.Endpoint["disabled_reason"] != "failing" {
			t.Errorf("the other endpoint was told %+v", other.receipts())
		}
		tries := s.tried()
		s.goDown(false)
		w.pay()
		time.Sleep(time.Hour)
		if s.tried() != tries {
			t.Error("something was sent to a disabled endpoint")
		}

		// Nothing is dropped: enabled again it is sent what happens from now on,
		// and a replay brings the rest.
		on := true
		if _, err := w.acts.Patch(t.Context(), w.client, e.ID, &Request{Enabled: &on}, awa); err != nil {
			t.Fatal(err)
		}
		w.pay()
		time.Sleep(6 * time.Minute)
		if n := len(s.sequences()); n != 2 {
			t.Errorf("%d events arrived, want the first and the last", n)
		}
		yes := true
		out, err := w.acts.Replay(t.Context(), w.client.ID, e.ID, &Replay{Failed: &yes}, awa)
		if err != nil || out.Ranges != 1 || out.Deliveries == 0 {
			t.Fatalf("the replay is %+v, %v", out, err)
		}
		time.Sleep(10 * time.Minute)
		s.everythingArrived()
		expect(t, "cases", w.cases(e.ID), "endpoint_exhausted")
		if e := s.endpoint(); e.ReplayAt != 0 || e.NextRetry != 0 || e.ThrottleUntil != 0 {
			t.Errorf("the endpoint is left as %+v", e)
		}
	})
}

// checkGivenUp pages through what was given up: each delivery once, newest first, each with
// the event that it is of.
func (w *world) checkGivenUp(t *testing.T, e *webhooks.Endpoint) {
	t.Helper()
	var before int64
	seen := map[int64]bool{}
	err := w.store.View(t.Context(), func(tx *store.Tx) error {
		for pages := 0; pages == 0 || before > 0; pages++ {
			list, next, err := ListDeliveries(t.Context(), tx, e, awa, DeliveryFilter{Status: webhooks.DeliveryExhausted, Before: before}, 2)
			if err != nil {
				return err
			}
			for _, l := range list {
				events, err := tx.Events(t.Context(), e.ClientID, l.Sequence-1, 1)
				if err != nil {
					return err
				}
				if seen[l.Sequence] || l.Status != webhooks.DeliveryExhausted || l.EventID != events[0].ID() || l.EventKind != events[0].Kind || l.EventAt != events[0].CreatedAt {
					t.Errorf("event %d is listed as %+v", l.Sequence, l)
				}
				seen[l.Sequence] = true
			}
			before = next
		}
		return nil
	})
	if err != nil || len(seen) < 3 {
		t.Errorf("%d deliveries were given up, want three or more: %v", len(seen), err)
	}
	w.checkTimes(t, e, webhooks.DeliveryExhausted)
}

// A list of deliveries can be of a part of the time, page by page; a test belongs to the
// time at which it was asked for, and not to that of the event before it.
func TestDeliveriesOfAPartOfTheTime(t *testing.T) {
	rarely := func(c *Config) { c.SweepInterval = 10 * time.Minute } // hours pass between deliveries
	inWorld(t, rarely, func(t *testing.T, w *world) {
		s := w.shop()
		for range 3 {
			w.move(w.pay(), storetest.Succeeded)
			time.Sleep(10 * time.Hour)
			if _, err := w.acts.Test(t.Context(), w.client.ID, s.endpoint().ID, "Awa"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Hour)
		}
		w.checkTimes(t, s.endpoint(), "")
		w.checkTimes(t, s.endpoint(), webhooks.DeliveryDelivered)

		// A list of long ago begins there: it does not read all that came since.
		e, f := s.endpoint(), DeliveryFilter{}
		if err := w.store.View(t.Context(), func(tx *store.Tx) error {
			first, err := tx.Events(t.Context(), e.ClientID, 0, 1)
			if err != nil {
				return err
			}
			f.To = first[0].CreatedAt
			_, err = f.resolve(t.Context(), tx, e)
			return err
		}); err != nil || f.Before != 2 {
			t.Errorf("the list that ends with the first event begins before %d, want 2: %v", f.Before, err)
		}
	})
}

// checkTimes compares the lists of every stretch between two deliveries with the list of all.
func (w *world) checkTimes(t *testing.T, e *webhooks.Endpoint, status webhooks.DeliveryStatus) {
	t.Helper()
	list := func(f DeliveryFilter) (out []DeliveryView) {
		f.Status = status
		err := w.store.View(t.Context(), func(tx *store.Tx) error {
			for pages := 0; pages == 0 || f.Before > 0; pages++ {
				views, next, err := ListDeliveries(t.Context(), tx, e, awa, f, 2)
				if err != nil {
					return err
				}
				for _, l := range views {
					out = append(out, *l)
				}
				f.Before = next
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		return out
	}
	all := list(DeliveryFilter{})
	listed := map[string]bool{}
	for _, l := range all {
		listed[fmt.Sprint(l.Sequence, l.Kind)] = true
	}
	if len(all) < 3 || len(listed) < len(all) {
		t.Errorf("%d deliveries are listed, %d of them once: want three or more, each once", len(all), len(listed))
		return
	}
	for _, first := range all {
		for _, last := range all {
			for _, f := range []DeliveryFilter{{From: first.EventAt}, {To: last.EventAt}, {From: first.EventAt, To: last.EventAt}, {From: first.EventAt + 1, To: last.EventAt - 1}} {
				want := slices.DeleteFunc(slices.Clone(all), func(l DeliveryView) bool { return l.EventAt < f.From || f.To != 0 && l.EventAt > f.To })
				if got := list(f); !slices.EqualFunc(got, want, func(a, b DeliveryView) bool {
					return a.Sequence == b.Sequence && a.Kind == b.Kind && a.EventAt == b.EventAt
				}) {
					t.Errorf("from %s to %s there are %d deliveries, want %d of %d", f.From, f.To, len(got), len(want), len(all))
					return
				}
			}
		}
	}
}
