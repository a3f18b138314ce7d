package engine_test

import (
	"testing"
	"time"

	"till"
	"till/collect"
	"till/engine"
	"till/provider"
	"till/store"
	"till/store/storetest"
)

// sentPayment makes a payment that was sent once, and reads it.
func sentPayment(t *testing.T, s *store.Store, c *collect.Collector, client *till.Client) *store.PaymentRow {
	t.Helper()
	p := storetest.NewPayment(t, c, client, storetest.Body{})
	err := s.Update(t.Context(), func(tx *store.Tx) error {
		return tx.InsertSends(t.Context(), []*store.Attempt{{ClientID: p.ClientID, SubjectID: p.ID, N: 1, First: true,
			Connection: p.Connection, Reference: c.ReferenceOf(p), StartedAt: p.CreatedAt}})
	})
	if err != nil {
		t.Fatal(err)
	}
	return paymentNow(t, s, store.Ref{Client: p.ClientID, ID: p.ID})
}

func paymentNow(t *testing.T, s *store.Store, ref store.Ref) (p *store.PaymentRow) {
	t.Helper()
	err := s.View(t.Context(), func(tx *store.Tx) (err error) {
		p, err = tx.Payment(t.Context(), ref)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func successOf(s *store.Store, c *collect.Collector, p *store.PaymentRow) *engine.Answer {
	r := storetest.Succeeded
	r.Receipt = p.ID.String() // its own
	return &engine.Answer{Ref: p.Subject().Ref, Action: engine.Check, Connection: p.Connection, Reference: c.ReferenceOf(&p.Payment),
		Started: s.Now(), Ended: s.Now(), Result: r}
}

// What comes of a job is recorded by the row that the job kept. If the row has
// moved on, it is recorded by what it is now, not by who moved it, and so are the
// others of its batch.
func TestAnAnswerByARowThatWasKept(t *testing.T) {
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			s := storetest.Open(t, e.Config(t))
			t.Cleanup(func() { storetest.CheckInvariants(t, s) })
			c, client := storetest.NewCollector(t, s), storetest.NewClient(t, s, till.Test)
			fresh, asked, resolved := sentPayment(t, s, c, client), sentPayment(t, s, c, client), sentPayment(t, s, c, client)
			storetest.Apply(t, c, s, &asked.Payment, provider.Result{Outcome: provider.Open, Code: "WAITS"})
			if err := c.Resolve(t.Context(), resolved.Subject().Ref, engine.Resolution{By: "Awa", Evidence: "a letter"}); err != nil {
				t.Fatal(err)
			}
			var answers []*engine.Answer
			for _, p := range []*store.PaymentRow{fresh, asked, resolved} {
				answers = append(answers, engine.Keep(successOf(s, c, p), p))
			}
			c.Apply(t.Context(), answers)
			for i, want := range []struct {
				status, before till.Status
				late           bool
			}{{till.Success, till.Pending, false}, {till.Success, till.Processing, false}, {till.Failed, till.Pending, true}} {
				p := paymentNow(t, s, answers[i].Ref)
				if answers[i].RecordErr != nil || p.Status != want.status || p.PreviousStatus != want.before || (p.LateEvent != 0) != want.late || !p.Credited() {
					t.Errorf("payment %d: %s after %s, late event %d; refused: %v", i, p.Status, p.PreviousStatus, p.LateEvent, answers[i].RecordErr)
				}
			}
		})
	}
}

// The row is not read again: its event says what only the kept one says.
func TestAKeptRowIsNotReadAgain(t *testing.T) {
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			s := storetest.Open(t, e.Config(t)) // whose invariants will not hold: the event lies
			c, client := storetest.NewCollector(t, s), storetest.NewClient(t, s, till.Test)
			p := sentPayment(t, s, c, client)
			kept := p.ForUpdate()
			kept.ProviderReference = "only in what is kept"
			a := engine.Keep(successOf(s, c, p), kept)
			a.Result = storetest.Opened
			c.Apply(t.Context(), []*engine.Answer{a})
			var events []*till.Event
			err := s.View(t.Context(), func(tx *store.Tx) (err error) {
				events, err = tx.Events(t.Context(), client.ID, 0, 10)
				return err
			})
			if err != nil || a.RecordErr != nil || len(events) != 2 || events[1].ProviderReference != kept.ProviderReference {
				t.Errorf("%d events, refused: %v, error %v", len(events), a.RecordErr, err)
			}
			if kept.Status != till.Pending {
				t.Error("what is kept was changed")
			}
		})
	}
}

// A second send, by the instance that took the step over, gives the row another end of
// its window: what was kept before it does not know of that.
func TestAKeptRowIsReadAgainAfterASecondSend(t *testing.T) {
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		c, client := storetest.NewCollector(t, s), storetest.NewClient(t, s, till.Test)
		kept := sentPayment(t, s, c, client)
		ref := kept.Subject().Ref
		err := s.Update(t.Context(), func(tx *store.Tx) error {
			step, err := tx.Step(t.Context(), ref)
			if err != nil {
				return err
			}
			step.Sends = 2
			if err := tx.SaveSteps(t.Context(), []*store.Step{step}); err != nil {
				return err
			}
			return tx.ExtendPayment(t.Context(), ref, kept.ExpiresAt.Add(time.Hour))
		})
		if err != nil {
			t.Fatal(err)
		}
		a := engine.Keep(successOf(s, c, kept), kept)
		c.Apply(t.Context(), []*engine.Answer{a})
		if p := paymentNow(t, s, ref); a.RecordErr != nil || p.Status != till.Success {
			t.Errorf("%s, refused: %v", p.Status, a.RecordErr)
		}
		// That its event has the right window is an invariant (I6).
	})
}

// An answer that changes nothing is not decided by what is kept: the database
// would have nothing to disagree with.
func TestAnAnswerThatMovesNothingIsHeldAgainstTheDatabase(t *testing.T) {
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		c, client := storetest.NewCollector(t, s), storetest.NewClient(t, s, till.Test)
		p := sentPayment(t, s, c, client)
		kept := p.ForUpdate()
		kept.Status, kept.PreviousStatus, kept.ProcessingEvent = till.Processing, till.Pending, 7 // which it is not
		a := successOf(s, c, p)
		a.Result = provider.Result{Outcome: provider.Open}
		c.Apply(t.Context(), []*engine.Answer{engine.Keep(a, kept)})
		if now := paymentNow(t, s, a.Ref); a.RecordErr != nil || now.Status != till.Processing || now.ProcessingEvent == 7 {
			t.Errorf("%s with event %d; refused: %v", now.Status, now.ProcessingEvent, a.RecordErr)
		}
	})
}

// A kept row whose window has been moved, by one who mended what the clock had
// left in the future, is read again: the event of its end says when it ended.
func TestAKeptRowWhoseWindowWasMovedIsReadAgain(t *testing.T) {
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			s := storetest.Open(t, e.Config(t))
			t.Cleanup(func() { storetest.CheckInvariants(t, s) })
			c, client := storetest.NewCollector(t, s), storetest.NewClient(t, s, till.Test)
			p := sentPayment(t, s, c, client)
			if err := s.Update(t.Context(), func(tx *store.Tx) error {
				return tx.ExtendPayment(t.Context(), p.Subject().Ref, p.ExpiresAt.Add(-time.Second))
			}); err != nil {
				t.Fatal(err)
			}
			a := engine.Keep(successOf(s, c, p), p)
			c.Apply(t.Context(), []*engine.Answer{a})
			if now := paymentNow(t, s, a.Ref); a.RecordErr != nil || now.Status != till.Success {
				t.Errorf("it is %s, refused: %v", now.Status, a.RecordErr)
			}
		})
	}
}
