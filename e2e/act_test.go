package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// do runs actions within the story's patience.
func (p *page) do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		p.t.Fatalf("%s, after step %d, at %s: %v", p.story, p.step, p.whereami(), err)
	}
}

// try evaluates an expression and returns what went wrong.
func try[T any](p *page, expression string) (T, error) {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](expression))
}

// eval evaluates an expression.
func eval[T any](p *page, expression string) T {
	p.t.Helper()
	v, err := try[T](p, expression)
	if err != nil {
		p.t.Fatalf("%s, after step %d: %s: %v", p.story, p.step, expression, err)
	}
	return v
}

// whereami is for messages.
func (p *page) whereami() string {
	ctx, cancel := context.WithTimeout(p.ctx, 5*time.Second)
	defer cancel()
	at, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.pathname + location.search + " " + document.title + ": " + (document.querySelector("main")?.innerText || "").slice(0, 600)`))
	if err != nil {
		return "a page that does not answer"
	}
	return at
}

// open goes to a path, or to a whole address, and waits for the page.
func (p *page) open(path string) {
	p.t.Helper()
	if strings.HasPrefix(path, "/") {
		path = p.origin + path
	}
	p.do(chromedp.Navigate(path))
}

// answered opens a path and returns the status of the answer.
func (p *page) answered(path string) int64 {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	a, err := chromedp.Run(ctx, chromedp.NavigateResponse(p.origin+path))
	if err != nil || a == nil {
		p.t.Fatalf("%s: %v", path, err)
	}
	return a.Status
}

// is reports whether an expression is true.
func (p *page) is(expression string) bool {
	p.t.Helper()
	return eval[bool](p, "Boolean("+expression+")")
}

// until waits for an expression to be true, also while pages change.
func (p *page) until(expression string) {
	p.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(60 * time.Millisecond) {
		// Between two pages there is nothing to evaluate in: that is asked again.
		yes, err := try[bool](p, "Boolean("+expression+")")
		if err == nil && yes {
			return
		}
		if errors.Is(err, context.Canceled) {
			p.t.Fatal(err)
		}
	}
	p.t.Fatalf("%s, after step %d: not so: %s\nat %s", p.story, p.step, expression, p.whereami())
}

// pageText is an expression for the text of a page, with plain spaces.
const pageText = `document.body.innerText.replace(/[\u00a0\u202f]/g, " ")`

// sees waits for a text on the page.
func (p *page) sees(text string) {
	p.t.Helper()
	p.until(pageText + `.includes(` + quote(text) + `)`)
}

// shows reports whether a text is on the page now.
func (p *page) shows(text string) bool {
	p.t.Helper()
	return p.is(pageText + `.includes(` + quote(text) + `)`)
}

// text returns the text of an element, "" if there is none.
func (p *page) text(selector string) string {
	p.t.Helper()
	return eval[string](p, `(document.querySelector(`+quote(selector)+`)?.innerText || "").replace(/[\u00a0\u202f]/g, " ").trim()`)
}

// value returns an attribute of an element, "" if there is none.
func (p *page) value(selector, attribute string) string {
	p.t.Helper()
	return eval[string](p, `document.querySelector(`+quote(selector)+`)?.getAttribute(`+quote(attribute)+`) || ""`)
}

// path returns the path and query of the page's address.
func (p *page) path() string {
	p.t.Helper()
	return eval[string](p, `location.pathname + location.search`)
}

// click clicks as a person does, where the element is.
func (p *page) click(selector string) {
	p.t.Helper()
	p.do(chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// follow clicks and waits for the next page.
func (p *page) follow(selector string) {
	p.t.Helper()
	p.leave(func() { p.click(selector) })
}

// leave does something that leads to another page, and waits for it.
func (p *page) leave(act func()) {
	p.t.Helper()
	eval[bool](p, `window.stillHere = true`)
	act()
	p.until(`!window.stillHere && document.readyState === "complete"`)
}

// submit sends the form of an element, as a click on it would.
func (p *page) submit(selector string) {
	p.t.Helper()
	p.leave(func() { eval[bool](p, `document.querySelector(`+quote(selector)+`).click(), true`) })
}

// fill types a text into a field, in place of what is there.
func (p *page) fill(selector, text string) {
	p.t.Helper()
	p.do(chromedp.Focus(chromedp.CSS(selector)))
	eval[bool](p, `document.querySelector(`+quote(selector)+`).select?.(), true`)
	call(p, input.InsertText, input.InsertTextParams{Text: text})
}

// choose selects an option by its value.
func (p *page) choose(selector, value string) {
	p.t.Helper()
	p.do(chromedp.SetValue(chromedp.CSS(selector), value))
}

// press presses keys, one after another.
func (p *page) press(keys string) {
	p.t.Helper()
	p.do(chromedp.KeyEvent(keys))
}

// cookie returns the value of a cookie, "" if there is none.
func (p *page) cookie(name string) string {
	p.t.Helper()
	for _, c := range call(p, network.GetCookies, network.GetCookiesParams{URLs: []string{p.origin + "/"}}).Cookies {
		if c.Name == name {
			return c.Value
		}
	}
	return ""
}

// speak switches the language of the person, by the switch of each page.
func (p *page) speak(lang string) {
	p.t.Helper()
	if p.lang() != lang {
		p.submit(`.langs button[value="` + lang + `"]`)
	}
}

func quote(text string) string {
	b, _ := json.Marshal(text) // a text always has its JSON
	return string(b)
}
