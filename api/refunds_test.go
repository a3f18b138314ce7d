package api_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"till"
	"till/provider"
	"till/store"
	"till/store/storetest"
)

// giver is a client with a payment of 5 000, a payout and a refund of 3 000, both held back.
type giver struct {
	t                           *testing.T
	w                           *world
	payment, payout, refund     string
	payoutKey, refundKey        string // idempotency keys
	client, all, payouts, money string // a client's name; keys that may everything, payouts alone, refunds and payments
}

func newGiver(t *testing.T, w *world, client string) *giver {
	t.Helper()
	g := &giver{t: t, w: w, client: client, all: client + " all", payouts: client + " payouts", money: client + " money",
		payoutKey: "00000000-0000-4000-8000-00000000000a", refundKey: "00000000-0000-4000-8000-00000000000b"}
	w.addKey(client, g.all, till.Scopes...)
	w.addKey(client, g.payouts, till.PayoutsRead, till.PayoutsWrite)
	w.addKey(client, g.money, till.PaymentsRead, till.RefundsWrite)
	if err := w.accounts.EnableMethod(t.Context(), w.clients[client].ID, "mtn_momo", true, "a test"); err != nil {
		t.Fatal(err)
	}
	g.payment = g.pay("5000", "R-1")
	g.pay("100000", "R-2")
	g.payout = g.make("/payouts", `{"method":"mtn_momo","country":"CG","amount":{"value":"700","currency":"XAF"},"idempotency_key":"`+g.payoutKey+`","recipient":{"phone":"242064000020"}}`)
	g.refund = g.make("/refunds", `{"payment_id":"`+g.payment+`","amount":{"value":"3000","currency":"XAF"},"idempotency_key":"`+g.refundKey+`"}`)
	if err := w.store.Update(t.Context(), func(tx *store.Tx) error {
		return tx.HoldPayouts(t.Context(), store.Hold{Client: w.clients[client].ID, Cause: store.HoldPerson, By: "Anne", Reason: "nothing is sent here"})
	}); err != nil {
		t.Fatal(err)
	}
	return g
}

// release lets the client make refunds again.
func (g *giver) release() {
	g.t.Helper()
	if err := g.w.store.Update(g.t.Context(), func(tx *store.Tx) error {
		return tx.ReleasePayouts(g.t.Context(), g.w.clients[g.client].ID, store.HoldPerson)
	}); err != nil {
		g.t.Fatal(err)
	}
}

// pay makes a payment by a customer whose refunds are held back.
func (g *giver) pay(value, receipt string) string {
	g.t.Helper()
	c := storetest.NewCollector(g.t, g.w.store)
	p := storetest.NewPayment(g.t, c, g.w.clients[g.client], storetest.Body{Value: value, Phone: "242064000035"})
	storetest.Apply(g.t, c, g.w.store, p, provider.Result{Outcome: provider.Success, Receipt: receipt})
	return p.ID.String()
}

func (g *giver) make(path, body string) string {
	g.t.Helper()
	a := g.w.do(http.MethodPost, "/v1"+path, g.w.keys[g.all], body)
	var made struct{ ID string }
	if err := json.Unmarshal(a.Body.Bytes(), &made); err != nil || a.Code != http.StatusAccepted {
		g.t.Fatalf("%s %s: %d %s", path, body, a.Code, a.Body)
	}
	return made.ID
}

// A refund is found under /refunds alone and a payout under /payouts alone: by id, in lists, by
// their keys, with their calls and events, and to cancel them.
func TestRefundsAndPayoutsStandApart(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, options{database: e.Config(t)})
			defer w.stop()
			g := newGiver(t, w, "test")
			key := w.keys[g.all]
			for _, suffix := range []string{"", "/events", "/attempts", "/cancel"} {
				method, body := http.MethodGet, ""
				if suffix == "/cancel" {
					method, body = http.MethodPost, "{}"
				}
				for path, code := range map[string]string{
					"/payouts/" + g.refund: "payout_not_found", "/refunds/" + g.payout: "refund_not_found",
					"/payouts/" + g.payment: "payout_not_found", "/refunds/" + g.payment: "refund_not_found",
				} {
					if a := w.do(method, "/v1"+path+suffix, key, body); a.Code != http.StatusNotFound || !strings.Contains(a.Body.String(), `"`+code+`"`) {
						t.Errorf("%s %s%s: %d %s", method, path, suffix, a.Code, a.Body)
					}
				}
			}
			for query, want := range map[string]string{
				"/payouts": g.payout, "/refunds": g.refund,
				"/payouts?status=pending": g.payout, "/refunds?status=pending": g.refund,
				"/payouts?method=mtn_momo&status=pending&limit=200": g.payout, "/refunds?method=mtn_momo&status=pending&limit=200": g.refund,
				"/payouts?from_date=2000-01-01T00:00:00Z&order=asc": g.payout, "/refunds?from_date=2000-01-01T00:00:00Z&order=asc": g.refund,
				"/payouts?idempotency_key=" + g.payoutKey: g.payout, "/refunds?idempotency_key=" + g.refundKey: g.refund,
				"/payouts?idempotency_key=" + g.refundKey: "", "/refunds?idempotency_key=" + g.payoutKey: "",
				"/refunds?payment_id=" + g.payment: g.refund, "/refunds?payment_id=" + g.payout: "",
				"/payments/" + g.payment + "/refunds": g.refund,
				"/payouts?status=success":             "", "/refunds?status=success": "",
			} {
				if got := g.ids(query); got != want {
					t.Errorf("%s has %q, want %q", query, got, want)
				}
			}
			// What either is about is said in its own words, in the log too.
			kinds := g.kinds(g.all)
			if !slices.Contains(kinds, "refund.pending of refund "+g.refund) || !slices.Contains(kinds, "payout.pending of payout "+g.payout) {
				t.Errorf("the events are %q", kinds)
			}
			for _, path := range []string{"/refunds/" + g.refund, "/payouts/" + g.payout} {
				if a := w.do(http.MethodPost, "/v1"+path+"/cancel", key, "{}"); a.Code != http.StatusOK || !strings.Contains(a.Body.String(), `"status":"cancelled"`) {
					t.Errorf("cancel %s: %d %s", path, a.Code, a.Body)
				}
			}
		})
	}
}

// ids returns the ids that a list shows, and checks that its total counts just them.
func (g *giver) ids(query string) string {
	g.t.Helper()
	a := g.w.do(http.MethodGet, "/v1"+query, g.w.keys[g.all], "")
	var page struct {
		Items []struct{ ID string }
		Total *int
	}
	if err := json.Unmarshal(a.Body.Bytes(), &page); err != nil || a.Code != http.StatusOK {
		g.t.Fatalf("%s: %d %s", query, a.Code, a.Body)
	}
	var ids []string
	for _, i := range page.Items {
		ids = append(ids, i.ID)
	}
	if page.Total != nil && *page.Total != len(ids) {
		g.t.Errorf("%s: %d of %d", query, len(ids), *page.Total)
	}
	return strings.Join(ids, " ")
}

// kinds returns what the event log shows to a key, as "refund.pending of refund ID".
func (g *giver) kinds(key string) (kinds []string) {
	g.t.Helper()
	a := g.w.do(http.MethodGet, "/v1/events?limit=200", g.w.keys[key], "")
	var page struct {
		Items []struct {
			Type string
			Data map[string]struct{ ID string }
		}
	}
	if err := json.Unmarshal(a.Body.Bytes(), &page); err != nil || a.Code != http.StatusOK {
		g.t.Fatalf("the events: %d %s", a.Code, a.Body)
	}
	for _, e := range page.Items {
		for noun, of := range e.Data {
			kinds = append(kinds, e.Type+" of "+noun+" "+of.ID)
		}
	}
	return kinds
}

// A key needs payments:read to see a refund and refunds:write to make one; payouts:write, which
// is for paying anybody, is neither. refunds:write pays nobody.
func TestTheScopesOfRefunds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	defer w.stop()
	g := newGiver(t, w, "test")
	another := g.pay("2000", "R-3")
	g.release()
	body := `{"payment_id":"` + another + `","idempotency_key":"00000000-0000-4000-8000-00000000000c"}`
	for _, c := range []struct {
		key, method, path, body string
		code                    int
	}{
		{g.payouts, http.MethodPost, "/refunds", body, 403}, {g.payouts, http.MethodPost, "/refunds/" + g.refund + "/cancel", "{}", 403},
		{g.payouts, http.MethodGet, "/refunds", "", 403}, {g.payouts, http.MethodGet, "/refunds/" + g.refund, "", 403},
		{g.payouts, http.MethodGet, "/payments/" + g.payment + "/refunds", "", 403},
		{g.payouts, http.MethodGet, "/refunds/" + g.refund + "/events", "", 403}, {g.payouts, http.MethodGet, "/refunds/" + g.refund + "/attempts", "", 403},
		{g.money, http.MethodPost, "/payouts", payoutBody, 403}, {g.money, http.MethodPost, "/payouts/" + g.payout + "/cancel", "{}", 403},
		{g.money, http.MethodGet, "/payouts", "", 403},
		{g.money, http.MethodGet, "/refunds/" + g.refund, "", 200}, {g.money, http.MethodPost, "/refunds", body, 202},
	} {
		if a := w.do(c.method, "/v1"+c.path, w.keys[c.key], c.body); a.Code != c.code || c.code == 403 && !strings.Contains(a.Body.String(), `"insufficient_scope"`) {
			t.Errorf("%s %s by %s: %d %s, want %d", c.method, c.path, c.key, a.Code, a.Body, c.code)
		}
	}
	a := w.do(http.MethodPost, "/v1/webhook-endpoints", w.keys["hooks"], `{"url":"https://93.184.216.34/hooks","events":["refund.success"]}`)
	if a.Code != http.StatusForbidden || !strings.Contains(a.Body.String(), "payments:read") {
		t.Errorf("an endpoint for refunds by a key that reads nothing: %d %s", a.Code, a.Body)
	}
	for key, sees := range map[string]map[string]bool{g.payouts: {"payout.": true}, g.money: {"payment.": true, "refund.": true}, g.all: {"payment.": true, "payout.": true, "refund.": true}} {
		kinds := strings.Join(g.kinds(key), " ")
		for _, noun := range []string{"payment.", "payout.", "refund."} {
			if strings.Contains(kinds, noun) != sees[noun] {
				t.Errorf("events of %s to %s: %s", noun, key, kinds)
			}
		}
	}
	if a := w.do(http.MethodPost, "/v1/refunds", w.keys["test"], body); a.Code != http.StatusForbidden {
		t.Errorf("a default key makes refunds: %d %s", a.Code, a.Body)
	}
}

// Bodies that are no refund, each with the status and the code of its answer. None of them makes
// anything.
func TestBodiesThatAreNoRefund(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	defer w.stop()
	g := newGiver(t, w, "live")
	g.release()
	id := g.pay("5000", "R-3")
	const key = `"idempotency_key":"00000000-0000-4000-8000-00000000000d"`
	of := func(payment, amount string) string {
		return `{"payment_id":` + payment + `,"amount":` + amount + `,` + key + `}`
	}
	value := func(v string) string { return of(`"`+id+`"`, `{"value":`+v+`,"currency":"XAF"}`) }
	for _, c := range []struct {
		name, body string
		status     int
		code       string
	}{
		{"nothing", `{}`, 422, "validation_failed"}, {"no body", ``, 400, "malformed_body"}, {"a list", `[]`, 400, "malformed_body"},
		{"zero", value(`"0"`), 422, "amount_out_of_bounds"}, {"zeros", value(`"00"`), 422, "invalid_format"}, {"negative", value(`"-1"`), 422, "invalid_format"},
		{"negative zero", value(`"-0"`), 422, "invalid_format"}, {"a plus", value(`"+1000"`), 422, "invalid_format"}, {"a fraction", value(`"1000.5"`), 422, "invalid_format"},
		{"a whole fraction", value(`"1000.0"`), 422, "invalid_format"}, {"an exponent", value(`"1e3"`), 422, "invalid_format"}, {"a leading zero", value(`"01000"`), 422, "invalid_format"},
		{"blanks", value(`" 1000"`), 422, "invalid_format"}, {"empty", value(`""`), 422, "invalid_format"}, {"words", value(`"all"`), 422, "invalid_format"},
		{"Arabic digits", value(`"١٠٠٠"`), 422, "invalid_format"}, {"23 digits", value(`"` + strings.Repeat("9", 23) + `"`), 422, "invalid_format"},
		{"a number", value(`1000`), 400, "malformed_body"}, {"a float", value(`1000.0`), 400, "malformed_body"}, {"no value", value(`null`), 422, "required"},
		{"one above", value(`"5001"`), 422, "refund_exceeds_payment"}, {"below the operator's minimum", value(`"99"`), 422, "amount_out_of_bounds"},
		{"above the operator's maximum", value(`"2000001"`), 422, "amount_out_of_bounds"},
		{"another currency", of(`"`+id+`"`, `{"value":"1000","currency":"XOF"}`), 422, "currency_not_supported"},
		{"a currency in small letters", of(`"`+id+`"`, `{"value":"1000","currency":"xaf"}`), 422, "invalid_format"},
		{"no currency", of(`"`+id+`"`, `{"value":"1000"}`), 422, "required"}, {"an amount as text", of(`"`+id+`"`, `"1000"`), 400, "malformed_body"},
		{"no payment", `{` + key + `}`, 422, "required"}, {"a payment that is null", `{"payment_id":null,` + key + `}`, 422, "required"},
		{"a payment that is no UUID", of(`"1"`, `null`), 422, "invalid_format"}, {"a payment as a number", of(`1`, `null`), 400, "malformed_body"},
		{"a payout as the payment", of(`"`+g.payout+`"`, `null`), 404, "payment_not_found"}, {"a refund as the payment", of(`"`+g.refund+`"`, `null`), 404, "payment_not_found"},
		{"a payment that there is not", of(`"`+unknownID+`"`, `null`), 404, "payment_not_found"},
		{"no key", `{"payment_id":"` + id + `"}`, 422, "required"}, {"a key that is no UUID", `{"payment_id":"` + id + `","idempotency_key":"1"}`, 422, "invalid_format"},
		{"a reason of one's own", `{"payment_id":"` + id + `","reason":"because",` + key + `}`, 422, "invalid_format"},
		{"a payout's key", `{"payment_id":"` + id + `","idempotency_key":"` + g.payoutKey + `"}`, 422, "idempotency_key_reused"},
	} {
		a := w.do(http.MethodPost, "/v1/refunds", w.keys[g.all], c.body)
		if a.Code != c.status || !strings.Contains(a.Body.String(), `"code":"`+c.code+`"`) {
			t.Errorf("%s: %d %s, want %d %s", c.name, a.Code, a.Body, c.status, c.code)
		}
	}
	if got := g.ids("/refunds"); got != g.refund {
		t.Errorf("the refunds are %q", got)
	}
}

// Who gets the money is not in the body's gift: what a live client says of it is ignored, as
// unknown members are, and the answer shows the number that paid.
func TestABodyCannotSayWhoIsRefunded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	defer w.stop()
	g := newGiver(t, w, "live")
	g.release()
	id := g.pay("5000", "R-3")
	a := w.do(http.MethodPost, "/v1/refunds", w.keys[g.all], `{"payment_id":"`+id+`","idempotency_key":"00000000-0000-4000-8000-00000000000d","recipient":{"phone":"242069999999"},"phone":"242069999999",
		"customer":{"phone":"242069999999"},"method":"airtel_money","country":"CM","road":"refund","connection":"forged","status":"success","fee":"-5","net":"1","id":"00000000-0000-7000-8000-000000000001"}`)
	body := a.Body.String()
	for _, want := range []string{`"recipient":{"phone":"242064000035"}`, `"method":"mtn_momo"`, `"country":"CG"`, `"status":"pending"`, `"amount":{"value":"5000","currency":"XAF"}`, `"fee":"0"`, `"net":"5000"`} {
		if a.Code != http.StatusAccepted || !strings.Contains(body, want) {
			t.Errorf("%d %s lacks %s", a.Code, body, want)
		}
	}
	if strings.Contains(body, "06999999") || strings.Contains(body, "forged") || strings.Contains(body, "0000-7000-8000-000000000001") || !strings.Contains(a.Header().Get("Till-Warning"), "recipient") {
		t.Errorf("%v %s", a.Header(), body)
	}
}

// The lines of a payment are its collection, its fee and its refunds with their fees, and one
// can ask for those of a refund or a payout alone.
func TestTheLinesOfAPaymentAndItsRefunds(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, options{database: e.Config(t)})
			defer w.stop()
			w.addKey("live", "all", till.Scopes...)
			c, m, client := storetest.NewCollector(t, w.store), storetest.NewDisburser(t, w.store), w.clients["live"]
			p := storetest.NewPayment(t, c, client, storetest.Body{Fees: []till.Fee{{Kind: till.PaymentFee, Method: "mtn_momo", Currency: "XAF", Flat: 75}}})
			storetest.Apply(t, c, w.store, p, provider.Result{Outcome: provider.Success, Receipt: "R-1"})
			refund := func(value, receipt string, words ...provider.Result) *till.Payout {
				r := storetest.NewRefund(t, m, w.store, client, storetest.RefundBody{PaymentID: p.ID.String(), Value: value, Fee: 10})
				for _, word := range words {
					word.Receipt = receipt
					storetest.ApplyPayout(t, m, w.store, r, word)
				}
				return r
			}
			first := refund("1000", "O-1", storetest.Succeeded)
			late := refund("2000", "O-2", storetest.Declined, storetest.Succeeded)
			refund("500", "", storetest.Declined)
			plain := storetest.NewPayout(t, m, client, storetest.Body{Value: "100"}, 0)
			storetest.ApplyPayout(t, m, w.store, plain, provider.Result{Outcome: provider.Success, Receipt: "O-3"})

			names := map[string]string{p.ID.String(): "P", first.ID.String(): "1", late.ID.String(): "2", plain.ID.String(): "O"}
			const in, feeIn, back, feeBack, lateBack = "collection P - -", "fee P - -", "refund P - 1", "fee P - 1", "late_refund P - 2"
			for query, want := range map[string]string{
				"?payment_id=" + p.ID.String():                  in + ", " + feeIn + ", " + back + ", " + feeBack + ", " + lateBack,
				"?refund_id=" + first.ID.String():               back + ", " + feeBack,
				"?refund_id=" + late.ID.String():                lateBack,
				"?payout_id=" + plain.ID.String():               "payout - O -",
				"?refund_id=" + plain.ID.String():               "",
				"?type=refund":                                  back,
				"?type=late_refund":                             lateBack,
				"?type=payout":                                  "payout - O -",
				"?payment_id=" + p.ID.String() + "&type=refund": back,
			} {
				a := w.do(http.MethodGet, "/v1/transactions"+query+"&order=asc", w.keys["all"], "")
				var page struct {
					Items []struct {
						Type      string
						PaymentID *string `json:"payment_id"`
						PayoutID  *string `json:"payout_id"`
						RefundID  *string `json:"refund_id"`
					}
					Total int
				}
				if err := json.Unmarshal(a.Body.Bytes(), &page); err != nil || a.Code != http.StatusOK {
					t.Fatalf("%s: %d %s", query, a.Code, a.Body)
				}
				var lines []string
				for _, l := range page.Items {
					line := l.Type
					for _, id := range []*string{l.PaymentID, l.PayoutID, l.RefundID} {
						name := "-"
						if id != nil {
							name = names[*id]
						}
						line += " " + name
					}
					lines = append(lines, line)
				}
				if got := strings.Join(lines, ", "); got != want || page.Total != len(lines) {
					t.Errorf("%s: %q of %d, want %q", query, got, page.Total, want)
				}
			}
			a := w.do(http.MethodGet, "/v1/payments/"+p.ID.String(), w.keys["all"], "")
			if !strings.Contains(a.Body.String(), `"refunds":{"refunded":"3000","refunding":"0","refundable":"2000"}`) {
				t.Errorf("the payment is %s", a.Body)
			}
		})
	}
}

// Endpoints for all events hear of refunds, as those do whose key read payments when they were
// registered; one that was given a list keeps it.
func TestWhoHearsOfRefunds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	defer w.stop()
	x := hookScopes{t, w}
	w.addKey("test", "half", till.WebhooksManage, till.PaymentsRead)
	w.addKey("test", "out", till.WebhooksManage, till.PayoutsRead)
	all, half := x.register("test", `["*"]`), x.register("half", `["*"]`)
	out, list := x.register("out", `["*"]`), x.register("half", `["payment.success"]`)
	g := newGiver(t, w, "test")
	if !slices.Contains(half.Events, "refund.success") || slices.Contains(half.Events, "payout.success") || slices.Contains(out.Events, "refund.success") {
		t.Errorf("* is %v for a key that reads payments, and %v for one that reads payouts", half.Events, out.Events)
	}
	if !slices.Contains(g.kinds(g.all), "refund.pending of refund "+g.refund) {
		t.Fatal("there is no event of a refund")
	}
	for _, c := range []struct {
		name  string
		e     hookAnswer
		hears bool
	}{{"all", all, true}, {"half", half, true}, {"out", out, false}, {"list", list, false}} {
		if kinds := x.deliveries(g.all, c.e.ID, "?status=pending&limit=200"); slices.Contains(kinds, "refund.pending") != c.hears {
			t.Errorf("%s hears %v", c.name, kinds)
		}
	}
}

// A read of a refund waits until its status changes, as one of a payment does.
func TestAReadOfARefundWaits(t *testing.T) {
	t.Parallel()
	database := storetest.Engines()[0].Config(t)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, options{database: database})
		defer w.stop()
		w.addKey("test", "all", till.Scopes...)
		payment := w.created("test", "00000000-0000-4000-8000-000000000001", "242064000001")
		time.Sleep(5 * time.Second)
		a := w.do(http.MethodPost, "/v1/refunds", w.keys["all"], refundBody(payment))
		var made struct{ ID string }
		if err := json.Unmarshal(a.Body.Bytes(), &made); err != nil || a.Code != http.StatusAccepted {
			t.Fatalf("%d %s", a.Code, a.Body)
		}
		begun := time.Now()
		for status := "pending"; status != "success"; {
			status = statusOf(t, w.do(http.MethodGet, "/v1/refunds/"+made.ID+"?wait=30", w.keys["all"], ""))
		}
		if took := time.Since(begun); took == 0 || took > 10*time.Second {
			t.Errorf("the success was told after %s", took)
		}
		a = w.do(http.MethodPost, "/v1/refunds/"+made.ID+"/cancel", w.keys["all"], "{}")
		if a.Code != http.StatusConflict || !strings.Contains(a.Body.String(), `"refund_not_cancellable"`) {
			t.Errorf("cancel what has ended: %d %s", a.Code, a.Body)
		}
	})
}
