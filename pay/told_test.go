package pay

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"till"
	"till/engine"
)

// While the phone asks, the page says which name it shows and what to dial if it does not, where
// the operator tells; nothing of it is markup.
func TestThePromptSaysWhatThePhoneShows(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		asked := [4]string{}
		w.pages.c.Told = func(connection, method, country, currency string) (string, string) {
			asked = [4]string{connection, method, country, currency}
			return `MAPASSA & <b>FILS</b>`, "*105#"
		}
		own := w.fill(w.open(""), "242061230000")
		prompt := w.until(own, "Look at your phone")
		sound(t, "the prompt", prompt, maxOther, "242061230000")
		has(t, "the prompt", prompt, "Your phone may show the name MAPASSA &amp; &lt;b&gt;FILS&lt;/b&gt;: that company collects for Boulangerie Mapassa.", "No prompt? Dial *105#.")
		if want := [4]string{"sandbox", "mtn_momo", "CG", "XAF"}; asked != want {
			t.Errorf("asked about %v, want %v", asked, want)
		}
		has(t, "the prompt in French", w.get(own+"?l=fr"), "MAPASSA &amp; &lt;b&gt;FILS&lt;/b&gt; : c’est la société qui encaisse pour Boulangerie Mapassa.", "Pas de demande ? Composez le *105#.")
		w.pages.c.Told = func(string, string, string, string) (string, string) { return "", "" }
		plain := w.get(own)
		has(t, "where it is not known", plain, "Your phone may show the name of the company that collects for Boulangerie Mapassa.")
		hasNot(t, "where it is not known", plain, "No prompt?", "FILS")
	})
}

// A market that its operator has closed cannot be chosen, and others can; what the operator
// bounds more tightly than we do is not offered for more.
func TestAMarketThatItsOperatorHasClosed(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		offer := w.pages.c.Offer
		closed, most := map[string]bool{"mtn_momo": true}, int64(0)
		w.pages.c.Offer = func(client *till.Client, m *till.Method) engine.Offer {
			o := offer(client, m)
			for i := range o.Markets {
				if closed[m.Code] {
					o.Markets[i].Status = engine.Closed
				}
				if most > 0 && m.Code == "airtel_money" {
					o.Markets[i].Max = most
				}
			}
			return o
		}
		path := w.open(`,"country":"CG"`)
		form := w.get(path)
		has(t, "the form", form, `MTN MoMo <span class="s">(not available now)</span>`)
		time.Sleep(5 * time.Second)
		a := w.do(http.MethodPost, path, url.Values{"form": {w.formOf(form)}, "phone": {"061234567"}, "market": {"mtn_momo.CG"}})
		has(t, "its number", a, "MTN MoMo takes no requests just now. Nothing was taken.")
		closed["airtel_money"] = true
		has(t, "with nothing open", w.get(path), "Nothing was taken")
		hasNot(t, "with nothing open", w.get(path), `name="phone"`)
		delete(closed, "airtel_money")
		delete(closed, "mtn_momo")
		most = 4999
		hasNot(t, "beyond the operator's bound", w.get(path), "airtel_money.CG")
		most = 5000
		has(t, "at the operator's bound", w.get(path), "Airtel Money")
		if n := w.way.submits.Load(); n != 0 {
			t.Errorf("%d requests reached the operator", n)
		}
	})
}
