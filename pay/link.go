package pay

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"till"
	"till/checkout"
	"till/console/look"
	"till/store"
)

// linkFields are those that the form of a link has beside a checkout's.
type linkFields struct {
	Open           bool // the payer types the amount
	Unit           string
	Bounds         string
	TypedAmount    string
	WrongAmount    string
	Suggested      []suggestion
	Numeric        bool // the currency has no decimals
	AskLabel       string
	AskRequired    bool
	TypedReference string
	WrongReference string
}

// suggestion is an amount that a link proposes: the same page, with it filled in.
type suggestion struct{ Text, Path string }

// textOfField returns a text that somebody typed: one line, in which nothing is hidden. One that
// is too long stays too long.
func textOfField(s string) string {
	s = plainText(strings.ToValidUTF8(s, ""))
	return strings.Join(strings.Fields(s), " ")
}

// aboutLink fills in what a link's pages have in common.
func (v *visit) aboutLink(g *page) {
	l := v.view.Link
	if l == nil {
		return
	}
	g.Heading, g.Description = plainText(l.Title), plainText(checkout.LinkDescription(l))
	if v.view.Checkout.Amount.Minor == 0 {
		g.Amount = ""
	}
}

// sayLink says what a link's page is about. Somebody else, or the same person, may have paid on
// it before: nothing is said of that.
func (v *visit) sayLink(g *page, face checkout.Face) {
	t, name, l := v.words.T, g.Name, v.view.Link
	g.Preview = t("link.to", "name", name, "title", g.Heading)
	switch face {
	case checkout.FaceForm:
		g.Title = g.Preview
	case checkout.FaceClosed:
		key := "link_off"
		if l.Ended(v.view.Now) {
			key = "link_over"
		}
		g.Title, g.Lead, g.Body = t(key+".title"), t(key+".lead"), t("link_off.body", "name", name)
	case checkout.FaceOff:
		g.Body = t("link_off.body", "name", name)
		if name == "" {
			g.Lead, g.Body = t("off.nameless"), ""
		}
	}
}

// fillLink fills in what a link's form has beside a checkout's.
func (v *visit) fillLink(g *page, markets []*market) {
	l, t := v.view.Link, v.words.T
	g.AskLabel, g.AskRequired = plainText(l.AskLabel), l.AskRequired
	if !l.Open() {
		return
	}
	one := v.money(1)
	g.Open, g.Unit = true, one[strings.LastIndexFunc(one, unicode.IsSpace)+1:]
	g.Unit = strings.TrimLeftFunc(g.Unit, func(r rune) bool { return !unicode.IsLetter(r) })
	decimals, _ := till.CurrencyDecimals(l.Amount.Currency)
	g.Numeric = decimals == 0
	if low, high := v.bounds(markets); low > 0 {
		g.Bounds = t("form.bounds", "min", v.money(low), "max", v.money(high))
	}
	if v.r.Method != http.MethodPost {
		g.TypedAmount = bounded(v.r.URL.Query().Get("amount"))
	}
	for _, n := range l.Suggested {
		q := url.Values{"amount": {digitsOf(n, decimals)}}
		if said := v.r.URL.Query().Get("l"); catalogues[said] != nil {
			q.Set("l", said)
		}
		g.Suggested = append(g.Suggested, suggestion{v.money(n), v.base() + "?" + q.Encode()})
	}
}

func (v *visit) money(minor int64) string {
	return look.MoneyInUse(v.lang, till.Money{Minor: minor, Currency: v.view.Link.Amount.Currency})
}

// digitsOf writes an amount as it can be typed, without marks between groups.
func digitsOf(minor int64, decimals int) string {
	s := strconv.FormatInt(minor, 10)
	if decimals == 0 {
		return s
	}
	if len(s) <= decimals {
		s = strings.Repeat("0", decimals-len(s)+1) + s
	}
	whole, part := s[:len(s)-decimals], s[len(s)-decimals:]
	if strings.Trim(part, "0") == "" {
		return whole
	}
	return whole + "." + part
}

// bounds returns between which amounts the link and its methods take money; zeros: nothing does.
func (v *visit) bounds(markets []*market) (low, high int64) {
	l := v.view.Link
	for _, m := range markets {
		from, to := max(l.Min, m.limits.Min), m.limits.Max
		if l.Max > 0 {
			to = min(to, l.Max)
		}
		if from > to {
			continue
		}
		if low == 0 || from < low {
			low = from
		}
		high = max(high, to)
	}
	return low, high
}

// postLink is POST of a link's page: the checkout that it opens is the payer's own, and goes on
// as any other.
func (v *visit) postLink(nonce []byte, age formAge, typed *fields) error {
	field := v.r.PostFormValue
	all := v.markets()
	face := v.scene(all).Look()
	switch {
	case face != checkout.FaceForm:
		return v.linkShut(nonce, age, typed)
	case age != formGood:
		if age == formStale {
			typed.Wrong = v.words.T("wrong.old")
		}
		return v.render(http.StatusOK, typed)
	case field("change") != "":
		return v.render(http.StatusOK, typed)
	}
	minor := v.checkAmount(all, typed)
	v.checkReference(typed)
	if minor > 0 {
		v.view.Checkout.Amount.Minor, v.view.Checkout.Reference = minor, typed.TypedReference
	}
	markets := v.markets()
	asked := v.check(markets, typed)
	if typed.WrongAmount != "" || typed.WrongReference != "" {
		typed.Wrong, asked = typed.WrongAmount, nil
		if typed.Wrong == "" {
			typed.Wrong = typed.WrongReference
		}
	}
	switch {
	case asked == nil:
		v.view.Checkout = blank(v.view.Link) // the form again, whose methods are those of all amounts
		return v.render(http.StatusOK, typed)
	case field("sure") != asked.word():
		return v.sure(asked, typed, field("form"))
	}
	return v.payLink(nonce, asked, typed)
}

// linkShut answers a form of a link that takes nothing any more: with what the form has opened
// before, if it has.
func (v *visit) linkShut(nonce []byte, age formAge, typed *fields) error {
	if age == formGood {
		opened, err := v.p.c.Checkouts.Opened(v.r.Context(), v.ref(), nonce)
		if err != nil {
			return err
		}
		if opened != nil {
			return v.redirect(v.said(Prefix + opened.Token))
		}
	}
	return v.render(http.StatusOK, typed)
}

// payLink opens the payer's checkout and asks.
func (v *visit) payLink(nonce []byte, asked *wish, typed *fields) error {
	if v.crowded() {
		opened, err := v.p.c.Checkouts.Opened(v.r.Context(), v.ref(), nonce)
		switch {
		case err != nil:
			return err
		case opened != nil: // the form was posted before: what became of it is there
			return v.redirect(v.said(Prefix + opened.Token))
		}
		v.view.Checkout = blank(v.view.Link)
		return v.crowd(typed)
	}
	ctx, cancel := v.detached()
	defer cancel()
	var slow *checkout.Slow
	link := store.Ref{Client: v.view.Link.ClientID, ID: v.view.Link.ID}
	view, err := v.p.c.Checkouts.Open(ctx, v.client(), link, checkout.Opening{Nonce: nonce, Amount: v.view.Checkout.Amount.Minor, Reference: typed.TypedReference})
	switch {
	case errors.Is(err, checkout.ErrOpened):
		return v.openedOther(&view, typed)
	case errors.Is(err, checkout.ErrLinkOff):
		return v.show(typed)
	case errors.As(err, &slow):
		v.view.Checkout = blank(v.view.Link)
		return v.slow(slow, v.markets(), typed)
	}
	switch till.ErrorCode(err) {
	case till.CodeValidationFailed, till.CodeClientSuspended, till.CodePagesNotAvailable:
		if err := v.read(); err != nil {
			return err
		}
		typed.Wrong = v.words.T("wrong.refused")
		return v.render(http.StatusOK, typed)
	}
	if err != nil {
		return err
	}
	v.become(&view)
	return v.askFor(1, asked, v.markets(), typed)
}

// become goes on at a checkout's own address.
func (v *visit) become(view *checkout.View) { v.view, v.token = *view, view.Checkout.Token }

// openedOther answers a form that has opened a checkout before, and now has another amount or
// reference: somebody went back. Where money may come of the first, that is what they see; where
// none can, they get a new form.
func (v *visit) openedOther(view *checkout.View, typed *fields) error {
	if last := view.Last; last != nil && last.Stand() != till.AskEnded {
		return v.redirect(v.said(Prefix + view.Checkout.Token))
	}
	v.view.Checkout = blank(v.view.Link)
	typed.Wrong = v.words.T("wrong.changed")
	return v.render(http.StatusOK, typed)
}

// checkAmount reads the amount that was typed, or says what is wrong and returns 0.
func (v *visit) checkAmount(markets []*market, typed *fields) int64 {
	l, t := v.view.Link, v.words.T
	if !l.Open() {
		return l.Amount.Minor
	}
	low, high := v.bounds(markets)
	minor, ok := look.ParseAmount(typed.TypedAmount, l.Amount.Currency)
	switch {
	case !ok:
		typed.WrongAmount = t("wrong.amount", "example", look.Amount(v.lang, till.Money{Minor: max(low, 1), Currency: l.Amount.Currency}))
	case !l.Fits(minor) || minor < low || minor > high:
		typed.WrongAmount = t("wrong.bounds", "min", v.money(low), "max", v.money(high))
	default:
		for _, m := range markets {
			if m.fits(minor) {
				return minor
			}
		}
		typed.WrongAmount = t("wrong.step")
	}
	return 0
}

// checkReference says what is wrong with what the link asks for.
func (v *visit) checkReference(typed *fields) {
	l, t := v.view.Link, v.words.T
	switch n := utf8.RuneCountInString(typed.TypedReference); {
	case l.AskLabel == "":
		typed.TypedReference = ""
	case n == 0 && l.AskRequired:
		typed.WrongReference = t("wrong.reference", "label", plainText(l.AskLabel))
	case n > till.MaxAskReference:
		typed.WrongReference = t("wrong.long", "label", plainText(l.AskLabel), "n", strconv.Itoa(till.MaxAskReference))
	}
}
