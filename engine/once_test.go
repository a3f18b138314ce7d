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
// it without a look, together with others. One that saw too little is recorded
// too, behind what has come since.
func TestAnAnswerIsRecordedBehindWhatIsThere(t *testing.T) {
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			s := storetest.Open(t, e.Config(t))
			t.Cleanup(func() { storetest.CheckInvariants(t, s) })
			c, client := storetest.NewCollector(t, s), storetest.NewClient(t, s, till.Test)
			sent := func() *till.Payment {
				p := storetest.NewPayment(t, c, client, storetest.Body{})
				err := s.Update(t.Context(), func(tx *store.Tx) error {
					return tx.BeginSubmits(t.Context(), []*store.Attempt{{ClientID: p.ClientID, SubjectID: p.ID, N: 1, First: true,
						Connection: p.Connection, Reference: c.ReferenceOf(p), StartedAt: p.CreatedAt}})
				})
				if err != nil {
					t.Fatal(err)
				}
				return p
			}
			fresh, asked := sent(), sent()
			storetest.Apply(t, c, s, asked, provider.Result{Outcome: provider.Open, Code: "WAITS"})

			var answers []*engine.Answer
			for _, p := range []*till.Payment{fresh, asked} {
				answers = append(answers, engine.Once(&engine.Answer{
					Ref: store.Ref{Client: p.ClientID, ID: p.ID}, Action: engine.Check, Connection: p.Connection, Reference: c.ReferenceOf(p),
					Started: s.Now(), Ended: s.Now(), Result: storetest.Succeeded,
				}))
			}
			c.Apply(t.Context(), answers)
			for i, want := range []int{2, 3} {
				if answers[i].Refused != nil {
					t.Errorf("answer %d: %v", i, answers[i].Refused)
				}
				var attempts []*store.Attempt
				err := s.View(t.Context(), func(tx *store.Tx) (err error) {
					attempts, err = tx.Attempts(t.Context(), answers[i].Ref)
					return err
				})
				if err != nil || len(attempts) != want || attempts[want-1].N != want || attempts[want-1].Outcome != string(provider.Success) {
					t.Errorf("answer %d: %d attempts, want the success to be number %d; error %v", i, len(attempts), want, err)
				}
			}
		})
	}
}
