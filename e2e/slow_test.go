package e2e

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// E15: a slow line, many tabs, a stream that is cut.
func TestE15SlowLine(t *testing.T) {
	t.Parallel()
	s := startDev(t)
	for range 3 {
		s.until(s.pay("242061234567", "5000", "ORDER-1", nil), "success")
	}
	signed := newPage(t, "E15", s.origin)
	signed.enterDemo(s, "Awa")
	p := newPage(t, "E15", s.origin) // nothing is cached
	call(p, network.SetCookie, network.SetCookieParams{Name: "till", Value: signed.cookie("till"), URL: s.origin + "/"})
	// 400 ms and 400 kbit/s. The goals of the design are 2.5 s and 1.2 s; what the
	// line itself needs is counted from what was loaded, so that a busy machine
	// does not decide.
	call(p, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{MatchedNetworkConditions: []*network.Conditions{
		{Latency: 400, DownloadThroughput: 50_000, UploadThroughput: 50_000}}})
	p.open("/console/c/" + s.client + "/payments")
	p.until(`performance.getEntriesByType("navigation")[0].domContentLoadedEventEnd > 0`)
	first, rounds, weight := p.usable()
	if rounds > 2 || weight > 45_000 {
		t.Errorf("the first visit needs %d rounds and %d bytes", rounds, weight)
	}
	p.look("slow")
	p.open("/console/c/" + s.client + "/payouts")
	p.until(`performance.getEntriesByType("navigation")[0].domContentLoadedEventEnd > 0`)
	next, rounds, weight := p.usable()
	if rounds > 1 || weight > 15_000 {
		t.Errorf("a further page needs %d rounds and %d bytes", rounds, weight)
	}
	t.Logf("slow 3G: first visit usable after %d ms, the next after %d ms", first, next)
	if first > 2*2500 || next > 2*1200 {
		t.Errorf("slow 3G: usable after %d ms and %d ms", first, next)
	}
}

// usable returns when the page could be used, in how many rounds of requests
// after one another it was loaded until then, and what came over the line.
func (p *page) usable() (ms, rounds, bytes int) {
	p.t.Helper()
	type loaded struct{ Ms, Rounds, Bytes float64 }
	l := eval[loaded](p, `(() => { const nav = performance.getEntriesByType("navigation")[0];
		const all = performance.getEntriesByType("resource").filter((r) => r.transferSize > 0 && r.startTime < nav.domContentLoadedEventEnd && r.initiatorType !== "other");
		let rounds = 1, end = nav.responseStart;
		for (const r of all.sort((a, b) => a.startTime - b.startTime)) if (r.requestStart >= end && r.renderBlockingStatus === "blocking") { rounds++; end = r.responseStart; }
		return { Ms: nav.domContentLoadedEventEnd, Rounds: rounds, Bytes: nav.transferSize + all.reduce((n, r) => n + r.transferSize, 0) }; })()`)
	return int(l.Ms), int(l.Rounds), int(l.Bytes)
}

func TestE15Tabs(t *testing.T) {
	if !everything {
		t.Skip("make e2e has it: headless Chromium does not always hide the tabs behind the first")
	}
	t.Parallel()
	s := startDev(t)
	p := newPage(t, "E15t", s.origin)
	p.enterDemo(s, "Awa")
	p.open(s.sandboxPath())
	p.until(`document.querySelector("#handset")`)
	tabs := []*page{p}
	for range 6 {
		tab := openPage(t, "E15t", s.origin, p.ctx, chromedp.WithNewWindow(false))
		tab.activate()
		tab.open(s.sandboxPath())
		tabs = append(tabs, tab)
	}
	// Each tab has a window or is hidden in one: only what is seen listens.
	listening := func() (n int) {
		for _, tab := range tabs {
			open := false
			for _, r := range tab.requests() { // a page's stream ends with the page
				open = strings.HasSuffix(r.url, "/live") && !r.ended || open && r.kind != network.ResourceTypeDocument
			}
			if open {
				n++
			}
		}
		return n
	}
	seen := func() (n int) {
		for _, tab := range tabs {
			if !tab.is("document.hidden") {
				n++
			}
		}
		return n
	}
	// A tab that is covered learns of it a moment later.
	untilTrue(t, "as many streams as tabs that are seen", func() bool { n := seen(); return n <= 2 && listening() == n })

	// All answer, and each shows the prompt when it is looked at.
	s.pay(phoneOfHandset(p), "5000", "ORDER-1", nil)
	for _, tab := range tabs {
		tab.activate()
		tab.until(`!document.hidden && document.querySelector("#pin")`)
	}
	tabs[6].look("seventh-tab")
}

// activate brings the tab to the front of its window.
func (p *page) activate() {
	p.t.Helper()
	id := chromedp.FromContext(p.ctx).Target.TargetID
	if _, err := chromedp.CallBrowser(p.ctx, target.ActivateTarget, target.ActivateTargetParams{TargetID: id}); err != nil {
		p.t.Fatal(err)
	}
}

func TestE15StreamCut(t *testing.T) {
	t.Parallel()
	s := startDev(t)
	p := newPage(t, "E15c", s.origin)
	p.enterDemo(s, "Awa")
	p.allow("net::ERR_CONNECTION_RESET")
	cut := make(chan string, 16)
	call(p, fetch.Enable, fetch.EnableParams{Patterns: []*fetch.RequestPattern{{URLPattern: "*/live"}}})
	hear(p, chromedp.Events(p.ctx, fetch.RequestPaused), func(e fetch.EventRequestPaused) {
		_, _ = chromedp.Call(p.ctx, fetch.FailRequest, fetch.FailRequestParams{RequestID: e.RequestID, ErrorReason: network.ErrorReasonConnectionReset}) // the page may be gone
		cut <- e.Request.URL
	})
	p.open(s.sandboxPath())
	p.until(`document.querySelector("#handset")`)
	s.pay(phoneOfHandset(p), "5000", "ORDER-1", nil)
	p.until(`document.querySelector("#pin")`) // by polling
	if len(cut) == 0 {
		t.Error("no stream was cut")
	}
	p.look("without-stream")
}

// phoneOfHandset reads the number on the phone's screen.
func phoneOfHandset(p *page) string {
	p.t.Helper()
	return strings.NewReplacer(" ", "", "+", "").Replace(p.text(".phone .status span:last-child"))
}
