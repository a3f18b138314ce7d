package console

import (
	"context"
	"encoding/base64"
	"net/url"
	"slices"
	"strings"

	"till"
	"till/books"
	"till/console/look"
	"till/people"
	"till/store"
)

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
	*Frame
	Query string // as the box shows it: of a phone, nothing
	As    string
	Shown string // what was understood
	Ways  []Choice
	Hits  []hits
	Found int
	Limit bool // too many rows to look through
	More  bool // there may be more than is shown
	Wide  string
}

// hits are what was found of one kind.
type hits struct {
	*Frame
	Kind  string
	Lines []*Line
}

// postSearch is POST /c/{client}/search. It leads to an address that holds no
// phone and no secret: proxies, histories and colleagues' chats keep addresses.
func (v *visit) postSearch() error {
	text := strings.TrimSpace(v.r.PostFormValue("q"))
	if len(text) > maxQuery {
		text = strings.ToValidUTF8(text[:maxQuery], "")
	}
	as := waysOf(text)
	q := url.Values{}
	switch {
	case text == "":
	case as[0] == asSecret:
		q.Set("as", asSecret)
	case slices.Contains(as, asPhone):
		q.Set("who", v.sealText(text))
	default:
		q.Set("q", text)
	}
	if way := v.r.PostFormValue("as"); slices.Contains(as, way) {
		q.Set("as", way)
	}
	return v.redirect(v.clientPath("/search") + "?" + q.Encode())
}

// sealText makes a text fit for an address; openText reads it again, of this
// merchant only.
func (v *visit) sealText(text string) string {
	return base64.RawURLEncoding.EncodeToString(v.k.who.Seal([]byte(text), v.client.ID[:]))
}

func (v *visit) openText(sealed string) (string, bool) {
	b, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil {
		return "", false
	}
	text, err := v.k.who.Open(b, v.client.ID[:])
	return string(text), err == nil
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

// search is GET /c/{client}/search.
func (v *visit) search() error {
	q := v.r.URL.Query()
	p := &searchPage{Frame: v.frame(v.words.T("frame.search"), ""), As: q.Get("as")}
	text, sealed := q.Get("q"), q.Get("who")
	if sealed != "" {
		opened, ok := v.openText(sealed)
		if !ok {
			return errNoPage
		}
		text = opened
	} else {
		p.Query = text
	}
	if len(text) > maxQuery || text == "" && p.As != asSecret {
		return v.page("search", p)
	}
	ways := waysOf(text)
	if sealed == "" && slices.Contains(ways, asPhone) {
		return v.redirect(v.r.URL.Path + "?who=" + v.sealText(text)) // an address that somebody wrote by hand
	}
	if p.As == asSecret || ways[0] == asSecret {
		p.As, p.Query = asSecret, ""
		return v.page("search", p)
	}
	if err := v.findByWays(p, ways, text); err != nil {
		return err
	}
	for _, way := range ways {
		same := url.Values{"as": {way}}
		if sealed != "" {
			same.Set("who", sealed)
		} else {
			same.Set("q", text)
		}
		p.Ways = append(p.Ways, Choice{v.words.T("search.as_" + way), v.r.URL.Path + "?" + same.Encode(), way == p.As})
	}
	p.Shown = text
	if p.As == asPhone {
		p.Shown = maskPhone(v.phoneOf(text))
	}
	return v.page("search", p)
}

// findByWays looks for a text as the person has chosen to take it; or in each
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
// is, without it as a local one of the merchant's country.
func (v *visit) phoneOf(text string) string {
	if c, ok := till.CountryOf(v.profile.Country); ok {
		return phoneIn(c, text)
	}
	return digitsOf(text)
}

// phoneIn returns the number that a text means in a country.
func phoneIn(c *till.Country, text string) string {
	digits := digitsOf(text)
	for _, phone := range []string{digits, strings.TrimPrefix(digits, "00"), c.CallingCode + digits, c.CallingCode + strings.TrimPrefix(digits, "0")} {
		if good, _ := till.CheckPhone(c, phone); good {
			return phone
		}
	}
	return digits
}

func digitsOf(text string) string {
	return strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, text)
}

// find looks for a text.
func (v *visit) find(p *searchPage, text string) error {
	filters := v.searchFilters(p.As, text)
	byScan := p.As == asAmount
	err := v.view(func(ctx context.Context, tx *store.Tx) error {
		for _, kind := range []struct {
			name string
			may  people.Permission
			read reader
		}{{"payments", people.PaymentsSee, v.listPayments}, {"payouts", people.WalletsSee, v.listPayouts}} {
			if !v.may(kind.may) {
				continue
			}
			if byScan {
				_, n, err := kind.read(ctx, tx, store.PaymentFilter{From: v.scanFrom()}, store.Page{})
				if err != nil {
					return err
				}
				if n > maxAmountRows {
					p.Limit = true
					continue
				}
			}
			var lines []*Line
			var err error
			if q, ok := v.indexed(p.As, text); ok {
				lines, err = v.findIndexed(ctx, tx, p, kind.name, q)
			} else {
				lines, err = v.findLines(ctx, tx, kind.name, kind.read, filters, text, p.As)
			}
			if err != nil {
				return err
			}
			if len(lines) > 0 {
				p.Hits = append(p.Hits, hits{p.Frame, kind.name, lines})
				p.Found += len(lines)
			}
		}
		return nil
	})
	p.Wide = v.clientPath("/payments")
	return err
}

// indexed returns the search of a text that an index answers.
func (v *visit) indexed(as, text string) (q books.Search, ok bool) {
	q = books.Search{Client: v.client.ID, Earliest: v.earliest()}
	switch as {
	case asPhone:
		q.Phone = v.phoneOf(text)
	case asReceipt:
		q.Receipt = text
	case asReference:
		q.Reference = text
	default:
		return q, false
	}
	return q, true
}

// findIndexed reads what the indexes have, and of a phone also the last minutes.
func (v *visit) findIndexed(ctx context.Context, tx *store.Tx, p *searchPage, kind string, q books.Search) ([]*Line, error) {
	if kind == "payouts" {
		q.Earliest = 0
		rows, short, err := books.FindPayouts(ctx, tx, v.k.marks, q)
		p.More = p.More || short
		return v.payoutLines(rows), err
	}
	rows, short, err := books.FindPayments(ctx, tx, v.k.marks, q)
	p.More = p.More || short
	return v.paymentLines(rows), err
}

// scanFrom is since when rows are looked through for what has no index.
func (v *visit) scanFrom() till.Time { return v.clock.StartOfMonth(v.now, -1) }

// searchFilters returns what the lists are asked for.
func (v *visit) searchFilters(as, text string) []store.PaymentFilter {
	switch as {
	case asAmount:
		var out []store.PaymentFilter
		for _, c := range currencies(v.client.Mode) {
			if upper := strings.ToUpper(text); strings.HasSuffix(upper, c) || !strings.ContainsFunc(upper, func(r rune) bool { return r >= 'A' && r <= 'Z' }) {
				if minor, ok := look.ParseAmount(amountWord(text), c); ok {
					out = append(out, store.PaymentFilter{Amount: minor, Currency: c, From: v.scanFrom()})
				}
			}
		}
		return out
	case asID:
		id, _ := till.ParseID(strings.ToLower(text)) // waysOf has read it
		return []store.PaymentFilter{{Key: &id}}
	}
	return nil
}

// findLines reads what the filters match, at most a page of it, newest first,
// and what has the id itself.
func (v *visit) findLines(ctx context.Context, tx *store.Tx, kind string, read reader, filters []store.PaymentFilter, text, as string) (out []*Line, err error) {
	if as == asID {
		id, _ := till.ParseID(strings.ToLower(text))
		if out, err = v.lineByID(ctx, tx, kind, id); err != nil {
			return nil, err
		}
	}
	for _, f := range filters {
		lines, _, err := read(ctx, tx, f, store.Page{Limit: pageSize})
		if err != nil {
			return nil, err
		}
		out = append(out, lines...)
	}
	slices.SortStableFunc(out, func(a, b *Line) int { return strings.Compare(b.ID, a.ID) })
	out = slices.CompactFunc(out, func(a, b *Line) bool { return a.ID == b.ID })
	out = out[:min(len(out), pageSize)]
	for _, l := range out {
		l.Day = ""
	}
	v.setDays(out)
	return out, nil
}

// lineByID returns the payment or payout with an id, or that an event with the
// id is about.
func (v *visit) lineByID(ctx context.Context, tx *store.Tx, kind string, id till.ID) ([]*Line, error) {
	ids := []till.ID{id}
	if n := id.EventSequence(); n > 0 {
		events, err := tx.Events(ctx, v.client.ID, n-1, 1)
		if err != nil {
			return nil, err
		}
		if len(events) == 1 && events[0].ID() == id {
			ids = []till.ID{events[0].SubjectID}
		}
	}
	refs := []store.Ref{{Client: v.client.ID, ID: ids[0]}}
	if kind == "payouts" {
		rows, err := tx.Payouts(ctx, refs)
		return v.payoutLines(inOrder(refs, rows)), err
	}
	if ids[0].Time() < v.earliest() {
		return nil, nil
	}
	rows, err := tx.Payments(ctx, refs)
	return v.paymentLines(inOrder(refs, rows)), err
}
