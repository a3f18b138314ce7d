package figures

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strconv"
	"time"

	"till"
	"till/books"
	"till/console/chart"
	"till/console/list"
	"till/console/look"
	"till/console/shell"
	"till/people"
	"till/store"
)

// The ranges of home pages. "days" is from and to.
var Ranges = []string{"today", "7d", "30d", "month"}

// maxHomeDays is the longest range of a home page: a chart has room for no more.
const maxHomeDays = 92

// minHours is how many hours a chart of today has at least.
const minHours = 12

// figures is what came in during a range, with its chart. It is all in the
// address.
type figures struct {
	base     string
	Range    string
	From, To till.Time // To is not included; it is the end of a day
	now      till.Time
	clock    look.Clock
	lang     string
	byHour   bool
	slots    []till.Time // where each begins
	currency string      // as the address says it

	Currency   string
	Currencies []shell.Choice
	Ranges     []shell.Choice
	Collected  till.Money
	Besides    []till.Money // other currencies
	Refunded   till.Money   // what went back in the range, whenever it was collected; zero without currency
	Refunds    int64
	BackShare  string // of what was collected in the range; "": nothing was
	Net        till.Money
	Change     string // ▲ 12 %; "": nothing to compare with
	Up         bool
	ChangeNote string

	Payments, Paid, OpenMade, Ended int64
	PaidShare                       string
	Median, Most                    string // time to approve; "": nobody did
	ListPath, PaidPath, EndedPath   string
	BackPath                        string // the list of refunds

	Chart    shell.Block
	Series   []seriesRow
	Table    []slotRow
	Unit     string
	Unfilled bool
	CSV      string
	More     string // where there are more figures of the range; "": nowhere
	Summary  string
	Until    string
}

type seriesRow struct {
	Index  int
	Name   string
	Amount string
	Share  string
}

// Mark is the pattern of the series in its legend, as the chart draws it; "": plain.
func (s seriesRow) Mark() string { return chart.Mark(s.Index - 1) }

type slotRow struct {
	Name   string
	Values []string
	Total  string
}

// readRange reads the address. What makes no sense there is left out.
func (v *visit) readRange(base string) *figures {
	q := v.R.URL.Query()
	f := &figures{base: base, Range: "today", now: v.Now, clock: v.Clock, lang: v.Words.Lang()}
	f.To = v.Clock.StartOfDay(v.Now, 1)
	if r := q.Get("range"); slices.Contains(Ranges, r) {
		f.Range = r
	}
	switch f.Range {
	case "today":
		f.From = v.Clock.StartOfDay(v.Now, 0)
	case "7d":
		f.From = v.Clock.StartOfDay(v.Now, -6)
	case "30d":
		f.From = v.Clock.StartOfDay(v.Now, -29)
	case "month":
		f.From = v.Clock.StartOfMonth(v.Now, 0)
	}
	first, ok := v.Clock.ParseDay(q.Get("from"))
	last, okTo := v.Clock.ParseDay(q.Get("to"))
	if ok && okTo && first <= last && v.Clock.StartOfDay(first, maxHomeDays) > last && last < f.To {
		f.Range, f.From, f.To = list.DaysRange, first, v.Clock.StartOfDay(last, 1)
	}
	if earliest := v.Earliest(); earliest > f.From {
		f.From = max(v.Clock.StartOfDay(earliest, 1), v.Clock.StartOfDay(v.Now, -1))
	}
	if c := q.Get("currency"); len(c) == 3 {
		if _, known := till.CurrencyDecimals(c); known {
			f.currency = c
		}
	}
	f.byHour = v.Clock.StartOfDay(f.From, 1) >= f.To
	// Of today there are bars up to now, and a few more while it is young.
	end := f.To
	if f.byHour && f.To > v.Now {
		end = min(f.To, max(v.Now+1, f.From.Add(minHours*time.Hour)))
	}
	for at := f.From; at < end; {
		f.slots = append(f.slots, at)
		if at = v.Clock.StartOfDay(at, 1); f.byHour {
			at = f.slots[len(f.slots)-1].Add(time.Hour)
		}
	}
	return f
}

// end returns the last moment of the range that there was.
func (f *figures) end() till.Time { return min(f.To-1, f.now) }

// path returns the page's address with changes: name, value.
func (f *figures) path(changes ...string) string { return f.pathOf(f.base, changes...) }

func (f *figures) pathOf(base string, changes ...string) string {
	q := url.Values{}
	if f.Range == list.DaysRange {
		list.Change(q, "from", f.FromDay(), "to", f.ToDay())
	} else if f.Range != "today" {
		list.Change(q, "range", f.Range)
	}
	list.Change(q, "currency", f.currency)
	list.Change(q, changes...)
	return list.AddressOf(base, q)
}

// FromDay and ToDay are the ends of the range as fields of days show them.
func (f *figures) FromDay() string { return f.clock.ISODay(f.From) }

// ToDay: see FromDay.
func (f *figures) ToDay() string { return f.clock.ISODay(f.To - 1) }

// Path returns where the form of days goes to.
func (f *figures) Path() string { return f.base }

// readFigures reads what the address asks for. list is the address of the list
// that the figures count.
func (v *visit) readFigures(ctx context.Context, tx *store.Tx, scope store.Scope, base, list string) (*figures, error) {
	f := v.readRange(base)
	from, to := store.HourOf(f.From), store.HourOf(f.end())
	money, err := tx.ScopeSums(ctx, scope, []string{store.SumIn}, from, to)
	if err != nil {
		return nil, err
	}
	totals, err := tx.Totals(ctx, scope, [2]string{store.CountedPayments, store.SumApproval}, from, to)
	if err != nil {
		return nil, err
	}
	filled, err := tx.SumsFilled(ctx, scope.Client)
	if err != nil {
		return nil, err
	}
	f.Unfilled = !filled
	f.addMoney(money)
	back, err := tx.Totals(ctx, scope, [2]string{store.SumRefunded, store.SumRefunded}, from, to)
	if err != nil {
		return nil, err
	}
	f.addRefunds(back)
	f.addPayments(totals)
	f.addApproval(v, totals)
	if err := f.compare(ctx, tx, v, scope, money); err != nil {
		return nil, err
	}
	f.Until = f.until(v)
	f.links(v, list)
	f.draw(v, money)
	return f, nil
}

// addMoney adds up what came in, by currency. The one with most payments leads,
// unless the address says another.
func (f *figures) addMoney(sums []store.HourSum) {
	by := map[string]store.Sum{}
	for _, s := range sums {
		by[s.B] = store.Sum{N: by[s.B].N + s.N, Sum: by[s.B].Sum + s.Sum.Sum}
	}
	var all []string
	for c, s := range by {
		if s.N > 0 {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(-cmp.Compare(by[a].N, by[b].N), cmp.Compare(a, b)) })
	f.Currency = f.currency
	if !slices.Contains(all, f.Currency) && len(all) > 0 {
		f.Currency = all[0]
	}
	f.Collected = till.Money{Minor: by[f.Currency].Sum, Currency: f.Currency}
	for _, c := range all {
		f.Currencies = append(f.Currencies, shell.Choice{Text: c, Path: f.path("currency", c), Current: c == f.Currency})
		if c != f.Currency {
			f.Besides = append(f.Besides, till.Money{Minor: by[c].Sum, Currency: c})
		}
	}
	if len(all) < 2 {
		f.Currencies = nil
	}
}

// addRefunds adds up what went back in the currency that leads.
func (f *figures) addRefunds(sums []store.HourSum) {
	by := map[string]store.Sum{}
	for _, s := range sums {
		by[s.B] = store.Sum{N: by[s.B].N + s.N, Sum: by[s.B].Sum + s.Sum.Sum}
	}
	if f.Currency == "" { // nothing was collected
		for c, s := range by {
			if f.Currency == "" || s.N > by[f.Currency].N || s.N == by[f.Currency].N && c < f.Currency {
				f.Currency = c
			}
		}
		f.Collected.Currency = f.Currency
	}
	back := by[f.Currency]
	if f.Refunds = back.N; f.Refunds == 0 {
		return
	}
	f.Refunded, f.Net = till.Money{Minor: back.Sum, Currency: f.Currency}, till.Money{Minor: f.Collected.Minor - back.Sum, Currency: f.Currency}
	if f.Collected.Minor > 0 {
		f.BackShare = look.Percent(back.Sum, f.Collected.Minor)
	}
}

func (f *figures) addPayments(totals []store.HourSum) {
	for _, s := range totals {
		if s.Noun != "payment" {
			continue
		}
		f.Payments += s.N
		switch status := till.Status(s.B); {
		case status == till.Success:
			f.Paid += s.N
			f.Ended += s.N
		case status.Final():
			f.Ended += s.N
		default:
			f.OpenMade += s.N
		}
	}
	f.PaidShare = "—"
	if f.Ended > 0 {
		f.PaidShare = strconv.FormatInt(f.Paid*100/f.Ended, 10)
	}
}

func (f *figures) addApproval(v *visit, totals []store.HourSum) {
	say := func(hundredths int64) string {
		d, more, ok := books.ApprovalTime(totals, hundredths)
		if !ok {
			return ""
		}
		text := look.Span(f.lang, d.Round(time.Second))
		if d < time.Second {
			text = look.Span(f.lang, time.Second)
		}
		if more {
			return v.Words.T("home.more_than", "time", text)
		}
		return text
	}
	f.Median, f.Most = say(50), say(90)
}

// compare compares what came in with the same part of the time before, in whole
// hours.
func (f *figures) compare(ctx context.Context, tx *store.Tx, v *visit, scope store.Scope, money []store.HourSum) error {
	days := int((f.To - f.From + till.Time(12*time.Hour/time.Microsecond)) / till.Time(24*time.Hour/time.Microsecond))
	before := f.clock.StartOfDay(f.From, -days)
	if f.Range == "month" {
		before = f.clock.StartOfMonth(f.From, -1)
	}
	from, until := store.HourOf(f.From), store.HourOf(min(f.To, f.now))
	if v.Earliest() > 0 || until <= from || f.Currency == "" {
		return nil
	}
	first := store.HourOf(before)
	old, err := tx.Totals(ctx, scope, [2]string{store.SumIn, store.SumIn}, first, min(first+until-from, from)-1)
	if err != nil {
		return err
	}
	var was, is int64
	for _, s := range old {
		if s.B == f.Currency {
			was += s.Sum.Sum
		}
	}
	for _, s := range money {
		if s.B == f.Currency && s.Hour < until {
			is += s.Sum.Sum
		}
	}
	if was <= 0 {
		return nil
	}
	f.Up = is >= was
	if f.Up {
		f.Change = "▲ " + look.Percent(is-was, was)
	} else {
		f.Change = "▼ " + look.Percent(was-is, was)
	}
	key := "home.than_before"
	if f.Range == "today" {
		key = "home.than_yesterday"
	}
	f.ChangeNote = v.Words.T(key, "at", f.clock.Minute(till.Time(until*int64(time.Hour/time.Microsecond))))
	return nil
}

// links fills in the ranges, and the lists that figures count.
func (f *figures) links(v *visit, list string) {
	for _, r := range Ranges {
		if v.Route.For == shell.Staff && v.Grant == people.Recent && r != "today" {
			continue
		}
		name := v.Words.T("home.range_" + r)
		if r == "month" {
			name = v.Words.T("home.this_month", "month", f.clock.Month(f.now))
		}
		path := r
		if r == "today" {
			path = ""
		}
		f.Ranges = append(f.Ranges, shell.Choice{Text: name, Path: f.path("range", path), Current: f.Range == r})
	}
	if list == "" {
		return
	}
	f.ListPath = list + "?from=" + f.FromDay() + "&to=" + f.ToDay()
	f.PaidPath = f.ListPath + "&state=success"
	f.EndedPath = f.ListPath
	f.BackPath = v.ClientPath("/refunds") + "?from=" + f.FromDay() + "&to=" + f.ToDay()
}

// heading names the range.
func (f *figures) heading(t func(string, ...any) string) string {
	switch f.Range {
	case "today":
		return t("home.range_today")
	case "month":
		return t("home.this_month", "month", f.clock.Month(f.now))
	case list.DaysRange:
		if f.byHour {
			return f.clock.Date(f.From)
		}
		return f.clock.ShortDate(f.From) + " – " + f.clock.ShortDate(f.To-1)
	}
	return t("home.range_" + f.Range)
}

// ByHour reports whether a bar is an hour.
func (f *figures) ByHour() bool { return f.byHour }

// until says what the range covers, with the zone.
func (f *figures) until(v *visit) string {
	zone := "UTC"
	if f.clock.City() != "UTC" {
		zone = f.clock.City() + ", " + f.clock.Offset(f.now)
	}
	if f.To > f.now && f.byHour {
		return v.Words.T("home.until", "date", f.clock.Date(f.From), "at", f.clock.Minute(f.now), "zone", zone)
	}
	return v.Words.T("home.from_to", "from", f.clock.ShortDate(f.From), "to", f.clock.Date(f.end()), "zone", zone)
}

// within returns the sums of one slot.
func (f *figures) within(sums []store.HourSum, slot int) (out []store.HourSum) {
	for _, s := range sums {
		if f.slotOf(s.Hour) == slot {
			out = append(out, s)
		}
	}
	return out
}

// slotOf returns the slot that an hour falls into.
func (f *figures) slotOf(hour int64) int {
	at := till.Time(hour * int64(time.Hour/time.Microsecond))
	i, found := slices.BinarySearch(f.slots, at)
	if !found {
		i--
	}
	return max(0, i) // the hour in which a day of a half zone begins is of that day
}
