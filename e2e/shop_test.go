package e2e

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"till/provider/sandbox"
)

// sandboxPath is the handset and shop of the demo client.
func (s *till) sandboxPath() string { return "/console/c/" + s.client + "/sandbox" }

// order orders in the shop, and returns the payment's id from the address.
func (p *page) order() string {
	p.t.Helper()
	p.follow(`form[action$="/sandbox/order"] button`)
	at, err := url.Parse(p.path())
	if err != nil || at.Query().Get("order") == "" {
		p.t.Fatalf("no order at %s", p.path())
	}
	return at.Query().Get("order")
}

// E4: every story of the guide, through the shop, ends as the guide says, and
// the sentence is right while it waits.
func TestE4Stories(t *testing.T) {
	t.Parallel()
	s := startDev(t, "--approval-window", "8s")
	p := newPage(t, "E4", s.origin)
	p.enterDemo(s, "Awa")
	orders := map[string]string{}
	p.open(s.sandboxPath())
	for _, story := range sandbox.Stories() {
		if story.Subject != "payment" || story.EndsIn == "0000" {
			continue
		}
		eval[bool](p, `document.querySelector("#stories").open = true`)
		p.submit(`#stories button[value="` + story.Name + `"]`)
		orders[story.Name] = p.order()
	}
	for _, story := range sandbox.Stories() {
		id := orders[story.Name]
		if id == "" || story.Subject != "payment" {
			continue
		}
		// The sentence stands before the end, and after it says how it ended.
		p.open("/console/c/" + s.client + "/payments/" + id)
		if state, say := p.stateAndSentence(); !slices.ContainsFunc(sentences[state], func(s string) bool { return strings.Contains(say, s) }) {
			t.Errorf("%s: while it is %s the sentence is %q", story.Name, state, say)
		}
		s.untilEvent(id, string(story.Events[len(story.Events)-1]))
		var ended payment
		s.api(s.key, http.MethodGet, "/payments/"+id, nil, &ended)
		if ended.Status != story.Status || ended.FailureReason != string(story.Reason) {
			t.Errorf("%s: ended as %s %s; the guide says %s %s", story.Name, ended.Status, ended.FailureReason, story.Status, story.Reason)
		}
		p.until(`document.querySelector(".going .say")?.innerText.includes(` + quote(storyEnds[story.Name]) + `)`)
	}
	p.look("paid-and-taken-back") // the last one
	p.open("/console/c/" + s.client + "/payments")
	p.look("every-state")
	p.dress("dark", narrow)
	p.inspect("every-state")
}

// storyEnds is what the sentence says at the end of each story.
var storyEnds = map[string]string{
	"approved": "credited to your wallet", "declined": "The customer declined", "no_answer": "did not answer in time", "no_funds": "Not enough money",
	"unknown_payer": "No account with this number", "limit_reached": "Customer's limit reached", "wrong_pin": "Wrong PIN", "lost_answer": "credited to your wallet",
	"lost_request": "credited to your wallet", "late_money": "but the money came at", "stuck": "has not decided", "five_callbacks": "credited to your wallet",
	"early_callback": "credited to your wallet", "no_callback": "credited to your wallet", "lying_callback": "The customer declined", "other_amount": "Put aside; a person decides",
	"reversed": "took it back",
}

// sentences is what may be said of a payment by its state. The stories go on
// while they are looked at, so each state is held to its own.
var sentences = map[string][]string{
	"pending":    {"Not sent yet", "did not confirm"},
	"processing": {"On the customer's phone since", "did not confirm", "The customer's time is over"},
	"examine":    {"has not decided", "Put aside; a person decides"},
	"paid":       {"credited to your wallet"},
	"failed":     {"The customer declined", "Not enough money", "No account with this number", "Customer's limit reached", "Wrong PIN"},
	"ended":      {"did not answer in time"},
	"late":       {"but the money came at", "took it back"},
}

// stateAndSentence reads both at one moment: the page changes by itself.
func (p *page) stateAndSentence() (state, sentence string) {
	p.t.Helper()
	p.until(`document.querySelector(".going .say") && document.querySelector(".head .chip")`)
	both := eval[[2]string](p, `[document.querySelector(".head .chip").classList[1], document.querySelector(".going .say").innerText.replace(/[\u00a0\u202f]/g, " ")]`)
	return both[0], both[1]
}

// What a person does with the phone: PIN, wrong PINs, no, no network, off.
func TestE4Handset(t *testing.T) {
	t.Parallel()
	s := startDev(t) // with the time that people have: a busy machine types slowly
	p := newPage(t, "E4h", s.origin)
	p.enterDemo(s, "Awa")
	p.open(s.sandboxPath())
	p.look("idle")

	paid := p.order()
	p.until(`document.querySelector("#pin")`)
	p.look("prompt")
	p.dress("dark", narrow)
	p.inspect("prompt")
	p.dress("light", wide)
	p.fill("#pin", "1234")
	p.follow(`.prompt button[value="ok"]`)
	s.until(paid, "success")
	p.until(`document.querySelector("#order .chip.paid") && document.querySelector("#saw")?.innerText.includes("payment.success")`)
	p.look("paid")

	wrong := p.order()
	for range 3 {
		p.until(`document.querySelector("#pin")`)
		p.fill("#pin", "4321")
		p.follow(`.prompt button[value="ok"]`)
	}
	if got := s.until(wrong, "failed"); got.FailureReason != "wrong_pin" {
		t.Errorf("three wrong PINs end as %s", got.FailureReason)
	}

	declined := p.order()
	p.until(`document.querySelector("#pin")`)
	p.follow(`.prompt button[value="cancel"]`)
	if got := s.until(declined, "failed"); got.FailureReason != "customer_declined" {
		t.Errorf("Cancel ends as %s", got.FailureReason)
	}

	p.submit(`button[name="state"][value="no_network"]`)
	waits := p.order()
	s.until(waits, "processing")
	p.until(`document.querySelector("#handset dd b")?.innerText === "1"`)
	p.look("no-network")
	p.submit(`button[name="state"][value="on"]`)
	p.until(`document.querySelector("#pin")`)
	p.fill("#pin", "1234")
	p.follow(`.prompt button[value="ok"]`)
	s.until(waits, "success")

	// A phone that is off lets the time pass.
	s = startDev(t, "--approval-window", "3s")
	p = newPage(t, "E4o", s.origin)
	p.enterDemo(s, "Awa")
	p.open(s.sandboxPath())
	p.submit(`button[name="state"][value="off"]`)
	off := p.order()
	p.look("off")
	s.until(off, "expired")
}

// untilEvent waits for an event of a payment.
func (s *till) untilEvent(id, kind string) {
	s.t.Helper()
	untilTrue(s.t, "event "+kind+" of "+id, func() bool {
		var events struct{ Items []struct{ Type string } }
		s.api(s.key, http.MethodGet, "/payments/"+id+"/events", nil, &events)
		for _, e := range events.Items {
			if e.Type == kind {
				return true
			}
		}
		return false
	})
}
