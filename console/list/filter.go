package list

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"till"
	"till/console/look"
	"till/console/shell"
	"till/people"
	"till/store"
)

const (
	defaultRange = "month"
	DaysRange    = "days" // from and to, and no name of look.Ranges
	PageSize     = 50
	maxPage      = 1_000_000
)

// Filter is what the address of a list says. It is all of the list's state: a
// link to it shows the same to a colleague.
type Filter struct {
	Base     string // the path of the list
	usual    string // the range without one in the address
	Range    string
	From, To till.Time // the ends of the range, both included
	FromDay  string
	ToDay    string
	State    string
	Method   string
	Amount   string // as it was typed
	Minor    int64
	Currency string
	Examine  bool

	// Connection is for people of the house: a merchant knows methods.
	Connection string

	Reference string // of lists that are looked through by it; see WithReference

	Page int
	Upto till.Time // rows that came after it wait behind "show"
}

// Read reads the address. What makes no sense there is left out, as if
// it were not there: an old link still shows a list.
func Read(v *shell.Visit, base string, states []string) *Filter {
	return ReadWith(v, base, states, defaultRange)
}

// ReadWith is readFilter for a list with a usual range of its own.
func ReadWith(v *shell.Visit, base string, states []string, usual string) *Filter {
	q := v.R.URL.Query()
	f := &Filter{Base: base, usual: usual, Range: usual, Page: 1, Method: q.Get("method"), Examine: q.Get("examine") == "1"}
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
	if SeesConnections(v) {
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

// maxReference is how long a reference may be that is looked for.
const maxReference = 128

// WithReference returns the filter with the reference that is looked for, of a list that knows it.
func (f *Filter) WithReference(typed string) *Filter {
	if typed = strings.TrimSpace(typed); utf8.ValidString(typed) && !strings.ContainsRune(typed, 0) && utf8.RuneCountInString(typed) <= maxReference {
		f.Reference = typed
	}
	return f
}

// SeesConnections reports whether the person may know which connection serves a
// merchant.
func SeesConnections(v *shell.Visit) bool { return v.Session.MayHouse(people.OperatorsSee) }

// setDays sets a range from one day to another.
func (f *Filter) setDays(c look.Clock, from, to string) {
	first, ok := c.ParseDay(from)
	last, okTo := c.ParseDay(to)
	if !ok && !okTo {
		return
	}
	f.Range, f.From, f.To = DaysRange, 0, 0
	if ok {
		f.From, f.FromDay = max(first, 1), from
	}
	if okTo {
		f.To, f.ToDay = c.StartOfDay(last, 1)-1, to
	}
}

// setAmount reads the amount that is looked for.
func (f *Filter) setAmount(amount, currency string) {
	if _, known := till.CurrencyDecimals(currency); !known || amount == "" {
		return
	}
	if minor, ok := look.ParseAmount(amount, currency); ok {
		f.Amount, f.Minor, f.Currency = amount, minor, currency
	}
}

// Query returns the address's query, with changes: name, value, name, value. A
// change of anything but the page leads to the first one.
func (f *Filter) Query(changes ...string) url.Values {
	q := url.Values{}
	if f.Range != DaysRange && f.Range != f.usual {
		Change(q, "range", f.Range)
	}
	Change(q, "from", f.FromDay, "to", f.ToDay, "state", f.State, "method", f.Method, "connection", f.Connection, "reference", f.Reference)
	if f.Amount != "" {
		Change(q, "amount", f.Amount, "currency", f.Currency)
	}
	if f.Examine {
		Change(q, "examine", "1")
	}
	Change(q, changes...)
	return q
}

// Change sets values of a query: name, value, name, value. "" removes one, and another range
// removes the days.
func Change(q url.Values, changes ...string) {
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

// AddressOf returns a path with a query.
func AddressOf(path string, q url.Values) string {
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

// Address returns the list's address with changes.
func (f *Filter) Address(changes ...string) string { return f.AddressAt(f.Base, changes...) }

func (f *Filter) AddressAt(base string, changes ...string) string {
	return AddressOf(base, f.Query(changes...))
}

// Path returns where the list's forms go to.
func (f *Filter) Path() string { return f.Base }

// Examined and Without lead to what waits for a person, and back. Wide leads to
// everything.
func (f *Filter) Examined() string { return f.Base + "?examine=1" }

// Without: see Examined.
func (f *Filter) Without() string { return f.Address("examine", "") }

// Wide: see Examined.
func (f *Filter) Wide() string { return f.Base + "?range=all" }

// Kept returns what the form of days keeps of the address, as names and values;
// KeptRange is the same for the form of amounts.
func (f *Filter) Kept() []shell.Choice {
	return f.kept("state", "method", "connection", "reference", "amount", "currency")
}

// KeptRange: see Kept.
func (f *Filter) KeptRange() []shell.Choice {
	return f.kept("state", "method", "connection", "range", "from", "to")
}

func (f *Filter) kept(names ...string) (out []shell.Choice) {
	q := f.Query()
	for _, name := range names {
		if value := q.Get(name); value != "" {
			out = append(out, shell.Choice{Text: name, Path: value})
		}
	}
	return out
}

// Payments returns the filter as the store takes it.
func (f *Filter) Payments() store.PaymentFilter {
	return store.PaymentFilter{Status: till.Status(f.State), Method: f.Method, From: f.From, To: f.To, Amount: f.Minor, Currency: f.Currency, Connection: f.Connection}
}

// Narrowed reports whether the list shows less than a range of time.
func (f *Filter) Narrowed() bool {
	return f.State != "" || f.Method != "" || f.Connection != "" || f.Amount != "" || f.Reference != "" || f.Examine
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

// PickRange makes the picker of a list. address returns the list's address with changes.
func PickRange(v *shell.Visit, frame *shell.Frame, f *Filter, kept []shell.Choice, address func(changes ...string) string) *RangePicker {
	p := &RangePicker{Frame: frame, Word: v.Words.T("range." + f.Range), On: f.Range != "all", Path: f.Base, Kept: kept, ToDay: v.Clock.ISODay(cmp.Or(f.To, v.Now))}
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

// PagesOf returns the links to the pages around this one.
func PagesOf(v *shell.Visit, f *Filter, total int64) *Pages {
	last := int((total + PageSize - 1) / PageSize)
	p := &Pages{Name: v.Words.T("list.pages"), Size: v.Words.T("list.size", "n", PageSize), BeforeName: v.Words.T("list.before"), NextName: v.Words.T("list.next")}
	if last < 2 {
		return p
	}
	upto := ""
	if f.Upto != 0 {
		upto = strconv.FormatInt(int64(f.Upto), 10)
	}
	link := func(n int) string { return f.Address("page", strconv.Itoa(n), "upto", upto) }
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

func Texts[S ~string](all []S) []string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = string(s)
	}
	return out
}
