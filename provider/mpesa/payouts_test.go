package mpesa

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"till"
	"till/provider"
	"till/provider/providertest"
)

// The result codes of B2C with what we call them.
const documentedPayout = `
1          provider_unavailable
2          amount_out_of_bounds
3          amount_out_of_bounds
4          recipient_limit_reached
8          recipient_limit_reached
11         provider_unavailable
17         provider_rejected
21         provider_unavailable
2001       provider_unavailable
2006       provider_unavailable
2028       provider_unavailable
2040       recipient_not_found
8006       provider_unavailable
SFC_IC0003 recipient_not_found
`

// answer is the answer to a question of ours.
func answer(code string, parameters ...string) []byte {
	var list []string
	for i := 0; i+1 < len(parameters); i += 2 {
		list = append(list, fmt.Sprintf(`{"Key":"%s","Value":"%s"}`, parameters[i], parameters[i+1]))
	}
	return fmt.Appendf(nil, `{"Result":{"ResultCode":"%s","ResultDesc":"d","ConversationID":"%s","TransactionID":"OEI1","ResultParameters":{"ResultParameter":[%s]}}}`,
		code, goldenAsked, strings.Join(list, ","))
}

// TestPayoutVerdicts is the whole table of what is believed.
func TestPayoutVerdicts(t *testing.T) {
	t.Parallel()
	c := goldenConfig("http://127.0.0.1:1") // a question would be an error
	c.NotFoundCodes, c.FailedStates = []string{"404"}, []string{"Gone", "Declined"}
	p := goldenOperator(t, c).Payouts()
	const asked = " asked=" + goldenAsked
	for _, c := range []struct {
		name   string
		handle string
		mail   []byte
		want   provider.Outcome // "": it asks, which fails here
		reason till.FailureReason
	}{
		{"completed", asked, answer("0", "TransactionStatus", "Completed", "ReceiptNo", "R", "Amount", "1.00"), provider.Success, ""},
		{"completed though a callback said failed", asked + " failed=2040", answer("0", "TransactionStatus", "Completed"), provider.Success, ""},
		{"completed with a sum that cannot be read", asked, answer("0", "TransactionStatus", "Completed", "Amount", "1,00"), provider.AnswerPending, ""},
		{"pending", asked, answer("0", "TransactionStatus", "Pending"), provider.Open, ""},
		{"pending though a callback said failed", asked + " failed=2040", answer("0", "TransactionStatus", "Pending"), provider.Open, ""},
		{"authorized", asked, answer("0", "TransactionStatus", "Authorized"), provider.Open, ""},
		{"pending authorized", asked, answer("0", "TransactionStatus", "Pending Authorized"), provider.Open, ""},
		{"pending authorized though a callback said failed", asked + " failed=2040", answer("0", "TransactionStatus", "Pending Authorized"), provider.Open, ""},
		{"cancelled is final", asked, answer("0", "TransactionStatus", "Cancelled"), provider.Failed, till.ProviderRejected},
		{"declined is final, configured or not", asked, answer("0", "TransactionStatus", "Declined"), provider.Failed, till.ProviderRejected},
		{"expired is final", asked, answer("0", "TransactionStatus", "Expired"), provider.Failed, till.ProviderError},
		{"a final word, and a callback said why", asked + " failed=2040", answer("0", "TransactionStatus", "Cancelled"), provider.Failed, recipientNotFound},
		{"a word that is not known", asked, answer("0", "TransactionStatus", "Lost"), provider.Unrecognised, ""},
		{"a word that is not known, and a callback said failed", asked + " failed=2040", answer("0", "TransactionStatus", "Lost"), provider.Failed, recipientNotFound},
		{"the same of a callback whose payout's answer was lost", asked + " unbound=2040", answer("0", "TransactionStatus", "Lost"), provider.Failed, recipientNotFound},
		{"a word that is configured", asked, answer("0", "TransactionStatus", "Gone"), provider.Failed, till.Unspecified},
		{"a word that is configured, and a callback said why", asked + " failed=2040", answer("0", "TransactionStatus", "Gone"), provider.Failed, recipientNotFound},
		{"completed in other letters", asked, answer("0", "TransactionStatus", "COMPLETED"), provider.Unrecognised, ""},
		{"no word", asked, answer("0"), provider.AnswerPending, ""},
		{"no word, and a callback said failed", asked + " failed=2040", answer("0"), provider.AnswerPending, ""},
		{"the question failed", asked, answer("2001"), provider.AnswerPending, ""},
		{"the question failed as a payout might", asked, answer("2040"), provider.AnswerPending, ""},
		{"the question failed, and a bound callback said failed", asked + " failed=2040", answer("2001"), provider.Failed, recipientNotFound},
		{"the question failed, and an unbound callback said failed", asked + " unbound=2040", answer("2001"), provider.AnswerPending, ""},
		{"there is none", asked, answer("404"), provider.NotFound, ""},
		{"there is none, and a bound callback said failed", asked + " failed=2040", answer("404"), provider.Failed, recipientNotFound},
		{"there is none, by a code that is not configured", asked, answer("405"), provider.AnswerPending, ""},
		{"an answer to nobody's question", "sent=" + goldenSent, answer("0", "TransactionStatus", "Completed"), "", ""},
		{"an answer to another question", " asked=AG_other", answer("0", "TransactionStatus", "Completed"), "", ""},
		{"the payout's own callback alone", "sent=" + goldenSent, mail(t, "payout_paid"), "", ""},
		{"the payout's own failure alone", "sent=" + goldenSent, mail(t, "payout_failed"), "", ""},
		{"the payout's own callback while a question is open", "sent=" + goldenSent + asked, mail(t, "payout_failed"), "", ""},
		{"nothing", asked, nil, "", ""},
		{"garbage", asked, []byte(`<html>`), "", ""},
		{"a push's callback", asked, mail(t, "push_paid"), "", ""},
	} {
		r, err := p.Check(t.Context(), goldenQuery(t, strings.TrimSpace(c.handle), c.mail))
		if r.Outcome != c.want || r.Reason != c.reason || (err == nil) != (c.want != "") {
			t.Errorf("%s: %+v, %v, want %q %q", c.name, r, err, c.want, c.reason)
		}
		if err == nil && strings.Contains(r.Handle, goldenAsked) {
			t.Errorf("%s: the same answer would be read again", c.name)
		}
	}
	full, err := p.Check(t.Context(), goldenQuery(t, "asked="+goldenAsked, mail(t, "status_completed")))
	if want := (provider.Result{Outcome: provider.Success, Receipt: "NLJ41HAY6Q", Handle: "none", Amount: till.Money{Minor: 100, Currency: "KES"}}); err != nil || full != want {
		t.Errorf("the documented answer: %+v, %v", full, err)
	}
	ours := goldenRequest(t).Reference.String()
	for _, told := range []string{ours, strings.ToUpper(ours)} {
		r, err := p.Check(t.Context(), goldenQuery(t, strings.TrimSpace(asked), answer("0", "TransactionStatus", "Completed", "OriginatorConversationID", told)))
		if err != nil || r.Reference != ours {
			t.Errorf("told the reference %q: %+v, %v", told, r, err)
		}
	}
	for line := range strings.Lines(strings.TrimSpace(documentedPayout)) {
		f := strings.Fields(line)
		r, err := p.Check(t.Context(), goldenQuery(t, "failed="+f[0]+asked, answer("0", "TransactionStatus", "Cancelled")))
		if err != nil || r.Outcome != provider.Failed || string(r.Reason) != f[1] || r.Code != f[0] {
			t.Errorf("%s: %+v, %v", f[0], r, err)
		}
		// What is ours is never the recipient's, and somebody is told.
		if (r.OurFault != "") != (f[1] == "provider_unavailable") || r.OurFault != "" && !strings.Contains(r.OurFault, f[0]) {
			t.Errorf("%s: our fault is said to be %q", f[0], r.OurFault)
		}
	}
	// A question that fails for our own set-up ends nothing, but is told, too.
	if r, err := p.Check(t.Context(), goldenQuery(t, strings.TrimSpace(asked), answer("21"))); err != nil || r.Outcome != provider.AnswerPending || r.OurFault == "" {
		t.Errorf("a question that the initiator may not put: %+v, %v", r, err)
	}
	if n := strings.Count(strings.TrimSpace(documentedPayout), "\n") + 1; n != len(payoutCodes) {
		t.Errorf("%d codes are in the table, %d are named here", len(payoutCodes), n)
	}
}

func TestMemory(t *testing.T) {
	t.Parallel()
	m := parseHandleState("")
	for i := range 5 {
		m.addQuery(fmt.Sprintf("AG_%d", i))
	}
	if got := m.String(); got != "asked=AG_3,AG_4" {
		t.Errorf("it is %q, want the latest %d", got, maxPendingQueries)
	}
	if m.takeQuery("AG_0") || !m.takeQuery("AG_4") || m.takeQuery("AG_4") {
		t.Error("a question is answered once")
	}
	longest := handleState{conversationID: strings.Repeat("s", maxID), pendingQueries: []string{strings.Repeat("a", maxID), strings.Repeat("b", maxID)}, failureCode: "SFC_IC0003"}
	if n := len(longest.String()); n > 255 {
		t.Errorf("a handle takes %d characters; 255 are kept", n)
	}
	for _, text := range []string{"sent=A asked=B,C failed=2040", "sent=A unbound=1", "asked=B", "none"} {
		if got := parseHandleState(text).String(); got != text {
			t.Errorf("%q becomes %q", text, got)
		}
	}
	if got := parseHandleState("failed=77 junk asked").String(); strings.Contains(got, "77") {
		t.Errorf("a code that is not known is remembered: %q", got)
	}
	reference := goldenRequest(t).Reference.String()
	for name, c := range map[string]struct{ handle, reference, want string }{
		"bound":                   {"sent=" + goldenSent, reference, "sent=" + goldenSent + " failed=2040"},
		"after a lost answer":     {"", reference, "unbound=2040"},
		"of another payout":       {"sent=" + goldenSent, "another", "sent=" + goldenSent},
		"of another conversation": {"sent=AG_other", reference, "sent=AG_other"},
	} {
		m := parseHandleState(c.handle)
		m.noteCallback(readResultCallback(mail(t, "payout_failed")), c.reference)
		if got := m.String(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	m = parseHandleState("sent=" + goldenSent + " failed=2040")
	m.noteCallback(readResultCallback(mail(t, "payout_paid")), reference)
	if m.failureCode != "" {
		t.Error("a callback that says paid leaves the failure in place")
	}
}

// TestPayoutOverHTTP plays a payout as the service would, step by step, with
// Daraja's callbacks over HTTP.
func TestPayoutOverHTTP(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ending  string
		forgets bool
		want    provider.Outcome
	}{{"4149", false, provider.Success}, {"2040", false, provider.Failed}, {"2040", true, provider.Failed}} {
		w := open(t, func(s *SimConfig, _ *Config) { s.Now, s.Decide, s.ForgetsFailures = nil, time.Millisecond, c.forgets })
		p := w.o.Payouts()
		r := w.request(c.ending)
		sent, err := p.Submit(t.Context(), r)
		if err != nil || sent.Outcome != provider.Accepted {
			t.Fatalf("%+v, %v", sent, err)
		}
		first, err := w.box.wait(t.Context(), r.CallbackURL, func([]byte) bool { return true })
		if err != nil {
			t.Fatal(err)
		}
		query := provider.Query{Reference: r.Reference, ID: r.ID, CallbackURL: r.CallbackURL, Amount: r.Amount, Handle: sent.Handle, CallbackBody: first}
		asked, err := p.Check(t.Context(), query)
		if err != nil || asked.Outcome != provider.AnswerPending {
			t.Fatalf("the first check: %+v, %v", asked, err)
		}
		query.Handle = asked.Handle
		if query.CallbackBody, err = w.box.wait(t.Context(), r.CallbackURL, func(m []byte) bool { return string(m) != string(first) }); err != nil {
			t.Fatal(err)
		}
		got, err := p.Check(t.Context(), query)
		if err != nil || got.Outcome != c.want || (c.want == provider.Success) != (got.Amount == r.Amount && got.Receipt != "") {
			t.Errorf("%+v: %+v, %v", c, got, err)
		}
		if got.Reference != "" && got.Reference != r.Reference.String() {
			t.Errorf("the reference is %q", got.Reference)
		}
		query.Handle = got.Handle // the mail is still there, and must not be read twice
		if again, err := p.Check(t.Context(), query); err != nil || again.Outcome != provider.AnswerPending {
			t.Errorf("the same answer again: %+v, %v", again, err)
		}
	}
}

// TestWrongInitiator: a password that Safaricom does not take fails every
// question, and that ends no payout.
func TestWrongInitiator(t *testing.T) {
	t.Parallel()
	w := open(t, func(_ *SimConfig, c *Config) { c.InitiatorPassword = "wrong" })
	p := patient{w.o.payouts, w.box}
	r := w.request("4149")
	if got, err := p.Submit(t.Context(), r); err != nil || got.Outcome != provider.Accepted {
		t.Fatalf("%+v, %v", got, err)
	}
	if got, err := p.Check(t.Context(), provider.Query{Reference: r.Reference, ID: r.ID, CallbackURL: r.CallbackURL}); err == nil {
		t.Errorf("%+v", got)
	}
	if n := w.line.Count(providertest.Check); n == 0 {
		t.Error("nobody asked")
	}
}
