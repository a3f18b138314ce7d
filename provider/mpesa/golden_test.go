package mpesa

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"slices"
	"testing"
	"time"

	"till"
	"till/provider"
	"till/provider/providertest"
)

var goldenNow = time.Date(2021, 6, 28, 6, 24, 8, 0, time.UTC) // 09:24:08 in Nairobi

const (
	goldenPush     = "ws_CO_191220191020363925"
	goldenSent     = "AG_20191219_00005797af5d7d75f652"
	goldenAsked    = "AG_20210709_1234409f86436c583e3f"
	goldenCallback = "https://till.example/callbacks/x"
)

func goldenID(t testing.TB, s string) till.ID {
	t.Helper()
	id, err := till.ParseID(s)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func goldenRequest(t testing.TB) provider.Request {
	t.Helper()
	return provider.Request{ID: goldenID(t, "019a7c3e-52d4-7a10-9b5e-0f1e2d3c4b5a"), Reference: goldenID(t, "9d0b1f4e-6c1a-4f5b-8c3d-2e7a61f0c4b9"),
		Method: "mpesa", Country: "KE", Phone: "254708374149", Amount: till.Money{Minor: 100, Currency: "KES"},
		Description: "Café n°7, two cups", CallbackURL: goldenCallback}
}

func goldenQuery(t testing.TB, handle string, mail []byte) provider.Query {
	r := goldenRequest(t)
	return provider.Query{ID: r.ID, Reference: r.Reference, Method: r.Method, Country: r.Country, Phone: r.Phone, Amount: r.Amount,
		CallbackURL: r.CallbackURL, Handle: handle, CallbackBody: mail}
}

func goldenConfig(baseURL string) Config {
	return Config{BaseURL: baseURL, ConsumerKey: "key", ConsumerSecret: "secret", ShortCode: "174379", Passkey: "bfb279f9aa9bdbcf158e97dd71a467cd",
		PayoutShortCode: "600000", Initiator: "testapi", SecurityCredential: "c2VhbGVk"}
}

func goldenOperator(t testing.TB, c Config) *Operator {
	t.Helper()
	now := func() time.Time { return goldenNow }
	o, err := New(c, provider.Deps{Connection: "mpesa", Now: now, Tokens: providertest.NewTokens(now)})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// mail returns a documented callback.
func mail(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/callbacks/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestConversations holds what we say and what we make of the answers against
// the documented examples.
func TestConversations(t *testing.T) {
	t.Parallel()
	providertest.Replay(t, "testdata", func(t *testing.T, url string, tokens provider.Tokens) (provider.Provider, provider.Provider) {
		o, err := New(goldenConfig(url), provider.Deps{Tokens: tokens, Now: func() time.Time { return goldenNow }})
		if err != nil {
			t.Fatal(err)
		}
		return o.Payments(), o.Payouts()
	})
}

// TestSimulatorSpeaksAlike makes the simulator answer like the golden files:
// same status, same shape.
func TestSimulatorSpeaksAlike(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	var said []byte
	var status int
	hear := providertest.Rewrite(func(s int, body []byte) (int, []byte) { said, status = slices.Clone(body), s; return s, body })
	same := func(t *testing.T, file string, n int) {
		t.Helper()
		x := providertest.ReadExchange(t, "testdata/"+file+".txt")
		if got, want := providertest.Shape(said), providertest.Shape(x.Body(n)); status != x.Status(n) || !slices.Equal(got, want) {
			t.Errorf("%s: the simulator answers %d %s\n%q\nwant %d\n%q", file, status, said, got, x.Status(n), want)
		}
	}
	alike := func(t *testing.T, file string, got []byte) {
		t.Helper()
		if got, want := providertest.Shape(got), providertest.Shape(mail(t, file)); !slices.Equal(got, want) {
			t.Errorf("%s: the simulator calls back with\n%q\nwant\n%q", file, got, want)
		}
	}
	submit := func(p provider.Provider, r provider.Request) provider.Result {
		w.line.Next(providertest.Submit, hear)
		result, err := p.Submit(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	check := func(p provider.Provider, r provider.Request, handle string) {
		w.line.Next(providertest.Check, hear)
		if _, err := p.Check(t.Context(), provider.Query{Reference: r.Reference, ID: r.ID, CallbackURL: r.CallbackURL, Handle: handle}); err != nil {
			t.Fatal(err)
		}
	}
	w.line.Next(providertest.Token, hear)
	first := w.request("4149")
	paid := w.o.Payments()
	if _, err := paid.Submit(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	same(t, "push_accepted", 0)
	r := w.request("4149")
	handle := submit(paid, r).Handle
	same(t, "push_accepted", 1)
	submit(paid, r) // once more while the prompt is open
	same(t, "push_busy", 1)
	check(paid, r, handle)
	same(t, "query_open", 1)
	no := w.request("1032")
	other := submit(paid, no).Handle
	w.advance(time.Minute)
	check(paid, r, handle)
	same(t, "query_paid", 1)
	alike(t, "push_paid", w.box.get(r.CallbackURL))
	check(paid, no, other)
	same(t, "query_cancelled", 1)
	alike(t, "push_cancelled", w.box.get(no.CallbackURL))
	bad := w.request("4149")
	bad.Phone = "242061234567"
	submit(paid, bad)
	same(t, "push_rejected", 1)

	out := w.o.Payouts()
	r = w.request("4149")
	submit(out, r)
	same(t, "payout_accepted", 1)
	submit(out, r)
	same(t, "payout_duplicate", 1)
	check(out, r, "")
	same(t, "payout_asked", 1)
	failing := w.request("2040")
	submit(out, failing)
	w.advance(time.Minute)
	alike(t, "payout_failed", w.box.get(failing.CallbackURL))
}

// TestDocumentedCallbacks reads the documented callbacks.
func TestDocumentedCallbacks(t *testing.T) {
	t.Parallel()
	m := readPushCallback(mail(t, "push_paid"))
	if m == nil || m.id() != goldenPush || m.receipt() != "NLJ7RT61SV" || m.amount() != (till.Money{Minor: 100, Currency: "KES"}) {
		t.Errorf("%+v", m)
	}
	r := readResultCallback(mail(t, "status_completed"))
	if r == nil || r.conversation() != goldenAsked || r.parameter("TransactionStatus") != "Completed" || r.parameter("DebitPartyCharges") != "" {
		t.Errorf("%+v", r)
	}
	one := readResultCallback([]byte(`{"Result":{"ConversationID":"A","ResultParameters":{"ResultParameter":{"Key":"ReceiptNo","Value":7}}}}`))
	if one == nil || one.parameter("ReceiptNo") != "7" {
		t.Errorf("a single parameter without its list: %+v", one)
	}
	rec := httptest.NewRecorder()
	simJSON(rec, 200, json.RawMessage(mail(t, "push_paid")))
	if readPushCallback(rec.Body.Bytes()) == nil {
		t.Error("it cannot be read back")
	}
}

// TestGuide holds the guide's page against the configuration.
func TestGuide(t *testing.T) {
	t.Parallel()
	providertest.Guide(t, "../../docs/guide/operators-mpesa.md", "mpesa", Config{})
}
