package pay

import (
	"bytes"
	"context"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"till"
	"till/checkout"
	"till/console/look"
	"till/console/words"
	"till/store"
)

// page is what the templates show.
type page struct {
	*words.Catalogue
	Style template.CSS

	Title, Lead, Body string
	Name, Country     string // of the merchant
	Host              string // who runs the page
	Amount            string
	Description       string
	Reference         string
	Test              bool
	Heading           string // of a link
	Preview           string // what a chat shows of the address
	Refresh           string // when the browser reads the page again, and where it goes
	Every             int    // the same, in seconds
	Languages         []language
	Report            string
	Self, Action      string

	Number string // masked, but for the one that was just typed
	Method string
	Time   string
	Shown  string // what the phone shows instead of the merchant's name
	Dial   string // what brings the prompt
	Facts  []fact
	Shop   *shop
	Good   bool
	Return string // where an end leads on
	GoOn   *goOn

	ReturnText string
	fields
}

// fields are those of the form.
type fields struct {
	Form        string
	Phone       string // as it was typed
	KnownPhone  string // the shop named it
	FixedPhone  string // and no other may pay
	Example     string
	Markets     []*market
	Many        bool
	Single      bool
	Market      string // the chosen one
	Wrong       string
	WrongPhone  string
	WrongMethod string
	Sure        string
	Likely      string
	linkFields
}

type language struct{ Code, Name, Path string }

type fact struct{ Name, Value string }

// shop is the way back.
type shop struct{ Host, Path string }

// goOn is for an ask that was written down and not made.
type goOn struct{ Text, Own string }

// show is GET /p/{token}: what everybody may see who has the address.
func (v *visit) show(typed *fields) error {
	if err := v.read(); err != nil {
		return err
	}
	return v.render(http.StatusOK, typed)
}

// showOwn is GET /p/{token}/{n}-{mac}: what only the payer may see.
func (v *visit) showOwn(rest string) error {
	if err := v.read(); err != nil {
		return err
	}
	if err := v.readOwn(rest); err != nil {
		return err
	}
	if err := v.await(rest); err != nil {
		return err
	}
	if p := v.own.Payment; p != nil && p.Status.Final() && !p.Attention {
		if err := v.p.c.Limits.Note(v.r.Context(), v.p.c.Store, v.ask, p.FailureReason); err != nil {
			v.p.c.Log.Warn("end of an ask not counted", "error", err) // the limits are tighter than they need to be
		}
	}
	return v.render(http.StatusOK, nil)
}

// render answers with the face of what was read.
func (v *visit) render(status int, typed *fields) error {
	markets := v.markets()
	s := v.scene(markets)
	return v.renderFace(status, s, s.Look(), markets, typed)
}

func (v *visit) renderFace(status int, s *checkout.Scene, face checkout.Face, markets []*market, typed *fields) error {
	g := v.newPage(face, s)
	switch face {
	case checkout.FaceForm, checkout.FaceAgain, checkout.FaceSlow:
		v.fill(g, markets, typed)
	case checkout.FaceSure:
		g.fields = *typed
		g.Number, g.Method = v.sureOf.shownNumber(), v.sureOf.market.Name
	case checkout.FacePaid:
		v.paid(g)
	}
	if v.own != nil {
		v.aboutAsk(g, face)
	}
	if face.Live() {
		v.lookAgain(g, s, face)
	}
	v.wayBack(g, s, face)
	var b bytes.Buffer
	if err := templateOf(face).ExecuteTemplate(&b, "layout", g); err != nil {
		return err
	}
	v.answer(status, "text/html; charset=utf-8", b.Bytes())
	return nil
}

// newPage fills in what all faces have.
func (v *visit) newPage(face checkout.Face, s *checkout.Scene) *page {
	c, t := v.view.Checkout, v.words.T
	name, key := v.name(), string(face)
	amount := look.MoneyInUse(v.lang, c.Amount)
	g := &page{Catalogue: v.words, Style: Style(), Name: name, Host: v.p.host, Amount: amount, Reference: plainText(c.Reference), Description: plainText(checkout.Description(c)),
		Test: v.who.Client.Mode == till.Test, Self: v.said(v.self()), Action: v.said(v.base()), Report: v.said(v.base() + "/report")}
	if v.profile.Country != "" {
		g.Country = v.countryName(v.profile.Country)
	}
	v.aboutLink(g)
	for _, l := range []language{{look.English, "English", ""}, {look.French, "Français", ""}} {
		g.Languages = append(g.Languages, language{l.Code, l.Name, v.self() + "?l=" + l.Code})
	}
	op, reason := "", ""
	if v.ask != nil {
		op, reason = methodName(v.ask.Method, v.ask.Country), t("reason."+v.reason())
	}
	at := ""
	if !c.PaidAt.IsZero() {
		at = v.clock.DateTime(c.PaidAt)
	} else if p := v.view.Payment; p != nil && p.Credited() {
		at = v.clock.DateTime(paidAt(&p.Payment))
	}
	if face == checkout.FaceSlow {
		at = v.clock.Minute(s.Slow)
	}
	g.Title = t(key+".title", "amount", amount, "op", op)
	g.Lead = t(key+".lead", "name", name, "op", op, "reason", reason, "time", at)
	if v.words.Has(key + ".body") {
		g.Body = t(key+".body", "name", name, "amount", amount, "time", at, "op", op)
	}
	if v.view.Link != nil {
		v.sayLink(g, face)
		return g
	}
	switch face {
	case checkout.FaceOff:
		if name == "" {
			g.Lead = t("off.nameless")
		}
	case checkout.FaceForm:
		g.Preview = t("page.to", "amount", amount, "name", name)
	case checkout.FaceDone:
		g.Good = true
	}
	return g
}

// self returns the path of this page.
func (v *visit) self() string {
	if v.own != nil {
		return v.ownPath(v.own.N)
	}
	return v.base()
}

// fill fills in the form.
func (v *visit) fill(g *page, markets []*market, typed *fields) {
	if typed != nil {
		g.fields = *typed
	}
	c := v.view.Checkout
	if v.view.Link != nil {
		v.fillLink(g, markets)
	}
	g.Form, g.Markets, g.Many, g.Single = v.newForm(v.view.Next()), markets, len(markets) > 6, len(markets) == 1
	if len(markets) == 0 {
		return
	}
	switch {
	case c.PhoneFixed:
		g.FixedPhone = look.Mask(c.Phone)
	case c.Phone != "":
		g.KnownPhone = look.Mask(c.Phone)
	}
	chosen := marketOf(markets, g.Market)
	if chosen == nil && g.Phone == "" && c.Phone != "" {
		chosen = predict(markets, "+"+c.Phone, v.profile.Country)
	}
	if chosen != nil && !chosen.Shut {
		chosen.Checked = true
	} else {
		chosen = markets[0]
	}
	g.Example = examplePhone(chosen, markets)
}

// aboutAsk fills in what only the payer may see.
func (v *visit) aboutAsk(g *page, face checkout.Face) {
	g.Number, g.Method = look.Mask(v.ask.Phone), methodName(v.ask.Method, v.ask.Country)
	if p := v.own.Payment; p != nil && face == checkout.FacePrompt {
		g.Time = v.clock.Minute(p.ExpiresAt)
		if v.p.c.Told != nil {
			g.Shown, g.Dial = v.p.c.Told(p.Connection, p.Method, p.Country, p.Amount.Currency)
		}
	}
}

// paid fills in the receipt.
func (v *visit) paid(g *page) {
	p, t := v.own.Payment, v.words.T
	g.Title = t("paid.title", "amount", g.Amount)
	add := func(name, value string) {
		if value != "" {
			g.Facts = append(g.Facts, fact{name, value})
		}
	}
	add(t("page.receipt"), p.ProviderReference)
	add(t("page.date"), v.clock.DateTime(paidAt(&p.Payment)))
	add(t("page.method"), methodName(p.Method, p.Country))
	add(t("page.number"), look.Mask(p.Phone))
	add(t("page.reference"), g.Reference)
	g.Reference = ""
}

// paidAt returns when a payment's money came.
func paidAt(p *till.Payment) till.Time {
	if !p.LateSuccessAt.IsZero() {
		return p.LateSuccessAt
	}
	return p.UpdatedAt
}

// reason returns why the ask of this address brought nothing.
func (v *visit) reason() string {
	p := v.own.Payment
	switch {
	case p == nil:
		return "refused"
	case p.FailureReason == "" && p.Status == till.Expired:
		return "expired"
	case v.words.Has("reason." + string(p.FailureReason)):
		return string(p.FailureReason)
	}
	return string(till.Unspecified)
}

// lookAgain says when the browser reads the page again, and offers to finish an ask that was
// only written down.
func (v *visit) lookAgain(g *page, s *checkout.Scene, face checkout.Face) {
	asked := s.Last
	if s.Own != nil {
		asked = s.Own
	}
	row := v.ask
	if row == nil {
		row = v.view.Last
	}
	if g.Every = refreshAfter(s.Now.Sub(row.AskedAt)); g.Every > 0 {
		g.Refresh = strconv.Itoa(g.Every) + ";url=" + g.Self
	}
	if asked.Payment == nil && !asked.Refused && s.Now.Sub(row.AskedAt) >= unmadeFor && !s.Over && s.Now < s.Expires {
		g.GoOn, g.Form = &goOn{Text: v.words.T("busy.go_on")}, v.newForm(row.N)
		if v.own != nil {
			g.GoOn.Own = v.p.c.Checkouts.Keys().AskMAC(row.ClientID, row.CheckoutID, row.N)
		}
	}
}

// unmadeFor is how long an ask may be without a payment before a page offers to go on: much
// longer than the second commit takes.
const unmadeFor = 5 * time.Second

// refreshAfter returns after how many seconds a page is read again whose ask is so old: often
// at first, never after an hour.
func refreshAfter(age time.Duration) int {
	for _, step := range []struct {
		until time.Duration
		after int
	}{{6 * time.Second, 3}, {10 * time.Second, 4}, {15 * time.Second, 5}, {23 * time.Second, 8}, {10 * time.Minute, 10}, {time.Hour, 60}} {
		if age < step.until {
			return step.after
		}
	}
	return 0
}

// wayBack fills in the link to the shop, on pages that are an end.
func (v *visit) wayBack(g *page, s *checkout.Scene, face checkout.Face) {
	state := ""
	switch face {
	case checkout.FacePaid:
		state = checkout.ReturnPaid
	case checkout.FaceDone:
		state = checkout.ReturnPaid
	case checkout.FaceClosed, checkout.FaceSpent:
		state = checkout.ReturnClosed
	}
	c := v.view.Checkout
	if state == "" || c.ReturnURL == "" {
		return
	}
	u, err := url.Parse(c.ReturnURL)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return
	}
	to := v.p.c.Checkouts.Keys().Return(c, state, s.Now)
	g.Shop = &shop{Host: u.Host, Path: to}
	if face == checkout.FacePaid || face == checkout.FaceClosed {
		g.Refresh = "5;url=" + to
	}
}

// plainText returns a text of the shop's as pages show it: one line, without what is not seen
// or turns the direction of writing.
func plainText(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), r == unicode.ReplacementChar, unicode.Is(unicode.Zl, r), unicode.Is(unicode.Zp, r):
			return -1
		}
		return r
	}, s)
	if runes := []rune(s); len(runes) > maxText {
		s = string(runes[:maxText]) + "…"
	}
	return strings.TrimSpace(s)
}

// maxText is how much of a text a page shows.
const maxText = 255

// await waits a moment for a change of an ask that was made some seconds ago, so that a browser
// that reads again learns of it at once. At most maxWaits do. What changes between the read
// and the watch is shown by the next look.
func (v *visit) await(rest string) error {
	if face := v.scene(nil).Look(); face != checkout.FaceCalling && face != checkout.FacePrompt || v.own.Payment == nil || v.view.Now.Sub(v.ask.AskedAt) < waitAfter || v.r.Method != http.MethodGet {
		return nil
	}
	select {
	case v.p.waits <- struct{}{}:
		defer func() { <-v.p.waits }()
	default:
		return nil
	}
	before := v.stateNow()
	changed, stop := v.p.watches.Watch(store.Ref{Client: v.view.Checkout.ClientID, ID: v.own.Payment.ID})
	defer stop()
	over := time.NewTimer(waitFor)
	defer over.Stop()
	for v.stateNow() == before {
		select {
		case <-changed:
			if err := v.again(rest); err != nil {
				return err
			}
		case <-v.p.c.Stopping:
			return nil
		case <-over.C:
			return nil
		case <-v.r.Context().Done():
			return context.Cause(v.r.Context())
		}
	}
	return nil
}

// How long an ask must be old before an answer waits for its change, and how long it does.
const (
	waitAfter = 2 * time.Second
	waitFor   = 2 * time.Second
)

// again reads the checkout and the ask once more.
func (v *visit) again(rest string) error {
	var err error
	off := v.view.Off
	if v.view, err = v.p.c.Checkouts.View(v.r.Context(), v.ref()); err != nil {
		return err
	}
	v.view.Off = off
	return v.readOwn(rest)
}

func (v *visit) stateNow() string {
	if p := v.own.Payment; p != nil {
		return string(p.Status) + strconv.FormatBool(p.Credited()) + strconv.FormatBool(p.Attention)
	}
	return ""
}
