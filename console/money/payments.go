package money

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"till"
	"till/books"
	"till/console/list"
	"till/console/shell"
	"till/console/subject"
	"till/people"
	"till/store"
	"till/store/admin"
)

// listPage is a list of payments, payouts or refunds.
type listPage struct {
	*shell.Frame
	Kind    string // "payments", "payouts" or "refunds"
	Filter  *list.Filter
	Range   *list.RangePicker
	States  []shell.Choice
	Methods []shell.Choice
	Through []shell.Choice    // connections, for people of the house
	Words   map[string]string // what the current filter says

	Lines   []*subject.Line
	Total   int64
	News    int64  // that came since
	Show    string // the address that shows them
	Again   string // the address of this list as it is
	Pages   *list.Pages
	CSV     string
	Whole   string // where the table with whole phones is asked for
	Collect string
	Examine int64 // how many have an open case
	TooMany bool  // an amount or a connection was looked for in too many rows
	Never   bool  // there is none at all
	Curl    string
	Sandbox string
}

// payments is GET /c/{client}/payments.
func (v *visit) payments() error {
	return v.list("payments", v.paymentFilter(), v.listPayments)
}

// paymentFilter reads the address of a list of payments.
func (v *visit) paymentFilter() *list.Filter {
	return list.Read(v.Visit, v.ClientPath("/payments"), append(list.Texts(till.Statuses), subject.OpenState))
}

// reader reads a page of a list, and the number of all.
type reader func(ctx context.Context, tx *store.Tx, f store.PaymentFilter, page store.Page) ([]*subject.Line, int64, error)

// maxScannedRows is how many rows a list goes through for an amount or a connection.
const maxScannedRows = 200_000

// list shows a list of payments or payouts.
func (v *visit) list(kind string, f *list.Filter, read reader) error {
	p := &listPage{Frame: v.Frame(v.Words.T("menu."+kind), "menu."+kind), Kind: kind, Filter: f}
	if f.Upto == 0 {
		f.Upto = v.Now
	}
	err := v.View(func(ctx context.Context, tx *store.Tx) error { return v.readList(ctx, tx, p, f, read) })
	if err != nil {
		return err
	}
	p.Show, p.Again = f.Address(), f.Address("page", pageWord(f.Page), "upto", strconv.FormatInt(int64(f.Upto), 10))
	p.Pages = list.PagesOf(v.Visit, f, p.Total)
	if v.May(people.Export) && p.Total > 0 {
		p.CSV = f.AddressAt(f.Base + ".csv")
		if v.May(people.ExportPhones) {
			p.Whole = f.AddressAt(f.Base + "/export")
		}
	}
	if kind == "payments" && v.May(people.Collect) {
		p.Collect = v.ClientPath("/collect")
	}
	if kind == "payments" {
		if p.Test && v.May(people.SandboxUse) {
			p.Sandbox = v.ClientPath("/sandbox")
		}
		p.Curl = subject.Curl(v.Visit, "mtn_momo", "CG", "242061234567", till.Money{Minor: 5000, Currency: "XAF"})
	}
	v.choices(p, f)
	return v.Page("list", p)
}

func pageWord(n int) string {
	if n == 1 {
		return ""
	}
	return strconv.Itoa(n)
}

// readList reads the page, what is new since, and what waits for a person.
func (v *visit) readList(ctx context.Context, tx *store.Tx, p *listPage, f *list.Filter, read reader) (err error) {
	cases, err := subject.OpenCases(v.Visit, ctx, tx)
	if err != nil {
		return err
	}
	refs := subject.Examined(v.Visit, cases, p.Kind)
	p.Examine = int64(len(refs))
	if f.Examine {
		return v.readExamined(ctx, tx, p, f, refs, cases)
	}
	if list.SeesConnections(v.Visit) {
		if p.Through, err = v.connectionChoices(ctx, tx, f); err != nil {
			return err
		}
	}
	now, upto := f.Payments(), f.Payments()
	if upto.To == 0 || upto.To > f.Upto {
		upto.To = f.Upto
	}
	page := store.Page{Limit: list.PageSize, Offset: (f.Page - 1) * list.PageSize}
	if p.TooMany, err = tooMany(ctx, tx, upto, read); err != nil || p.TooMany {
		return err
	}
	if p.Lines, p.Total, err = read(ctx, tx, upto, page); err != nil {
		return err
	}
	v.explainExamined(p.Lines, cases)
	if !now.Scans() {
		_, total, err := read(ctx, tx, now, store.Page{})
		if err != nil {
			return err
		}
		p.News = max(0, total-p.Total)
	}
	if p.Total == 0 && !f.Narrowed() {
		_, n, err := read(ctx, tx, store.PaymentFilter{}, store.Page{})
		if err != nil {
			return err
		}
		p.Never = n == 0
	}
	return nil
}

// tooMany reports whether a list would have to go through too many rows for what no
// index knows.
func tooMany(ctx context.Context, tx *store.Tx, f store.PaymentFilter, read reader) (bool, error) {
	if !f.Scans() {
		return false, nil
	}
	f.Amount, f.Currency, f.Connection = 0, "", ""
	_, n, err := read(ctx, tx, f, store.Page{})
	return n > maxScannedRows, err
}

// readExamined reads what has an open case, the longest open first.
func (v *visit) readExamined(ctx context.Context, tx *store.Tx, p *listPage, f *list.Filter, refs []store.Ref, cases []*store.Case) error {
	p.Total = int64(len(refs))
	from := min((f.Page-1)*list.PageSize, len(refs))
	var err error
	p.Lines, err = v.examinedLines(ctx, tx, p.Kind, refs[from:min(from+list.PageSize, len(refs))])
	v.explainExamined(p.Lines, cases)
	return err
}

// examinedLines reads what cases are about.
func (v *visit) examinedLines(ctx context.Context, tx *store.Tx, kind string, refs []store.Ref) ([]*subject.Line, error) {
	if kind != "payments" {
		rows, err := tx.Payouts(ctx, refs)
		return subject.PayoutLines(v.Visit, inOrder(refs, rows)), err
	}
	rows, err := tx.Payments(ctx, refs)
	return subject.PaymentLines(v.Visit, inOrder(refs, rows)), err
}

// inOrder returns rows as they were asked for; a case may be about something
// else.
func inOrder[R any](refs []store.Ref, rows map[store.Ref]R) (out []R) {
	for _, ref := range refs {
		if r, ok := rows[ref]; ok {
			out = append(out, r)
		}
	}
	return out
}

// explainExamined says beside a line what its case is about.
func (v *visit) explainExamined(lines []*subject.Line, cases []*store.Case) {
	for _, l := range lines {
		for _, c := range cases {
			if l.State.Tone == "examine" && c.SubjectID.String() == l.ID {
				l.Why = subject.CaseKind(v.Visit, c.Kind)
			}
		}
	}
}

// listPayments reads payments for a list.
func (v *visit) listPayments(ctx context.Context, tx *store.Tx, f store.PaymentFilter, page store.Page) ([]*subject.Line, int64, error) {
	f.From = max(f.From, v.Earliest())
	if f.Status == subject.OpenState {
		rows, total, err := v.listOpen(ctx, tx, f, page)
		return subject.PaymentLines(v.Visit, rows), total, err
	}
	rows, total, err := tx.ListPayments(ctx, v.Client.ID, f, page)
	return subject.PaymentLines(v.Visit, rows), total, err
}

// choices fills in the links of the filters.
func (v *visit) choices(p *listPage, f *list.Filter) {
	t := v.Words.T
	p.Words = map[string]string{"state": t("list.all"), "method": t("list.all")}
	p.Range = list.PickRange(v.Visit, p.Frame, f, f.Kept(), f.Address)
	p.States = append(p.States, shell.Choice{Text: t("list.all"), Path: f.Address("state", ""), Current: f.State == ""})
	states := list.Texts(till.Statuses)
	if p.Kind != "payments" {
		states = list.Texts(till.PayoutStatuses)
	} else {
		states = append([]string{subject.OpenState}, states...)
	}
	for _, s := range states {
		name := t("state." + subject.StateWord(p.Kind, s))
		p.States = append(p.States, shell.Choice{Text: name, Path: f.Address("state", s), Current: f.State == s})
		if f.State == s {
			p.Words["state"] = name
		}
	}
	p.Methods = append(p.Methods, shell.Choice{Text: t("list.all"), Path: f.Address("method", ""), Current: f.Method == ""})
	for _, m := range till.Methods() {
		if v.Client.Mode == till.Test && !m.InSandbox() {
			continue
		}
		p.Methods = append(p.Methods, shell.Choice{Text: m.Name, Path: f.Address("method", m.Code), Current: f.Method == m.Code})
		if f.Method == m.Code {
			p.Words["method"] = m.Name
		}
	}
}

// connectionChoices are the connections that were ever used.
func (v *visit) connectionChoices(ctx context.Context, tx *store.Tx, f *list.Filter) ([]shell.Choice, error) {
	known, err := admin.Connections(ctx, tx)
	out := []shell.Choice{{Text: v.Words.T("list.every_connection"), Path: f.Address("connection", ""), Current: f.Connection == ""}}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if !strings.HasSuffix(name, books.PayoutSuffix) {
			out = append(out, shell.Choice{Text: name, Path: f.Address("connection", name), Current: f.Connection == name})
		}
	}
	return out, err
}

// Span returns the ends of the range, once on the page with its zone.
func (p *listPage) Span() string {
	from, to := "", p.Clock.ShortDate(p.Filter.Upto)+" "+p.Clock.Minute(p.Filter.Upto)
	if p.Filter.To != 0 && p.Filter.To < p.Filter.Upto {
		to = p.Clock.ShortDate(p.Filter.To) + " " + p.Clock.Minute(p.Filter.To)
	}
	if p.Filter.From == 0 {
		return p.T("list.until", "to", to, "zone", p.Clock.Offset(p.Now))
	}
	from = p.Clock.ShortDate(p.Filter.From) + " " + p.Clock.Minute(p.Filter.From)
	return p.T("list.span", "from", from, "to", to, "zone", p.Clock.Offset(p.Now))
}

// Currencies are those that an amount can be looked for in.
func (p *listPage) Currencies() []string { return currencies(p.Client.Mode) }

// currencies lists what the methods of a mode are paid in, by name.
func currencies(mode till.Mode) (out []string) {
	for _, m := range till.Methods() {
		for _, k := range m.Markets {
			if (mode != till.Test || k.Sandbox) && !slices.Contains(out, k.Currency) {
				out = append(out, k.Currency)
			}
		}
	}
	slices.Sort(out)
	return out
}

// listOpen reads a page of the payments that have not ended, of either status.
func (v *visit) listOpen(ctx context.Context, tx *store.Tx, f store.PaymentFilter, page store.Page) ([]*store.PaymentRow, int64, error) {
	var all []*store.PaymentRow
	var total int64
	until := min(page.Offset+page.Limit, maxOpenRead)
	for _, status := range []till.Status{till.Pending, till.Processing} {
		f.Status = status
		rows, n, err := tx.ListPayments(ctx, v.Client.ID, f, store.Page{Limit: until})
		if err != nil {
			return nil, 0, err
		}
		all, total = append(all, rows...), total+n
	}
	slices.SortFunc(all, func(a, b *store.PaymentRow) int { return slices.Compare(b.ID[:], a.ID[:]) })
	all = all[:min(len(all), until)]
	return all[min(len(all), page.Offset):], total, nil
}

// maxOpenRead is how far a list of what is open can be turned.
const maxOpenRead = 5_000
