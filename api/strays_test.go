package api_test

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"till"
	"till/api"
	"till/books"
	"till/engine"
	"till/internal/seal"
	"till/provider"
	"till/store"
	"till/store/matching"
)

// claiming is an operator that calls one address, and whose callbacks can be read.
type claiming struct {
	signing
	payout bool
}

// ReadClaim implements provider.ClaimReader.
func (c claiming) ReadClaim(body []byte) (provider.Claim, bool) {
	if c.payout != strings.Contains(string(body), "payout") {
		return provider.Claim{}, false
	}
	return provider.Claim{Outcome: provider.Success, Receipt: "R1", Amount: till.Money{Minor: 700, Currency: "XAF"}}, true
}

// A callback whose address is ours, or that the operator has signed, and that is
// about nothing here: it is written down once, before it is answered.
func TestACallbackAboutNothingHereIsAStray(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		w := newWorld(t, options{})
		defer w.stop()
		strays, err := books.NewStrays(w.store, seal.Single([]byte("a secret for tests")))
		if err != nil {
			t.Fatal(err)
		}
		h := api.New(api.Config{
			Store: w.store, Collector: w.collector, Payouts: w.payouts, Accounts: w.accounts, Endpoints: w.endpoints, BaseURL: baseURL, ErrorPages: errorPages, Strays: strays,
			CallbackPolicies: map[string]*api.CallbackPolicy{
				"momo": {Secrets: func() []string { return []string{"unguessable"} }, Readers: []provider.CallbackReader{claiming{}}, Networks: []netip.Prefix{netip.MustParsePrefix("212.88.125.0/24")},
					Claims: map[till.SubjectKind]provider.ClaimReader{till.SubjectPayment: claiming{}, till.SubjectPayout: claiming{payout: true}}},
				"sandbox": {Claims: map[till.SubjectKind]provider.ClaimReader{till.SubjectPayment: w.operator, till.SubjectPayout: w.operator.Payouts()}},
			},
		})
		// lost returns the address and the reference of a payment or payout that is not here.
		lost := func(kind till.SubjectKind) (path string, reference till.ID) {
			keys := engine.NewKeys(kind, []byte("a secret for tests"))
			ref := store.Ref{Client: w.clients["test"].ID, ID: till.NewID(w.store.Now())}
			return "sandbox/" + keys.CallbackToken("sandbox", ref), keys.Reference(ref.Client, till.NewID(w.store.Now()).String())
		}
		says := func(reference till.ID, status string) string {
			return fmt.Sprintf(`{"payment_id": "x", "reference": %q, "status": %q, "receipt": "SBX1"}`, reference, status)
		}
		in, inReference := lost(till.SubjectPayment)
		out, outReference := lost(till.SubjectPayout)
		failed, failedReference := lost(till.SubjectPayment)
		mute, _ := lost(till.SubjectPayment)
		forged := in[:len(in)-2] + "xx"
		signed, signedOut := till.NewID(7), till.NewID(8)
		open := 0
		for _, c := range []struct {
			name           string
			in             callback
			status, strays int
		}{
			{"a success", callback{path: in, body: says(inReference, "success")}, 200, 1},
			{"a copy of it", callback{path: in, body: says(inReference, "success")}, 200, 0},
			{"a payout's", callback{path: out, body: says(outReference, "success")}, 200, 1},
			{"a failure: no money", callback{path: failed, body: says(failedReference, "failed")}, 200, 0},
			{"what nobody can read", callback{path: mute, body: "<html>"}, 200, 1},
			{"a token that is not ours", callback{path: forged, body: says(inReference, "success")}, 404, 0},
			{"signed, with a reference", callback{body: `{"reference": "` + signed.String() + `"}`}, 200, 1},
			{"the same", callback{body: `{"reference": "` + signed.String() + `"}`}, 200, 0},
			{"signed, of a payout", callback{body: `{"kind": "payout", "reference": "` + signedOut.String() + `"}`}, 200, 1}, // under the same receipt: that is for a person to see
			{"signed, about nothing of ours", callback{body: `{"handle": "ws_9"}`}, 503, 0},
			{"unsigned", callback{body: `{"reference": "` + till.NewID(9).String() + `"}`, unsigned: true}, 404, 0},
		} {
			if got := exchange(h, c.in); got != c.status {
				t.Errorf("%s: answered %d, want %d", c.name, got, c.status)
			}
			all, err := books.ListStrays(ctx, w.store, matching.StrayFilter{})
			if err != nil || len(all)-open != c.strays {
				t.Errorf("%s: %d strays more, want %d (%v)", c.name, len(all)-open, c.strays, err)
			}
			open = len(all)
		}
		got := map[string]bool{}
		all, _ := books.ListStrays(ctx, w.store, matching.StrayFilter{})
		for _, s := range all {
			got[fmt.Sprintf("%s %s %q %s %s %d", s.Connection, s.Direction, s.Claimed, s.Reference, s.Receipt, s.Amount.Minor)] = true
		}
		for _, want := range []string{
			fmt.Sprintf(`sandbox in "success" %s SBX1 0`, inReference), fmt.Sprintf(`sandbox out "success" %s SBX1 0`, outReference),
			fmt.Sprintf(`sandbox in "" %s  0`, till.ID{}), fmt.Sprintf(`momo in "success" %s R1 700`, signed),
			fmt.Sprintf(`momo out "success" %s R1 700`, signedOut),
		} {
			if !got[want] {
				t.Errorf("no stray %s among %v", want, got)
			}
		}
	})
}

// The client's retry has made the payment again before the callback for the lost
// one comes: that is asked about, and nothing is a stray.
func TestACallbackForALostPaymentThatWasMadeAgainWakesIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		w := newWorld(t, options{})
		defer w.stop()
		strays, err := books.NewStrays(w.store, seal.Single([]byte("a secret for tests")))
		if err != nil {
			t.Fatal(err)
		}
		h := api.New(api.Config{Store: w.store, Collector: w.collector, Payouts: w.payouts, Accounts: w.accounts, Endpoints: w.endpoints, BaseURL: baseURL, ErrorPages: errorPages, Strays: strays,
			CallbackPolicies: map[string]*api.CallbackPolicy{"sandbox": {Claims: map[till.SubjectKind]provider.ClaimReader{till.SubjectPayment: w.operator}}}})
		key := "0199a7f0-0000-7000-8000-000000000001"
		a := w.do(http.MethodPost, "/v1/payments", w.keys["test"], `{"method": "mtn_momo", "country": "CG", "amount": {"value": "5000", "currency": "XAF"},
			"customer": {"phone": "242061230014"}, "idempotency_key": "`+key+`"}`)
		if a.Code != http.StatusAccepted {
			t.Fatal(a.Code, a.Body)
		}
		time.Sleep(3 * time.Second)
		client := w.clients["test"].ID
		page := func() (id till.ID, seq int64) {
			err := w.store.View(ctx, func(tx *store.Tx) error {
				all, _, err := tx.ListPayments(ctx, client, store.PaymentFilter{}, store.Page{Limit: 1})
				if err != nil {
					return err
				}
				id = all[0].ID
				s, err := tx.Step(ctx, store.Ref{Client: client, ID: id})
				if err == nil {
					seq = s.WakeSeq
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return id, seq
		}
		_, before := page()
		keys := engine.NewKeys(till.SubjectPayment, []byte("a secret for tests"))
		token := keys.CallbackToken("sandbox", store.Ref{Client: client, ID: till.NewID(w.store.Now())})
		body := fmt.Sprintf(`{"reference": %q, "status": "success", "receipt": "SBX1"}`, keys.Reference(client, key))
		if got := exchange(h, callback{path: "sandbox/" + token, body: body}); got != 200 {
			t.Errorf("answered %d", got)
		}
		if _, after := page(); after <= before {
			t.Error("the payment that was made again was not asked about")
		}
		if n, err := books.CountOpenStrays(ctx, w.store); n != 0 || err != nil {
			t.Errorf("%d strays, %v", n, err)
		}
	})
}
