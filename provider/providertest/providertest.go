package providertest

import (
	"context"
	"testing"
	"time"

	"till"
	"till/provider"
)

// Story is what the operator and its customer do with a request.
type Story string

// The stories.
const (
	Approve      Story = "approve"       // the customer approves after a while
	Decline      Story = "decline"       // the customer declines
	NeverAnswer  Story = "never answer"  // the customer lets the time pass
	NoFunds      Story = "no funds"      // the customer's balance is too low
	UnknownPayer Story = "unknown payer" // the number has no wallet
	LimitReached Story = "limit reached" // the customer's limit is reached
	WrongPIN     Story = "wrong pin"     // the customer types a wrong PIN
	LostAnswer   Story = "lost answer"   // the request arrives, its answer does not; the customer approves
	LostRequest  Story = "lost request"  // the first send does not arrive; the customer approves the second
	Stuck        Story = "stuck"         // the operator says "open" for ever
	WrongAmount  Story = "wrong amount"  // the customer approves and another amount moves
)

// Stories lists every story.
var Stories = []Story{
	Approve, Decline, NeverAnswer, NoFunds, UnknownPayer, LimitReached, WrongPIN,
	LostAnswer, LostRequest, Stuck, WrongAmount,
}

// Harness is an adapter, wired to an operator that can be told what to do.
// Each case opens its own.
type Harness struct {
	Provider provider.Provider
	// Request returns a fresh request that the operator treats as the story
	// says, and false where the operator cannot be made to do it.
	Request func(Story) (provider.Request, bool)
	// Advance lets d pass at the operator.
	Advance func(d time.Duration)
	// Debits counts how often the payer was debited for the reference, by the
	// operator's own book.
	Debits func(reference till.ID) int
}

// Run runs every case against a harness of its own.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Harness)
	}{
		{"traits are sane and never change", testTraits},
		{"a nil error is the operator's word", testWord},
		{"an accepted request is open until the customer decides", testOpen},
		{"a stuck request stays open", testStuck},
		{"a repeated reference is a duplicate and debits once", testRepeated},
		{"two hundred concurrent submits of one reference debit once", testConcurrent},
		{"an unknown reference is not found", testUnknown},
		{"a lost answer is an error and the request is found", testLostAnswer},
		{"a lost request is an error and can be sent again", testLostRequest},
		{"a cancelled context is an error", testCancelled},
		{"success tells amount, reference and receipt", testSuccess},
		{"a success with another amount tells that amount", testWrongAmount},
		{"a receipt is the same on every read", testReceipt},
		{"failures have a reason of ours and the operator's words", testFailures},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, open(t))
		})
	}
}

// request returns a request for the story or skips the test.
func (h Harness) request(t *testing.T, s Story) provider.Request {
	t.Helper()
	r, ok := h.Request(s)
	if !ok {
		t.Skipf("the operator cannot be made to play %q", s)
	}
	return r
}

func query(r provider.Request) provider.Query {
	return provider.Query{
		Client: r.Client, ID: r.ID, Reference: r.Reference,
		Method: r.Method, Country: r.Country,
	}
}

// submit submits and expects an answer.
func (h Harness) submit(t *testing.T, r provider.Request) provider.Result {
	t.Helper()
	result, err := h.Provider.Submit(t.Context(), r)
	if err != nil {
		t.Fatalf("submit: %v", err)
	}
	return result
}

// check checks and expects an answer.
func (h Harness) check(t *testing.T, r provider.Request) provider.Result {
	t.Helper()
	result, err := h.Provider.Check(t.Context(), query(r))
	if err != nil {
		t.Fatalf("check: %v", err)
	}
	return result
}

// end lets time pass until the operator gives a final verdict on a request
// that it holds. It fails if none comes within the window and its grace.
func (h Harness) end(t *testing.T, r provider.Request) provider.Result {
	t.Helper()
	traits := h.Provider.Traits()
	for left := h.patience(); left > 0; left -= traits.Poll {
		if result := h.check(t, r); result.Outcome.Final() {
			return result
		}
		h.Advance(traits.Poll)
	}
	result := h.check(t, r)
	if !result.Outcome.Final() {
		t.Fatalf("after the window the outcome is %q, want a final one", result.Outcome)
	}
	return result
}

// patience is how long every story but Stuck may take.
func (h Harness) patience() time.Duration {
	traits := h.Provider.Traits()
	return traits.ApprovalWindow + traits.Grace + 5*time.Second
}

// wantDebits compares the operator's book with n.
func (h Harness) wantDebits(t *testing.T, r provider.Request, n int) {
	t.Helper()
	if got := h.Debits(r.Reference); got != n {
		t.Errorf("the operator's book has %d debits, want %d", got, n)
	}
}

// wantOutcome compares an outcome.
func wantOutcome(t *testing.T, what string, got, want provider.Outcome) {
	t.Helper()
	if got != want {
		t.Fatalf("%s is %q, want %q", what, got, want)
	}
}

// wantError expects an error that comes with no result at all: a result beside
// an error would be believed by somebody, some day.
func wantError(t *testing.T, what string, got provider.Result, err error) {
	t.Helper()
	if err == nil {
		t.Fatalf("%s answered %q, want an error", what, got.Outcome)
	}
	if got != (provider.Result{}) {
		t.Errorf("%s returned %+v beside its error, want nothing", what, got)
	}
}

// briefly returns a context that ends about when the service would give up,
// but no later than a second: the operator is silent for longer than that.
func (h Harness) briefly(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), min(h.Provider.Traits().SubmitTimeout, time.Second))
}
