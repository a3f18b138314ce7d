package webhook

import (
	"slices"
	"testing"

	"till"
	"till/store/webhooks"
)

func TestTroubleOf(t *testing.T) {
	t.Parallel()
	failing := till.Endpoint{Enabled: true, FailingSince: 1, Failures: 3}
	for name, c := range map[string]struct {
		e     till.Endpoint
		last  *webhooks.DeliveryAttempt
		want  Trouble
		fails bool
	}{
		"works":           {till.Endpoint{Enabled: true, LastSuccessAt: 1}, nil, TroubleNone, false},
		"recovered":       {till.Endpoint{Enabled: true, LastSuccessAt: 1}, &webhooks.DeliveryAttempt{Code: 500}, TroubleNone, false},
		"new":             {till.Endpoint{Enabled: true}, nil, TroubleNew, false},
		"switched off":    {till.Endpoint{DisableReason: till.DisabledByClient}, &webhooks.DeliveryAttempt{Code: 500}, TroubleSwitchedOff, false},
		"gone":            {till.Endpoint{DisableReason: till.DisabledAsGone}, nil, TroubleGone, true},
		"given up":        {till.Endpoint{DisableReason: till.DisabledAsFailing, FailingSince: 1}, nil, TroubleGivenUp, true},
		"no row is known": {failing, nil, TroubleOther, true},
		"500":             {failing, &webhooks.DeliveryAttempt{Code: 500}, TroubleError, true},
		"404":             {failing, &webhooks.DeliveryAttempt{Code: 404}, TroubleNotFound, true},
		"403":             {failing, &webhooks.DeliveryAttempt{Code: 403}, TroubleRefused, true},
		"429":             {failing, &webhooks.DeliveryAttempt{Code: 429}, TroubleBusy, true},
		"413":             {failing, &webhooks.DeliveryAttempt{Code: 413}, TroubleLarge, true},
		"422":             {failing, &webhooks.DeliveryAttempt{Code: 422}, TroubleRejected, true},
		"redirect":        {failing, &webhooks.DeliveryAttempt{Code: 302, Problem: ProblemRedirect}, ProblemRedirect, true},
		"no name":         {failing, &webhooks.DeliveryAttempt{Problem: ProblemDNS}, ProblemDNS, true},
		"cut answer":      {failing, &webhooks.DeliveryAttempt{Code: 200, Problem: ProblemReset}, ProblemReset, true},
		"1xx":             {failing, &webhooks.DeliveryAttempt{Code: 199}, TroubleOther, true},
	} {
		why, fails := TroubleOf(&c.e, c.last)
		if why != c.want || fails != c.fails {
			t.Errorf("%s: %s %v, want %s %v", name, why, fails, c.want, c.fails)
		}
		if !slices.Contains(Troubles, why) {
			t.Errorf("%s is not in the list", why)
		}
	}
}
