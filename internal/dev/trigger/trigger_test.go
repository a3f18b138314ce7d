package trigger

import (
	"encoding/json"
	"strings"
	"testing"

	"till/provider/sandbox"
)

// table is the sandbox's own, as the service shows it.
func table() (out []Story) {
	for _, s := range sandbox.Stories() {
		one := Story{Subject: s.Subject, Name: s.Name, EndsIn: s.EndsIn, Status: s.Status}
		for _, k := range s.Events {
			one.Events = append(one.Events, string(k))
		}
		out = append(out, one)
	}
	return out
}

func TestChoose(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"payment.success": "payment approved", "payment.failed": "payment declined", "payment.expired": "payment no_answer", "payment.late_success": "payment late_money",
		"payment.reversed": "payment reversed", "payment.needs_attention": "payment stuck", "payment.pending": "payment approved", "payment.processing": "payment approved",
		"payout.success": "payout paid", "payout.failed": "payout unknown_recipient", "payout.late_success": "payout late_money", "payout.cancelled": "payout held_back", "refund.success": "refund refunded", "refund.late_success": "refund late_money", "refund.cancelled": "refund held_back", "refund.stuck": "refund stuck", "by_transfer": "refund by_transfer",
		"declined": "payment declined", "no_funds": "payment no_funds", "lost_answer": "payment lost_answer", "payout.lost_answer": "payout lost_answer", "payout.stuck": "payout stuck",
		"other_amount": "payment other_amount", "five_callbacks": "payment five_callbacks", "held_back": "payout held_back", "payment.stuck": "payment stuck",
	} {
		if s, err := choose(table(), name); err != nil || s.Subject+" "+s.Name != want {
			t.Errorf("%s: %s %s, %v", name, s.Subject, s.Name, err)
		}
	}
	for name, says := range map[string]string{"": "there is no story", "payment.paid": "there is no story", "payment.updated": "no story of the sandbox brings", "DECLINED": "there is no story"} {
		if _, err := choose(table(), name); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestSet(t *testing.T) {
	t.Parallel()
	body := map[string]any{"amount": map[string]any{"currency": "XAF"}}
	for _, text := range []string{"reference=a=b", "amount.value=5000", "metadata.cart:=88", "metadata.big:=123456789012345678901", "metadata.none:=null", "description="} {
		if err := Set(body, text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	got, _ := json.Marshal(body)
	if want := `{"amount":{"currency":"XAF","value":"5000"},"description":"","metadata":{"big":123456789012345678901,"cart":88,"none":null},"reference":"a=b"}`; string(got) != want {
		t.Errorf("%s", got)
	}
	for _, bad := range []string{"", "=", "x", "a..b=1", ".a=1", "reference.x=1", "a:=", "a:={", "a:=1 2", "a.b.c.d.e.f.g.h.i=1"} {
		if err := Set(body, bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// What is given stays; the rest is chosen so that the story is told.
func TestComplete(t *testing.T) {
	t.Parallel()
	at := market{method: "mtn_momo", country: "CG", currency: "XAF", phone: "242061234567"}
	for _, c := range []struct{ story, body, want string }{
		{"late_money", `{}`, `{"amount":{"currency":"XAF","value":"5000"},"country":"CG","customer":{"phone":"242061230013"},"idempotency_key":"k","method":"mtn_momo","reference":"r"}`},
		{"approved", `{"amount":{"value":"7"},"customer":{"name":"A"},"reference":null}`, `{"amount":{"currency":"XAF","value":"7"},"country":"CG","customer":{"name":"A","phone":"242061234567"},"idempotency_key":"k","method":"mtn_momo","reference":null}`},
		{"payout.stuck", `{"recipient":{"phone":"1"}}`, `{"amount":{"currency":"XAF","value":"5000"},"country":"CG","idempotency_key":"k","method":"mtn_momo","recipient":{"phone":"1"},"reference":"r"}`},
		{"approved", `{"amount":"wrong"}`, `{"amount":"wrong","country":"CG","customer":{"phone":"242061234567"},"idempotency_key":"k","method":"mtn_momo","reference":"r"}`}, // the service says so
	} {
		s, err := choose(table(), c.story)
		if err != nil {
			t.Fatal(err)
		}
		body := map[string]any{}
		json.Unmarshal([]byte(c.body), &body)
		err = complete(body, s, at, "k", "r")
		if got, _ := json.Marshal(body); err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v", c.story, got, err)
		}
	}
}
