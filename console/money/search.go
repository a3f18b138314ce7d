package money

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"

	"till"
	"till/console/look"
	"till/console/shell"
	"till/console/subject"
	"till/ledger"
	"till/people"
	"till/store"
	"till/story"
)

// A search can be reloaded and sent to a colleague, so what was typed is in the address. Nobody else
// must read it: addresses end up in logs, histories and chats. It is sealed under a key of the
// installation's secret, bound to the merchant. A hash would not do: the numbers of a country can be
// tried through in seconds. A token of another merchant or installation is not found.

// maxQuery is the longest text that is looked for.
const maxQuery = 200

// The ways in which a text can be taken.
const (
	asID      = "id"
	asPhone   = "phone"
	asReceipt = "receipt"
	asText    = "text"
	asAmount  = "amount"
	asSecret  = "secret"
)

// searchPage is what was found.
type searchPage struct {
	*shell.Frame
	Query string // as the box shows it: of a phone, nothing
	As    string // "": in every way
	Asked bool   // something was looked for
	Shown string // what was understood
	Ways  []shell.Choice
	Hits  []hits
	Lines []*walletLine
	Found int
	More  bool   // there may be more than is shown
	Wide  string // where to search otherwise

	Secret, Replace string // what a secret of ours opens, and where it is replaced
}

// hits are what was found of one kind.
type hits struct {
	*shell.Frame
	Kind  string
	Lines []*subject.Line
}

// searchPath is the address of the search: of the merchant's, or of the house's over
// all merchants.
func (v *visit) searchPath() string {
	if v.Client == nil {
		return shell.Prefix + "/house/search"
	}
	return v.ClientPath("/search")
}

// postSearch is POST /c/{client}/search and POST /house/search. It leads to an address that holds no
// phone and no secret: proxies, histories and colleagues' chats keep addresses.
func (v *visit) postSearch() error {
	text := strings.TrimSpace(v.R.PostFormValue("q"))
	if len(text) > maxQuery {
		text = strings.ToValidUTF8(text[:maxQuery], "")
	}
	as := waysOf(text)
	if v.R.Header.Get("Till-Region") != "" {
		return v.typed(as, text)
	}
	q := url.Values{}
	switch {
	case text == "":
	case as[0] == asSecret:
		q.Set("as", asSecret)
		ours, err := v.secretOfOurs(text)
		if err != nil {
			return err
		}
		if ours != "" {
			q.Set("ours", ours)
		}
	default:
		q.Set("who", v.SealText(text))
	}
	if way := v.R.PostFormValue("as"); slices.Contains(as, way) {
		q.Set("as", way)
	}
	return v.Redirect(v.searchPath() + "?" + q.Encode())
}

// maxShownTyped is how many of each kind are shown while somebody types.
const maxShownTyped = 5

// typed answers with what a text finds while it is typed. Over all merchants each search is noted, so there
// the form has to be sent.
func (v *visit) typed(ways []string, text string) error {
	p := &searchPage{Frame: v.Frame(v.Words.T("frame.search"), "frame.search")}
	if v.Client != nil && text != "" && ways[0] != asSecret {
		if err := v.find(p, ways, text); err != nil {
			return err
		}
	}
	for i := range p.Hits {
		p.Hits[i].Lines = p.Hits[i].Lines[:min(maxShownTyped, len(p.Hits[i].Lines))]
	}
	return v.Page("search", p)
}

// waysOf returns the ways in which a text can be taken, the likeliest first.
func waysOf(text string) []string {
	digits := strings.Map(func(r rune) rune {
		if strings.ContainsRune(" +-.()\u00a0\u202f", r) {
			return -1
		}
		return r
	}, text)
	number := digits != "" && strings.Trim(digits, "0123456789") == ""
	_, err := till.ParseID(strings.ToLower(text))
	amount, named := amountWord(text)
	switch {
	case strings.HasPrefix(text, "till_live_"), strings.HasPrefix(text, "till_test_"), strings.HasPrefix(text, "whsec_"):
		return []string{asSecret}
	case err == nil:
		return []string{asID, asText}
	case number && len(digits) >= 8 && len(digits) <= 15:
		return []string{asPhone, asReceipt, asText, asAmount}
	case amount != "" && (named || amount != digits):
		return []string{asAmount, asText}
	case amount != "":
		return []string{asText, asAmount, asReceipt}
	}
	return []string{asText, asReceipt}
}

// francs are how people, and our own receipts, write the CFA francs.
var francs = []string{"FCFA", "F CFA", "CFA", "FRS", "FR", "F"}

// amountWord returns the digits of a text that is an amount, "" if it is none, and whether it says of
// which currency: "5 000", "5 000 XAF", "5 000 FCFA".
func amountWord(text string) (digits string, named bool) {
	upper := strings.ToUpper(strings.TrimSpace(text))
	if n := len(upper); n > 3 {
		if _, known := till.CurrencyDecimals(upper[n-3:]); known {
			upper, named = upper[:n-3], true
		}
	}
	for _, f := range francs {
		if rest, found := strings.CutSuffix(upper, f); found && !named {
			upper, named = rest, true
		}
	}
	upper = strings.TrimSpace(upper)
	if upper == "" || strings.Trim(upper, "0123456789 .,'\u00a0\u202f") != "" || strings.Trim(upper, " .,'\u00a0\u202f") == "" {
		return "", false
	}
	return upper, named
}

// search is GET /c/{client}/search and GET /house/search.
func (v *visit) search() error {
	q := v.R.URL.Query()
	p := &searchPage{Frame: v.Frame(v.Words.T("frame.search"), "frame.search"), As: q.Get("as")}
	text := q.Get("q")
	if sealed := q.Get("who"); sealed != "" {
		opened, ok := v.OpenText(sealed)
		if !ok {
			return shell.ErrNoPage
		}
		text = opened
	} else if text != "" && len(text) <= maxQuery && slices.Contains(waysOf(text), asPhone) {
		return v.Redirect(v.R.URL.Path + "?who=" + v.SealText(text)) // an address that somebody wrote by hand
	}
	if len(text) > maxQuery || text == "" && p.As != asSecret {
		p.As = ""
		return v.Page("search", p)
	}
	ways := waysOf(text)
	if p.As == asSecret || ways[0] == asSecret {
		p.As = asSecret
		if err := v.describeSecret(p, q.Get("ours")); err != nil {
			return err
		}
		return v.Page("search", p)
	}
	if !slices.Contains(ways, p.As) {
		p.As = ""
	}
	if err := v.find(p, ways, text); err != nil {
		return err
	}
	if err := v.noteSearch(p, cmp.Or(p.As, ways[0])); err != nil {
		return err
	}
	same := url.Values{"who": {v.SealText(text)}}
	for _, way := range append([]string{""}, ways...) {
		if way != "" {
			same.Set("as", way)
		}
		p.Ways = append(p.Ways, shell.Choice{Text: v.Words.T("search.as_" + cmp.Or(way, "all")), Path: v.R.URL.Path + "?" + same.Encode(), Current: way == p.As})
	}
	if p.Shown, p.Query = text, text; v.Client != nil {
		p.Wide = v.ClientPath("/payments")
	}
	if slices.Contains(ways, asPhone) {
		p.Shown, p.Query = subject.MaskPhone(v.phoneOf(text)), ""
	}
	return v.Page("search", p)
}

// noteSearch writes down that somebody of the house searched all merchants: how, and in how
// many something was found, never what for.
func (v *visit) noteSearch(p *searchPage, as string) error {
	if v.Client != nil {
		return nil
	}
	merchants := map[till.ID]bool{}
	for _, h := range p.Hits {
		for _, l := range h.Lines {
			merchants[l.Client] = true
		}
	}
	return v.Console.People.NoteAct(v.R.Context(), v.Session, nil, people.Act{Action: "client.search",
		Detail: "by " + as + ": " + till.Count(int64(p.Found), "hit", "hits") + ", " + till.Count(int64(len(merchants)), "merchant", "merchants")})
}

// phoneOf returns the number that a text means: with the calling code as it
// is, without it as a local one of the merchant's country. Over all merchants there is
// no such country.
func (v *visit) phoneOf(text string) string {
	if v.Client == nil {
		return strings.TrimPrefix(subject.DigitsOf(text), "00")
	}
	if c, ok := till.CountryOf(v.Profile.Country); ok {
		return subject.PhoneIn(c, text)
	}
	return subject.DigitsOf(text)
}

// find searches for a text as p.As says, or in every way that it can be taken.
func (v *visit) find(p *searchPage, ways []string, text string) error {
	if p.Asked = true; p.As != "" {
		ways = []string{p.As}
	}
	q := v.searchFor(ways, text)
	return v.View(func(ctx context.Context, tx *store.Tx) error {
		payments, more, err := story.FindPayments(ctx, tx, v.Console.Marks, q)
		if err != nil {
			return err
		}
		p.More = more
		var payouts []*store.PayoutRow
		if v.Client == nil || v.May(people.WalletsSee) {
			if payouts, more, err = story.FindPayouts(ctx, tx, v.Console.Marks, q); err != nil {
				return err
			}
			p.More = p.More || more
		}
		var refunds []*store.PayoutRow
		payouts, refunds = apart(payouts)
		for _, h := range []hits{{p.Frame, "payments", subject.PaymentLines(v.Visit, payments)}, {p.Frame, "refunds", subject.PayoutLines(v.Visit, refunds)},
			{p.Frame, "payouts", subject.PayoutLines(v.Visit, payouts)}} {
			if len(h.Lines) > 0 {
				p.Hits = append(p.Hits, h)
				p.Found += len(h.Lines)
			}
		}
		if err := v.findLines(ctx, tx, p, q); err != nil {
			return err
		}
		return v.nameMerchants(ctx, tx, p.Hits)
	})
}

// apart parts refunds from payouts.
func apart(rows []*store.PayoutRow) (payouts, refunds []*store.PayoutRow) {
	for _, p := range rows {
		if p.IsRefund() {
			refunds = append(refunds, p)
		} else {
			payouts = append(payouts, p)
		}
	}
	return payouts, refunds
}

// findLines adds the lines of wallets that show more than the payments and payouts that
// were found.
func (v *visit) findLines(ctx context.Context, tx *store.Tx, p *searchPage, q story.Search) error {
	if v.Client != nil && !v.May(people.WalletsSee) {
		return nil
	}
	lines, more, err := story.FindLines(ctx, tx, q)
	if err != nil {
		return err
	}
	p.More = p.More || more
	lines = slices.DeleteFunc(lines, func(t *ledger.Transaction) bool {
		about := cmp.Or(t.PaymentID, t.PayoutID)
		return !about.IsZero() && slices.ContainsFunc(p.Hits, func(h hits) bool {
			return slices.ContainsFunc(h.Lines, func(l *subject.Line) bool { return l.ID == about.String() })
		})
	})
	for i, l := range v.walletLines(lines) {
		l.Statement = v.statementPath(lines[i])
		p.Lines = append(p.Lines, l)
	}
	p.Found += len(p.Lines)
	return nil
}

// searchFor returns what a text means, taken in some ways: of the merchant, or over all
// merchants on the house's page.
func (v *visit) searchFor(ways []string, text string) story.Search {
	q := story.Search{Earliest: v.Earliest()}
	if v.Client != nil {
		q.Client = v.Client.ID
	}
	for _, as := range ways {
		switch as {
		case asPhone:
			q.Phone = v.phoneOf(text)
		case asReceipt:
			q.Receipt = text
		case asText:
			q.Text = text
		case asID:
			id, _ := till.ParseID(strings.ToLower(text)) // waysOf has read it
			q.ID = &id
		case asAmount:
			q.Amounts = v.amountsOf(text)
		}
	}
	return q
}

// amountsOf returns the amounts that a text can mean: of the currency that it names, or
// of any.
func (v *visit) amountsOf(text string) (out []till.Money) {
	mode := till.Live
	if v.Client != nil {
		mode = v.Client.Mode
	}
	digits, named := amountWord(text)
	upper := strings.ToUpper(strings.TrimSpace(text))
	for _, c := range currencies(mode) {
		_, known := till.CurrencyDecimals(upper[max(0, len(upper)-3):])
		franc := !known && (c == "XAF" || c == "XOF")
		if minor, ok := look.ParseAmount(digits, c); ok && minor != 0 && (!named || strings.HasSuffix(upper, c) || franc) {
			out = append(out, till.Money{Minor: minor, Currency: c})
		}
	}
	return out
}

// nameMerchants says whose each line is, on the house's page.
func (v *visit) nameMerchants(ctx context.Context, tx *store.Tx, found []hits) error {
	if v.Client != nil {
		return nil
	}
	var ids []till.ID
	for _, h := range found {
		for _, l := range h.Lines {
			ids = append(ids, l.Client)
		}
	}
	names, err := tx.ClientNames(ctx, ids)
	for _, h := range found {
		for _, l := range h.Lines {
			l.Merchant, l.Test = names[l.Client].Name, names[l.Client].Mode == till.Test
		}
	}
	return err
}
