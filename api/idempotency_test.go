package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"till/store/storetest"
)

// onEachEngine runs f with a service on a new database of each engine.
func onEachEngine(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, options{database: e.Config(t)})
			defer w.stop()
			f(t, w)
		})
	}
}

// F23: a key belongs to its client. Two clients that draw the same one have
// two payments, and neither learns of the other's.
func TestTheSameKeyOfAnotherClientIsAnotherPayment(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, w *world) {
		const key = "00000000-0000-4000-8000-000000000001"
		bodies := map[string]string{"test": goodBody(key), "other": strings.Replace(goodBody(key), "5000", "7000", 1)}
		first := map[string]string{}
		for range 2 {
			for client, body := range bodies {
				a := w.do(http.MethodPost, "/v1/payments", w.keys[client], body)
				var p struct{ ID string }
				if err := json.Unmarshal(a.Body.Bytes(), &p); err != nil || a.Code != http.StatusAccepted {
					t.Fatalf("%s: %d %s", client, a.Code, a.Body)
				}
				before, again := first[client]
				if replayed := a.Header().Get("Idempotent-Replayed") != ""; replayed != again {
					t.Errorf("%s: replayed %t, want %t", client, replayed, again)
				}
				if again && p.ID != before {
					t.Errorf("%s: payment %s, then %s", client, before, p.ID)
				}
				first[client] = p.ID
			}
		}
		if first["test"] == first["other"] {
			t.Error("two clients share a payment")
		}
		for client, amount := range map[string]string{"test": "5000", "other": "7000"} {
			a := w.do(http.MethodGet, "/v1/payments?idempotency_key="+key, w.keys[client], "")
			var page struct {
				Total int
				Items []struct {
					ID     string
					Amount struct{ Value string }
				}
			}
			if err := json.Unmarshal(a.Body.Bytes(), &page); err != nil || page.Total != 1 || page.Items[0].Amount.Value != amount {
				t.Errorf("%s: %d %s", client, a.Code, a.Body)
			}
		}
	})
}

// F24: a key is a UUID of 8-4-4-4-12 digits, whatever their case. No other
// spelling is a key, so none can be mistaken for a new one.
func TestSpellingsOfAKey(t *testing.T) {
	t.Parallel()
	const key = "9f0c5a8e-51f4-4f43-9d0b-0d6c6a3a7bff"
	onEachEngine(t, func(t *testing.T, w *world) {
		id := w.created("test", key, "242064000001")
		for _, same := range []string{strings.ToUpper(key), "9F0c5A8e-51f4-4F43-9d0B-0d6c6a3a7bFf"} {
			a := w.do(http.MethodPost, "/v1/payments", w.keys["test"], goodBody(same))
			if a.Code != http.StatusAccepted || a.Header().Get("Idempotent-Replayed") != "true" || !strings.Contains(a.Body.String(), id) {
				t.Errorf("%s: %d %s", same, a.Code, a.Body)
			}
			if a := w.do(http.MethodPost, "/v1/payments", w.keys["test"], strings.Replace(goodBody(same), "5000", "5001", 1)); a.Code != http.StatusUnprocessableEntity ||
				!strings.Contains(a.Body.String(), `"idempotency_key_reused"`) {
				t.Errorf("%s with another body: %d %s", same, a.Code, a.Body)
			}
		}
		for name, other := range map[string]string{
			"braces": "{" + key + "}", "a URN": "urn:uuid:" + key, "bare digits": strings.ReplaceAll(key, "-", ""), "a space": " " + key, "a line's end": key + `\n`,
			"other groups": "9f0c5a8e51f4-4f43-9d0b-0d6c-6a3a7bff", "no digit": "g" + key[1:], "a digit too few": key[1:], "a digit too many": key + "0",
			"full-width digits": "９" + key[1:], "nothing": "", "a NUL": `\u0000` + key[1:],
		} {
			a := w.do(http.MethodPost, "/v1/payments", w.keys["test"], goodBody(other))
			want := http.StatusUnprocessableEntity
			if name == "a NUL" {
				want = http.StatusBadRequest // the body itself is malformed
			}
			if a.Code != want || want == http.StatusUnprocessableEntity && !strings.Contains(a.Body.String(), `"/idempotency_key"`) {
				t.Errorf("%s: %d %s", name, a.Code, a.Body)
			}
		}
		a := w.do(http.MethodGet, "/v1/payments", w.keys["test"], "")
		if !strings.Contains(a.Body.String(), `"total":1`) {
			t.Errorf("there should be one payment: %s", a.Body)
		}
	})
}
