package mtnmomo

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"till"
	"till/provider"
	"till/provider/wire"
)

var (
	in  = &service{serviceKind: collection}
	out = &service{serviceKind: disbursement}
)

var query = provider.Query{
	ID: till.ID{1}, Reference: till.ID{2}, Amount: till.Money{Minor: 2500, Currency: "XAF"},
}

func reply(status int, body string) *wire.Reply {
	return &wire.Reply{Status: status, Header: http.Header{}, Body: []byte(body)}
}

// customers are reasons that blame the customer, recipients those that blame
// the recipient of a payout.
var customers = []till.FailureReason{till.CustomerDeclined, till.CustomerTimeout, till.NotApproved, till.InsufficientFunds,
	till.FundsOrLimit, till.PayerNotFound, till.PayerLimitReached, till.PayerNotAllowed, till.PayerBusy, till.WrongPIN}
var recipients = []till.FailureReason{till.RecipientNotFound, till.RecipientNotAllowed, "recipient_limit_reached"}

func TestEveryRowOfTheTableMakesSense(t *testing.T) {
	for code, m := range failureCodes {
		if m.source == "" || m.payment == "" || m.payout == "" || code != normalizeCode(code) {
			t.Errorf("%s: the row is not complete", code)
		}
		if slices.Contains(customers, m.payout) {
			t.Errorf("%s: a payout blames a customer: %s", code, m.payout)
		}
		if slices.Contains(recipients, m.payment) {
			t.Errorf("%s: a payment blames a recipient: %s", code, m.payment)
		}
		if undecidedCodes[code] {
			t.Errorf("%s is in two tables", code)
		}
	}
}

func TestEveryDocumentedReasonHasARow(t *testing.T) {
	for _, code := range strings.Fields(`PAYER_NOT_FOUND PAYEE_NOT_FOUND NOT_ENOUGH_FUNDS PAYER_LIMIT_REACHED PAYEE_NOT_ALLOWED_TO_RECEIVE
		SENDER_ACCOUNT_NOT_ACTIVE PAYMENT_NOT_APPROVED APPROVAL_REJECTED EXPIRED TRANSACTION_CANCELED TRANSACTION_NOT_COMPLETED
		TRANSACTION_NOT_FOUND COULD_NOT_PERFORM_TRANSACTION INTERNAL_PROCESSING_ERROR SERVICE_UNAVAILABLE NOT_ALLOWED
		NOT_ALLOWED_TARGET_ENVIRONMENT INVALID_CALLBACK_URL_HOST INVALID_CURRENCY RESOURCE_NOT_FOUND RESOURCE_ALREADY_EXIST ONGOING
		PAYER_DELAYED PAYEE_DELAYED TRANSFER_TYPE_UNKNOWN REJECTED CONSENT_MISMATCH UNSUPPORTED_SCOPE MISSING_SCOPE_INSTRUCTION
		MORE_THAN_ONE_FINANCIAL_SCOPE_NOT_SUPPORTED LOW_BALANCE_OR_PAYEE_LIMIT_REACHED_OR_NOT_ALLOWED`) {
		if _, ok := failureCodes[code]; !ok && !undecidedCodes[code] {
			t.Errorf("%s is documented and in no table", code)
		}
	}
}

func TestReads(t *testing.T) {
	for _, c := range []struct {
		name   string
		p      *service
		status int
		body   string
		want   provider.Result
		fails  bool
	}{
		{"a space in a code", in, 200, `{"status":"FAILED","reason":"NOT ENOUGH_FUNDS"}`,
			provider.Result{Outcome: provider.Failed, Reason: till.InsufficientFunds, Code: "NOT ENOUGH_FUNDS", Retryable: true}, false},
		{"an unknown reason", in, 200, `{"status":"FAILED","reason":{"code":"SOLAR_FLARE","message":"hot"}}`,
			provider.Result{Outcome: provider.Failed, Reason: till.Unspecified, Code: "SOLAR_FLARE", Message: "hot"}, false},
		{"no reason", in, 200, `{"status":"FAILED"}`, provider.Result{Outcome: provider.Failed, Reason: till.Unspecified, Code: "FAILED"}, false},
		{"a reason that contradicts", in, 200, `{"status":"FAILED","reason":"ONGOING"}`,
			provider.Result{Outcome: provider.Unrecognised, Code: "FAILED ONGOING"}, false},
		{"a timeout", in, 200, `{"status":"FAILED","reason":"COULD_NOT_PERFORM_TRANSACTION"}`,
			provider.Result{Outcome: provider.Expired, Reason: till.CustomerTimeout, Code: "COULD_NOT_PERFORM_TRANSACTION", Retryable: true}, false},
		{"a payout's timeout", out, 200, `{"status":"FAILED","reason":"EXPIRED"}`,
			provider.Result{Outcome: provider.Failed, Reason: till.ProviderError, Code: "EXPIRED", Retryable: true}, false},
		{"an unknown status", in, 200, `{"status":"REFUNDED"}`, provider.Result{Outcome: provider.Unrecognised, Code: "REFUNDED"}, false},
		{"a status in another case", in, 200, `{"status":"successful"}`, provider.Result{Outcome: provider.Unrecognised, Code: "successful"}, false},
		{"no status", in, 200, `{"amount":"2500"}`, provider.Result{}, true},
		{"numbers for texts", in, 200, `{"status":"SUCCESSFUL","amount":2500.00,"currency":"XAF","financialTransactionId":1927264368}`,
			provider.Result{Outcome: provider.Success, Receipt: "1927264368", Amount: till.Money{Minor: 2500, Currency: "XAF"}}, false},
		{"another amount", in, 200, `{"status":"SUCCESSFUL","amount":"25","currency":"XAF"}`,
			provider.Result{Outcome: provider.Success, Amount: till.Money{Minor: 25, Currency: "XAF"}}, false},
		{"nothing moved", in, 200, `{"status":"SUCCESSFUL","amount":"0","currency":"XAF"}`,
			provider.Result{Outcome: provider.Success, Amount: till.Money{Currency: "XAF"}}, false},
		{"a fraction that francs do not have", in, 200, `{"status":"SUCCESSFUL","amount":"2500.5","currency":"XAF"}`, provider.Result{}, true},
		{"a negative amount", in, 200, `{"status":"SUCCESSFUL","amount":"-2500","currency":"XAF"}`, provider.Result{}, true},
		{"a currency that nobody knows", in, 200, `{"status":"SUCCESSFUL","amount":"2500","currency":"XXX"}`, provider.Result{}, true},
		{"a currency without an amount", in, 200, `{"status":"SUCCESSFUL","currency":"XAF"}`, provider.Result{}, true},
		{"an amount without a currency", in, 200, `{"status":"SUCCESSFUL","amount":"2500"}`,
			provider.Result{Outcome: provider.Success, Amount: till.Money{Minor: 2500, Currency: "XAF"}}, false},
		{"our reference as the external id", in, 200, `{"status":"SUCCESSFUL","externalId":"` + query.Reference.String() + `"}`,
			provider.Result{Outcome: provider.Success, Reference: query.Reference.String()}, false},
		{"the row's id as the external id, as releases before sent it", in, 200, `{"status":"SUCCESSFUL","externalId":"` + query.ID.String() + `"}`,
			provider.Result{Outcome: provider.Success, Reference: query.Reference.String()}, false},
		{"another external id", in, 200, `{"status":"SUCCESSFUL","externalId":"order_123"}`,
			provider.Result{Outcome: provider.Success, Reference: "order_123"}, false},
		{"404 with the word", in, 404, `{"code":"RESOURCE_NOT_FOUND"}`, provider.Result{Outcome: provider.NotFound}, false},
		{"404 without", in, 404, ``, provider.Result{}, true},
		{"an array", in, 200, `[{"status":"SUCCESSFUL"}]`, provider.Result{}, true},
		{"two objects", in, 200, `{"status":"SUCCESSFUL"}{}`, provider.Result{}, true},
		{"not UTF-8", in, 200, "{\"status\":\"SUCCESSFUL\",\"payeeNote\":\"\xff\"}", provider.Result{}, true},
		{"the right words under the wrong status", in, 201, `{"status":"SUCCESSFUL"}`, provider.Result{}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.p.readCheck(reply(c.status, c.body), query)
			if got != c.want || (err != nil) != c.fails {
				t.Errorf("got %+v, %v; want %+v, error %v", got, err, c.want, c.fails)
			}
		})
	}
}

func TestTheSandboxCurrencyStandsForOurs(t *testing.T) {
	p := &service{serviceKind: collection, currencyOverride: "EUR"}
	got, err := p.readCheck(reply(200, `{"status":"SUCCESSFUL","amount":"2500","currency":"EUR"}`), query)
	if err != nil || got.Amount != query.Amount {
		t.Errorf("got %v, %v; want %v", got.Amount, err, query.Amount)
	}
	if got, _ = in.readCheck(reply(200, `{"status":"SUCCESSFUL","amount":"2500","currency":"EUR"}`), query); got.Amount.Currency != "EUR" {
		t.Errorf("without the override the currency is %q", got.Amount.Currency)
	}
	b, err := p.requestBody(provider.Request{Phone: "46733123454", Amount: query.Amount})
	if err != nil || !strings.Contains(string(b), `"amount":"2500","currency":"EUR"`) {
		t.Errorf("the body is %s, %v", b, err)
	}
}

func TestWritesDecimals(t *testing.T) {
	b, err := in.requestBody(provider.Request{Phone: "233231234567", Amount: till.Money{Minor: 1050, Currency: "GHS"}})
	if err != nil || !strings.Contains(string(b), `"amount":"10.5"`) {
		t.Errorf("the body is %s, %v", b, err)
	}
	for _, m := range []till.Money{{}, {Minor: 0, Currency: "XAF"}, {Minor: -5, Currency: "XAF"}, {Minor: 5, Currency: "QQQ"}} {
		if _, err := in.requestBody(provider.Request{Amount: m}); !errors.Is(err, provider.ErrNotSent) {
			t.Errorf("%v: the error is %v, want ErrNotSent", m, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, body := range []string{`{"status":"SUCCESSFUL","amount":"2500","currency":"XAF"}`, `{"status":"FAILED","reason":{"code":"EXPIRED"}}`,
		`{"status":"FAILED","reason":"X"}`, `{"status":"PENDING"}`, `{"code":"RESOURCE_NOT_FOUND"}`, `{"reason":[]}`, `<html>`, ``, `{"status":{}}`} {
		f.Add(200, body)
		f.Add(404, body)
		f.Add(500, body)
	}
	f.Fuzz(func(t *testing.T, status int, body string) {
		for _, p := range []*service{in, out} {
			got, err := p.readCheck(reply(status, body), query)
			if err != nil && got != (provider.Result{}) {
				t.Fatal("a result beside an error")
			}
			var said struct {
				Status any `json:"status"`
			}
			if got.Outcome.Final() && (status != 200 || json.Unmarshal([]byte(body), &said) != nil || said.Status != "SUCCESSFUL" && said.Status != "FAILED") {
				t.Fatalf("%d %q is final: %s", status, body, got.Outcome)
			}
			if got.Outcome == provider.Success && said.Status != "SUCCESSFUL" {
				t.Fatalf("%d %q is a success", status, body)
			}
		}
	})
}

func FuzzSubmit(f *testing.F) {
	for _, status := range []int{200, 202, 400, 401, 403, 409, 500, 503} {
		for _, body := range []string{``, `{}`, `{"code":"NOT_ALLOWED"}`, `{"code":"INTERNAL_PROCESSING_ERROR"}`, `{"error":"x"}`, `{"code":"RESOURCE_ALREADY_EXIST"}`, `<html>`} {
			f.Add(status, body)
		}
	}
	f.Fuzz(func(t *testing.T, status int, body string) {
		got, err := in.readSubmit(reply(status, body))
		switch {
		case err != nil && got != (provider.Result{}):
			t.Fatal("a result beside an error")
		case err == nil && !slices.Contains([]provider.Outcome{provider.Accepted, provider.Duplicate, provider.Rejected}, got.Outcome):
			t.Fatalf("%d %q is %q", status, body, got.Outcome)
		case got.Outcome == provider.Accepted && status != 202,
			got.Outcome == provider.Rejected && status != 400 && status != 500,
			got.Outcome == provider.Rejected && status == 500 && !slices.ContainsFunc([]string{"NOT_ALLOWED", "INVALID_"}, func(w string) bool {
				return strings.Contains(strings.ReplaceAll(strings.ToUpper(got.Code), " ", "_"), w)
			}):
			t.Fatalf("%d %q is %q", status, body, got.Outcome)
		}
	})
}

func FuzzToken(f *testing.F) {
	f.Add(200, `{"access_token":"x","expires_in":"3600"}`)
	f.Add(200, `{"access_token":"x","expires_in":-1}`)
	f.Add(500, `{"error":"login_failed"}`)
	f.Fuzz(func(t *testing.T, status int, body string) {
		token, life, err := readToken(reply(status, body))
		if err == nil && (token == "" || life <= 0 || status != 200 || strings.ContainsAny(token, "\r\n\x00")) {
			t.Fatalf("%d %q gives the token %q for %v", status, body, token, life)
		}
	})
}
