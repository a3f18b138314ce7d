package providertest

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"till/provider"
)

func testForgottenToken(t *testing.T, h Harness) {
	if h.ForgetTokens == nil {
		t.Skip("there are no tokens")
	}
	r := h.opened(t)
	mints := h.Line.Count(Token)
	h.ForgetTokens()
	wantOutcome(t, "the outcome", h.check(t, r).Outcome, provider.Open)
	if n := h.Line.Count(Token) - mints; n != 1 {
		t.Errorf("%d tokens were fetched, want one", n)
	}
	h.ForgetTokens()
	other := h.request(t, Approve)
	wantOutcome(t, "the answer", h.submit(t, other).Outcome, provider.Accepted)
	wantOutcome(t, "the end", h.end(t, other).Outcome, provider.Success)
	h.wantDebits(t, other, 1)
}

func testRefusedOnce(t *testing.T, h Harness) {
	if h.ForgetTokens == nil {
		t.Skip("there are no tokens")
	}
	h.warm(t)
	r := h.request(t, Approve)
	mints, sends := h.Line.Count(Token), h.Line.Count(Submit)
	h.Line.Next(Submit, Forge(h.Refused))
	wantOutcome(t, "the answer", h.submit(t, r).Outcome, provider.Accepted)
	if n := h.Line.Count(Token) - mints; n != 1 {
		t.Errorf("%d tokens were fetched, want one", n)
	}
	if n := h.Line.Count(Submit) - sends; n != 2 {
		t.Errorf("it was sent %d times, want twice", n)
	}
	wantOutcome(t, "the end", h.end(t, r).Outcome, provider.Success)
	h.wantDebits(t, r, 1)
}

func testRefused(t *testing.T, h Harness) {
	if h.Refused.Status == 0 {
		t.Fatal("it is not said how the operator refuses credentials")
	}
	known, fresh := h.opened(t), h.request(t, Approve)
	most := 1
	if h.ForgetTokens != nil {
		most = 2
	}
	for _, op := range []Operation{Submit, Check} {
		h.Line.Always(op, Forge(h.Refused))
		before := h.Line.Count(op)
		var (
			result provider.Result
			err    error
		)
		if op == Submit {
			result, err = h.Provider.Submit(t.Context(), fresh)
		} else {
			result, err = h.Provider.Check(t.Context(), h.query(known))
		}
		wantError(t, string(op), result, err)
		if !errors.Is(err, provider.ErrCredentials) {
			t.Errorf("%s: the error is %v, want ErrCredentials", op, err)
		}
		if op == Submit && (!isRefusal(err) || errors.Is(err, provider.ErrNotSent)) {
			t.Errorf("the error is %v, want that nothing was taken", err)
		}
		if n := h.Line.Count(op) - before; n > most {
			t.Errorf("%s: %d calls were made, want at most %d", op, n, most)
		}
		h.Line.Always(op, nil)
	}
	h.wantDebits(t, fresh, 0)
}

// testRefusedAlone: the operator refuses the token, and gives no other. The one call that
// was made moved nothing.
func testRefusedAlone(t *testing.T, h Harness) {
	if h.ForgetTokens == nil {
		t.Skip("there are no tokens")
	}
	h.warm(t)
	r := h.request(t, Approve)
	for name, fault := range map[string]Fault{
		"it answers no":      Forge(Answer{Status: http.StatusInternalServerError, Body: `{"error":"no"}`}),
		"it refuses us":      Forge(Answer{Status: http.StatusUnauthorized, Body: `{"error":"no"}`}),
		"the answer is lost": LoseAnswer,
	} {
		h.Line.Always(Token, fault)
		h.Line.Next(Submit, Forge(h.Refused))
		sends := h.Line.Count(Submit)
		result, err := h.Provider.Submit(t.Context(), r)
		wantError(t, name, result, err)
		if !isRefusal(err) || errors.Is(err, provider.ErrNotSent) {
			t.Errorf("%s: the error is %v, want that nothing was taken", name, err)
		}
		if n := h.Line.Count(Submit) - sends; n != 1 {
			t.Errorf("%s: it was sent %d times, want once", name, n)
		}
		h.Line.Always(Token, nil)
	}
	h.wantDebits(t, r, 0)
	wantOutcome(t, "the answer", h.submit(t, r).Outcome, provider.Accepted)
	wantOutcome(t, "the end", h.end(t, r).Outcome, provider.Success)
	h.wantDebits(t, r, 1)
}

// testRefusedThenLost: the first call was refused, but the second may have arrived, and
// has.
func testRefusedThenLost(t *testing.T, h Harness) {
	if h.ForgetTokens == nil {
		t.Skip("there are no tokens")
	}
	h.warm(t)
	r := h.request(t, Approve)
	h.Line.Next(Submit, Forge(h.Refused), LoseAnswer)
	result, err := h.Provider.Submit(t.Context(), r)
	wantError(t, "submit", result, err)
	if isRefusal(err) || errors.Is(err, provider.ErrNotSent) {
		t.Errorf("the error is %v, which says that nothing was taken", err)
	}
	if h.Provider.Traits().ClientReference {
		wantOutcome(t, "the end", h.end(t, r).Outcome, provider.Success)
		h.wantDebits(t, r, 1)
	}
}

func testTooMany(t *testing.T, h Harness) {
	h.warm(t)
	r := h.request(t, Approve)
	for text, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "99999999": time.Hour, "soon": 0, "-1": 0,
		"Wed, 21 Oct 2015 07:28:00 GMT": 0, "Fri, 31 Dec 2900 23:59:59 GMT": time.Hour,
	} {
		sends := h.Line.Count(Submit)
		h.Line.Next(Submit, Limit(text))
		result, err := h.Provider.Submit(t.Context(), r)
		wantError(t, "submit", result, err)
		if refusal, ok := errors.AsType[*provider.Refusal](err); !ok || refusal.RetryAfter != want {
			t.Errorf("asked to wait %q: the error is %#v, want a refusal and %s", text, err, want)
		}
		if n := h.Line.Count(Submit) - sends; n != 1 {
			t.Errorf("it was sent %d times, want once", n)
		}
	}
	h.wantDebits(t, r, 0)
	wantOutcome(t, "the answer", h.submit(t, r).Outcome, provider.Accepted)
	wantOutcome(t, "the end", h.end(t, r).Outcome, provider.Success)
	h.wantDebits(t, r, 1)
}

func testNoToken(t *testing.T, h Harness) {
	if h.ForgetTokens == nil {
		t.Skip("there are no tokens")
	}
	for _, a := range []Answer{
		{Status: http.StatusInternalServerError, Body: `{"error":"no"}`},
		{Status: http.StatusServiceUnavailable, Type: "text/html", Body: page},
		{Status: http.StatusOK, Type: "text/html", Body: page},
		{Status: http.StatusOK, Body: `{}`},
		{Status: http.StatusOK, Body: `{"access_token":"","expires_in":3600}`},
		{Status: http.StatusOK, Body: `{"access_token":{"a":1},"expires_in":3600}`},
	} {
		h.Line.Always(Token, Forge(a))
		r := h.request(t, Approve)
		result, err := h.Provider.Submit(t.Context(), r)
		wantError(t, "submit", result, err)
		if !errors.Is(err, provider.ErrNotSent) {
			t.Errorf("a token call answered %d %q: the error is %v, want ErrNotSent", a.Status, a.Body, err)
		}
	}
	if n := h.Line.Count(Submit); n != 0 {
		t.Errorf("%d requests were sent without a token", n)
	}
}

func testDown(t *testing.T, h Harness) {
	r := h.request(t, Approve)
	h.Line.Down()
	result, err := h.Provider.Submit(t.Context(), r)
	wantError(t, "submit", result, err)
	if !errors.Is(err, provider.ErrNotSent) {
		t.Errorf("the error is %v, want ErrNotSent", err)
	}
	result, err = h.Provider.Check(t.Context(), h.query(r))
	wantError(t, "check", result, err)
}

func testFingerprints(t *testing.T, h Harness) {
	if len(h.Others) == 0 {
		t.Fatal("there are no other accounts to compare with")
	}
	seen := map[string]bool{h.Provider.Fingerprint(): true}
	for i, p := range h.Others {
		if f := p.Fingerprint(); seen[f] {
			t.Errorf("other account %d has the fingerprint %q, which is taken", i, f)
		} else {
			seen[f] = true
		}
	}
}
