package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/chromedp/cdproto/cdp"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// lang returns the language of the page.
func (p *page) lang() string {
	p.t.Helper()
	return eval[string](p, `document.documentElement.lang`)
}

// look holds the page to the rules of every page, and takes its picture.
func (p *page) look(name string) {
	p.t.Helper()
	p.step++
	p.until(`document.readyState === "complete"`)
	p.inspect(name)
}

// inspect is look without counting a step: the same page in another dress.
func (p *page) inspect(name string) {
	p.t.Helper()
	at := fmt.Sprintf("%s-%02d-%s-%s-%s-%d", p.story, p.step, name, p.lang(), p.theme, p.width)
	if p.noScript {
		// axe needs timers. Scripts that were not run when the page came are not run
		// now either.
		p.withoutScript(false)
		defer p.withoutScript(true)
	}
	for _, v := range p.axe() {
		p.t.Errorf("%s: axe: %s", at, v)
	}
	if over := eval[int](p, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
		p.t.Errorf("%s: %d px wider than the screen: %s", at, over, p.widest())
	}
	p.checkFaults()
	p.shoot(filepath.Join(shotsFolder, at+".png"))
}

// widest names what sticks out.
func (p *page) widest() string {
	return eval[string](p, `[...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
		.slice(0, 5).map((e) => e.tagName + "." + e.className).join(", ")`)
}

// shoot writes a picture of the whole page. A busy Chromium sometimes draws nothing for a
// tab that others cover, and then never answers: it is asked again with the tab in front.
func (p *page) shoot(path string) {
	p.t.Helper()
	var png []byte
	var err error
	yes := true
	for range 3 {
		ctx, cancel := context.WithTimeout(p.ctx, patience/2)
		var shot cdppage.CaptureScreenshotResult
		shot, err = chromedp.Call(ctx, cdppage.CaptureScreenshot, cdppage.CaptureScreenshotParams{CaptureBeyondViewport: &yes, OptimizeForSpeed: &yes})
		png = shot.Data
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			break
		}
		call(p, cdppage.BringToFront, cdp.Empty{})
	}
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err == nil {
		err = os.WriteFile(path, png, 0o644)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

var axeSource = sync.OnceValues(func() ([]byte, error) {
	return os.ReadFile("node_modules/axe-core/axe.min.js")
})

// axe returns what axe-core finds. It runs in a world of its own, in which the
// page's policy does not bind it and its work is not taken for the page's.
func (p *page) axe() []string {
	p.t.Helper()
	source, err := axeSource()
	if err != nil {
		p.t.Fatal("axe-core is not there (make e2e-tools brings it): ", err)
	}
	frame := call(p, cdppage.GetFrameTree, cdp.Empty{}).FrameTree.Frame.ID
	world := call(p, cdppage.CreateIsolatedWorld, cdppage.CreateIsolatedWorldParams{FrameID: frame, WorldName: "axe"}).ExecutionContextID
	there, err := p.inWorld(world, `typeof axe === "object"`)
	if err == nil && string(there) != "true" {
		_, err = p.inWorld(world, string(source)+";true")
	}
	var said []byte
	if err == nil {
		said, err = p.inWorld(world, `axe.run(document, {resultTypes: ["violations"], preload: false, rules: {"target-size": {enabled: true}}}).then((r) =>
			r.violations.map((v) => v.id + ": " + v.help + ": " + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160) + " " + n.failureSummary.slice(0, 300)).join(" | ")))`)
	}
	var found []string
	if err == nil {
		err = json.Unmarshal(said, &found)
	}
	if err != nil {
		p.t.Fatalf("%s, step %d: axe: %v", p.story, p.step, err)
	}
	return found
}

// inWorld evaluates an expression beside the page.
func (p *page) inWorld(world runtime.ExecutionContextID, expression string) ([]byte, error) {
	p.t.Helper()
	r := call(p, runtime.Evaluate, runtime.EvaluateParams{Expression: expression, ContextID: world, AwaitPromise: new(true), ReturnByValue: new(true)})
	if d := r.ExceptionDetails; d != nil {
		text := d.Text
		if d.Exception != nil {
			text += " " + d.Exception.Description
		}
		return nil, errors.New(text)
	}
	return r.Result.Value, nil
}
