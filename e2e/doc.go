// Package e2e tells the stories of the console's users in a real browser:
// Chromium, driven by chromedp, against the program itself.
//
// Each story is a test named for its number in the design (TestE1…). It starts
// the program on a free port and an empty folder, and does what a person does.
// After each step page.look holds the page to the rules of every page: axe finds
// nothing, the policy is not violated, the console shows no error, no request
// leaves the origin, nothing is wider than the screen. It writes a picture of
// the page to shots/, named story-step-language-theme-width.
//
// TestEveryPage goes through the console's own table of routes, so a new page
// is looked at without a line here.
//
// TILL_E2E=full checks each page in both languages, both themes and both
// widths; otherwise at four of the eight. TILL_E2E_PAGES=/audit sweeps over those
// pages only. Start reading at page_test.go.
package e2e
