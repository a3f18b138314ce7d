package till

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// vectors reads the cases that all SDKs share.
func vectors[C any](t *testing.T, name string) C {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "conformance", "vectors", name))
	if err != nil {
		t.Fatal(err)
	}
	var c C
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestWebhookVectors(t *testing.T) {
	t.Parallel()
	v := vectors[struct {
		Cases []struct {
			Name    string
			Secrets []string
			Headers map[string]string
			Body    string
			Pad     int
			Now     int64
			Expect  string
		}
	}](t, "webhook.json")
	if len(v.Cases) < 100 {
		t.Fatalf("%d cases", len(v.Cases))
	}
	for _, c := range v.Cases {
		h := http.Header{}
		for name, value := range c.Headers {
			h.Set(name, value)
		}
		body := strings.Replace(c.Body, "PAD", strings.Repeat("x", c.Pad), 1)
		e, err := Verify(c.Secrets, h, []byte(body), time.Unix(c.Now, 0))
		got := "ok"
		var refused *WebhookError
		switch {
		case errors.As(err, &refused):
			got = refused.Word
		case errors.Is(err, ErrBadSecret):
			got = "bad_secret"
		case err != nil:
			got = err.Error()
		case e.ID == "":
			got = "no event"
		}
		if got != c.Expect {
			t.Errorf("%s: %s, want %s", c.Name, got, c.Expect)
		}
	}
}

func TestReturnVectors(t *testing.T) {
	t.Parallel()
	v := vectors[struct {
		Cases []struct {
			Name, Secret, Checkout string
			Query                  map[string]string
			Now                    int64
			Expect                 string
		}
	}](t, "return.json")
	if len(v.Cases) < 40 {
		t.Fatalf("%d cases", len(v.Cases))
	}
	for _, c := range v.Cases {
		q := url.Values{}
		for name, value := range c.Query {
			q.Set(name, value)
		}
		got, err := VerifyReturn(c.Secret, c.Checkout, q, time.Unix(c.Now, 0))
		var refused *ReturnError
		if errors.As(err, &refused) && got == "" {
			got = refused.Word
		}
		if got != c.Expect {
			t.Errorf("%s: %s, want %s", c.Name, got, c.Expect)
		}
	}
	if !errors.Is(&ReturnError{Word: "altered"}, ErrReturnAltered) || errors.Is(ErrReturnTooOld, ErrReturnAltered) {
		t.Error("the words are not told apart")
	}
}

func TestOutcomeVectors(t *testing.T) {
	t.Parallel()
	v := vectors[struct {
		Cases []struct {
			Call   string
			Before bool
			Status int
			Code   string
			Reason string
			Sent   *bool
			Expect string
		}
	}](t, "outcome.json")
	calls := map[string]operation{"create": opCreatePayment, "read": opGetPayment, "change": opCancelPayout}
	words := map[verdict]string{verdictDone: "taken", verdictRefused: "refused", verdictUnavailable: "unavailable", verdictUnclear: "unclear", verdictLook: "refused_if_absent"}
	for _, c := range v.Cases {
		got := &tried{status: c.Status, reason: c.Reason, sent: c.Sent == nil || *c.Sent}
		if c.Code != "" {
			got.problem = &Problem{Code: c.Code}
		}
		if word := words[judge(calls[c.Call], got, c.Before)]; word != c.Expect {
			t.Errorf("%+v is %s", c, word)
		}
	}
}

func TestRetryVectors(t *testing.T) {
	t.Parallel()
	v := vectors[struct {
		Repeats []struct {
			Call   string
			Status int
			Reason string
			Sent   bool
			Expect bool
		}
		Delays []struct {
			Repeat       int
			Random       float64
			RetryAfterMS int `json:"retry_after_ms"`
			ExpectMS     int `json:"expect_ms"`
		}
		Headers []struct {
			RetryAfter string `json:"retry_after"`
			Date, Now  string
			ExpectMS   int `json:"expect_ms"`
		}
		Outbox []struct {
			Tries    int
			ExpectMS int `json:"expect_ms"`
		}
	}](t, "retry.json")
	calls := map[string]operation{"safe": opGetPayment, "key": opCreatePayment, "never": opCreateAPIKey}
	for _, c := range v.Repeats {
		if got := calls[c.Call].repeatable(&tried{status: c.Status, reason: c.Reason, sent: c.Sent}); got != c.Expect {
			t.Errorf("%+v: %v", c, got)
		}
	}
	for _, c := range v.Delays {
		if got := delay(c.Repeat, time.Duration(c.RetryAfterMS)*time.Millisecond, c.Random); got.Milliseconds() != int64(c.ExpectMS) {
			t.Errorf("%+v: %s", c, got)
		}
	}
	for _, c := range v.Headers {
		h := http.Header{"Retry-After": {c.RetryAfter}}
		now := time.Date(2026, 11, 15, 5, 51, 53, 0, time.UTC)
		if c.Date != "" {
			h.Set("Date", c.Date)
			now = now.Add(time.Hour) // our clock is wrong, and it does not matter
		}
		if at, err := http.ParseTime(c.Now); err == nil {
			now = at
		}
		if got := retryAfter(h, now); got.Milliseconds() != int64(c.ExpectMS) {
			t.Errorf("%+v: %s", c, got)
		}
	}
	for _, c := range v.Outbox {
		if got := outboxDelay(c.Tries); got.Milliseconds() != int64(c.ExpectMS) {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

func TestMoneyVectors(t *testing.T) {
	t.Parallel()
	type moneyCase struct {
		Op, Amount, Value, Currency, Other, Factor, Language, Error string
		OtherCurrency                                               string `json:"other_currency"`
		Parts                                                       int
		Expect                                                      any
	}
	v := vectors[struct{ Cases []moneyCase }](t, "money.json")
	words := map[error]string{ErrBadAmount: "bad_amount", ErrBadCurrency: "bad_currency", ErrOtherCurrency: "other_currency", ErrTooManyDecimals: "too_many_decimals", ErrNotExact: "not_exact", ErrNegative: "negative"}
	do := func(c moneyCase) (any, error) {
		m, other := Minor(c.Value, c.Currency), Minor(c.Other, c.OtherCurrency)
		var err error
		switch c.Op {
		case "major":
			m, err = Major(c.Amount, c.Currency)
		case "check":
			return "ok", m.Check()
		case "add":
			m, err = m.Add(other)
		case "subtract":
			m, err = m.Subtract(other)
		case "compare":
			n, err := m.Compare(other)
			return map[int]string{-1: "-1", 0: "0", 1: "1"}[n], err
		case "times":
			m, err = m.Times(Decimal(c.Factor))
		case "split":
			parts, err := m.Split(c.Parts)
			var out []any
			for _, p := range parts {
				out = append(out, p.Value)
			}
			return out, err
		case "to_major":
			return first(m.Major())
		case "format":
			return first(m.Format(c.Language))
		}
		return m.Value, err
	}
	for _, c := range v.Cases {
		got, err := do(c)
		word := words[err]
		if err != nil && word == "" {
			word = "bad_parts"
		}
		if word != c.Error || err == nil && !reflect.DeepEqual(got, c.Expect) {
			t.Errorf("%+v: %v, %v", c, got, err)
		}
	}
}

func first(s string, err error) (any, error) { return s, err }

func TestPhoneVectors(t *testing.T) {
	t.Parallel()
	v := vectors[struct {
		Cases []struct {
			Text, Expect, Error string
			Rule                PaymentMethodCountryPhone
		}
	}](t, "phone.json")
	for _, c := range v.Cases {
		got, err := ReadPhone(c.Text, c.Rule)
		var wrong PhoneError
		errors.As(err, &wrong)
		if got != c.Expect || string(wrong) != c.Error {
			t.Errorf("%q: %q, %v; want %q %q", c.Text, got, err, c.Expect, c.Error)
		}
	}
}

// schemas are the types by the names of the document.
var schemas = map[string]func() any{
	"ApiKeyList": fresh[APIKeyList], "AttemptList": fresh[AttemptList], "DeliveryList": fresh[DeliveryList], "Event": fresh[Event],
	"EventList": fresh[EventList], "EventPage": fresh[EventPage], "Me": fresh[Me], "NewApiKey": fresh[NewAPIKey], "NewWebhookEndpoint": fresh[NewWebhookEndpoint],
	"Payment": fresh[Payment], "PaymentMethodList": fresh[PaymentMethodList], "PaymentMethodPrediction": fresh[PaymentMethodPrediction], "PaymentPage": fresh[PaymentPage], "Payout": fresh[Payout],
	"PayoutPage": fresh[PayoutPage], "Problem": fresh[Problem], "Redelivered": fresh[Redelivered], "Replayed": fresh[Replayed],
	"Checkout": fresh[Checkout], "CheckoutPage": fresh[CheckoutPage], "NewCheckout": fresh[NewCheckout],
	"Link": fresh[Link], "LinkPage": fresh[LinkPage],
	"Refund": fresh[Refund], "RefundList": fresh[RefundList], "RefundPage": fresh[RefundPage],
	"RevokedApiKey": fresh[RevokedAPIKey], "SandboxDecision": fresh[SandboxDecision], "SandboxPromptList": fresh[SandboxPromptList], "SandboxStoryList": fresh[SandboxStoryList],
	"TransactionPage": fresh[TransactionPage], "WalletList": fresh[WalletList], "WebhookEndpoint": fresh[WebhookEndpoint],
	"WebhookEndpointList": fresh[WebhookEndpointList], "WebhookTest": fresh[WebhookTest],
}

func fresh[A any]() any { return new(A) }

// Every golden answer of the service is read, and written again as it was; so is
// the same answer with members that nobody knows, in every object.
func TestDecodeVectors(t *testing.T) {
	t.Parallel()
	v := vectors[struct {
		Cases []struct {
			From, Schema string
			JSON         json.RawMessage
		}
	}](t, "decode.json")
	for _, c := range v.Cases {
		if schemas[c.Schema] == nil {
			t.Errorf("%s: nobody reads a %s", c.From, c.Schema)
			continue
		}
		for _, text := range [][]byte{c.JSON, grown(t, c.JSON)} {
			into := schemas[c.Schema]()
			if err := json.Unmarshal(text, into); err != nil {
				t.Errorf("%s: %v", c.From, err)
				continue
			}
			out, err := json.Marshal(into)
			if err != nil || !sameJSON(out, text) {
				t.Errorf("%s: %v\n got %s\nwant %s", c.From, err, out, text)
			}
		}
	}
}

// grown is an answer of a later release: more members in every object but those
// of money and metadata.
func grown(t *testing.T, text []byte) []byte {
	t.Helper()
	var v any
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	var grow func(any)
	grow = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				grow(e)
			}
		case map[string]any:
			for name, e := range v {
				if name != "metadata" && name != "amount" && name != "headers" {
					grow(e)
				}
			}
			v["blessing"] = map[string]any{"of": []any{json.Number("12345678901234567890"), nil}}
		}
	}
	grow(v)
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
