package mpesa

import (
	"errors"
	"fmt"
	"testing"

	"till/provider"
	"till/provider/providertest"
)

func errorReply(code, message string) string {
	return fmt.Sprintf(`{"requestId":"1","errorCode":"%s","errorMessage":"%s"}`, code, message)
}

// TestDeadTokensAreRenewed: Daraja has three codes for a token that it does not
// take, by path and by year. Each gets a new token, once, on every path.
func TestDeadTokensAreRenewed(t *testing.T) {
	t.Parallel()
	for code, status := range map[string]int{"404.001.03": 404, "400.003.01": 400, "401.002.01": 401} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			w := open(t, nil)
			dead := providertest.Forge(providertest.Answer{Status: status, Body: errorReply(code, "Invalid Access Token")})
			renewed := func(what string, op providertest.Operation, call func() (provider.Result, error), want provider.Outcome) provider.Result {
				t.Helper()
				mints, calls := w.line.Count(providertest.Token), w.line.Count(op)
				w.line.Next(op, dead)
				r, err := call()
				if err != nil || r.Outcome != want {
					t.Errorf("%s: %+v, %v; want %s", what, r, err, want)
				}
				if m, c := w.line.Count(providertest.Token)-mints, w.line.Count(op)-calls; m != 1 || c != 2 {
					t.Errorf("%s: %d tokens, %d calls; want one and two", what, m, c)
				}
				return r
			}
			w.warm(t)
			r, out := w.request("4149"), w.request("4149")
			push := renewed("push", providertest.Submit, func() (provider.Result, error) { return w.o.Payments().Submit(t.Context(), r) }, provider.Accepted)
			renewed("query", providertest.Check, func() (provider.Result, error) {
				return w.o.Payments().Check(t.Context(), provider.Query{Reference: r.Reference, ID: r.ID, Handle: push.Handle})
			}, provider.Open)
			renewed("payout", providertest.Submit, func() (provider.Result, error) { return w.o.Payouts().Submit(t.Context(), out) }, provider.Accepted)
			renewed("status", providertest.Check, func() (provider.Result, error) {
				return w.o.Payouts().Check(t.Context(), provider.Query{Reference: out.Reference, ID: out.ID, CallbackURL: out.CallbackURL})
			}, provider.AnswerPending)
		})
	}
}

// TestABadRequestIsNoDeadToken: 400.003.02 stands beside 400.003.01 and means
// that the request was wrong. Nothing was created, and no token is renewed.
func TestABadRequestIsNoDeadToken(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	w.warm(t)
	mints := w.line.Count(providertest.Token)
	bad := providertest.Forge(providertest.Answer{Status: 400, Body: errorReply("400.003.02", "Bad Request")})
	for name, p := range map[string]provider.Provider{"push": w.o.Payments(), "payout": w.o.Payouts()} {
		w.line.Next(providertest.Submit, bad)
		if r, err := p.Submit(t.Context(), w.request("4149")); err != nil || r.Outcome != provider.Rejected || r.Code != "400.003.02" {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		w.line.Next(providertest.Check, bad)
		r := w.request("4149")
		if got, err := p.Check(t.Context(), provider.Query{Reference: r.Reference, ID: r.ID, CallbackURL: r.CallbackURL, Handle: goldenPush}); err == nil {
			t.Errorf("%s: the question was wrong, and the answer is %+v", name, got)
		}
	}
	// Any other 401 says who we are not, whatever the token.
	w.line.Next(providertest.Submit, providertest.Forge(providertest.Answer{Status: 401, Body: errorReply("401.001.01", "Unauthorized")}))
	_, err := w.o.Payments().Submit(t.Context(), w.request("4149"))
	if refusal, ok := errors.AsType[*provider.Refusal](err); !ok || !errors.Is(refusal, provider.ErrCredentials) {
		t.Errorf("another 401: %v", err)
	}
	if n := w.line.Count(providertest.Token) - mints; n != 0 {
		t.Errorf("%d tokens were fetched, and each ends the one before", n)
	}
}
