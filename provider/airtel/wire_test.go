package airtel

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"till"
	"till/provider"
	"till/provider/wire"
)

var (
	in  = &service{}
	out = &service{payout: true}
)

var query = provider.Query{Reference: till.ID{0xab, 2, 3}, Amount: till.Money{Minor: 1000, Currency: "XAF"}}

func reply(status int, body string) *wire.Reply {
	return &wire.Reply{Status: status, Header: http.Header{}, Body: []byte(body)}
}

// customers are reasons that blame the customer, recipients those that blame
// the recipient of a payout.
var customers = []till.FailureReason{till.CustomerDeclined, till.CustomerTimeout, till.NotApproved, till.InsufficientFunds,
	till.FundsOrLimit, till.PayerNotFound, till.PayerLimitReached, till.PayerNotAllowed, till.PayerBusy, till.WrongPIN}
var recipients = []till.FailureReason{recipientNotFound, recipientNotAllowed, recipientLimitReached}

func TestEveryRowOfTheTableMakesSense(t *testing.T) {
	for code, m := range codes {
		failure := m.class == rejectedCode || m.class == failedCode
		if m.class == unknownCode || m.description == "" || failure != (m.reason != "") {
			t.Errorf("%s: the row is not complete", code)
		}
		if slices.Contains(customers, payoutReason(m.reason)) {
			t.Errorf("%s: a payout blames a customer: %s", code, payoutReason(m.reason))
		}
		if !strings.HasPrefix(code, "DP009") && slices.Contains(recipients, m.reason) {
			t.Errorf("%s: a payment blames a recipient: %s", code, m.reason)
		}
	}
}

func TestEveryDocumentedCodeHasARow(t *testing.T) {
	want := map[string][]int{
		"DP0080000%d": {1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008, 1009, 1010, 1024, 1025, 1026, 1029},
		"DP0090000%d": {1000, 1001, 1003, 1004, 1005, 1006, 1007, 1009, 1010, 1011, 1012, 1013, 1014, 1015, 1016, 1017, 1018, 1019},
		"ESB0000%d":   {1, 4, 8, 10, 11, 14, 33, 34, 35, 36, 39, 41, 45},
		"ROUTER%d":    {1, 3, 5, 6, 7, 110, 112, 114, 115, 116, 117, 119},
	}
	n := 0
	for form, numbers := range want {
		for _, number := range numbers {
			text := simDecimal(int64(number))
			switch {
			case strings.HasPrefix(form, "ESB"):
				text = strings.Repeat("0", 2-len(text)) + text
			case strings.HasPrefix(form, "ROUTER"):
				text = strings.Repeat("0", 3-len(text)) + text
			}
			code := strings.Replace(form, "%d", text, 1)
			if _, ok := codes[code]; !ok {
				t.Errorf("%s is documented and not in the table", code)
			}
			n++
		}
	}
	if n != len(codes) {
		t.Errorf("the table has %d codes, %d are documented", len(codes), n)
	}
}

func body(status, code, success string) string {
	data := ""
	if status != "" {
		data = `"data":{"transaction":{"id":"ab020300000000000000000000000000","status":"` + status + `","airtel_money_id":"MP1"}},`
	}
	return `{` + data + `"status":{"response_code":"` + code + `","success":` + success + `,"message":"m"}}`
}

func TestEnquiries(t *testing.T) {
	success := provider.Result{Outcome: provider.Success, Receipt: "MP1", Reference: query.Reference.String()}
	for _, c := range []struct {
		name  string
		p     *service
		reply *wire.Reply
		want  provider.Result
		fails bool
	}{
		{"success", in, reply(200, body("TS", "DP00800001001", "true")), success, false},
		{"success without a code", in, reply(200, body("TS", "", "true")), success, false},
		{"success with an unknown code", in, reply(200, body("TS", "DP00800009999", "true")), success, false},
		{"success and a failure's code", in, reply(200, body("TS", "DP00800001007", "false")), provider.Result{}, true},
		{"success that is none", in, reply(200, body("TS", "DP00800001001", "false")), provider.Result{}, true},
		{"success and not found", in, reply(200, body("TS", "DP00800001025", "false")), provider.Result{}, true},
		{"failure and a success's code", in, reply(200, body("TF", "DP00800001001", "true")), provider.Result{}, true},
		{"failure and a code for in process", in, reply(200, body("TF", "DP00800001006", "true")), provider.Result{}, true},
		{"failure and an ambiguous code", in, reply(200, body("TF", "DP00800001024", "false")), provider.Result{}, true},
		{"failure and not found", in, reply(200, body("TF", "DP00800001025", "false")), provider.Result{Outcome: provider.NotFound}, false},
		{"failure with an unknown code", in, reply(200, body("TF", "DP00800009999", "false")),
			provider.Result{Outcome: provider.Failed, Reason: till.Unspecified, Code: "DP00800009999", Message: "m"}, false},
		{"failure without a code", in, reply(200, body("TF", "", "false")),
			provider.Result{Outcome: provider.Failed, Reason: till.Unspecified, Code: "TF", Message: "m"}, false},
		{"expired", in, reply(200, body("TE", "", "false")),
			provider.Result{Outcome: provider.Expired, Reason: till.CustomerTimeout, Code: "TE", Message: "m", Retryable: true}, false},
		{"a payout cannot expire", out, reply(200, body("TE", "", "false")),
			provider.Result{Outcome: provider.Failed, Reason: till.ProviderError, Code: "TE", Message: "m", Retryable: true}, false},
		{"a payout without float", out, reply(200, body("TF", "DP00900001007", "false")),
			provider.Result{Outcome: provider.Failed, Reason: till.ProviderUnavailable, Code: "DP00900001007", Message: "m", Retryable: true,
				OurFault: "Airtel answers DP00900001007 to a payout (insufficient funds): look at the disbursement wallet and its PIN"}, false},
		{"ambiguous", in, reply(200, body("TA", "DP00800001000", "false")), provider.Result{Outcome: provider.Open}, false},
		{"in progress", in, reply(200, body("TIP", "DP00800001006", "true")), provider.Result{Outcome: provider.Open}, false},
		{"an unknown status", in, reply(200, body("TX", "DP00800001001", "true")), provider.Result{Outcome: provider.Unrecognised, Code: "TX"}, false},
		{"the word of an acknowledgement", in, reply(200, body("SUCCESS", "DP00800001001", "true")), provider.Result{Outcome: provider.Unrecognised, Code: "SUCCESS"}, false},
		{"a code alone", in, reply(200, body("", "DP00800001001", "true")), provider.Result{}, true},
		{"a failure's code alone", in, reply(200, body("", "DP00800001007", "false")), provider.Result{}, true},
		{"not found, with 404", in, reply(404, body("", "DP00800001025", "false")), provider.Result{Outcome: provider.NotFound}, false},
		{"not found, the old code", in, reply(200, `{"status":{"result_code":"ESB000045"}}`), provider.Result{Outcome: provider.NotFound}, false},
		{"404 without a code", in, reply(404, `{}`), provider.Result{}, true},
		{"success with 400", in, reply(400, body("TS", "DP00800001001", "true")), provider.Result{}, true},
		{"success with 500", in, reply(500, body("TS", "DP00800001001", "true")), provider.Result{}, true},
		{"another id", in, reply(200, `{"data":{"transaction":{"id":"other","status":"TS"}},"status":{"response_code":"DP00800001001"}}`),
			provider.Result{Outcome: provider.Success, Reference: "other"}, false},
		{"no such number", in, reply(200, `{"data":{"transaction":{"status":"TF","message":"Msisdn Not Found"}},"status":{"response_code":"DP00800001005"}}`),
			provider.Result{Outcome: provider.Failed, Reason: till.PayerNotFound, Code: "DP00800001005", Message: "Msisdn Not Found"}, false},
		{"data as a list", in, reply(200, `{"data":[],"status":{"response_code":"DP00800001025"}}`), provider.Result{Outcome: provider.NotFound}, false},
		{"data as a text", in, reply(200, `{"data":"TS","status":{"response_code":"DP00800001001"}}`), provider.Result{}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.p.readCheck(c.reply, query)
			if got != c.want || (err != nil) != c.fails {
				t.Errorf("got %+v, %v; want %+v, error %v", got, err, c.want, c.fails)
			}
		})
	}
}

// On a submit no code is final but one that refuses before anybody was asked.
func TestSubmitsByCode(t *testing.T) {
	for code, m := range codes {
		for _, status := range []int{200, 400, 500, 404} {
			got, err := in.readSubmit(reply(status, body("TS", code, "true")))
			want := map[codeClass]provider.Outcome{inProcess: provider.Accepted, succeeded: provider.Accepted, duplicate: provider.Duplicate, rejectedCode: provider.Rejected}[m.class]
			if status == 400 && m.class == succeeded || status > 400 {
				want = ""
			}
			if got.Outcome != want || (err != nil) != (want == "") {
				t.Errorf("%d %s: got %q, %v; want %q", status, code, got.Outcome, err, want)
			}
		}
	}
	if got, err := in.readSubmit(reply(200, body("", "ESB000010", "false"))); err == nil {
		t.Errorf("success that is none is %q", got.Outcome)
	}
	if got, err := in.readSubmit(reply(200, body("TS", "DP00800009999", "true"))); err == nil {
		t.Errorf("a code that nobody knows is %q", got.Outcome)
	}
}

func TestNumbersLoseTheirCallingCode(t *testing.T) {
	for _, c := range []struct{ country, currency, phone, want string }{
		{"CG", "XAF", "242051234567", "051234567"}, // Congo keeps its zero
		{"UG", "UGX", "256712345678", "712345678"},
		{"ZM", "ZMW", "260955123456", "955123456"},
		{"GA", "XAF", "24174345678", "74345678"},
	} {
		o, err := New(Config{BaseURL: "https://openapi.airtel.africa", Country: c.country, Currency: c.currency, ClientID: "a", ClientSecret: "b"}, provider.Deps{Tokens: oneToken{}})
		if err != nil {
			t.Fatal(err)
		}
		b, err := o.payments.requestBody(provider.Request{Phone: c.phone, Amount: till.Money{Minor: 1050, Currency: c.currency}})
		if err != nil || !strings.Contains(string(b), `"msisdn":"`+c.want+`"`) {
			t.Errorf("%s: the body is %s, %v", c.phone, b, err)
		}
		if c.currency == "ZMW" && !strings.Contains(string(b), `"amount":10.5,`) {
			t.Errorf("the amount is not a number: %s", b)
		}
		if _, err := o.payments.requestBody(provider.Request{Phone: "254712123456", Amount: till.Money{Minor: 100, Currency: c.currency}}); err == nil {
			t.Error("a number of another country is sent")
		}
		if _, err := o.payments.requestBody(provider.Request{Phone: c.phone, Amount: till.Money{Minor: 100, Currency: "KES"}}); err == nil {
			t.Error("another currency is sent")
		}
	}
}

func TestCallbacks(t *testing.T) {
	const key = "callback-key"
	// With spaces, as JSON comes: the bytes count, not what they mean.
	inner := `{ "id":"ab020300000000000000000000000000", "message":"Paid UGX 5,000", "status_code":"TS" }`
	sign := func(text string) string { return base64.StdEncoding.EncodeToString(mac(key, []byte(text))) }
	with := func(hash string) string { return `{"transaction":` + inner + `,"hash":"` + hash + `"}` }
	for name, c := range map[string]struct {
		body, key string
		good      bool
	}{
		"named":                  {with(sign(`{"transaction":` + inner + `}`)), key, true},
		"alone":                  {with(sign(inner)), key, true},
		"wrong":                  {with(sign("something else")), key, false},
		"another key":            {with(sign(inner)), "other", false},
		"no hash":                {`{"transaction":` + inner + `}`, key, false},
		"no hash, none is due":   {`{"transaction":` + inner + `}`, "", true},
		"a hash, none is due":    {with("x"), "", true},
		"changed after the hash": {strings.Replace(with(sign(inner)), "TS", "TF", 1), key, false},
		"empty hash":             {with(""), key, false},
		"nothing":                {``, key, false},
		"no transaction":         {`{"hash":"` + sign("") + `"}`, key, false},
	} {
		p := &service{callbackKey: c.key}
		got, err := p.ReadCallback(provider.CallbackRequest{Body: []byte(c.body)})
		if (err == nil) != c.good || c.good && got.Reference != query.Reference {
			t.Errorf("%s: got %v, %v; want good %v", name, got, err, c.good)
		}
	}
	var _ provider.CallbackReader = &service{}
	got, err := (&service{}).ReadCallback(provider.CallbackRequest{Body: []byte(`{"transaction":{"id":"BBZMiscxy","status_code":"TS"}}`)})
	if err != nil || !got.Reference.IsZero() {
		t.Errorf("an id of somebody else's is %v, %v", got, err)
	}
}

func FuzzEnquiry(f *testing.F) {
	for _, s := range []string{"TS", "TF", "TE", "TA", "TIP", "", "X"} {
		for _, code := range []string{"DP00800001001", "DP00800001007", "DP00800001025", "ESB000010", ""} {
			f.Add(200, body(s, code, "true"))
			f.Add(404, body(s, code, `"false"`))
		}
	}
	f.Add(200, `{"status_message":"x","status_code":"ROUTER117"}`)
	f.Fuzz(func(t *testing.T, status int, text string) {
		for _, p := range []*service{in, out} {
			got, err := p.readCheck(reply(status, text), query)
			if err != nil && got != (provider.Result{}) {
				t.Fatal("a result beside an error")
			}
			var said struct {
				Data struct {
					Transaction struct {
						Status any `json:"status"`
					} `json:"transaction"`
				} `json:"data"`
			}
			if !got.Outcome.Final() {
				continue
			}
			if err := json.Unmarshal([]byte(text), &said); err != nil || status != 200 {
				t.Fatalf("%d %q is final", status, text)
			}
			word := said.Data.Transaction.Status
			if got.Outcome == provider.Success && word != "TS" || got.Outcome != provider.Success && word != "TF" && word != "TE" {
				t.Fatalf("%d %q is %q", status, text, got.Outcome)
			}
		}
	})
}

func FuzzSubmit(f *testing.F) {
	for code := range codes {
		f.Add(200, body("TS", code, "true"))
		f.Add(400, `{"status_code":"`+code+`"}`)
	}
	f.Fuzz(func(t *testing.T, status int, text string) {
		got, err := out.readSubmit(reply(status, text))
		if err != nil && got != (provider.Result{}) {
			t.Fatal("a result beside an error")
		}
		if err == nil && (status != 200 && status != 400 || !slices.Contains([]provider.Outcome{provider.Accepted, provider.Duplicate, provider.Rejected}, got.Outcome)) {
			t.Fatalf("%d %q is %q", status, text, got.Outcome)
		}
		if got.Outcome == provider.Rejected && codes[got.Code].class != rejectedCode {
			t.Fatalf("%d %q is rejected", status, text)
		}
	})
}

func FuzzToken(f *testing.F) {
	f.Add(200, `{"access_token":"x","expires_in":"180"}`)
	f.Add(200, `{"access_token":"x","expires_in":180}`)
	f.Add(400, `{"error":"invalid_client"}`)
	f.Fuzz(func(t *testing.T, status int, text string) {
		token, life, err := readToken(reply(status, text))
		if err == nil && (token == "" || life <= 0 || status != 200 || strings.ContainsAny(token, "\r\n\x00")) {
			t.Fatalf("%d %q gives the token %q for %v", status, text, token, life)
		}
	})
}

func FuzzCallback(f *testing.F) {
	f.Add(`{"transaction":{"id":"ab020300000000000000000000000000","status_code":"TS"},"hash":"zITVAAGYSlzl1WkUQJn81kbpT5drH3koffT8jCkcJJA="}`)
	f.Add(`{"transaction":null}`)
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := readCallback([]byte(text), "a key that nobody has"); err == nil {
			t.Fatalf("%q is taken for signed", text)
		}
		readCallback([]byte(text), "")
	})
}

func FuzzKey(f *testing.F) {
	f.Add(200, `{"data":{"key_id":100,"key":"`+testKey+`"}}`)
	f.Add(200, `{"data":{"key":"AAAA"}}`)
	f.Fuzz(func(t *testing.T, status int, text string) {
		if key, err := readKey(reply(status, text)); (key == nil) != (err != nil) {
			t.Fatalf("%q gives %v, %v", text, key, err)
		}
	})
}
