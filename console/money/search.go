package money

import (
	"cmp"
	"context"
	"errors"
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

// A search can be reloaded and sent to a colleague, so what was typed is in the address. A phone
// must not: addresses end up in logs, histories and chats. It is sealed under a key of the
// installation's secret, bound to the merchant. A hash would not do: the numbers of a country can be
// tried through in seconds. A token of another merchant or installation is not found.

// maxQuery is the longest text that is looked for.
const maxQuery = 200

// The ways in which a text can be taken.
const (
	asID        = "id"
	asPhone     = "phone"
	asReceipt   = "receipt"
	asReference = "reference"
	asAmount    = "amount"
	asSecret    = "secret"
)

// searchPage is what was found.
type searchPage struct {
	*shell.Frame
	Query string // as the box shows it: of a phone, nothing
	As    string
	Shown string // what was understood
	Ways  []shell.Choice
	Since []shell.Choice // since when amounts are looked for
	Hits  []hits
	Lines []*walletLine
	Found int
	Limit bool   // too many rows to read
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
	case slices.Contains(as, asPhone):
		q.Set("who", v.SealText(text))
	default:
		q.Set("q", text)
	}
	if way := v.R.PostFormValue("as"); slices.Contains(as, way) {
		q.Set("as", way)
	}
	return v.Redirect(v.searchPath() + "?" + q.Encode())
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
	switch {
	case strings.HasPrefix(text, "till_live_"), strings.HasPrefix(text, "till_test_"), strings.HasPrefix(text, "whsec_"):
		return []string{asSecret}
	case err == nil:
		return []string{asID, asReference}
	case number && len(digits) >= 8 && len(digits) <= 15:
		return []string{asPhone, asReceipt, asReference, asAmount}
	case amountWord(text) != "":
		return []string{asAmount, asReference, asReceipt}
	}
	return []string{asReference, asReceipt}
}

// amountWord returns the digits of a text that is an amount, "" if it is none:
// "5 000", "5 000 XAF".
func amountWord(text string) string {
	upper := strings.ToUpper(strings.TrimSpace(text))
	if n := len(upper); n > 3 {
		if _, known := till.CurrencyDecimals(upper[n-3:]); known {
			upper = strings.TrimSpace(upper[:n-3])
		}
	}
	if upper == "" || strings.Trim(upper, "0123456789 .,'\u00a0\u202f") != "" || strings.Trim(upper, " .,'\u00a0\u202f") == "" {
		return ""
	}
	return upper
}

// search is GET /c/{client}/search and GET /house/search.
func (v *visit) search() error {
	q := v.R.URL.Query()
	p := &searchPage{Frame: v.Frame(v.Words.T("frame.search"), "frame.search"), As: q.Get("as")}
	text, sealed := q.Get("q"), q.Get("who")
	if sealed != "" {
		opened, ok := v.OpenText(sealed)
		if !ok {
			return shell.ErrNoPage
		}
		text = opened
	} else {
		p.Query = text
	}
	if len(text) > maxQuery || text == "" && p.As != asSecret {
		return v.Page("search", p)
	}
	ways := waysOf(text)
	if sealed == "" && slices.Contains(ways, asPhone) {
		return v.Redirect(v.R.URL.Path + "?who=" + v.SealText(text)) // an address that somebody wrote by hand
	}
	if p.As == asSecret || ways[0] == asSecret {
		p.As, p.Query = asSecret, ""
		if err := v.describeSecret(p, q.Get("ours")); err != nil {
			return err
		}
		return v.Page("search", p)
	}
	if err := v.findByWays(p, ways, text); err != nil {
		return err
	}
	if err := v.noteSearch(p); err != nil {
		return err
	}
	same := url.Values{}
	if sealed != "" {
		same.Set("who", sealed)
	} else {
		same.Set("q", text)
	}
	for _, way := range ways {
		same.Set("as", way)
		p.Ways = append(p.Ways, shell.Choice{Text: v.Words.T("search.as_" + way), Path: v.R.URL.Path + "?" + same.Encode(), Current: way == p.As})
	}
	if same.Set("as", asAmount); p.As == asAmount {
		for _, r := range scanRanges {
			same.Set("range", r)
			p.Since = append(p.Since, shell.Choice{Text: v.Words.T("search.since_" + r), Path: v.R.URL.Path + "?" + same.Encode(), Current: r == v.scanRange()})
		}
	}
	if p.Shown = text; v.Client != nil {
		p.Wide = v.ClientPath("/payments")
	}
	if p.As == asPhone {
		p.Shown = subject.MaskPhone(v.phoneOf(text))
	}
	return v.Page("search", p)
}

// noteSearch writes down that somebody of the house searched all merchants: how, and in how
// many something was found, never what for.
func (v *visit) noteSearch(p *searchPage) error {
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
		Detail: "by " + p.As + ": " + till.Count(int64(p.Found), "hit", "hits") + ", " + till.Count(int64(len(merchants)), "merchant", "merchants")})
}

// findByWays searches for a text as the person has chosen to take it; or in each
// way until one finds something, because nobody knows what a receipt looks like.
func (v *visit) findByWays(p *searchPage, ways []string, text string) error {
	if slices.Contains(ways, p.As) {
		return v.find(p, text)
	}
	for _, p.As = range ways {
		if err := v.find(p, text); err != nil || p.Found > 0 {
			return err
		}
	}
	p.As = ways[0]
	return nil
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

// find searches for a text as p.As says.
func (v *visit) find(p *searchPage, text string) error {
	q := v.searchFor(p.As, text)
	if p.As == asAmount && len(q.Amounts) == 0 {
		return nil
	}
	return v.View(func(ctx context.Context, tx *store.Tx) error {
		payments, short, err := story.FindPayments(ctx, tx, v.Console.Marks, q)
		if err := p.takes(short, err); err != nil {
			return err
		}
		var payouts []*store.PayoutRow
		if v.Client == nil || v.May(people.WalletsSee) {
			payouts, short, err = story.FindPayouts(ctx, tx, v.Console.Marks, q)
			if err := p.takes(short, err); err != nil {
				return err
			}
		}
		for _, h := range []hits{{p.Frame, "payments", subject.PaymentLines(v.Visit, payments)}, {p.Frame, "payouts", subject.PayoutLines(v.Visit, payouts)}} {
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

// findLines adds the lines of wallets that show more than the payments and payouts that
// were found.
func (v *visit) findLines(ctx context.Context, tx *store.Tx, p *searchPage, q story.Search) error {
	if v.Client != nil && !v.May(people.WalletsSee) {
		return nil
	}
	lines, short, err := story.FindLines(ctx, tx, q)
	if err := p.takes(short, err); err != nil {
		return err
	}
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

// takes notes what a search says beside what it found.
func (p *searchPage) takes(short bool, err error) error {
	if errors.Is(err, story.ErrTooManyRows) {
		p.Limit, err = true, nil
	}
	p.More = p.More || short
	return err
}

// searchFor returns what a text means, taken in one way: of the merchant, or over all
// merchants on the house's page.
func (v *visit) searchFor(as, text string) story.Search {
	q := story.Search{Earliest: v.Earliest()}
	if v.Client != nil {
		q.Client = v.Client.ID
	}
	switch as {
	case asPhone:
		q.Phone = v.phoneOf(text)
	case asReceipt:
		q.Receipt = text
	case asReference:
		q.Reference = text
	case asID:
		id, _ := till.ParseID(strings.ToLower(text)) // waysOf has read it
		q.ID = &id
	case asAmount:
		since, _ := v.Clock.Range(v.scanRange(), v.Now)
		q.Amounts, q.Earliest = v.amountsOf(text), max(since, v.Earliest())
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
	upper := strings.ToUpper(text)
	named := strings.ContainsFunc(upper, func(r rune) bool { return r >= 'A' && r <= 'Z' })
	for _, c := range currencies(mode) {
		if minor, ok := look.ParseAmount(amountWord(text), c); ok && minor != 0 && (!named || strings.HasSuffix(upper, c)) {
			out = append(out, till.Money{Minor: minor, Currency: c})
		}
	}
	return out
}

// scanRanges are since when rows are looked through for an amount, which has no index.
var scanRanges = []string{"last_month", "month", "week", "today"}

// scanRange returns the one of the address.
func (v *visit) scanRange() string {
	if r := v.R.URL.Query().Get("range"); slices.Contains(scanRanges, r) {
		return r
	}
	return scanRanges[0]
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
