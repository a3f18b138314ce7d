package pay

import (
	"errors"
	"net/http"
	"strings"
	"unicode/utf8"

	"till"
	"till/checkout"
	"till/console/look"
	"till/engine"
)

// post is POST /p/{token}: it asks the customer by the function that the API calls, or shows
// the form again with what is wrong. It ends on a page of ours: browsers apply form-action to
// where an answer leads.
func (v *visit) post() error {
	if v.foreign() {
		return errForeign
	}
	if err := v.r.ParseForm(); err != nil {
		return v.show(nil)
	}
	field := v.r.PostFormValue
	if err := v.read(); err != nil {
		return err
	}
	n, nonce, age := v.readForm(field("form"))
	typed := &fields{Phone: bounded(field("phone")), Market: bounded(field("market"))}
	if v.view.Link != nil {
		typed.TypedAmount, typed.TypedReference = bounded(field("amount")), textOfField(field("reference"))
		return v.postLink(nonce, age, typed)
	}
	markets := v.markets()
	face := v.scene(markets).Look()
	switch {
	case face == checkout.FaceBusy && age == formGood && field("go_on") != "":
		return v.goOn(n)
	case face != checkout.FaceForm:
		return v.posted(n, age, markets, typed)
	case age != formGood:
		if field("form") != "" && age == formStale {
			typed.Wrong = v.words.T("wrong.old")
		}
		return v.render(http.StatusOK, typed)
	}
	asked := v.check(markets, typed)
	switch {
	case asked == nil, field("change") != "":
		if field("change") != "" {
			typed.Wrong, typed.WrongPhone, typed.WrongMethod = "", "", ""
		}
		return v.render(http.StatusOK, typed)
	case (!asked.shown || v.fromCrowdedSource()) && field("sure") != asked.word():
		return v.sure(asked, typed, field("form"))
	case v.crowded():
		return v.crowd(typed)
	}
	return v.askFor(n, asked, markets, typed)
}

// bounded returns what was typed, cut where no field of the form goes.
func bounded(s string) string {
	s = strings.TrimSpace(strings.ToValidUTF8(s, ""))
	if utf8.RuneCountInString(s) > 48 {
		s = string([]rune(s)[:48])
	}
	return s
}

// posted answers a form that came while nothing can be asked. Who posted the last ask's own
// form, with its number, is sent to its address: a double click, a second tab, a reload.
func (v *visit) posted(n int, age formAge, markets []*market, typed *fields) error {
	last := v.view.Last
	if age != formNone && last != nil && n == last.N && v.typedFor(last, markets, typed) {
		return v.redirect(v.said(v.ownPath(n)))
	}
	return v.redirect(v.said(v.base()))
}

// typedFor reports whether what was typed is what an ask was made with, so that who typed it
// may see it.
func (v *visit) typedFor(a *till.Ask, markets []*market, typed *fields) bool {
	if c := v.view.Checkout; c.PhoneFixed || typed.Phone == "" {
		return c.Phone != "" && c.Phone == a.Phone
	}
	country, ok := till.CountryOf(a.Country)
	if !ok {
		return false
	}
	phone, ok := country.ReadPhone(typed.Phone)
	return ok && phone == a.Phone
}

// wish is what somebody wants to pay with.
type wish struct {
	market *market
	phone  string
	own    bool // the shop named the number: pages show it masked
	shown  bool // it needs no look before it is asked: nobody typed it
	likely *market
}

// check returns what the form asks for, or fills in what is wrong and returns nil.
func (v *visit) check(markets []*market, typed *fields) *wish {
	t, c := v.words.T, v.view.Checkout
	text, w := typed.Phone, &wish{}
	if c.PhoneFixed || text == "" && c.Phone != "" {
		text, w.own, w.shown = "+"+c.Phone, true, c.PhoneFixed
	}
	likely := predict(markets, text, v.profile.Country)
	if w.market = marketOf(markets, typed.Market); w.market == nil && typed.Market == "" {
		w.market = likely
	}
	if w.market == nil {
		known := false
		for _, m := range markets {
			if _, ok := m.country.ReadPhone(text); ok {
				known = true
			}
		}
		if known {
			typed.WrongMethod = t("wrong.method")
		} else {
			typed.WrongPhone = t("wrong.no_phone", "example", examplePhone(markets[0], markets))
		}
		typed.Wrong = typed.WrongMethod + typed.WrongPhone
		return nil
	}
	w.phone, _ = w.market.country.ReadPhone(text)
	if good, _ := w.market.method.CheckPhone(w.market.country, w.phone); !good {
		if likely != nil && likely != w.market {
			typed.WrongMethod = t("wrong.other", "name", likely.Name)
		} else {
			typed.WrongPhone = t("wrong.phone", "name", w.market.Name, "example", examplePhone(w.market, markets))
		}
		typed.Wrong = typed.WrongMethod + typed.WrongPhone
		return nil
	}
	if w.market.Shut {
		typed.WrongMethod = t("wrong.shut", "name", w.market.Name)
		typed.Wrong = typed.WrongMethod
		return nil
	}
	if likely != nil && likely != w.market {
		w.likely = likely
	}
	return w
}

// sure shows the number whole, before it is asked: it is never repaired without a word. One
// that the shop named is shown masked.
func (v *visit) sure(w *wish, typed *fields, form string) error {
	typed.Form, typed.Sure, typed.Market = form, w.word(), w.market.Key
	if w.likely != nil {
		typed.Likely = v.words.T("sure.likely", "name", w.likely.Name)
	}
	s := v.scene([]*market{w.market})
	s.Unsure = true
	return v.renderSure(s, w, typed)
}

func (v *visit) renderSure(s *checkout.Scene, w *wish, typed *fields) error {
	face := s.Look()
	if face != checkout.FaceSure {
		return v.renderFace(http.StatusOK, s, face, v.markets(), typed)
	}
	v.sureOf = w
	return v.renderFace(http.StatusOK, s, face, nil, typed)
}

// askFor makes the ask.
func (v *visit) askFor(n int, w *wish, markets []*market, typed *fields) error {
	ctx, cancel := v.detached()
	defer cancel()
	v.counted()
	a, err := v.p.c.Checkouts.Ask(ctx, v.client(), v.ref(), checkout.Typed{N: n, Phone: w.phone, Method: w.market.method.Code, Country: w.market.country.Code})
	var slow *checkout.Slow
	switch {
	case err == nil && a.Phone == w.phone:
		return v.redirect(v.said(v.ownPath(a.N)))
	case err == nil, errors.Is(err, checkout.ErrForm), errors.Is(err, checkout.ErrOver):
		return v.redirect(v.said(v.base())) // somebody else's ask, or the end
	case errors.Is(err, checkout.ErrAsks):
		s := v.scene(markets)
		s.Spent = true
		return v.renderFace(http.StatusOK, s, s.Look(), markets, typed)
	case errors.As(err, &slow):
		return v.slow(slow, markets, typed)
	case errors.Is(err, checkout.ErrBlocked):
		return v.blocked(typed)
	}
	switch code := till.ErrorCode(err); code {
	case till.CodeValidationFailed, till.CodeMethodUnavailable, till.CodeClientSuspended, till.CodePagesNotAvailable, till.AskNotSent:
		if err := v.read(); err != nil { // a refused ask is written down: the next has another number
			return err
		}
		typed.Wrong = v.words.T("wrong.refused")
		if code == till.CodeMethodUnavailable {
			typed.Wrong = v.words.T("wrong.shut", "name", w.market.Name)
		}
		return v.render(http.StatusOK, typed)
	}
	return err
}

// blocked answers for a number that pages never ask: what to do, and not why.
func (v *visit) blocked(typed *fields) error {
	key := "wrong.blocked"
	if v.view.Checkout.PhoneFixed {
		key = "wrong.blocked_fixed"
	}
	typed.Wrong = v.words.T(key, "name", v.name())
	return v.render(http.StatusOK, typed)
}

// goOn makes the payment of an ask that was written down, as it was written down.
func (v *visit) goOn(n int) error {
	ctx, cancel := v.detached()
	defer cancel()
	_, err := v.p.c.Checkouts.Ask(ctx, v.client(), v.ref(), checkout.Typed{N: n})
	if code := till.ErrorCode(err); code == till.CodeServiceUnavailable || code == till.CodeInternal && !errors.Is(err, checkout.ErrForm) && !errors.Is(err, checkout.ErrOver) && !errors.Is(err, checkout.ErrAsks) {
		return err
	}
	if c := v.view.Checkout; v.p.c.Checkouts.Keys().IsAskMAC(c.ClientID, c.ID, n, v.r.PostFormValue("own")) {
		return v.redirect(v.said(v.ownPath(n)))
	}
	return v.redirect(v.said(v.base()))
}

// client returns the merchant, for whom the ask is made.
func (v *visit) client() engine.Client {
	return engine.Client{Client: v.who.Client, Enabled: v.who.Enabled, Fees: v.who.Fees(), Full: v.who.CheckTestQuota(v.p.c.TestQuota)}
}

// slow shows that a limit holds, with the form.
func (v *visit) slow(limit *checkout.Slow, markets []*market, typed *fields) error {
	s := v.scene(markets)
	s.Slow = limit.Until
	face := s.Look()
	if face == checkout.FaceSlow {
		typed.Wrong = v.words.T("slow.lead") + " " + v.words.T("slow.body", "time", v.clock.Minute(limit.Until))
		if limit.Live {
			typed.Wrong = v.words.T("slow.other") + " " + v.words.T("slow.body", "time", v.clock.Minute(limit.Until))
		}
		if limit.Link {
			typed.Wrong = v.words.T("slow.link", "time", v.clock.Minute(limit.Until))
		}
	}
	return v.renderFace(http.StatusTooManyRequests, s, face, markets, typed)
}

// word is what the form says once its number was looked at.
func (w *wish) word() string {
	if w.own {
		return "shop" // the number stays masked
	}
	return w.phone
}

// shownNumber returns the number of the page "is this right?".
func (w *wish) shownNumber() string {
	if w.own {
		return look.Mask(w.phone)
	}
	return look.Phone(w.phone)
}
