package engine

import (
	"testing"

	"till"
	"till/provider"
	"till/store"
)

// known is an operator that a plan only asks for what it is.
type known struct {
	provider.Provider
}

func (known) Fingerprint() string { return "known" }

func (known) Traits() provider.Traits { return traits }

// Sends count what may have been sent, because only the first and only send's rejection is
// final, and only its refusal proves that nothing was taken. A refused send that the
// operator has called back about is one of them.
func TestASendAfterOneThatMayHaveArrivedIsNotTheFirst(t *testing.T) {
	t.Parallel()
	w := &Worker{c: Config{Connections: map[string]provider.Provider{"mtn": known{}}}}
	j := &Instruction{Connection: "mtn", Fingerprint: "known", ExpiresAt: expires}
	refused := store.Step{Kind: till.SubjectPayment, LeaseVersion: 1, SendStartedAt: start - 2, Refusals: 1}
	calledBack := refused
	calledBack.WakeSeq, calledBack.NotFoundReads, calledBack.NotFoundSeq = 1, notFoundProof, 1
	for _, c := range []struct {
		name  string
		step  store.Step
		sends int
	}{
		{"never sent", store.Step{Kind: till.SubjectPayment}, 1},
		{"refused", refused, 1},
		{"refused, then called back, then not found", calledBack, 2},
		{"sent, then not found", store.Step{Kind: till.SubjectPayment, Sends: 1, SendStartedAt: start - 2, NotFoundReads: notFoundProof}, 2},
	} {
		got := w.plan(&c.step, j, start, heldClients{})
		if got.Action != Submit || got.Step.Sends != c.sends {
			t.Errorf("%s: %s, send %d; want a send, number %d", c.name, got.Action, got.Step.Sends, c.sends)
			continue
		}
		answer := &Answer{Action: Submit, LeaseVersion: got.Step.LeaseVersion, WakeSeq: got.Step.WakeSeq, Started: start}
		if rejectionIsFinal(&got.Step, answer) != (c.sends == 1) {
			t.Errorf("%s: a rejection of send %d is final: %t", c.name, c.sends, c.sends != 1)
		}
		answer.Err = &provider.Refusal{Err: provider.ErrCredentials}
		if neverSent(&got.Step, answer) != (c.sends == 1) {
			t.Errorf("%s: a refusal of send %d proves that nothing was sent: %t", c.name, c.sends, c.sends != 1)
		}
	}
}
