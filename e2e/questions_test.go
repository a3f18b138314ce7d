package e2e

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Somebody who has never seen the console has four questions. Each is answered
// on a page that is at most two clicks away from the first one.
func TestTheFourQuestions(t *testing.T) {
	t.Parallel()
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no", http.StatusServiceUnavailable)
	}))
	t.Cleanup(broken.Close)
	s := startDev(t)
	s.api(s.key, http.MethodPost, "/webhook-endpoints", object{"url": broken.URL + "/webhooks", "events": []string{"*"}}, nil)
	paid := s.pay("242061234567", "5000", "ORDER-1042", nil)
	airtel := s.pay("242051234567", "1250", "ORDER-1044", object{"method": "airtel_money"})
	waits := s.pay("242061230003", "2500", "ORDER-1043", nil)
	s.until(paid, "success")
	s.until(airtel, "success")
	s.until(waits, "processing")
	p := newPage(t, "Q", s.origin)
	p.enterDemo(s, "Awa")

	// Did ORDER-1042 get paid?
	p.find("ORDER-1042")
	if got := p.text("tr[data-row] .chip"); got != "Paid" {
		t.Errorf("ORDER-1042 is %q", got)
	}
	// How much came in today, by method? The first page says it, without a click.
	p.open("/console/")
	p.until(`location.pathname.endsWith("/home")`)
	if got := p.text(".figures .lead"); got != "6,250 XAF" && got != "6,250XAF" {
		t.Errorf("collected today: %q", got)
	}
	if got := strings.Join(strings.Fields(p.text(".legend")), " "); !strings.Contains(got, "MTN MoMo 5,000") || !strings.Contains(got, "Airtel Money 1,250") {
		t.Errorf("by method: %q", got)
	}
	p.look("today-by-method")
	// Why is this one pending, and who is next?
	p.follow(`.nav a[href$="/payments"]`)
	p.follow(`a[href$="` + waits + `"]`)
	if got := p.text(".going"); !strings.Contains(got, "On the customer's phone since") || !strings.Contains(got, "Next: the customer") {
		t.Errorf("the sentence is %q", got)
	}
	p.look("pending")
	// Which webhook fails, and why?
	p.follow(`.nav a[href$="/webhooks"]`)
	p.until(`document.querySelector("#endpoints .chip.failed")`)
	if got := p.text("#endpoints"); !strings.Contains(got, broken.URL) || !strings.Contains(got, "503") {
		t.Errorf("of the endpoint it says %q", got)
	}
	p.look("webhook")
}
