package e2e

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience is how long a page has for what a story waits for.
const patience = 60 * time.Second

// The two widths that pages are looked at.
const (
	wide   = 1280
	narrow = 360
)

// page is a tab of the browser, of one person.
type page struct {
	t      *testing.T
	ctx    context.Context
	origin string // of the program: no request may go elsewhere
	story  string
	step   int
	theme  string
	width  int

	noScript   bool
	readsAgain bool // without script, a page that waits is read again by the browser itself

	mu      sync.Mutex
	faults  []string
	allowed []string // parts of faults that the story provokes
	asked   []request
}

// request is one that the page has made.
type request struct {
	id    network.RequestID
	url   string
	kind  network.ResourceType
	ended bool
}

// newPage opens a tab of a browser that has no cookies.
func newPage(t *testing.T, story, origin string) *page {
	t.Helper()
	return openPage(t, story, origin, browser, chromedp.WithNewBrowserContext())
}

// newTab opens another tab of the same browser: it has the same cookies.
func (p *page) newTab() *page {
	p.t.Helper()
	return openPage(p.t, p.story, p.origin, p.ctx)
}

func openPage(t *testing.T, story, origin string, parent context.Context, options ...chromedp.ContextOption) *page {
	t.Helper()
	ctx, cancel := chromedp.NewContext(parent, options...)
	t.Cleanup(cancel)
	p := &page{t: t, ctx: ctx, origin: origin, story: story}
	if err := chromedp.Do(ctx); err != nil { // the tab outlives the deadlines of its steps
		t.Fatal(err)
	}
	p.listen()
	call(p, network.Enable, network.EnableParams{})
	call(p, log.Enable, cdp.Empty{})
	call(p, audits.Enable, cdp.Empty{})
	p.dress("light", wide)
	t.Cleanup(p.checkFaults)
	return p
}

// call sends a command of the protocol.
func call[P, R any](p *page, command cdp.Command[P, R], params P) R {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	r, err := chromedp.Call(ctx, command, params)
	if err != nil {
		p.t.Fatalf("%s, after step %d: %s: %v", p.story, p.step, command.Method, err)
	}
	return r
}

// listen notes what goes wrong in a page, and what it asks for.
func (p *page) listen() {
	hear(p, chromedp.Events(p.ctx, audits.IssueAdded), func(e audits.EventIssueAdded) {
		if d := e.Issue.Details; d != nil && d.ContentSecurityPolicyIssueDetails != nil {
			p.fault("policy violated: %s by %q", d.ContentSecurityPolicyIssueDetails.ViolatedDirective, d.ContentSecurityPolicyIssueDetails.BlockedURL)
		}
	})
	hear(p, chromedp.Events(p.ctx, log.EntryAdded), func(e log.EventEntryAdded) {
		if e.Entry.Level == log.EntryLevelError {
			p.fault("logged: %s %s", e.Entry.Text, e.Entry.URL)
		}
	})
	hear(p, chromedp.Events(p.ctx, runtime.ConsoleAPICalled), func(e runtime.EventConsoleAPICalled) {
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeAssert {
			p.fault("console: %s", e.Args[0].Value)
		}
	})
	hear(p, chromedp.Events(p.ctx, runtime.ExceptionThrown), func(e runtime.EventExceptionThrown) {
		text := e.ExceptionDetails.Text
		if x := e.ExceptionDetails.Exception; x != nil {
			text += " " + x.Description
		}
		p.fault("thrown: %s", text)
	})
	hear(p, chromedp.Events(p.ctx, network.RequestWillBeSent), func(e network.EventRequestWillBeSent) {
		p.asked = append(p.asked, request{id: e.RequestID, url: e.Request.URL, kind: e.Type})
		if !strings.HasPrefix(e.Request.URL, "data:") && e.Request.URL != p.origin && !strings.HasPrefix(e.Request.URL, p.origin+"/") {
			p.fault("request to elsewhere: %s", e.Request.URL)
		}
	})
	ended := func(id network.RequestID) {
		for i := range p.asked {
			p.asked[i].ended = p.asked[i].ended || p.asked[i].id == id
		}
	}
	hear(p, chromedp.Events(p.ctx, network.LoadingFinished), func(e network.EventLoadingFinished) { ended(e.RequestID) })
	hear(p, chromedp.Events(p.ctx, network.LoadingFailed), func(e network.EventLoadingFailed) { ended(e.RequestID) })
}

// hear calls f for each event, one at a time, until the tab closes.
func hear[E any](p *page, events iter.Seq2[E, error], f func(E)) {
	go func() {
		for e, err := range events {
			if err != nil {
				return
			}
			p.mu.Lock()
			f(e)
			p.mu.Unlock()
		}
	}()
}

func (p *page) fault(format string, args ...any) {
	p.faults = append(p.faults, fmt.Sprintf(format, args...))
}

// requests returns what was asked for so far.
func (p *page) requests() []request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

// allow lets faults pass that contain a text: the story provokes them.
func (p *page) allow(text string) { p.allowed = append(p.allowed, text) }

// refused lets the browser note that a page was answered with an error.
func (p *page) refused() { p.allow("Failed to load resource: the server responded with a status of 4") }

func (p *page) checkFaults() {
	p.t.Helper()
	p.mu.Lock()
	faults := p.faults
	p.faults = nil
	p.mu.Unlock()
	for _, f := range faults {
		if !slices.ContainsFunc(p.allowed, func(a string) bool { return strings.Contains(f, a) }) {
			p.t.Errorf("%s, step %d: %s", p.story, p.step, f)
		}
	}
}

// dress sets the theme and the width.
func (p *page) dress(theme string, width int) {
	p.t.Helper()
	p.theme, p.width = theme, width
	height := int64(900)
	if width < 600 {
		height = 720
	}
	call(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: int64(width), Height: height, DeviceScaleFactor: 1, Mobile: width < 600})
	p.media(emulation.MediaFeature{Name: "prefers-color-scheme", Value: theme})
}

// media sets what the person has told the system: theme, contrast, motion.
func (p *page) media(features ...emulation.MediaFeature) {
	p.t.Helper()
	var all []*emulation.MediaFeature
	for i := range features {
		all = append(all, &features[i])
	}
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: all})
}
