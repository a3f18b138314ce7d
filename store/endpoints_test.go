package store_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"till"
	"till/store"
	"till/store/proof"
	"till/store/storetest"
	"till/store/webhooks"
)

// newEndpoint writes an endpoint that begins at the log's end.
func newEndpoint(t *testing.T, s *store.Store, client till.ID, change func(e *webhooks.Endpoint)) *webhooks.Endpoint {
	t.Helper()
	e := &webhooks.Endpoint{}
	inTx(t, s, func(ctx context.Context, tx *store.Tx) error {
		head, err := proof.Head(ctx, tx, client)
		if err != nil {
			return err
		}
		e = &webhooks.Endpoint{Endpoint: till.Endpoint{ClientID: client, ID: till.NewID(tx.Now()), URL: "https://shop.example/hooks", Enabled: true,
			CreatedAt: tx.Now(), UpdatedAt: tx.Now()}, Secret: []byte("sealed"), Start: head.LastEvent, EventsListedFrom: head.LastEvent, Cursor: head.LastEvent, LastEvent: head.LastEvent}
		if change != nil {
			change(e)
		}
		return webhooks.InsertEndpoint(ctx, tx, e)
	})
	return e
}

func inTx(t *testing.T, s *store.Store, f func(ctx context.Context, tx *store.Tx) error) {
	t.Helper()
	if err := s.Update(t.Context(), func(tx *store.Tx) error { return f(t.Context(), tx) }); err != nil {
		t.Fatal(err)
	}
}

func readEndpoint(t *testing.T, s *store.Store, ref store.Ref) (e *webhooks.Endpoint) {
	t.Helper()
	inTx(t, s, func(ctx context.Context, tx *store.Tx) (err error) {
		e, err = webhooks.ReadEndpoint(ctx, tx, ref)
		return err
	})
	return e
}

func TestEndpointsAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		client, other := storetest.NewClient(t, s, till.Test), storetest.NewClient(t, s, till.Test)
		e := newEndpoint(t, s, client.ID, func(e *webhooks.Endpoint) {
			e.Events, e.Description = []till.EventKind{till.PaymentSuccess, till.PaymentFailed}, "the shop"
		})
		plain := newEndpoint(t, s, client.ID, nil)
		newEndpoint(t, s, other.ID, nil)
		for _, want := range []*webhooks.Endpoint{e, plain} {
			if got := readEndpoint(t, s, want.Ref()); !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		}
		e.OldSecret, e.OldUntil, e.BlockedUntil, e.ReplayAt = []byte("old"), 5, 6, 8
		e.Failures, e.FailingSince, e.LastSuccessAt, e.LeaseVersion, e.LeaseUntil = 3, 11, 10, 12, 13
		e.URL, e.Events, e.Description, e.UpdatedAt = "https://other.example/", nil, "", e.UpdatedAt+1
		inTx(t, s, func(ctx context.Context, tx *store.Tx) error {
			locked, _, err := webhooks.LockEndpoints(ctx, tx, []store.Ref{plain.Ref(), e.Ref(), e.Ref(), {Client: client.ID, ID: client.ID}}, nil)
			if len(locked) != 2 {
				t.Errorf("locked %d endpoints, want the two that exist", len(locked))
			}
			return errors.Join(err, webhooks.SaveEndpoints(ctx, tx, []*webhooks.Endpoint{e}))
		})
		if got := readEndpoint(t, s, e.Ref()); !reflect.DeepEqual(got, e) {
			t.Errorf("got  %+v\nwant %+v", got, e)
		}
		inTx(t, s, func(ctx context.Context, tx *store.Tx) error {
			if all, err := webhooks.Endpoints(ctx, tx, client.ID, 10); err != nil || len(all) != 2 || all[0].ID != e.ID {
				t.Errorf("got %d endpoints, %v", len(all), err)
			}
			e.ReplayAt, e.FailingSince, e.Failures = 0, 0, 0
			return webhooks.SaveEndpoints(ctx, tx, []*webhooks.Endpoint{e})
		})
	})
}

func TestDueEndpointsAreThoseWithSomethingToSend(t *testing.T) {
	t.Parallel()
	start := till.TimeOf(time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC))
	storetest.RunAt(t, &start, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		c, client := storetest.NewCollector(t, s), storetest.NewClient(t, s, till.Test)
		behind := newEndpoint(t, s, client.ID, nil)
		off := newEndpoint(t, s, client.ID, func(e *webhooks.Endpoint) {
			e.Enabled, e.DisabledAt, e.DisableReason = false, start, till.DisabledByClient
		})
		storetest.NewPayment(t, c, client, storetest.Body{})
		idle := newEndpoint(t, s, client.ID, nil)
		retry := newEndpoint(t, s, client.ID, nil)
		replay := newEndpoint(t, s, client.ID, nil)
		names := map[till.ID]string{behind.ID: "behind", idle.ID: "idle", retry.ID: "retry", replay.ID: "replay", off.ID: "off"}
		now := clock.Now()
		due := func(want string) {
			t.Helper()
			inTx(t, s, func(ctx context.Context, tx *store.Tx) error {
				var got []string
				after := store.Ref{}
				for {
					page, err := webhooks.DueEndpoints(ctx, tx, after, 1)
					if err != nil || len(page) == 0 {
						slices.Sort(got)
						if text := strings.Join(got, " "); text != want {
							t.Errorf("due are %q, want %q", text, want)
						}
						return err
					}
					got, after = append(got, names[page[0].ID]), page[0].Ref()
				}
			})
		}
		save := func(e *webhooks.Endpoint) {
			inTx(t, s, func(ctx context.Context, tx *store.Tx) error {
				return webhooks.SaveEndpoints(ctx, tx, []*webhooks.Endpoint{e})
			})
		}
		due("behind")
		retry.NextRetry, replay.ReplayAt = now.Add(time.Second), now.Add(2*time.Second)
		save(retry)
		save(replay)
		due("behind")
		clock.Advance(time.Second)
		due("behind retry")
		clock.Advance(time.Second)
		due("behind replay retry")
		behind.LeaseUntil, retry.BlockedUntil = clock.Now()+1, clock.Now()+1
		save(behind)
		save(retry)
		due("replay")
		clock.Advance(time.Microsecond)
		due("behind replay retry")
		retry.NextRetry, replay.ReplayAt = 0, 0
		save(retry)
		save(replay)
	})
}

func TestDeliveries(t *testing.T) {
	t.Parallel()
	start := till.TimeOf(time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC))
	storetest.RunAt(t, &start, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		c, client := storetest.NewCollector(t, s), storetest.NewClient(t, s, till.Test)
		e := newEndpoint(t, s, client.ID, nil)
		p, q := storetest.NewPayment(t, c, client, storetest.Body{}), storetest.NewPayment(t, c, client, storetest.Body{})
		e.Cursor = 2
		now := clock.Now()
		row := func(sequence int64, kind webhooks.DeliveryKind, p *till.Payment, due till.Time) *webhooks.Delivery {
			return &webhooks.Delivery{ClientID: client.ID, EndpointID: e.ID, Sequence: sequence, Kind: kind, ID: till.NewID(now), SubjectID: p.ID,
				Status: webhooks.DeliveryPending, DueAt: due, CreatedAt: now, UpdatedAt: now}
		}
		first, second := row(1, webhooks.DeliverEvent, p, now+5), row(2, webhooks.DeliverEvent, q, now)
		again := row(1, webhooks.DeliverAgain, p, now+3)
		first.Attempts = 1
		first.Last = webhooks.DeliveryAttempt{SentAt: now, URL: e.URL, Took: time.Millisecond, Code: 500, Text: "no\x00pe" + strings.Repeat("é", 600), Problem: "none"}
		inTx(t, s, func(ctx context.Context, tx *store.Tx) error {
			e.NextRetry = now
			return errors.Join(webhooks.SaveEndpoints(ctx, tx, []*webhooks.Endpoint{e}), webhooks.SaveDeliveries(ctx, tx, []*webhooks.Delivery{first, second, again}))
		})
		inTx(t, s, func(ctx context.Context, tx *store.Tx) error {
			found, err := webhooks.DeliveriesByKey(ctx, tx, e.Ref(), []webhooks.DeliveryKey{first.Key(), {Sequence: 9, Kind: webhooks.DeliverEvent}})
			got := found[first.Key()]
			if err != nil || len(found) != 1 || len(got.Last.Text) > 1024 || !strings.HasPrefix(got.Last.Text, "no\uFFFDpeé") {
				t.Fatalf("got %d rows, %v, %+v", len(found), err, got)
			}
			got.Last.Text = first.Last.Text
			if !reflect.DeepEqual(got, first) {
				t.Errorf("got  %+v\nwant %+v", got, first)
			}
			if due, err := webhooks.DueDeliveries(ctx, tx, e.Ref(), 10); err != nil || len(due) != 1 || due[0].Sequence != 2 {
				t.Errorf("due are %v, %v; want the second", due, err)
			}
			if open, err := webhooks.PendingForSubjects(ctx, tx, e.Ref(), []till.ID{p.ID}); err != nil || len(open) != 2 {
				t.Errorf("pending of the payment are %v, %v; want two", open, err)
			}
			if open, err := webhooks.PendingForSubjects(ctx, tx, e.Ref(), []till.ID{p.ID, q.ID}); err != nil || len(open) != 3 {
				t.Errorf("pending of both payments are %v, %v; want three", open, err)
			}
			both, err := webhooks.DeliveriesByKey(ctx, tx, e.Ref(), []webhooks.DeliveryKey{second.Key(), again.Key()})
			if err != nil || len(both) != 2 || both[again.Key()].ID != again.ID || both[second.Key()].ID != second.ID {
				t.Errorf("got %v, %v; want both", both, err)
			}
			if events, err := tx.EventBodiesAt(ctx, client.ID, []int64{2, 1, 7}); err != nil || len(events) != 2 || events[0].Sequence != 1 || events[1].Payment.ID != q.ID {
				t.Errorf("got events %v, %v; want the first and the second", events, err)
			}
			if n, err := webhooks.CountPending(ctx, tx, e.Ref()); err != nil || n != 1 {
				t.Errorf("%d were asked for by hand, %v; want 1", n, err)
			}
			if all, err := webhooks.DeliveriesBetween(ctx, tx, e.Ref(), 1, 2); err != nil || len(all) != 3 || all[0].Sequence != 2 {
				t.Errorf("got %v, %v; want three, newest first", all, err)
			}
			return nil
		})
		clock.Advance(4 * time.Microsecond)
		inTx(t, s, func(ctx context.Context, tx *store.Tx) error {
			due, err := webhooks.DueDeliveries(ctx, tx, e.Ref(), 10)
			if err != nil || len(due) != 2 || due[1].Kind != webhooks.DeliverAgain {
				t.Errorf("due are %v, %v; want the second and the redelivery", due, err)
			}
			next, err := webhooks.NextRetry(ctx, tx, e.Ref())
			if next != now {
				t.Errorf("the next retry is %v, want %v", next, now)
			}
			return err
		})
		inTx(t, s, func(ctx context.Context, tx *store.Tx) error {
			if err := webhooks.RetryNow(ctx, tx, e.Ref(), tx.Now()); err != nil {
				return err
			}
			due, err := webhooks.DueDeliveries(ctx, tx, e.Ref(), 10)
			if len(due) != 3 {
				t.Errorf("%d are due, want all", len(due))
			}
			return errors.Join(err, webhooks.DisablePending(ctx, tx, e.Ref(), tx.Now()))
		})
		inTx(t, s, func(ctx context.Context, tx *store.Tx) error {
			if off, err := webhooks.DeliveriesOf(ctx, tx, e.Ref(), webhooks.DeliveryDisabled, 2, 10); err != nil || len(off) != 2 {
				t.Errorf("got %v, %v; want the two before sequence 2", off, err)
			}
			n, err := webhooks.RetryFailed(ctx, tx, e.Ref(), tx.Now())
			if n != 3 {
				t.Errorf("%d are tried again, want 3", n)
			}
			e.NextRetry = tx.Now()
			return errors.Join(err, webhooks.SaveEndpoints(ctx, tx, []*webhooks.Endpoint{e}))
		})
		inTx(t, s, func(ctx context.Context, tx *store.Tx) error { return webhooks.DeleteEndpoint(ctx, tx, e.Ref()) })
		if readEndpoint(t, s, e.Ref()) != nil {
			t.Error("the endpoint is still there")
		}
	})
}

func TestDeliveriesThatCannotBeAreRefused(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		client := storetest.NewClient(t, s, till.Test)
		e := newEndpoint(t, s, client.ID, nil)
		good := webhooks.Delivery{ClientID: client.ID, EndpointID: e.ID, Sequence: 1, Kind: webhooks.DeliverEvent, ID: e.ID, SubjectID: e.ID, Status: webhooks.DeliveryExhausted, Attempts: 12}
		for name, change := range map[string]func(d *webhooks.Delivery){
			"of no endpoint":   func(d *webhooks.Delivery) { d.EndpointID = client.ID },
			"13 attempts":      func(d *webhooks.Delivery) { d.Attempts = 13 },
			"pending after 12": func(d *webhooks.Delivery) { d.Status = webhooks.DeliveryPending },
			"unknown kind":     func(d *webhooks.Delivery) { d.Kind = "letter" },
			"unknown status":   func(d *webhooks.Delivery) { d.Status = "lost" },
		} {
			d := good
			change(&d)
			err := s.Update(t.Context(), func(tx *store.Tx) error { return webhooks.SaveDeliveries(t.Context(), tx, []*webhooks.Delivery{&d}) })
			if !errors.Is(err, store.ErrConstraint) {
				t.Errorf("%s: got %v, want a refusal", name, err)
			}
		}
		e.Cursor = e.Start - 1
		if err := s.Update(t.Context(), func(tx *store.Tx) error { return webhooks.SaveEndpoints(t.Context(), tx, []*webhooks.Endpoint{e}) }); !errors.Is(err, store.ErrConstraint) {
			t.Errorf("a cursor before its start: got %v, want a refusal", err)
		}
	})
}

func TestSpans(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		c, client := storetest.NewCollector(t, s), storetest.NewClient(t, s, till.Test)
		for range 9 {
			storetest.NewPayment(t, c, client, storetest.Body{})
		}
		e := newEndpoint(t, s, client.ID, nil)
		logRange := &webhooks.LogRange{ClientID: client.ID, EndpointID: e.ID, ID: till.NewID(s.Now()), Why: webhooks.RangeDisabled, From: 3, Next: 3, To: 9, CreatedAt: 7}
		inTx(t, s, func(ctx context.Context, tx *store.Tx) error { return webhooks.InsertRange(ctx, tx, logRange) })
		for _, want := range []webhooks.LogRange{*logRange, {Why: webhooks.RangeCatchUp, Next: 5}, {Why: webhooks.RangeReplay, Next: 10, DoneAt: 8}} {
			logRange.Why, logRange.Next, logRange.DoneAt = want.Why, want.Next, want.DoneAt
			inTx(t, s, func(ctx context.Context, tx *store.Tx) error {
				e.ReplayAt = tx.Now()
				if !logRange.DoneAt.IsZero() {
					e.ReplayAt = 0
				}
				if err := errors.Join(webhooks.SaveRange(ctx, tx, logRange), webhooks.SaveEndpoints(ctx, tx, []*webhooks.Endpoint{e})); err != nil {
					return err
				}
				got, err := webhooks.OpenRanges(ctx, tx, e.Ref(), logRange.Why != webhooks.RangeDisabled, 10)
				if open := logRange.DoneAt.IsZero(); open != (len(got) == 1) || open && !reflect.DeepEqual(got[0], logRange) {
					t.Errorf("got %+v, want %+v", got, logRange)
				}
				return err
			})
		}
		logRange.Next = 12
		if err := s.Update(t.Context(), func(tx *store.Tx) error { return webhooks.SaveRange(t.Context(), tx, logRange) }); !errors.Is(err, store.ErrConstraint) {
			t.Errorf("a range past its end: got %v, want a refusal", err)
		}
	})
}
