package mpesa

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"till"
	"till/provider"
	"till/provider/providertest"
)

// The result codes of a push in the order of Daraja's pages, with what we call
// them.
const documentedPush = `
1          failed  insufficient_funds
2          failed  amount_out_of_bounds
3          failed  amount_out_of_bounds
4          failed  payer_limit_reached
8          failed  payer_limit_reached
17         failed  payer_limit_reached
1019       expired customer_timeout
1025       failed  provider_error
1032       failed  customer_declined
1037       expired customer_timeout
2001       failed  wrong_pin
2028       failed  provider_rejected
8006       failed  payer_not_allowed
SFC_IC0003 failed  provider_rejected
1001       failed  payer_busy
9999       failed  provider_error
4999       unrecognised -
00         unrecognised -
0.0        unrecognised -
true       unrecognised -
`

func queried(code, desc string) []byte {
	return fmt.Appendf(nil, `{"ResponseCode":"0","CheckoutRequestID":"%s","ResultCode":"%s","ResultDesc":"%s"}`, goldenPush, code, desc)
}

func TestPushCodes(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{"0": true}
	for line := range strings.Lines(strings.TrimSpace(documentedPush)) {
		f := strings.Fields(line)
		seen[f[0]] = true
		r, err := readPushQuery(200, queried(f[0], "words"), goldenPush)
		if f[2] == "-" {
			f[2] = ""
		}
		if err != nil || string(r.Outcome) != f[1] || string(r.Reason) != f[2] || r.Code != f[0] || r.Message != "words" || r.Handle != goldenPush {
			t.Errorf("%s: %+v, %v", f[0], r, err)
		}
	}
	for code := range pushCodes {
		if !seen[code] {
			t.Errorf("%s is in the table and not in the documents", code)
		}
	}
}

func TestReadPushQuery(t *testing.T) {
	t.Parallel()
	fault := func(code, message string) string {
		return fmt.Sprintf(`{"requestId":"1","errorCode":"%s","errorMessage":"%s"}`, code, message)
	}
	for _, c := range []struct {
		status int
		body   string
		want   provider.Outcome // "": we do not know
	}{
		{200, string(queried("0", "")), provider.Success},
		{200, `{"ResponseCode":0,"CheckoutRequestID":"` + goldenPush + `","ResultCode":0}`, provider.Success},
		{200, string(queried("4999", "The transaction is still under processing")), provider.Open},
		{500, fault("500.001.1001", "The transaction is being processed"), provider.Open},
		{500, fault("", "The transaction is being processed"), provider.Open}, // the code is not verified
		{500, fault("500.001.1001", "Wrong credentials"), ""},
		{500, fault("500.001.1001", "The transaction does not exist"), ""},
		{500, fault("500.003.02", "System is busy"), ""},
		{503, fault("500.001.1001", "The transaction is being processed"), ""},
		{400, fault("400.002.02", "Bad Request - Invalid CheckoutRequestID"), ""}, // never "not found"
		{404, fault("404.001.01", "Resource not found"), ""},
		{200, fault("500.001.1001", "The transaction is being processed"), ""},
		{200, `{"ResponseCode":"0","CheckoutRequestID":"ws_CO_other","ResultCode":"0"}`, ""},
		{200, `{"ResponseCode":"0","ResultCode":"0"}`, ""},
		{200, `{"ResponseCode":"1","CheckoutRequestID":"` + goldenPush + `","ResultCode":"0"}`, ""},
		{200, `{"ResponseCode":"0","CheckoutRequestID":"` + goldenPush + `"}`, ""},
		{200, `{"ResponseCode":"0","CheckoutRequestID":"` + goldenPush + `","ResultCode":["0"]}`, ""},
		{201, string(queried("1032", "")), ""},
		{500, string(queried("1032", "")), ""},
	} {
		r, err := readPushQuery(c.status, []byte(c.body), goldenPush)
		if r.Outcome != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%d %s\nis %q (%v), want %q", c.status, c.body, r.Outcome, err, c.want)
		}
	}
	for status := 100; status < 600; status++ {
		_, err := readPushQuery(status, queried("1032", ""), goldenPush)
		if (err == nil) != (status == 200) || errors.Is(err, provider.ErrCredentials) != (status == 401 || status == 403) {
			t.Errorf("HTTP %d: %v", status, err)
		}
	}
}

// TestRefusals gives every documented error to a push and to a payout, under
// its own HTTP status and under another.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code, message string
		want          string // an outcome and a reason; "credentials"; or "" for unknown
	}{
		{"400.002.02", "Bad Request - Invalid Amount", "rejected provider_rejected"},
		{"404.001.01", "Resource not found", "rejected provider_unavailable"},
		{"405.001", "Method Not Allowed", "rejected provider_unavailable"},
		{"500.001.1001", "Unable to lock subscriber, a transaction is already in process", "rejected payer_busy"},
		{"500.001.1001", "Wrong credentials", "credentials"},
		{"500.001.1001", "Merchant does not exist", "credentials"},
		{"500.001.1001", "The transaction is being processed", ""},
		{"500.001.1001", "Internal error", ""},
		{"500.003.02", "Error Occurred: Spike Arrest Violation", "rejected provider_unavailable"},
		{"500.003.02", "System is busy. Please try again in few minutes.", ""},
		{"500.003.03", "Error Occurred: Quota Violation", "rejected provider_unavailable"},
		{"400.002.05", "Invalid Request Payload", ""},
		{"", "", ""},
	} {
		body := fmt.Appendf(nil, `{"requestId":"1","errorCode":"%s","errorMessage":"%s"}`, c.code, c.message)
		var own int
		fmt.Sscanf(c.code, "%3d", &own)
		for status := 100; status < 600; status++ {
			want := c.want
			if status != own && want != "" {
				want = "" // a code names its HTTP status
			}
			if status == 401 || status == 403 {
				want = "credentials"
			}
			for what, read := range map[string]func(int, []byte) (provider.Result, error){"push": readPush, "payout": readPayout} {
				r, err := read(status, body)
				got := strings.TrimSpace(string(r.Outcome) + " " + string(r.Reason))
				if errors.Is(err, provider.ErrCredentials) {
					got = "credentials"
				}
				if got != want || (err == nil) != strings.HasPrefix(want, "rejected") {
					t.Errorf("%s: HTTP %d %s %q is %q (%v), want %q", what, status, c.code, c.message, got, err, want)
				}
			}
		}
	}
	for body, want := range map[string]provider.Outcome{
		`{"ResponseCode":"0","CheckoutRequestID":"ws_CO_1"}`:                         provider.Accepted,
		`{"ResponseCode":0,"CheckoutRequestID":"ws_CO_1"}`:                           provider.Accepted,
		`{"ResponseCode":"0"}`:                                                       "", // it may ring, and we cannot ask
		`{"ResponseCode":"1","CheckoutRequestID":"ws_CO_1"}`:                         "",
		`{"ResponseCode":"0","CheckoutRequestID":"a b"}`:                             "",
		`{"ResponseCode":"0","CheckoutRequestID":{"a":"b"}}`:                         "",
		`{"CheckoutRequestID":"ws_CO_1"}`:                                            "",
		`{"ResponseCode":"0","CheckoutRequestID":"` + strings.Repeat("x", 65) + `"}`: "",
	} {
		if r, err := readPush(200, []byte(body)); r.Outcome != want || (err == nil) != (want != "") {
			t.Errorf("%s is %q (%v), want %q", body, r.Outcome, err, want)
		}
	}
}

// TestLostPush: the answer to a push is lost. Its callback tells what to ask
// about, and is not believed otherwise.
func TestLostPush(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p := w.o.Payments()
	r := w.request("1032")
	w.line.Next(providertest.Submit, providertest.LoseAnswer)
	if got, err := p.Submit(t.Context(), r); err == nil {
		t.Fatalf("%+v", got)
	}
	query := provider.Query{Reference: r.Reference, ID: r.ID, Amount: r.Amount}
	if got, err := p.Check(t.Context(), query); !errors.Is(err, errNoHandle) {
		t.Fatalf("without an id: %+v, %v", got, err)
	}
	for _, garbage := range []string{"", "{}", "[]", "null", "<html>", `{"Body":{"stkCallback":{"ResultCode":0}}}`, `{"Body":{"stkCallback":{"CheckoutRequestID":"a b"}}}`, `{"Body":7}`} {
		query.CallbackBody = []byte(garbage)
		if got, err := p.Check(t.Context(), query); !errors.Is(err, errNoHandle) {
			t.Errorf("%s: %+v, %v", garbage, got, err)
		}
	}
	// Somebody calls it paid, which it is not: the operator is asked.
	id := w.sim.book.Entries()[0].Handle
	paid := strings.ReplaceAll(string(mail(t, "push_paid")), goldenPush, id)
	query.Phone, query.Amount = "254708374149", till.Money{Minor: 100, Currency: "KES"}
	query.CallbackBody = []byte(paid)
	if got, err := p.Check(t.Context(), query); err != nil || got.Outcome != provider.Open || got.Handle != id || got.Receipt != "" {
		t.Errorf("while it is open: %+v, %v", got, err)
	}
	w.advance(time.Minute)
	if got, err := p.Check(t.Context(), query); err != nil || got.Outcome != provider.Failed || got.Reason != till.CustomerDeclined || got.Receipt != "" {
		t.Errorf("the operator's word: %+v, %v", got, err)
	}
	// One of another amount or customer is another's: nothing is asked. A number
	// that is masked is nobody's.
	asked := w.line.Count(providertest.Check)
	for _, other := range []string{strings.Replace(paid, `"Value":1.00`, `"Value":2.00`, 1), strings.Replace(paid, "254708374149", "254708374148", 1)} {
		if other == paid {
			t.Fatal("the callback was not changed")
		}
		query.CallbackBody = []byte(other)
		if got, err := p.Check(t.Context(), query); !errors.Is(err, errOtherPayment) {
			t.Errorf("%s: %+v, %v", other, got, err)
		}
	}
	if n := w.line.Count(providertest.Check); n != asked {
		t.Errorf("another's callback was asked about %d times", n-asked)
	}
	query.CallbackBody = []byte(strings.Replace(paid, "254708374149", `"2547*****149"`, 1))
	if got, err := p.Check(t.Context(), query); err != nil || got.Outcome != provider.Failed {
		t.Errorf("a masked number: %+v, %v", got, err)
	}
	if h := p.(provider.HandleReader).HandleInCallback([]byte(paid)); h != id {
		t.Errorf("the callback names %q, not %q", h, id)
	}
	// An id that the operator does not know decides nothing.
	query.CallbackBody = mail(t, "push_paid")
	if got, err := p.Check(t.Context(), query); err == nil {
		t.Errorf("an id of nobody's: %+v", got)
	}
}

// TestForgedReceipt: a callback about another push is not read, and one about
// this push only after the operator calls it a success.
func TestForgedReceipt(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p := w.o.Payments()
	r := w.request("4149")
	got, err := p.Submit(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	w.advance(time.Minute)
	query := provider.Query{Reference: r.Reference, ID: r.ID, Handle: got.Handle, CallbackBody: mail(t, "push_paid")}
	if got, err := p.Check(t.Context(), query); err != nil || got.Outcome != provider.Success || got.Receipt != "" || !got.Amount.IsZero() {
		t.Errorf("a callback about another push: %+v, %v", got, err)
	}
	query.CallbackBody = w.box.get(r.CallbackURL)
	if got, err := p.Check(t.Context(), query); err != nil || got.Outcome != provider.Success || got.Receipt == "" || got.Amount != r.Amount {
		t.Errorf("its own callback: %+v, %v", got, err)
	}
	query.CallbackBody = []byte(strings.ReplaceAll(string(query.CallbackBody), "1500.00", "1.00"))
	if got, err := p.Check(t.Context(), query); err != nil || got.Outcome != provider.Success || got.Amount.Minor != 100 {
		t.Errorf("another amount must be told: %+v, %v", got, err)
	}
}

func TestNothingIsSent(t *testing.T) {
	t.Parallel()
	w := open(t, func(_ *SimConfig, c *Config) {})
	for _, p := range []provider.Provider{w.o.Payments(), w.o.Payouts()} {
		r := w.request("4149")
		r.Amount.Minor += 50
		if got, err := p.Submit(t.Context(), r); err != nil || got.Outcome != provider.Rejected || got.Code != "amount_not_representable" {
			t.Errorf("half a shilling: %+v, %v", got, err)
		}
		r = w.request("4149")
		r.Amount.Currency = "UGX"
		if _, err := p.Submit(t.Context(), r); !errors.Is(err, provider.ErrNotSent) {
			t.Errorf("another currency: %v", err)
		}
	}
	r := w.request("4149")
	r.CallbackURL = ""
	if _, err := w.o.Payouts().Submit(t.Context(), r); !errors.Is(err, provider.ErrNotSent) {
		t.Errorf("a payout without an address for its answer: %v", err)
	}
	if n := w.line.Count(providertest.Submit) + w.line.Count(providertest.Token); n != 0 {
		t.Errorf("%d calls were made", n)
	}
	if got, err := w.o.Payments().Submit(t.Context(), r); err != nil || got.Outcome != provider.Accepted {
		t.Errorf("a push without an address of its own: %+v, %v", got, err)
	}
}
