package providertest

import (
	"context"
	"sync"
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

	// WrongCurrency is only for adapters on a line.
	WrongCurrency Story = "wrong currency" // the customer approves and the operator names another currency
)

// Stories lists every story.
var Stories = []Story{
	Approve, Decline, NeverAnswer, NoFunds, UnknownPayer, LimitReached, WrongPIN,
	LostAnswer, LostRequest, Stuck, WrongAmount,
}

// Harness is an adapter with an operator whose behaviour the test controls. Each case opens
// its own.
type Harness struct {
	Provider provider.Provider
	// Request returns a new request that the operator treats as the story says, and false
	// if it cannot. On a Line, the line itself loses requests and answers.
	Request func(Story) (provider.Request, bool)
	// Advance moves the operator's clock by d.
	Advance func(d time.Duration)
	// Debits counts how often the payer was debited for the reference, or the
	// recipient credited, by the operator's own book.
	Debits func(reference till.ID) int
	// Payout says that the provider is for payouts: its failures are a recipient's. Requests that
	// give a payment back by naming it (Request.Refund) are its own, too.
	Payout bool
	// CallbackBody returns the body of the latest callback for a request, if the operator's
	// Traits need it; nil otherwise.
	CallbackBody func(r provider.Request) []byte

	// The rest is for adapters that reach their operator over HTTP. Without a Line, the
	// cases about it are skipped.

	// Line is the connection to the operator.
	Line *Line
	// StatusOutcome returns the outcome of Submit and Check for an answer with the status and a
	// body without information ("" or "{}"). "" means an error: the outcome is unknown.
	StatusOutcome func(op Operation, status int, body string) provider.Outcome
	// Rejection is the operator's answer to a Submit that it rejects outright; zero if it
	// never does.
	Rejection Answer
	// Refused is the operator's answer to a call with a refused token, or a refused key if
	// there are no tokens.
	Refused Answer
	// ForgetTokens makes the operator refuse all its tokens; nil if there are none.
	ForgetTokens func()
	// Alter rewrites the answer to Check of a success for the story WrongAmount or
	// WrongCurrency. A story without an entry is impossible: the operator does not name
	// what it moved.
	Alter map[Story]func(body []byte) []byte
	// Others are providers of other accounts: another base URL, user, environment, or kind.
	Others []provider.Provider

	handles *sync.Map // by reference: the last Result.Handle
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
		{"one that was lost and made again under another id is the same", testMadeAgain},
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
			h := open(t)
			h.init()
			c.test(t, h)
		})
	}
	runLine(t, open)
}

// init sets the harness's own state.
func (h *Harness) init() { h.handles = &sync.Map{} }

// story returns a request for the story. The line loses requests and answers, if the
// operator can be checked by our reference afterwards.
func (h Harness) story(s Story) (provider.Request, bool) {
	if h.Line == nil {
		return h.Request(s)
	}
	switch s {
	case LostAnswer, LostRequest:
		r, ok := h.Request(Approve)
		if !ok || !h.Provider.Traits().ClientReference {
			return r, false
		}
		h.Line.Next(Submit, h.Line.silence(s == LostAnswer))
		return r, true
	case WrongAmount, WrongCurrency:
		alter := h.Alter[s]
		r, ok := h.Request(Approve)
		if ok && alter != nil {
			h.Line.Always(Check, Rewrite(func(status int, body []byte) (int, []byte) { return status, alter(body) }))
		}
		return r, ok && alter != nil
	}
	return h.Request(s)
}

// request returns a request for the story or skips the test.
func (h Harness) request(t *testing.T, s Story) provider.Request {
	t.Helper()
	r, ok := h.story(s)
	if !ok {
		t.Skipf("the operator cannot be made to play %q", s)
	}
	return r
}

// query returns the service's query about the request now.
func (h Harness) query(r provider.Request) provider.Query {
	q := provider.Query{
		Client: r.Client, ID: r.ID, Reference: r.Reference,
		Method: r.Method, Country: r.Country, Phone: r.Phone, Amount: r.Amount, CallbackURL: r.CallbackURL, Refund: r.Refund,
	}
	if handle, ok := h.handles.Load(r.Reference); ok {
		q.Handle = handle.(string)
	}
	if h.CallbackBody != nil && h.Provider.Traits().NeedsCallbackBody {
		q.CallbackBody = h.CallbackBody(r)
	}
	return q
}

// keep keeps the handle of a result, as the service does.
func (h Harness) keep(r provider.Request, result provider.Result) {
	if result.Handle != "" {
		h.handles.Store(r.Reference, result.Handle)
	}
}

// submit submits a request and expects an answer.
func (h Harness) submit(t *testing.T, r provider.Request) provider.Result {
	t.Helper()
	result, err := h.Provider.Submit(t.Context(), r)
	if err != nil {
		t.Fatalf("submit: %v", err)
	}
	h.keep(r, result)
	return result
}

// check checks a request and expects an answer.
func (h Harness) check(t *testing.T, r provider.Request) provider.Result {
	t.Helper()
	result, err := h.Provider.Check(t.Context(), h.query(r))
	if err != nil {
		t.Fatalf("check: %v", err)
	}
	h.keep(r, result)
	return result
}

// end lets time pass until the operator decides a request that it holds. It fails if that
// does not happen within the window and its grace.
func (h Harness) end(t *testing.T, r provider.Request) provider.Result {
	t.Helper()
	traits := h.Provider.Traits()
	for left := h.maxStoryTime(); left > 0; left -= traits.Poll {
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

// maxStoryTime is how long every story but Stuck may take.
func (h Harness) maxStoryTime() time.Duration {
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

// wantError expects an error without a result: a result beside an error would be used some
// day.
func wantError(t *testing.T, what string, got provider.Result, err error) {
	t.Helper()
	if err == nil {
		t.Fatalf("%s answered %q, want an error", what, got.Outcome)
	}
	if got != (provider.Result{}) {
		t.Errorf("%s returned %+v beside its error, want nothing", what, got)
	}
}

// submitInSilence submits a request whose story loses something, and hangs up: on a line
// when the silence has begun, elsewhere about when the service would give up, but after a
// second at most.
func (h Harness) submitInSilence(t *testing.T, r provider.Request) (provider.Result, error) {
	t.Helper()
	if h.Line == nil {
		ctx, cancel := context.WithTimeout(t.Context(), min(h.Provider.Traits().SubmitTimeout, time.Second))
		defer cancel()
		return h.Provider.Submit(ctx, r)
	}
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	go func() {
		select {
		case <-h.Line.silent:
			hangUp()
		case <-ctx.Done():
		}
	}()
	return h.Provider.Submit(ctx, r)
}
