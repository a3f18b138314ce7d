package shell

import (
	"cmp"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"till"
	"till/console/look"
	"till/console/words"
	"till/people"
)

// Frame is what every page has: who sees it, in which language, and the
// menu around it. Pages embed it; its methods are what templates call.
type Frame struct {
	*words.Catalogue
	Clock     look.Clock
	Now       till.Time
	Title     string
	RequestID string
	Address   string // of this page, with its query
	Theme     string

	Person  *till.Person // nil: nobody is signed in
	NoKeys  bool
	Client  *till.Client // nil: the page is of no merchant
	Name    string       // of the merchant, as people call it
	Test    bool
	Stopped bool // the merchant is suspended
	Looks   bool // the person sees the merchant by a role of the house
	Base    string
	Stream  string // the address of the live hints; "": none
	Finds   bool   // there is a search
	Menu    [][]MenuItem
	Bar     []MenuItem
	Others  []*till.Client // merchants to switch to
	House   string         // the house's own page, for those who may
	Notice  string
	Modules []string // further scripts of the page
	Styles  []string // and style sheets
}

// MenuItem is a link of the menu.
type MenuItem struct {
	Key, Icon, Path string
	Shortcut        string // of keys.js
	Current         bool

	Bar    bool     // it is in the bar at the foot of small screens, too
	Ranges []string // the names that its page knows, if it shows a range of time

	page *Route
}

// findPages gives each item of a menu the page that it leads to, whose path begins with
// base.
func (k *Console) findPages(base string, menu []MenuItem) error {
	for i := range menu {
		for j := range k.rooms.Routes {
			if r := &k.rooms.Routes[j]; r.Method == http.MethodGet && r.Path == base+menu[i].Path {
				menu[i].page = r
			}
		}
		if menu[i].page == nil {
			return fmt.Errorf("the menu leads to %s%s, where there is no page", base, menu[i].Path)
		}
	}
	return nil
}

// Frame returns what is around a page. key is the item of the menu that the
// page belongs to.
func (v *Visit) Frame(title, key string) *Frame {
	f := &Frame{Catalogue: v.Words, Clock: v.Clock, Now: v.Now, Title: title, RequestID: v.ID, Address: v.R.URL.RequestURI(), Client: v.Client}
	if v.Session != nil {
		f.Person, f.NoKeys, f.Theme = &v.Session.Person, v.Session.Person.NoKeys, v.Session.Person.Theme
	}
	if v.Session != nil && v.Session.MayHouse(people.OperatorsSee) {
		f.House = Prefix + "/house"
	}
	if v.Client == nil && v.Session != nil && v.Route.For == House {
		v.frameHouse(f, key)
	}
	if v.Client == nil || v.Session == nil {
		return f
	}
	f.Base, f.Name, f.Test, f.Looks = v.ClientPath(""), v.ClientName(), v.Client.Mode == till.Test, v.Session.Looks(v.Client.ID)
	f.Stopped = v.Client.Suspended
	f.Stream, f.Finds = v.ClientPath("/live"), v.May(people.PaymentsSee)
	if n := v.R.URL.Query().Get("done"); n != "" && v.Words.Has("done."+n) {
		f.Notice = v.Words.T("done." + n)
	}
	for _, group := range v.Console.rooms.Menu {
		var items []MenuItem
		for _, item := range group {
			if item.page.TestOnly && !f.Test || v.Session.May(v.Client, item.page.May) == people.None {
				continue
			}
			item.Path, item.Current = f.Base+item.Path+v.sameRange(item.Ranges), item.Key == key
			items = append(items, item)
			if item.Bar {
				f.Bar = append(f.Bar, item)
			}
		}
		if items != nil {
			f.Menu = append(f.Menu, items)
		}
	}
	f.Others = v.otherClients()
	return f
}

// sameRange returns what a link of the menu adds so that its page shows the range of this
// one; "" where the address of this page has none. known are the names that the page knows.
func (v *Visit) sameRange(known []string) string {
	if known == nil || v.R.Method != http.MethodGet {
		return ""
	}
	q := v.R.URL.Query()
	from, to, name := q.Get("from"), q.Get("to"), q.Get("range")
	if slices.Contains(known, name) && from == "" && to == "" {
		return "?range=" + name
	}
	first, okFrom := v.Clock.ParseDay(from)
	last, okTo := v.Clock.ParseDay(to)
	if !okFrom || !okTo {
		today := v.Clock.StartOfDay(v.Now, 0)
		switch name {
		case "7d", "30d":
			days := map[string]int{"7d": 6, "30d": 29}[name]
			first, last = v.Clock.StartOfDay(v.Now, -days), today
		case "yesterday", "week", "last_month":
			first, last = v.Clock.Range(name, v.Now)
			last = cmp.Or(last, today)
		default:
			return ""
		}
	}
	return "?from=" + v.Clock.ISODay(first) + "&to=" + v.Clock.ISODay(last)
}

// frameHouse puts the house's menu around a page.
func (v *Visit) frameHouse(f *Frame, key string) {
	f.Base, f.Name, f.Finds = Prefix+"/house", v.Words.T("menu.house"), v.Session.MayHouse(people.ClientsLook)
	var items []MenuItem
	for _, item := range v.Console.rooms.HouseMenu {
		if !v.Session.MayHouse(item.page.May) {
			continue
		}
		item.Path, item.Current = Prefix+item.Path, item.Key == key
		items = append(items, item)
	}
	f.Menu, f.Bar = [][]MenuItem{items}, items[:min(len(items), 3)]
	f.Others = v.otherClients()
}

// ClientName returns what people call the merchant.
func (v *Visit) ClientName() string {
	if v.Profile != nil && v.Profile.Name != "" {
		return v.Profile.Name
	}
	return v.Client.Name
}

// otherClients returns the merchants that the person may switch to. With
// only one, it costs no statement.
func (v *Visit) otherClients() []*till.Client {
	if len(v.Session.Memberships) < 2 && !v.Session.MayHouse(people.ClientsLook) {
		return nil
	}
	all, err := v.Console.clientsOf(v)
	if err != nil {
		v.Console.Log.Warn("merchants of a person not read", "request_id", v.ID, "error", err)
		return nil
	}
	others := all[:0]
	for _, c := range all {
		if v.Client == nil || c.ID != v.Client.ID {
			others = append(others, c)
		}
	}
	return others
}

// Money returns an amount with its currency.
func (f *Frame) Money(m till.Money) string { return look.Money(f.Lang(), m) }

// Amount returns an amount without its currency.
func (f *Frame) Amount(m till.Money) string { return look.Amount(f.Lang(), m) }

// Count returns a whole number.
func (f *Frame) Count(n int64) string { return look.Count(f.Lang(), n) }

// ISO returns a moment for the datetime of a time element.
func (f *Frame) ISO(t till.Time) string { return t.Std().Format(time.RFC3339Nano) }

// At returns date and time of a moment.
func (f *Frame) At(t till.Time) string { return f.Clock.DateTime(t) }

// Moment returns a time, with its day only if that is not today.
func (f *Frame) Moment(t till.Time) string { return f.Clock.Moment(t, f.Now) }

// Maker names who made a link: a person, or the command line.
func (f *Frame) Maker(actor string) string {
	if _, person := till.PersonOfActor(actor); !person {
		return f.T("join.by_command")
	}
	return till.NameOfActor(actor)
}

// HandOn is a text that people pass on: they copy it, or their own program sends it.
type HandOn struct {
	Text  string
	Words *words.Catalogue
}

// Handing makes the buttons for a text.
func (f *Frame) Handing(text string) HandOn { return HandOn{text, f.Catalogue} }

// Ticks returns a moment in milliseconds, for scripts.
func (f *Frame) Ticks(t till.Time) string { return strconv.FormatInt(int64(t)/1000, 10) }

// Method returns a method as people call it, with its country.
func (f *Frame) Method(code, country string) string { return MethodName(code, country) }

func MethodName(code, country string) string {
	name := code
	if m, ok := till.MethodOf(code); ok {
		name = m.NameIn(country)
	}
	return strings.TrimSpace(name + " " + country)
}

// ZoneName returns what names the zone once on each page.
func (f *Frame) ZoneName() string {
	if f.Clock.City() == "UTC" {
		return f.T("frame.zone_utc")
	}
	return f.T("frame.zone", "city", f.Clock.City(), "offset", f.Clock.Offset(f.Now))
}

// Mark is an icon by its name; Parts of templates take it.
type Mark struct{ Name string }

// Icon returns the icon of a name for the template "icon".
func (f *Frame) Icon(name string) Mark { return Mark{name} }

// Chip is a state in a tinted box: icon and word, never colour alone.
type Chip struct {
	Tone, Icon, Text string
	Big              bool
}

// Block is markup that was made on the server, by package chart.
type Block = template.HTML

// Choice is one link of a filter.
type Choice struct {
	Text, Path string
	Current    bool
}

// Fact is a name with its value; Strong is the one that matters.
type Fact struct {
	Name, Value string
	ISO         string // of a time
	Strong      bool
	Reveal      string // the address that shows it whole
	Path        string // where it leads
}

// Excel returns the address of a table as Excel opens it.
func (f *Frame) Excel(table string) string {
	mark := "?"
	if strings.Contains(table, "?") {
		mark = "&"
	}
	return table + mark + "for=" + ForExcel
}

// forExcel, as "for" in an address or a form, asks for a table that Excel opens.
const ForExcel = "excel"

// TextLines returns the lines of a text, none of an empty one.
func TextLines(s string) []string {
	if strings.TrimSpace(s) == "" {
		return nil
	}
	return strings.Split(s, "\n")
}

// maxListedClients is how many merchants the house's people are offered to
// switch to; others are found by their address.
const maxListedClients = 100

// clientsOf returns the merchants that a person may see.
func (k *Console) clientsOf(v *Visit) ([]*till.Client, error) {
	own, err := k.People.Clients(v.R.Context(), v.Session)
	if err != nil || !v.Session.MayHouse(people.ClientsLook) {
		return own, err
	}
	all, err := k.Accounts.Clients(v.R.Context(), till.ID{}, maxListedClients)
	for _, c := range all {
		if !slices.ContainsFunc(own, func(o *till.Client) bool { return o.ID == c.ID }) {
			own = append(own, c)
		}
	}
	return own, err
}
