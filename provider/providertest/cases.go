package providertest

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"till"
	"till/provider"
)

// lease is the longest time that a step of the service holds a payment. A longer call could
// be answered after another instance has sent again.
const lease = 20 * time.Second

func testTraits(t *testing.T, h Harness) {
	traits := h.Provider.Traits()
	for _, d := range []struct {
		name string
		d    time.Duration
	}{
		{"ApprovalWindow", traits.ApprovalWindow},
		{"SubmitTimeout", traits.SubmitTimeout},
		{"CheckTimeout", traits.CheckTimeout},
		{"NotFoundDelay", traits.NotFoundDelay},
		{"Poll", traits.Poll},
		{"PollMax", traits.PollMax},
		{"Grace", traits.Grace},
	} {
		if d.d <= 0 {
			t.Errorf("%s is %v, want more than zero", d.name, d.d)
		}
	}
	if traits.SubmitTimeout >= lease || traits.CheckTimeout >= lease {
		t.Errorf("a call may take %v or %v, want less than the lease of %v",
			traits.SubmitTimeout, traits.CheckTimeout, lease)
	}
	if traits.PollMax < traits.Poll {
		t.Errorf("PollMax %v is shorter than Poll %v", traits.PollMax, traits.Poll)
	}
	if len(traits.LateReads) == 0 {
		t.Error("there are no late reads: late money would be lost")
	}
	last := time.Duration(0)
	for _, d := range traits.LateReads {
		if d <= last {
			t.Errorf("late reads are %v, want ascending and above zero", traits.LateReads)
			break
		}
		last = d
	}
	fingerprint := h.Provider.Fingerprint()
	if fingerprint == "" {
		t.Error("the fingerprint is empty")
	}
	if again := h.Provider.Fingerprint(); again != fingerprint {
		t.Errorf("the fingerprint is %q, before it was %q", again, fingerprint)
	}
	if !reflect.DeepEqual(traits, h.Provider.Traits()) {
		t.Error("traits changed between two calls")
	}
}

// The outcomes that each call may have.
var (
	submitWords = []provider.Outcome{
		provider.Accepted, provider.Duplicate, provider.Rejected,
		provider.Success, provider.Failed, provider.Expired,
	}
	checkWords = []provider.Outcome{
		provider.Open, provider.NotFound, provider.Unrecognised,
		provider.Success, provider.Failed, provider.Expired,
	}
)

func testWord(t *testing.T, h Harness) {
	for _, s := range Stories {
		r, ok := h.story(s)
		if !ok {
			continue
		}
		lost := s == LostAnswer || s == LostRequest
		submit := h.submitInSilence
		if !lost {
			submit = func(t *testing.T, r provider.Request) (provider.Result, error) {
				return h.Provider.Submit(t.Context(), r)
			}
		}
		submitted, err := submit(t, r)
		h.keep(r, submitted)
		if lost && err == nil {
			t.Errorf("%s: submit answered %q, want an error", s, submitted.Outcome)
		} else if !lost && err != nil {
			t.Errorf("%s: submit: %v", s, err)
		}
		if err == nil && !slices.Contains(submitWords, submitted.Outcome) {
			t.Errorf("%s: submit answered %q, want one of %v", s, submitted.Outcome, submitWords)
		}

		checked := h.check(t, r)
		if !slices.Contains(checkWords, checked.Outcome) {
			t.Errorf("%s: check answered %q, want one of %v", s, checked.Outcome, checkWords)
		}
		if submitted.Outcome.ProvesReceived() && checked.Outcome == provider.NotFound {
			t.Errorf("%s: submit answered %q, but check does not find it", s, submitted.Outcome)
		}
		if h.Line != nil {
			h.Line.Always(Check, nil)
		}
	}
}

func testOpen(t *testing.T, h Harness) {
	r := h.request(t, Approve)
	wantOutcome(t, "the answer", h.submit(t, r).Outcome, provider.Accepted)
	wantOutcome(t, "the first check", h.check(t, r).Outcome, provider.Open)
	h.wantDebits(t, r, 0)
	wantOutcome(t, "the end", h.end(t, r).Outcome, provider.Success)
	h.wantDebits(t, r, 1)
}

func testStuck(t *testing.T, h Harness) {
	r := h.request(t, Stuck)
	wantOutcome(t, "the answer", h.submit(t, r).Outcome, provider.Accepted)
	for _, d := range []time.Duration{time.Second, h.maxStoryTime(), 72 * time.Hour} {
		h.Advance(d)
		wantOutcome(t, "the outcome", h.check(t, r).Outcome, provider.Open)
	}
	h.wantDebits(t, r, 0)
}

// needsReference skips the test if the operator does not know our references: the service
// never sends twice there.
func (h Harness) needsReference(t *testing.T) {
	t.Helper()
	if !h.Provider.Traits().ClientReference {
		t.Skip("the operator does not deduplicate by our reference")
	}
}

func testRepeated(t *testing.T, h Harness) {
	h.needsReference(t)
	r := h.request(t, Approve)
	wantOutcome(t, "the first answer", h.submit(t, r).Outcome, provider.Accepted)
	wantOutcome(t, "the second answer", h.submit(t, r).Outcome, provider.Duplicate)
	wantOutcome(t, "the end", h.end(t, r).Outcome, provider.Success)
	wantOutcome(t, "the answer after the end", h.submit(t, r).Outcome, provider.Duplicate)
	h.Advance(h.maxStoryTime())
	wantOutcome(t, "the outcome much later", h.check(t, r).Outcome, provider.Success)
	h.wantDebits(t, r, 1)
}

// testMadeAgain is about a row that was lost with a restored database and created again by
// the client's retry: it has another id and the same reference.
func testMadeAgain(t *testing.T, h Harness) {
	h.needsReference(t)
	lost := h.request(t, Approve)
	wantOutcome(t, "the answer to the lost one", h.submit(t, lost).Outcome, provider.Accepted)
	again := lost
	again.ID = till.NewID(lost.ID.Time().Add(time.Hour))
	wantOutcome(t, "the answer to the one that was made again", h.submit(t, again).Outcome, provider.Duplicate)
	result := h.end(t, again)
	wantOutcome(t, "the end", result.Outcome, provider.Success)
	if result.Reference != "" && result.Reference != again.Reference.String() {
		t.Errorf("the reference is %q, want %q: its money would not be credited", result.Reference, again.Reference)
	}
	h.wantDebits(t, again, 1)
}

func testConcurrent(t *testing.T, h Harness) {
	h.needsReference(t)
	r := h.request(t, Approve)
	const submits = 200
	var (
		senders  sync.WaitGroup
		mu       sync.Mutex
		outcomes = make(map[provider.Outcome]int)
	)
	for range submits {
		senders.Go(func() {
			result, err := h.Provider.Submit(t.Context(), r)
			if err != nil {
				t.Errorf("submit: %v", err)
			}
			mu.Lock()
			defer mu.Unlock()
			outcomes[result.Outcome]++
		})
	}
	senders.Wait()
	if outcomes[provider.Accepted] != 1 || outcomes[provider.Duplicate] != submits-1 {
		t.Errorf("the answers were %v, want one accepted and %d duplicates", outcomes, submits-1)
	}
	wantOutcome(t, "the end", h.end(t, r).Outcome, provider.Success)
	h.wantDebits(t, r, 1)
}

func testUnknown(t *testing.T, h Harness) {
	r := h.request(t, Approve)
	if !h.Provider.Traits().ClientReference {
		// There may be nothing to check by: then there is no answer of the operator's.
		if result, err := h.Provider.Check(t.Context(), h.query(r)); err != nil {
			wantError(t, "check", result, err)
			return
		}
	}
	result := h.check(t, r)
	wantOutcome(t, "the outcome", result.Outcome, provider.NotFound)
	if result.Receipt != "" || result.Reason != "" {
		t.Errorf("nothing is known, but there is a receipt %q and a reason %q", result.Receipt, result.Reason)
	}
	h.wantDebits(t, r, 0)
}

func testLostAnswer(t *testing.T, h Harness) {
	r := h.request(t, LostAnswer)
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	type answer struct {
		result provider.Result
		err    error
	}
	answers := make(chan answer, 1)
	go func() {
		result, err := h.Provider.Submit(ctx, r)
		answers <- answer{result, err}
	}()

	// The sender hangs up once the request has arrived, whatever the machine's speed.
	for deadline := time.Now().Add(lease); h.check(t, r).Outcome == provider.NotFound; {
		if time.Now().After(deadline) {
			t.Fatal("the request does not arrive")
		}
		time.Sleep(time.Millisecond)
	}
	hangUp()
	got := <-answers
	wantError(t, "submit", got.result, got.err)

	if h.Provider.Traits().ClientReference {
		wantOutcome(t, "the answer to a second send", h.submit(t, r).Outcome, provider.Duplicate)
	}
	wantOutcome(t, "the end", h.end(t, r).Outcome, provider.Success)
	h.wantDebits(t, r, 1)
}

func testLostRequest(t *testing.T, h Harness) {
	r := h.request(t, LostRequest)
	result, err := h.submitInSilence(t, r)
	wantError(t, "submit", result, err)

	for range 2 {
		h.Advance(h.Provider.Traits().NotFoundDelay)
		wantOutcome(t, "the outcome", h.check(t, r).Outcome, provider.NotFound)
	}
	h.wantDebits(t, r, 0)

	wantOutcome(t, "the answer to the second send", h.submit(t, r).Outcome, provider.Accepted)
	wantOutcome(t, "the end", h.end(t, r).Outcome, provider.Success)
	h.wantDebits(t, r, 1)
}

func testCancelled(t *testing.T, h Harness) {
	r := h.request(t, Approve)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	result, err := h.Provider.Submit(cancelled, r)
	wantError(t, "submit", result, err)
	result, err = h.Provider.Check(cancelled, h.query(r))
	wantError(t, "check", result, err)

	// Nobody knows whether it arrived; a second send resolves it.
	if h.Provider.Traits().ClientReference {
		h.submit(t, r)
		wantOutcome(t, "the end", h.end(t, r).Outcome, provider.Success)
		h.wantDebits(t, r, 1)
	}
}

func testSuccess(t *testing.T, h Harness) {
	r := h.request(t, Approve)
	h.submit(t, r)
	result := h.end(t, r)
	wantOutcome(t, "the end", result.Outcome, provider.Success)
	if result.Receipt == "" {
		t.Error("there is no receipt")
	}
	if result.Reason != "" {
		t.Errorf("a success has the reason %q", result.Reason)
	}

	// Some operators name neither amount nor reference. One that can move another amount
	// does.
	_, tells := h.Request(WrongAmount)
	if h.Line != nil {
		tells = h.Alter[WrongAmount] != nil
	}
	if result.Amount != r.Amount && (tells || !result.Amount.IsZero()) {
		t.Errorf("the amount is %v, want %v", result.Amount, r.Amount)
	}
	if result.Reference != "" && result.Reference != r.Reference.String() {
		t.Errorf("the reference is %q, want %q", result.Reference, r.Reference)
	}
}

func testWrongAmount(t *testing.T, h Harness) {
	r := h.request(t, WrongAmount)
	h.submit(t, r)
	result := h.end(t, r)
	wantOutcome(t, "the end", result.Outcome, provider.Success)
	if result.Amount.IsZero() || result.Amount == r.Amount {
		t.Errorf("the amount is %v, want the one that moved, not the %v asked for", result.Amount, r.Amount)
	}
}

func testReceipt(t *testing.T, h Harness) {
	first, second := h.request(t, Approve), h.request(t, Approve)
	h.submit(t, first)
	h.submit(t, second)
	receipt := h.end(t, first).Receipt
	h.end(t, second)
	for _, d := range []time.Duration{0, time.Second, 72 * time.Hour} {
		h.Advance(d)
		if got := h.check(t, first).Receipt; got != receipt {
			t.Errorf("the receipt is %q, before it was %q", got, receipt)
		}
	}
	if other := h.check(t, second).Receipt; other == receipt {
		t.Errorf("two requests have the receipt %q", receipt)
	}
}

func testFailures(t *testing.T, h Harness) {
	// Operators that do not distinguish two reasons have one code for both.
	stories := map[Story][]till.FailureReason{
		Decline:      {till.CustomerDeclined, till.NotApproved},
		NeverAnswer:  {till.CustomerTimeout, till.NotApproved},
		NoFunds:      {till.InsufficientFunds, till.FundsOrLimit},
		UnknownPayer: {till.PayerNotFound},
		LimitReached: {till.PayerLimitReached, till.FundsOrLimit},
		WrongPIN:     {till.WrongPIN},
	}
	if h.Payout {
		// No customer decides. Too little money is our fault, not the recipient's; an
		// operator may have one code for that and for a limit.
		stories = map[Story][]till.FailureReason{
			NoFunds:      {till.ProviderUnavailable},
			UnknownPayer: {till.RecipientNotFound},
			LimitReached: {till.RecipientLimitReached, till.ProviderUnavailable},
		}
	}
	for s, reasons := range stories {
		t.Run(string(s), func(t *testing.T) {
			r := h.request(t, s)
			result := h.submit(t, r)
			if result.Outcome == provider.Rejected {
				wantOutcome(t, "a rejected request", h.check(t, r).Outcome, provider.NotFound)
			} else {
				result = h.end(t, r)
				if result.Outcome == provider.Success {
					t.Fatal("it succeeded")
				}
			}
			if !slices.Contains(reasons, result.Reason) {
				t.Errorf("the reason is %q, want one of %q", result.Reason, reasons)
			}
			if result.Code == "" && result.Message == "" {
				t.Error("the operator's own words are missing")
			}
			if result.Receipt != "" && result.Outcome == provider.Rejected {
				t.Errorf("nothing was created, but there is a receipt %q", result.Receipt)
			}
			h.wantDebits(t, r, 0)
		})
	}
}
