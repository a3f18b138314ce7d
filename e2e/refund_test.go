package e2e

import (
	"net/http"
	"testing"
)

// E19: an owner gives a payment back, a part and then the rest; asks for too much; and reads of a
// refund whose outcome nobody knows. A cashier can do none of it.
func TestE19Refund(t *testing.T) {
	t.Parallel()
	s := startDev(t, "--approval-window", "3s")
	s.run("client", "fees", s.client, "--kind", "payment", "--method", "mtn_momo", "--currency", "XAF", "--flat", "75")
	s.run("client", "fees", s.client, "--kind", "refund", "--method", "mtn_momo", "--currency", "XAF", "--flat", "25")
	p := newPage(t, "E19", s.origin)
	p.enterDemo(s, "Awa")
	paid, unknown := s.pay("242061230040", "5000", "ORDER-1", nil), s.pay("242061230032", "8000", "ORDER-2", nil)
	s.until(paid, "success")
	s.until(unknown, "success")

	// A part, in English, on a wide page.
	p.open("/console/c/" + s.client + "/payments/" + paid)
	p.look("paid")
	p.follow(`a[href$="/refund"]`)
	p.sees("242 ••• 040, who paid")
	p.look("form")
	p.fill("#refund-amount", "5001")
	p.submit("main form button")
	p.sees("5,000 XAF")
	if p.value("#refund-amount", "aria-invalid") != "true" || p.is(`document.querySelector("[name=act]")`) {
		t.Error("more than was paid may be confirmed")
	}
	p.look("too-much")
	p.fill("#refund-amount", "3000")
	p.choose("#refund-reason", "not_delivered")
	p.submit("main form button")
	p.sees("75 XAF") // the payment's fee, which stays taken
	p.look("sure")
	p.confirm()
	p.sees("The refund is made.")
	part := s.refundOf(t, paid, "success")
	p.open("/console/c/" + s.client + "/refunds/" + part)
	p.look("made")
	p.open("/console/c/" + s.client + "/payments/" + paid)
	p.seesSentence("3,000 XAF went back to the customer at")
	p.look("part")

	// The rest, in French, on a narrow one.
	p.speak("fr")
	p.dress("light", narrow)
	p.open("/console/c/" + s.client + "/payments/" + paid + "/refund")
	if got := p.value("#refund-amount", "value"); got != "2 000" && got != "2\u202f000" && got != "2\u00a0000" {
		t.Errorf("the form offers %q, not the rest", got)
	}
	p.look("rest")
	p.submit("main form button")
	p.look("rest-sure")
	p.confirm()
	s.refundOf(t, paid, "success")
	p.open("/console/c/" + s.client + "/payments/" + paid)
	p.seesSentence("remboursé en entier : 5 000 XAF rendus au client à")
	p.look("all")
	p.open("/console/c/" + s.client + "/payments/" + paid + "/refund")
	p.look("nothing-left")

	// Nobody knows.
	p.open("/console/c/" + s.client + "/payments/" + unknown + "/refund")
	p.fill("#refund-amount", "3000")
	p.submit("main form button")
	p.confirm()
	s.untilCase(t, unknown)
	p.open("/console/c/" + s.client + "/payments/" + unknown)
	p.seesSentence("Ne payez pas cette personne autrement.")
	p.until(`document.querySelector(".going.examine")`)
	p.look("unknown")
	p.open("/console/c/" + s.client + "/payments/" + unknown + "/refund") // and no other one of it
	p.look("open")
	p.speak("en")
	p.dress("light", wide)
	p.open("/console/c/" + s.client + "/payments/" + unknown)
	p.seesSentence("Do not pay this person another way.")
	p.look("unknown")
	p.open("/console/c/" + s.client + "/refunds")
	p.sees("3 refunds")
	p.look("list")
	p.open("/console/c/" + s.client + "/home")
	p.sees("collected less refunded")
	p.look("home")
	p.dress("dark", narrow)
	p.inspect("home")

	cashier := s.join("E19c", "cashier", "Inès")
	cashier.open("/console/c/" + s.client + "/payments/" + unknown)
	cashier.seesSentence("Do not pay this person another way.")
	if cashier.is(`document.querySelector('a[href$="/refund"]')`) {
		t.Error("a cashier is offered a refund")
	}
	cashier.look("cashier")
	cashier.refused()
	if status := cashier.answered("/console/c/" + s.client + "/payments/" + paid + "/refund"); status != http.StatusForbidden {
		t.Errorf("a cashier's refund: %d", status)
	}
}

// confirm gives the proof that an act asks for, if it does, and makes it.
func (p *page) confirm() {
	p.t.Helper()
	if p.is(`document.querySelector("#proof")`) {
		p.fill("#proof", password)
	}
	p.submit(".act-foot button")
	p.until(`location.pathname.includes("/refunds/")`)
}

// refundOf waits for the newest refund of a payment to have a status, and returns its id.
func (s *till) refundOf(t *testing.T, payment, status string) (id string) {
	t.Helper()
	untilTrue(t, "a refund of "+payment+" that is "+status, func() bool {
		var refunds struct{ Items []struct{ ID, Status string } }
		s.api(s.key, http.MethodGet, "/payments/"+payment+"/refunds", nil, &refunds)
		if len(refunds.Items) > 0 {
			id = refunds.Items[0].ID
		}
		return len(refunds.Items) > 0 && refunds.Items[0].Status == status
	})
	return id
}

// untilCase waits for a refund of a payment to need a person.
func (s *till) untilCase(t *testing.T, payment string) {
	t.Helper()
	untilTrue(t, "a refund of "+payment+" needs a person", func() bool {
		var refunds struct {
			Items []struct {
				Resolution struct{ State string }
			}
		}
		s.api(s.key, http.MethodGet, "/payments/"+payment+"/refunds", nil, &refunds)
		return len(refunds.Items) > 0 && refunds.Items[0].Resolution.State == "needs_attention"
	})
}
