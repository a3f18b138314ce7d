package mpesa

import (
	"strings"
	"testing"

	"till/provider"
	"till/provider/providertest"
	"till/provider/wire"
)

// seed adds the golden answers, whole and cut.
func seed(f *testing.F, add func(status int, body []byte)) {
	for _, name := range []string{"push_accepted", "push_rejected", "push_busy", "query_paid", "query_cancelled", "query_open", "payout_accepted",
		"payout_duplicate", "payout_asked"} {
		x := providertest.ReadExchange(&testing.T{}, "testdata/"+name+".txt")
		body := x.Body(1)
		add(x.Status(1), body)
		add(x.Status(1), body[:len(body)/2])
	}
}

// FuzzAnswers: no answer of Daraja's panics, and only its own words mean
// anything.
func FuzzAnswers(f *testing.F) {
	seed(f, func(status int, body []byte) { f.Add(status, body) })
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		text := string(body)
		escaped := strings.Contains(text, `\`)
		fine := func(r provider.Result, err error) bool {
			if err != nil && r != (provider.Result{}) {
				t.Fatalf("a result beside the error: %+v", r)
			}
			return err == nil
		}
		if r, err := readPushQuery(status, body, goldenPush); fine(r, err) {
			switch {
			case r.Outcome.Final() && (status != 200 || !escaped && !strings.Contains(text, goldenPush)):
				t.Fatalf("%d %q ends a payment: %+v", status, body, r)
			case r.Outcome.Final() && r.Outcome != provider.Success && pushCodes[r.Code].reason != r.Reason:
				t.Fatalf("code %q became %q", r.Code, r.Reason)
			case r.Outcome == provider.NotFound || r.Handle != goldenPush:
				t.Fatalf("%d %q: %+v", status, body, r)
			}
		}
		for _, read := range []func(int, []byte) (provider.Result, error){readPush, readPayout} {
			if r, err := read(status, body); fine(r, err) {
				switch r.Outcome {
				case provider.Accepted:
					if status != 200 || r.Handle == "" {
						t.Fatalf("%d %q: %+v", status, body, r)
					}
				case provider.Rejected:
					if status == 200 || r.Reason == "" || r.Code == "" {
						t.Fatalf("%d %q: %+v", status, body, r)
					}
				case provider.Duplicate:
				default:
					t.Fatalf("%d %q: %+v", status, body, r)
				}
			}
		}
		if id, err := readQueryAccepted(status, body); err == nil && (status != 200 || !isID(id)) {
			t.Fatalf("%d %q: %q", status, body, id)
		}
		if token, life, err := readToken(&wire.Reply{Status: status, Body: body}); err == nil && (token == "" || life <= 0 || status != 200) {
			t.Fatalf("%d %q: %q for %v", status, body, token, life)
		}
	})
}

// FuzzMail: no callback panics, and none decides anything without a question
// of ours.
func FuzzMail(f *testing.F) {
	for _, name := range []string{"push_paid", "push_cancelled", "payout_paid", "payout_failed", "status_completed"} {
		f.Add("sent="+goldenSent, mail(f, name))
		f.Add("sent="+goldenSent+" asked="+goldenAsked+" failed=2040", mail(f, name))
	}
	f.Add("asked=,,, failed= unbound=1 x", []byte(`{"Result":{"ConversationID":"x","ResultParameters":{"ResultParameter":{"Key":1}}}}`))
	f.Fuzz(func(t *testing.T, handle string, body []byte) {
		if m := readPushCallback(body); m != nil && (!isID(m.id()) || m.amount().Minor < 0 || len(m.receipt()) > 4*maxID) {
			t.Fatalf("%+v", m)
		}
		m := parseHandleState(handle)
		asked := strings.Join(m.pendingQueries, ",")
		r := readResultCallback(body)
		if r == nil {
			return
		}
		if m.takeQuery(r.conversation()) {
			if !strings.Contains(asked, r.conversation()) {
				t.Fatalf("%q answers %q", r.conversation(), asked)
			}
			p := &payoutService{&Operator{}}
			if got := p.readStatusAnswer(m, r); got.Outcome == provider.Success && r.parameter("TransactionStatus") != "Completed" ||
				got.Outcome == provider.Failed && m.failureCode == "" || got.Outcome == provider.NotFound || got.Handle == "" {
				t.Fatalf("%q %q: %+v", handle, body, got)
			}
			return
		}
		m.noteCallback(r, goldenSent)
		if _, known := payoutCodes[m.failureCode]; m.failureCode != "" && !known {
			t.Fatalf("%q is remembered", m.failureCode)
		}
	})
}
