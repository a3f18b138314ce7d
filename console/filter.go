package console

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"

	"till"
	"till/console/look"
	"till/console/shell"
	"till/people"
	"till/store"
)

const (
	defaultRange = "month"
	daysRange    = "days" // from and to, and no name of look.Ranges
	pageSize     = 50
	maxPage      = 1_000_000
)

// filter is what the address of a list says. It is all of the list's state: a
// link to it shows the same to a colleague.
type filter struct {
	base     string // the path of the list
	usual    string // the range without one in the address
	Range    string
	From, To till.Time // the ends of the range, both included
	fromDay  string
	toDay    string
	State    string
	Method   string
	Amount   string // as it was typed
	Minor    int64
	Currency string
	Examine  bool

	// Connection is for people of the house: a merchant knows methods.
	Connection string

	Page int
	Upto till.Time // rows that came after it wait behind "show"
}

// readFilter reads the address. What makes no sense there is left out, as if
// it were not there: an old link still shows a list.
func (v *visit) readFilter(base string, states []string) *filter {
	return v.readFilterOf(base, states, defaultRange)
}

// readFilterOf is readFilter for a list with a usual range of its own.
func (v *visit) readFilterOf(base string, states []string, usual string) *filter {
	q := v.R.URL.Query()
	f := &filter{base: base, usual: usual, Range: usual, Page: 1, Method: q.Get("method"), Examine: q.Get("examine") == "1"}
	if s := q.Get("state"); slices.Contains(states, s) {
		f.State = s
	}
	if _, ok := till.MethodOf(f.Method); !ok {
		f.Method = ""
	}
	if r := q.Get("range"); slices.Contains(look.Ranges, r) {
		f.Range = r
	}
	f.From, f.To = v.Clock.Range(f.Range, v.Now)
	f.setDays(v.Clock, q.Get("from"), q.Get("to"))
	if n, err := strconv.Atoi(q.Get("page")); err == nil && n > 1 && n <= maxPage {
		f.Page = n
	}
	f.setAmount(q.Get("amount"), q.Get("currency"))
	if v.seesConnections() {
		f.Connection = q.Get("connection")
	}
	if n, err := strconv.ParseInt(q.Get("upto"), 10, 64); err == nil && n > 0 && till.Time(n) <= v.Now {
		f.Upto = till.Time(n)
	}
	if earliest := v.Earliest(); earliest > f.From {
		f.From = earliest
	}
	return f
}

// seesConnections reports whether the person may know which connection serves a
// merchant.
func (v *visit) seesConnections() bool { return v.Session.MayHouse(people.OperatorsSee) }

// setDays sets a range from one day to another.
func (f *filter) setDays(c look.Clock, from, to string) {
	first, ok := c.ParseDay(from)
	last, okTo := c.ParseDay(to)
	if !ok && !okTo {
		return
	}
	f.Range, f.From, f.To = daysRange, 0, 0
	if ok {
		f.From, f.fromDay = max(first, 1), from
	}
	if okTo {
		f.To, f.toDay = c.StartOfDay(last, 1)-1, to
	}
}

// setAmount reads the amount that is looked for.
func (f *filter) setAmount(amount, currency string) {
	if _, known := till.CurrencyDecimals(currency); !known || amount == "" {
		return
	}
	if minor, ok := look.ParseAmount(amount, currency); ok {
		f.Amount, f.Minor, f.Currency = amount, minor, currency
	}
}

// query returns the address's query, with changes: name, value, name, value. A
// change of anything but the page leads to the first one.
func (f *filter) query(changes ...string) url.Values {
	q := url.Values{}
	if f.Range != daysRange && f.Range != f.usual {
		change(q, "range", f.Range)
	}
	change(q, "from", f.fromDay, "to", f.toDay, "state", f.State, "method", f.Method, "connection", f.Connection)
	if f.Amount != "" {
		change(q, "amount", f.Amount, "currency", f.Currency)
	}
	if f.Examine {
		change(q, "examine", "1")
	}
	change(q, changes...)
	return q
}

// change sets values of a query: name, value, name, value. "" removes one, and another range
// removes the days.
func change(q url.Values, changes ...string) {
	for i := 0; i+1 < len(changes); i += 2 {
		if changes[i] == "range" {
			q.Del("from")
			q.Del("to")
		}
		if q.Del(changes[i]); changes[i+1] != "" {
			q.Set(changes[i], changes[i+1])
		}
	}
}

// addressOf returns a path with a query.
func addressOf(path string, q url.Values) string {
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

// path returns the list's address with changes.
func (f *filter) path(changes ...string) string { return f.pathOf(f.base, changes...) }

func (f *filter) pathOf(base string, changes ...string) string {
	return addressOf(base, f.query(changes...))
}

// Path returns where the list's forms go to.
func (f *filter) Path() string { return f.base }

// Examined and Without lead to what waits for a person, and back. Wide leads to
// everything.
func (f *filter) Examined() string { return f.base + "?examine=1" }

// Without: see Examined.
func (f *filter) Without() string { return f.path("examine", "") }

// Wide: see Examined.
func (f *filter) Wide() string { return f.base + "?range=all" }

// Kept returns what the form of days keeps of the address, as names and values;
// KeptRange is the same for the form of amounts.
func (f *filter) Kept() []shell.Choice {
	return f.kept("state", "method", "connection", "amount", "currency")
}

// KeptRange: see Kept.
func (f *filter) KeptRange() []shell.Choice {
	return f.kept("state", "method", "connection", "range", "from", "to")
}

func (f *filter) kept(names ...string) (out []shell.Choice) {
	q := f.query()
	for _, name := range names {
		if value := q.Get(name); value != "" {
			out = append(out, shell.Choice{Text: name, Path: value})
		}
	}
	return out
}

// store returns the filter as the store takes it.
func (f *filter) store() store.PaymentFilter {
	return store.PaymentFilter{Status: till.Status(f.State), Method: f.Method, From: f.From, To: f.To, Amount: f.Minor, Currency: f.Currency, Connection: f.Connection}
}

// narrowed reports whether the list shows less than a range of time.
func (f *filter) narrowed() bool {
	return f.State != "" || f.Method != "" || f.Connection != "" || f.Amount != "" || f.Examine
}

// RangePicker chooses a range of time: by its name, or days from and to.
type RangePicker struct {
	*shell.Frame
	Word           string // what is chosen
	On             bool   // less than the whole time
	Choices        []shell.Choice
	Months         []shell.Choice
	Path           string         // where the form of days goes to
	Kept           []shell.Choice // what it keeps of the address
	FromDay, ToDay string
}

// rangePicker makes the picker of a list. address returns the list's address with changes.
func (v *visit) rangePicker(frame *shell.Frame, f *filter, kept []shell.Choice, address func(changes ...string) string) *RangePicker {
	p := &RangePicker{Frame: frame, Word: v.Words.T("range." + f.Range), On: f.Range != "all", Path: f.base, Kept: kept, ToDay: v.Clock.ISODay(cmp.Or(f.To, v.Now))}
	if f.From > 0 {
		p.FromDay = v.Clock.ISODay(f.From)
	}
	for _, r := range look.Ranges {
		value := r
		if r == f.usual {
			value = ""
		}
		p.Choices = append(p.Choices, shell.Choice{Text: v.Words.T("range." + r), Path: address("range", value), Current: f.Range == r})
	}
	return p
}

// Pages are the links to the pages of a list.
type Pages struct {
	Links                []shell.Choice // without a path: pages that are left out
	Before, Next         string
	Name, Size           string
	BeforeName, NextName string
}

// pages returns the links to the pages around this one.
func (v *visit) pages(f *filter, total int64) *Pages {
	last := int((total + pageSize - 1) / pageSize)
	p := &Pages{Name: v.Words.T("list.pages"), Size: v.Words.T("list.size", "n", pageSize), BeforeName: v.Words.T("list.before"), NextName: v.Words.T("list.next")}
	if last < 2 {
		return p
	}
	upto := ""
	if f.Upto != 0 {
		upto = strconv.FormatInt(int64(f.Upto), 10)
	}
	link := func(n int) string { return f.path("page", strconv.Itoa(n), "upto", upto) }
	if f.Page > 1 {
		p.Before = link(f.Page - 1)
	}
	if f.Page < last {
		p.Next = link(f.Page + 1)
	}
	shown := 0
	for _, n := range []int{1, f.Page - 1, f.Page, f.Page + 1, last} {
		if n <= shown || n > last {
			continue
		}
		if n > shown+1 {
			p.Links = append(p.Links, shell.Choice{})
		}
		p.Links = append(p.Links, shell.Choice{Text: look.Count(v.Words.Lang(), int64(n)), Path: link(n), Current: n == f.Page})
		shown = n
	}
	return p
}

func statusWords[S ~string](all []S) []string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = string(s)
	}
	return out
}
