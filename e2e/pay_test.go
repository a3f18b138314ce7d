package e2e

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	cdppage "github.com/chromedp/cdproto/page"
)

// checkout is what a shop gets for an order.
type checkout struct {
	ID           string `json:"id"`
	URL          string `json:"url"`
	ReturnSecret string `json:"return_secret"`
}

// order makes a checkout as a shop does. members are more of its body.
func (s *till) order(value string, members object) checkout {
	s.t.Helper()
	body := object{"amount": object{"value": value, "currency": "XAF"}, "reference": "ORDER-1042", "description": "Two loaves, coffee", "idempotency_key": newUUID()}
	for name, m := range members {
		body[name] = m
	}
	var c checkout
	s.api(s.key, http.MethodPost, "/checkouts", body, &c)
	if c.URL == "" {
		s.t.Fatal("the checkout has no page")
	}
	return c
}

// path returns the path of an order's page.
func (c checkout) path() string { return c.URL[strings.Index(c.URL, "/p/"):] }

// views looks at a page in both sizes and languages. It goes through the language's own links,
// as a person does.
func (p *page) views(name string) {
	p.t.Helper()
	if p.readsAgain {
		p.step++
		for _, lang := range []string{"en", "fr"} {
			still := p.still(lang)
			for _, dress := range []struct {
				theme string
				width int
			}{{"light", narrow}, {"light", wide}, {"dark", narrow}} {
				still.dress(dress.theme, dress.width)
				still.inspect(name)
			}
		}
		return
	}
	for _, width := range []int{narrow, wide} {
		p.dress("light", width)
		p.look(name)
	}
	p.dress("dark", narrow)
	p.inspect(name)
	p.dress("light", narrow)
	p.follow(`footer a[lang=fr]`)
	p.until(`document.documentElement.lang === "fr"`)
	for _, width := range []int{wide, narrow} {
		p.dress("light", width)
		p.inspect(name)
	}
	p.follow(`footer a[lang=en]`)
	p.until(`document.documentElement.lang === "en"`)
}

// still opens a copy of a page that reads itself again, which does not: what looks at a page
// for seconds must not meet the next one.
func (p *page) still(lang string) *page {
	p.t.Helper()
	res, err := http.Get(p.origin + eval[string](p, `location.pathname`) + "?l=" + lang)
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		p.t.Fatalf("the page to look at: %d %v", res.StatusCode, err)
	}
	text := regexp.MustCompile(`<meta http-equiv="?refresh"?[^>]*>`).ReplaceAllString(string(body), "")
	if text == string(body) {
		p.t.Error("a page that waits does not read itself again")
	}
	copied := p.newTab()
	copied.step = p.step
	frame := call(copied, cdppage.GetFrameTree, cdp.Empty{}).FrameTree.Frame.ID
	call(copied, cdppage.SetDocumentContent, cdppage.SetDocumentContentParams{FrameID: frame, HTML: text})
	return copied
}

// payWith types a number, and says that it is right.
func (p *page) payWith(number string) {
	p.t.Helper()
	p.fill("#phone", number)
	time.Sleep(1100 * time.Millisecond) // a form that is sent within a second was not read
	p.follow(`main form button`)
	p.until(`document.querySelector("input[name=sure]")`)
	p.dress("light", narrow)
	p.look("sure")
	p.follow(`main form button:not([name])`)
	p.until(`location.pathname.split("/").length === 4`)
}

// alone holds a page to making no request but for its documents.
func (p *page) alone() {
	p.t.Helper()
	for _, r := range p.requests() {
		if r.kind != "Document" || !strings.HasPrefix(r.url, p.origin+"/p/") {
			p.t.Errorf("%s asks for %s (%s)", p.story, r.url, r.kind)
		}
	}
}

// P1: an order is paid on its page, without script; the way back is signed.
func TestP1PaidOnThePage(t *testing.T) {
	t.Parallel()
	s := startDev(t)
	c := s.order("5000", object{"return_url": "http://localhost:9/done"})
	p := newPage(t, "P1", s.origin)
	p.withoutScript(true)
	p.open(c.path())
	p.sees("Pay 5,000 FCFA to Demo")
	p.views("form")
	p.allow("localhost:9") // the page leads back to the shop by itself, where nobody is
	p.payWith("06 123 45 67")
	own := p.path()
	p.open(c.path() + "/qr.svg")
	back := s.wayBack(own)
	u, err := url.Parse(back)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	h := hmac.New(sha256.New, []byte(c.ReturnSecret))
	h.Write([]byte("return\n" + c.ID + "\npaid\n" + q.Get("till_time")))
	if got := base64.RawURLEncoding.EncodeToString(h.Sum(nil)); q.Get("till_signature") != got || q.Get("till_checkout") != c.ID || u.Host != "localhost:9" {
		t.Errorf("the way back is %s", back)
	}
	second := newPage(t, "P1-shared", s.origin)
	second.withoutScript(true)
	second.open(c.path())
	second.until(`document.title.startsWith("✓ Paid")`)
	second.views("done")
	if second.shows("•••") || second.shows("SBX") {
		t.Error("the shared address shows who paid")
	}
	second.alone()
}

var leadsBack = regexp.MustCompile(`<a class="b o" href="([^"]+)">`)

// wayBack reads an ask's page until it is paid, and returns where it leads.
func (s *till) wayBack(path string) string {
	s.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		a, err := http.Get(s.origin + path)
		if err != nil {
			s.t.Fatal(err)
		}
		b, err := io.ReadAll(a.Body)
		a.Body.Close()
		if m := leadsBack.FindSubmatch(b); err == nil && m != nil && strings.Contains(string(b), "<title>✓ Paid") {
			return html.UnescapeString(string(m[1]))
		}
	}
	s.t.Fatal("the page never leads back")
	return ""
}

// P2: declined, then another number.
func TestP2AnotherNumber(t *testing.T) {
	t.Parallel()
	s := startDev(t)
	c := s.order("5000", nil)
	p := newPage(t, "P2", s.origin)
	p.withoutScript(true)
	p.open(c.path())
	p.payWith("06 123 00 02")
	p.until(`document.title.startsWith("✗ Not paid")`)
	p.sees("Nothing was taken.")
	p.views("again")
	p.payWith("06 123 45 67")
	p.until(`document.title.startsWith("✓ Paid")`)
	p.views("paid")
	p.alone()
}

// P3, P4: while it is not known, nothing else is asked: not in another tab, not by the form of
// before. The page says what to do, and that one must not pay again.
func TestP4NothingIsAskedTwice(t *testing.T) {
	t.Parallel()
	s := startDev(t, "--approval-window", "60s")
	c := s.order("5000", nil)
	p := newPage(t, "P4", s.origin)
	p.withoutScript(true)
	p.readsAgain = true
	p.open(c.path())
	other := newPage(t, "P4-other", s.origin)
	other.readsAgain = true
	other.withoutScript(true)
	other.open(c.path())
	p.payWith("06 123 00 14")
	p.until(`document.title.startsWith("◔ Look at your phone")`)
	p.views("prompt")
	other.fill("#phone", "06 123 45 67")
	other.follow(`main form button`)
	other.until(`document.title.startsWith("◔ Somebody is paying")`)
	other.views("busy")
	p.until(`document.title.startsWith("◔ Not certain yet") || document.title.startsWith("◔ No answer yet")`)
	p.views("wait")
	if p.shows("Nothing was taken") {
		t.Error("it is said that nothing was taken")
	}
	other.alone()
}

// P10, P12: hostile texts are texts, and what is no page says so.
func TestP10HostileTexts(t *testing.T) {
	t.Parallel()
	s := startDev(t)
	c := s.order("5000", object{"description": `<img src=x onerror="document.title='taken'"><script>document.title='taken'</script>` + strings.Repeat(" long", 30)})
	p := newPage(t, "P10", s.origin)
	p.open(c.path()) // with script: there is none to run
	p.sees("<script>")
	p.dress("light", narrow)
	p.look("hostile")
	p.alone()
	p.refused()
	p.open("/p/00000000000000000000")
	p.sees("There is no page at this address.")
	p.look("missing")
}

// P13: a browser that reads nothing again by itself pays by links alone.
func TestP13ByLinksAlone(t *testing.T) {
	t.Parallel()
	s := startDev(t)
	c := s.order("2500", object{"language": "fr"})
	p := newPage(t, "P13", s.origin)
	p.withoutScript(true)
	p.open(c.path())
	p.sees("Payer 2 500 FCFA à Demo")
	p.payWith("06 123 45 67")
	for range 60 {
		if strings.HasPrefix(p.text("title"), "✓") {
			break
		}
		time.Sleep(300 * time.Millisecond)
		if p.is(`!!document.querySelector("main a.b")`) && !strings.HasPrefix(p.text("title"), "✓") {
			p.follow(`main a.b`)
		}
	}
	p.until(`document.title.startsWith("✓ Payé")`)
	p.dress("light", narrow)
	p.look("payé")
	p.alone()
}
