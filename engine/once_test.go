package engine_test

import (
	"testing"

	"till"
	"till/engine"
	"till/provider"
	"till/store"
	"till/store/storetest"
)

// An answer that saw nothing but the first send on record is recorded behind
// it without a read, together with others. One that saw too little is recorded
// too, behind what has come since.
func TestAnAnswerIsRecordedBehindWhatIsThere(t *testing.T) {
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			s := storetest.Open(t, e.Config(t))
			t.Cleanup(func() { storetest.CheckInvariants(t, s) })
			c, client := storetest.NewCollector(t, s), storetest.NewClient(t, s, till.Test)
			fresh, asked := sentPayment(t, s, c, client), sentPayment(t, s, c, client)
			storetest.Apply(t, c, s, &asked.Payment, provider.Result{Outcome: provider.Open, Code: "WAITS"})
			for _, batch := range [][]*store.PaymentRow{
				{sentPayment(t, s, c, client), sentPayment(t, s, c, client)}, // none saw too little
				{fresh, asked},
			} {
				var answers []*engine.Answer
				for _, p := range batch {
					answers = append(answers, engine.Once(&engine.Answer{
						Ref: p.Subject().Ref, Action: engine.Check, Connection: p.Connection, Reference: c.ReferenceOf(&p.Payment),
						Started: s.Now(), Ended: s.Now(), Result: storetest.Succeeded,
					}))
				}
				c.Apply(t.Context(), answers)
				for i, p := range batch {
					want := 2
					if p == asked {
						want = 3
					}
					if answers[i].RecordErr != nil {
						t.Errorf("answer %d: %v", i, answers[i].RecordErr)
					}
					var attempts []*store.Attempt
					err := s.View(t.Context(), func(tx *store.Tx) (err error) {
						attempts, err = tx.Attempts(t.Context(), answers[i].Ref)
						return err
					})
					if err != nil || len(attempts) != want || attempts[want-1].N != want || attempts[want-1].Outcome != string(provider.Success) {
						t.Fatalf("answer %d: %d attempts, want the success to be number %d; error %v", i, len(attempts), want, err)
					}
					if a := attempts[want-1]; a.Kind != store.AttemptCheck || a.Connection != answers[i].Connection || a.Reference != answers[i].Reference || a.Repeats != 1 {
						t.Errorf("answer %d: %+v is on record", i, a)
					}
				}
			}
		})
	}
}
