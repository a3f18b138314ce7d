package providertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"till/provider"
)

// runLine runs the cases about the line, for adapters that have one.
func runLine(t *testing.T, open func(t *testing.T) Harness) {
	if open(t).Line == nil {
		return
	}
	for _, c := range []struct {
		name string
		test func(*testing.T, Harness)
	}{
		{"line: every HTTP status has the stated verdict", testStatuses},
		{"line: HTML is never the operator's word", testHTML},
		{"line: an answer that is cut off is an error", testCutOff},
		{"line: an answer without its end is an error", testTruncated},
		{"line: wrong types and unknown words never end a payment otherwise", testMutations},
		{"line: numbers as strings and strings as numbers mean the same", testNumbers},
		{"line: an endless answer is not read", testHuge},
		{"line: a slow drip ends with the call's time", testDrip},
		{"line: a lost answer is an error and moves money once", testDroppedAnswer},
		{"line: a request held up is not found, then found", testHeldUp},
		{"line: a rejection of a second send leaves the first alone", testSecondRejection},
		{"line: another currency is told", testWrongCurrency},
		{"line: a token that ran out is renewed", testForgottenToken},
		{"line: one refusal of a token renews it once, under the same reference", testRefusedOnce},
		{"line: refused credentials are said to be that, and that nothing was taken", testRefused},
		{"line: a token that is not taken, and no other, means that nothing was taken", testRefusedAlone},
		{"line: a second call that may have arrived is not said to be refused", testRefusedThenLost},
		{"line: too many calls mean that nothing was taken, and when to try again", testTooMany},
		{"line: without a token nothing is sent", testNoToken},
		{"line: where nobody listens nothing was sent", testDown},
		{"line: other accounts have other fingerprints", testFingerprints},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := open(t)
			h.init()
			c.test(t, h)
		})
	}
}

// opened returns a request that the operator holds and that the customer will approve.
func (h Harness) opened(t *testing.T) provider.Request {
	t.Helper()
	r := h.request(t, Approve)
	wantOutcome(t, "the answer", h.submit(t, r).Outcome, provider.Accepted)
	return r
}

// succeeded returns a request that has succeeded, and the result of its Check.
func (h Harness) succeeded(t *testing.T) (provider.Request, provider.Result) {
	t.Helper()
	r := h.opened(t)
	result := h.end(t, r)
	wantOutcome(t, "the end", result.Outcome, provider.Success)
	return r, result
}

// wantOutcome makes one call with a forged answer and compares the outcome, "" for an
// error.
func (h Harness) wantOutcome(t *testing.T, op Operation, r provider.Request, a Answer, want provider.Outcome) {
	t.Helper()
	h.Line.Always(op, Forge(a))
	defer h.Line.Always(op, nil)
	ctx, cancel := context.WithTimeout(t.Context(), lease)
	defer cancel()
	var (
		result provider.Result
		err    error
	)
	if op == Submit {
		result, err = h.Provider.Submit(ctx, r)
	} else {
		result, err = h.Provider.Check(ctx, h.query(r))
	}
	if errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%s answered %d: the call hangs", op, a.Status)
	}
	if err != nil && result != (provider.Result{}) {
		t.Errorf("%s answered %d %q: there is a result beside the error", op, a.Status, a.Body)
	}
	if errors.Is(err, provider.ErrNotSent) {
		t.Errorf("%s answered %d %q: it says that nothing was sent", op, a.Status, a.Body)
	}
	if isRefusal(err) && !slices.Contains(refusing, a.Status) {
		t.Errorf("%s answered %d %q: it says that nothing was taken", op, a.Status, a.Body)
	}
	if result.Outcome != want {
		t.Errorf("%s answered %d %q: the verdict is %q (%v), want %q", op, a.Status, a.Body, result.Outcome, err, want)
	}
}

// refusing are the statuses by which a gateway refuses a call before it passes it on. No
// other status proves that by itself.
var refusing = []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests}

func isRefusal(err error) bool {
	_, ok := errors.AsType[*provider.Refusal](err)
	return ok
}

// common are the usual statuses of operators and their gateways.
var common = []int{200, 201, 202, 204, 301, 302, 307, 400, 401, 403, 404, 405, 408, 409, 410, 413, 415, 422, 429, 500, 501, 502, 503, 504, 520, 599}

func testStatuses(t *testing.T, h Harness) {
	if h.StatusOutcome == nil {
		t.Fatal("the adapter states no verdicts")
	}
	fresh, known := h.request(t, Approve), h.opened(t)
	for status := 100; status <= 599; status++ {
		bodies := []string{""}
		if slices.Contains(common, status) {
			bodies = append(bodies, "{}")
		}
		for _, body := range bodies {
			h.wantOutcome(t, Submit, fresh, Answer{Status: status, Body: body}, h.StatusOutcome(Submit, status, body))
			h.wantOutcome(t, Check, known, Answer{Status: status, Body: body}, h.StatusOutcome(Check, status, body))
			if v := h.StatusOutcome(Submit, status, body); v != "" && !slices.Contains(submitWords, v) {
				t.Errorf("the table says %q of a submit answered %d", v, status)
			}
			if v := h.StatusOutcome(Check, status, body); v.Final() {
				t.Errorf("the table lets a check end a payment on %d without a word", status)
			}
		}
	}
	h.wantDebits(t, fresh, 0)
}

const page = "<!DOCTYPE html><html><head><title>SUCCESSFUL</title></head><body>200 OK SUCCESS TS COMPLETED</body></html>"

func testHTML(t *testing.T, h Harness) {
	fresh, known := h.request(t, Approve), h.opened(t)
	for _, status := range common {
		for _, kind := range []string{"text/html", "application/json"} {
			h.wantOutcome(t, Submit, fresh, Answer{status, kind, page}, "")
			h.wantOutcome(t, Check, known, Answer{status, kind, page}, "")
		}
	}
}

func testCutOff(t *testing.T, h Harness) {
	r, _ := h.succeeded(t)
	for _, n := range []int{0, 1, 20, 100, 1 << 20} {
		h.Line.Next(Check, CutOff(n))
		result, err := h.Provider.Check(t.Context(), h.query(r))
		wantError(t, fmt.Sprintf("check after %d bytes", n), result, err)
	}
	fresh := h.request(t, Approve)
	h.Line.Next(Submit, CutOff(5))
	result, err := h.Provider.Submit(t.Context(), fresh)
	wantError(t, "submit", result, err)
	if errors.Is(err, provider.ErrNotSent) {
		t.Error("it says that nothing was sent")
	}
}

func testTruncated(t *testing.T, h Harness) {
	r, _ := h.succeeded(t)
	length := len(bytes.TrimSpace(h.answerTo(t, r)))
	for n := range length {
		h.Line.Next(Check, Rewrite(func(status int, body []byte) (int, []byte) { return status, body[:min(n, len(body))] }))
		result, err := h.Provider.Check(t.Context(), h.query(r))
		wantError(t, fmt.Sprintf("check with %d of %d bytes", n, length), result, err)
	}
	// A true answer is not accepted either if more text follows.
	h.Line.Next(Check, Rewrite(func(status int, body []byte) (int, []byte) {
		return status, append(slices.Clone(body), `{"status":"x"}`...)
	}))
	result, err := h.Provider.Check(t.Context(), h.query(r))
	wantError(t, "check with two answers in one", result, err)
}

// answerTo returns the operator's own answer to a check.
func (h Harness) answerTo(t *testing.T, r provider.Request) []byte {
	t.Helper()
	var text []byte
	h.Line.Next(Check, Rewrite(func(status int, body []byte) (int, []byte) {
		text = slices.Clone(body)
		return status, body
	}))
	h.check(t, r)
	if len(text) == 0 {
		t.Fatal("the answer to a check is empty")
	}
	return text
}

const hugeAnswer = 100 << 20

// takenAtMost is how many bytes sockets may hold of an answer that nobody reads.
const takenAtMost = 32 << 20

func testHuge(t *testing.T, h Harness) {
	fresh, known := h.request(t, Approve), h.opened(t)
	for _, begin := range []string{`{"status":"`, `{"data":{"transaction":{"id":"`, "", "<html>"} {
		var ofCheck, ofSubmit atomic.Int64
		h.Line.Next(Check, Huge(http.StatusOK, begin, hugeAnswer, &ofCheck))
		result, err := h.Provider.Check(t.Context(), h.query(known))
		wantError(t, "check", result, err)
		h.Line.Next(Submit, Huge(http.StatusOK, begin, hugeAnswer, &ofSubmit))
		result, err = h.Provider.Submit(t.Context(), fresh)
		wantError(t, "submit", result, err)
		if taken := max(ofCheck.Load(), ofSubmit.Load()); taken > takenAtMost {
			t.Errorf("%d bytes of %d were taken", taken, hugeAnswer)
		}
	}
}

func testDrip(t *testing.T, h Harness) {
	fresh, known := h.request(t, Approve), h.opened(t)
	for _, body := range []string{"", `{"status":"SUCCESSFUL"}`} {
		h.Line.Next(Check, Drip(http.StatusOK, body))
		h.Line.Next(Submit, Drip(http.StatusAccepted, body))
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		result, err := h.Provider.Check(ctx, h.query(known))
		wantError(t, "check", result, err)
		cancel()
		ctx, cancel = context.WithTimeout(t.Context(), 200*time.Millisecond)
		result, err = h.Provider.Submit(ctx, fresh)
		wantError(t, "submit", result, err)
		cancel()
	}
}

func testDroppedAnswer(t *testing.T, h Harness) {
	r := h.request(t, Approve)
	// On a warm connection the standard library would repeat some requests.
	h.warm(t)
	before := h.Line.Count(Submit)
	h.Line.Next(Submit, LoseAnswer)
	result, err := h.Provider.Submit(t.Context(), r)
	wantError(t, "submit", result, err)
	if errors.Is(err, provider.ErrNotSent) {
		t.Error("it says that nothing was sent")
	}
	if n := h.Line.Count(Submit) - before; n != 1 {
		t.Errorf("it was sent %d times, want once", n)
	}
	if !h.Provider.Traits().ClientReference {
		return
	}
	wantOutcome(t, "the answer to a second send", h.submit(t, r).Outcome, provider.Duplicate)
	wantOutcome(t, "the end", h.end(t, r).Outcome, provider.Success)
	h.wantDebits(t, r, 1)

	// Lost before it arrived, also on a warm connection.
	r = h.request(t, Approve)
	before = h.Line.Count(Submit)
	h.Line.Next(Submit, Lose)
	result, err = h.Provider.Submit(t.Context(), r)
	wantError(t, "submit", result, err)
	if n := h.Line.Count(Submit) - before; n != 1 {
		t.Errorf("it was sent %d times, want once", n)
	}
	wantOutcome(t, "the outcome", h.check(t, r).Outcome, provider.NotFound)
	h.wantDebits(t, r, 0)
}

// warm makes a few calls, so that there are tokens and open connections.
func (h Harness) warm(t *testing.T) {
	t.Helper()
	r := h.opened(t)
	for range 3 {
		h.check(t, r)
	}
}

func testHeldUp(t *testing.T, h Harness) {
	h.needsReference(t)
	h.warm(t)
	r := h.request(t, Approve)
	came, release, arrived := make(chan struct{}), make(chan struct{}), make(chan struct{})
	h.Line.Next(Submit, Hold(came, release, arrived))
	ctx, hangUp := context.WithCancel(t.Context())
	go func() {
		<-came
		hangUp()
	}()
	result, err := h.Provider.Submit(ctx, r)
	wantError(t, "submit", result, err)
	wantOutcome(t, "the outcome before it arrives", h.check(t, r).Outcome, provider.NotFound)
	close(release)
	<-arrived
	wantOutcome(t, "the outcome once it is there", h.check(t, r).Outcome, provider.Open)
	wantOutcome(t, "the answer to a second send", h.submit(t, r).Outcome, provider.Duplicate)
	wantOutcome(t, "the end", h.end(t, r).Outcome, provider.Success)
	h.wantDebits(t, r, 1)
}

func testSecondRejection(t *testing.T, h Harness) {
	h.needsReference(t)
	if h.Rejection.Status == 0 {
		t.Skip("the operator refuses nothing outright")
	}
	r := h.opened(t)
	h.Line.Next(Submit, Forge(h.Rejection))
	second := h.submit(t, r)
	wantOutcome(t, "the answer to the second send", second.Outcome, provider.Rejected)
	if second.Reason == "" || second.Code == "" && second.Message == "" {
		t.Errorf("the rejection has the reason %q and the words %q %q", second.Reason, second.Code, second.Message)
	}
	wantOutcome(t, "the outcome", h.check(t, r).Outcome, provider.Open)
	wantOutcome(t, "the end", h.end(t, r).Outcome, provider.Success)
	h.wantDebits(t, r, 1)
}

func testWrongCurrency(t *testing.T, h Harness) {
	r := h.request(t, WrongCurrency)
	h.submit(t, r)
	result := h.end(t, r)
	if result.Amount.IsZero() || result.Amount.Currency == r.Amount.Currency {
		t.Errorf("the amount is %v, want the currency that moved, not %s", result.Amount, r.Amount.Currency)
	}
}
