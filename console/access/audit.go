package access

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"till"
	"till/books"
	"till/console/list"
	"till/console/look"
	"till/console/shell"
	"till/console/subject"
	"till/people"
	"till/store"
	"till/store/admin"
)

// auditPage is a part of an audit log, newest first.
type auditPage struct {
	*shell.Frame
	Path   string
	Where  string // the merchant, or the house
	Filter *auditFilter
	Range  *list.RangePicker
	Whos   []shell.Choice
	Lines  []*auditLine
	Older  string
	Newest string
	CSV    string
	Sealed string
	Narrow bool // a filter is on
}

// auditFilter is what the address of the page says.
type auditFilter struct {
	base string
	books.AuditPage
	*list.Filter        // the range of time
	Who          string // "" leaves the engine out, "all" shows it
	Name         string
	Act          string
	About        string
}

// auditLine is one row of the log.
type auditLine struct {
	Sequence int64
	Day      string
	At       till.Time
	Time     string
	Who      string
	How      string // as a person, by a key, by a command
	What     string
	Code     string
	Detail   string
	Cause    string
	Subject  string // where it is shown
	About    string
	Icon     string
}

// auditOf returns whose log the page shows, and its path.
func (v *visit) auditOf() (till.ID, string) {
	if v.Client == nil {
		return till.House, shell.Prefix + "/house/audit"
	}
	return v.Client.ID, v.ClientPath("/audit")
}

// maxAuditText is the longest text of a filter.
const maxAuditText = 64

// readAuditFilter reads the address. What makes no sense there is left out.
func (v *visit) readAuditFilter(base string) *auditFilter {
	q := v.R.URL.Query()
	f := &auditFilter{base: base, Filter: list.Read(v.Visit, base, nil), Who: q.Get("who"), Name: strings.TrimSpace(q.Get("name")), Act: strings.TrimSpace(q.Get("act")), About: q.Get("about")}
	if f.Who != "all" {
		f.Who = ""
	}
	if len(f.Name) > maxAuditText {
		f.Name = ""
	}
	if len(f.Act) > maxAuditText {
		f.Act = ""
	}
	subject, err := till.ParseID(f.About)
	if err != nil {
		f.About, subject = "", till.ID{}
	}
	before, _ := strconv.ParseInt(q.Get("before"), 10, 64) // what is no number is the newest
	f.AuditPage = books.AuditPage{Subject: subject, From: f.Filter.From, To: f.Filter.To, People: f.Who == "", Actor: f.Name, Action: f.Act, Before: max(0, before)}
	return f
}

// address returns the page's address with changes: name, value, name, value.
func (f *auditFilter) address(path string, changes ...string) string {
	q := f.Filter.Query()
	for _, name := range []string{"state", "method", "amount", "currency", "examine"} {
		q.Del(name)
	}
	list.Change(q, "who", f.Who, "name", f.Name, "act", f.Act, "about", f.About)
	list.Change(q, changes...)
	return list.AddressOf(path, q)
}

// Kept returns what the form of texts keeps of the address.
func (f *auditFilter) Kept() []shell.Choice { return f.keptBut("name", "act") }

func (f *auditFilter) keptBut(names ...string) (out []shell.Choice) {
	u, err := url.Parse(f.address(""))
	if err != nil {
		return nil
	}
	for name, values := range u.Query() {
		if !slices.Contains(names, name) {
			out = append(out, shell.Choice{Text: name, Path: values[0]})
		}
	}
	slices.SortFunc(out, func(a, b shell.Choice) int { return strings.Compare(a.Text, b.Text) })
	return out
}

// audit is GET /c/{client}/audit and /house/audit.
func (v *visit) audit() error {
	id, path := v.auditOf()
	f := v.readAuditFilter(path)
	p := &auditPage{Frame: v.Frame(v.Words.T("menu.audit"), "menu.audit"), Path: path, Filter: f, Where: v.Words.T("me.house")}
	if v.Client != nil {
		p.Where = v.ClientName()
	}
	var rows books.AuditRows
	var proven *admin.Verification
	err := v.View(func(ctx context.Context, tx *store.Tx) (err error) {
		if rows, err = books.ReadAudit(ctx, tx, id, f.AuditPage, list.PageSize); err != nil {
			return err
		}
		proven, err = admin.LastVerification(ctx, tx)
		return err
	})
	if err != nil {
		return err
	}
	shared, err := v.sharedNames(rows.Rows)
	if err != nil {
		return err
	}
	p.Lines = v.auditLines(rows.Rows, shared)
	if rows.Next > 0 {
		p.Older = f.address(path, "before", strconv.FormatInt(rows.Next, 10))
	}
	if f.Before > 0 {
		p.Newest = f.address(path)
	}
	if len(p.Lines) > 0 {
		p.CSV = f.address(path + ".csv")
	}
	p.Sealed = v.Words.T("audit.sealed", "n", look.Count(v.Words.Lang(), rows.Sealed), "last", look.Count(v.Words.Lang(), rows.Last))
	if proven != nil && proven.Problems == 0 {
		p.Sealed += ", " + v.Words.T("audit.verified", "at", v.Clock.DateTime(proven.At))
	}
	p.Narrow = f.Name != "" || f.Act != "" || f.About != ""
	p.Range = list.PickRange(v.Visit, p.Frame, f.Filter, f.keptBut("range", "from", "to"), func(changes ...string) string { return f.address(path, changes...) })
	p.Whos = []shell.Choice{{Text: v.Words.T("audit.people"), Path: f.address(path, "who", ""), Current: f.Who == ""}, {Text: v.Words.T("audit.everything"), Path: f.address(path, "who", "all"), Current: f.Who == "all"}}
	return v.Page("audit", p)
}

// sharedNames returns the names, in lower case, that several people go by: in these
// rows, or among the people of the merchant or the house. Anybody may take any name.
func (v *visit) sharedNames(rows []*store.AuditRow) (map[string]bool, error) {
	colleagues, err := v.Console.People.Colleagues(v.R.Context(), v.Client)
	if err != nil {
		return nil, err
	}
	first, shared := map[string]till.ID{}, map[string]bool{}
	see := func(id till.ID, name string) {
		name = strings.ToLower(name)
		if other, seen := first[name]; seen && other != id {
			shared[name] = true
		}
		first[name] = id
	}
	for _, c := range colleagues {
		see(c.Person.ID, c.Person.Name)
	}
	for _, a := range rows {
		if id, ok := till.PersonOfActor(a.Actor); ok {
			see(id, till.NameOfActor(a.Actor))
		}
	}
	return shared, nil
}

// auditLines puts rows into words. Of people who share a name it shows the end of
// their ids.
func (v *visit) auditLines(rows []*store.AuditRow, shared map[string]bool) []*auditLine {
	out := make([]*auditLine, len(rows))
	for i, a := range rows {
		l := &auditLine{Sequence: a.Sequence, At: a.At, Time: v.Clock.Time(a.At), Who: till.NameOfActor(a.Actor), Code: a.Action, What: subject.ActWords(v.Visit, a.Action), Detail: look.MaskedIn(a.Detail), Cause: a.Cause}
		if id, ok := till.PersonOfActor(a.Actor); ok && shared[strings.ToLower(l.Who)] {
			text := id.String()
			l.Who += " (…" + text[len(text)-6:] + ")"
		}
		kind, _, _ := strings.Cut(a.Actor, ":")
		switch kind {
		case "person":
			l.How, l.Icon = v.Words.T("audit.by_person"), "person"
		case "api":
			l.How, l.Icon = v.Words.T("audit.by_key"), "key"
		case "cli":
			l.How, l.Icon = v.Words.T("audit.by_command"), "sliders"
		case "engine":
			l.Who, l.Icon = v.Words.T("audit.engine"), "turn"
		default:
			l.Icon = "person"
		}
		v.auditSubject(l, a)
		if i == 0 || !v.Clock.SameDay(a.At, rows[i-1].At) {
			l.Day = v.Clock.Day(a.At, v.Now)
		}
		out[i] = l
	}
	return out
}

// auditSubject says what a row is about, and where that is shown.
func (v *visit) auditSubject(l *auditLine, a *store.AuditRow) {
	if a.SubjectID.IsZero() || v.Client == nil {
		return
	}
	id := a.SubjectID.String()
	l.About = v.ClientPath("/audit?range=all&about=" + id)
	switch noun, _, _ := strings.Cut(a.Action, "."); noun {
	case "payment", "phone":
		l.Subject = v.ClientPath("/payments/" + id)
	case "refund":
		l.Subject = v.ClientPath("/refunds/" + id)
	case "payout":
		l.Subject = v.ClientPath("/payouts/" + id)
	case "webhook_endpoint":
		if v.May(people.WebhooksSee) {
			l.Subject = v.ClientPath("/webhooks/" + id)
		}
	}
}

// auditCSV is GET …/audit.csv: what the page shows, all pages.
func (v *visit) auditCSV() error {
	id, path := v.auditOf()
	f := v.readAuditFilter(path)
	return list.Answer(v.Visit, "audit", func() ([][]string, string, error) {
		table := [][]string{{"sequence", "at_utc", "at_local", "zone", "actor", "action", "subject_id", "detail", "cause"}}
		looked, want := 0, f.AuditPage
		err := v.View(func(ctx context.Context, tx *store.Tx) error {
			for {
				page, err := books.ReadAudit(ctx, tx, id, want, list.Slice)
				if err != nil {
					return err
				}
				for _, a := range page.Rows {
					table = append(table, v.auditRow(a))
				}
				looked++
				if want.Before = page.Next; page.Next == 0 {
					return nil
				}
				if len(table) > list.MaxRows+1 || looked > maxAuditSlices {
					return shell.ErrLongCSV
				}
			}
		})
		return table, look.Count(look.English, int64(len(table)-1)) + " rows", err
	})
}

// maxAuditSlices bounds how much of a log one table reads.
const maxAuditSlices = 200

func (v *visit) auditRow(a *store.AuditRow) []string {
	subject := ""
	if !a.SubjectID.IsZero() {
		subject = a.SubjectID.String()
	}
	return []string{strconv.FormatInt(a.Sequence, 10), a.At.String(), v.Clock.Local(a.At), v.Clock.Zone.String(), a.Actor, a.Action, subject, look.MaskedIn(a.Detail), a.Cause}
}
