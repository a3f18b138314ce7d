package e2e

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp/kb"
)

// E14: with the keyboard only, at 200 % zoom, in forced colours, without motion.
func TestE14Keyboard(t *testing.T) {
	t.Parallel()
	s := startDev(t)
	for _, reference := range []string{"ORDER-1", "ORDER-2", "ORDER-3"} {
		s.until(s.pay("242061234567", "5000", reference, nil), "success")
	}
	p := newPage(t, "E14", s.origin)
	p.enterDemo(s, "Awa")
	p.open(s.sandboxPath())

	p.press(kb.Tab)
	if !p.is(`document.activeElement.classList.contains("skip")`) {
		t.Error("the first Tab is not on the link to the content")
	}
	p.press("\r")
	p.until(`location.hash === "#main"`)
	p.leave(func() { p.press("gp") })
	p.until(`location.pathname.endsWith("/payments")`)

	p.press("?")
	p.until(`document.querySelector("dialog[open]")`)
	p.look("keys")
	p.press(kb.Escape)
	p.until(`!document.querySelector("dialog[open]")`)

	p.press("jj")
	p.until(`document.activeElement.innerText === "ORDER-2"`)
	p.look("second-row")
	p.press("k")
	p.until(`document.activeElement.innerText === "ORDER-3"`)
	p.leave(func() { p.press("\r") })
	p.until(`document.querySelector(".going .say")`)

	p.press("/")
	p.until(`document.activeElement.type === "search"`)
	p.press("g") // it is typed, not obeyed
	p.press("p")
	if at := p.path(); !strings.Contains(at, "/payments/") || !p.is(`document.activeElement.value.endsWith("gp")`) {
		t.Errorf("a shortcut while typing: %s", at)
	}
	p.fill(".find input", "ORDER-1")
	p.leave(func() { p.press("\r") })
	p.until(`document.querySelector("main a[data-open]")`)

	// An act: n asks at the counter, Tab goes from field to field, Enter sends.
	p.leave(func() { p.press("n") })
	p.until(`location.pathname.endsWith("/collect")`)
	for _, typed := range []struct{ field, text string }{{"desk-amount", "5000"}, {"desk-phone", "06 123 45 67"}} {
		for range 40 {
			if p.is(`document.activeElement.id === "` + typed.field + `"`) {
				break
			}
			p.press(kb.Tab)
		}
		p.press(typed.text)
	}
	p.leave(func() { p.press("\r") })
	p.until(`location.pathname.includes("/collect/")`)
	p.look("asked")

	// Everything that can be used is reached by Tab, and shows that it is.
	p.open("/console/c/" + s.client + "/payments")
	reached := map[string]bool{}
	for range 60 {
		p.press(kb.Tab)
		name := eval[string](p, `document.activeElement.tagName + " " + (document.activeElement.getAttribute("href") || document.activeElement.name || document.activeElement.innerText)`)
		if strings.HasPrefix(name, "BODY") || reached[name] && len(reached) > 15 {
			break
		}
		reached[name] = true
		if !p.is(`(() => { const e = document.activeElement; const ring = (s) => s.outlineStyle !== "none" && parseFloat(s.outlineWidth) > 0;
			return e === document.body || ring(getComputedStyle(e)) || ring(getComputedStyle(e.parentElement)); })()`) {
			t.Errorf("no ring around %s", name)
		}
	}
	if len(reached) < 15 {
		t.Errorf("Tab reaches %d things only: %v", len(reached), reached)
	}

	// 200 % on a laptop of 1280 px leaves 640; WCAG asks for 320 too.
	for _, width := range []int{640, 320} {
		for _, path := range []string{"/payments", "/sandbox"} {
			p.open("/console/c/" + s.client + path)
			p.dress("light", width)
			p.look("zoom" + strings.ReplaceAll(path, "/", "-"))
		}
	}
	p.dress("light", wide)
	p.media(emulation.MediaFeature{Name: "forced-colors", Value: "active"}, emulation.MediaFeature{Name: "prefers-reduced-motion", Value: "reduce"})
	p.open("/console/c/" + s.client + "/payments")
	p.theme = "forced"
	p.look("forced-colours")
	p.open(s.sandboxPath())
	p.order()
	p.until(`document.querySelector("#pin")`)
	if p.is(`document.getAnimations().some((a) => a.playState === "running")`) {
		t.Error("something moves although the person wants nothing to")
	}
	p.look("forced-prompt")
}
