package checkouts

import (
	"cmp"
	"context"
	"strconv"

	"till"
	"till/checkout"
	"till/console/list"
	"till/console/look"
	"till/console/shell"
	"till/people"
	"till/store"
	"till/store/checkouts"
	"till/store/refunds"
)

// listPage is a list of checkouts.
type listPage struct {
	*shell.Frame
	Filter *list.Filter
	Range  *list.RangePicker
	States []shell.Choice
	State  string // what the filter says

	Lines []*line
	Total int64
	News  int64
	Show  string // the address that shows what is new
	Again string
	Pages *list.Pages
	New   string // where one is made
	Never bool   // there is none at all
}

// line is a row of the list.
type line struct {
	ID        string
	Path      string
	Day       string
	At        till.Time
	Time      string
	State     shell.Chip
	Amount    till.Money
	Reference string
	For       string // the description
	Until     string // how long it can be paid; "": it cannot
}

// Tail names a line that has neither reference nor description.
func (l *line) Tail() string { return l.ID[len(l.ID)-8:] }

// list is GET /c/{client}/checkouts.
func (v *visit) list() error {
	f := list.Read(v.Visit, v.ClientPath("/checkouts"), list.Texts(till.CheckoutStates)).WithReference(v.R.URL.Query().Get("reference"))
	p := &listPage{Frame: v.Frame(v.Words.T("menu.checkouts"), "menu.checkouts"), Filter: f}
	if f.Upto == 0 {
		f.Upto = v.Now
	}
	err := v.View(func(ctx context.Context, tx *store.Tx) error { return v.readList(ctx, tx, p, f) })
	if err != nil {
		return err
	}
	p.Show, p.Pages = f.Address(), list.PagesOf(v.Visit, f, p.Total)
	page := ""
	if f.Page > 1 {
		page = strconv.Itoa(f.Page)
	}
	p.Again = f.Address("page", page, "upto", strconv.FormatInt(int64(f.Upto), 10))
	if v.May(people.LinksManage) {
		p.New = v.ClientPath("/checkouts/new")
	}
	v.choices(p, f)
	return v.Page("checkouts", p)
}

// choices fills in the links of the filters.
func (v *visit) choices(p *listPage, f *list.Filter) {
	p.State = v.Words.T("list.all")
	p.Range = list.PickRange(v.Visit, p.Frame, f, f.Kept(), f.Address)
	p.States = append(p.States, shell.Choice{Text: p.State, Path: f.Address("state", ""), Current: f.State == ""})
	for _, s := range till.CheckoutStates {
		name := v.Words.T("checkouts.state_" + string(s))
		p.States = append(p.States, shell.Choice{Text: name, Path: f.Address("state", string(s)), Current: f.State == string(s)})
		if f.State == string(s) {
			p.State = name
		}
	}
}

// readList reads the page, and what is new since.
func (v *visit) readList(ctx context.Context, tx *store.Tx, p *listPage, f *list.Filter) error {
	now := checkouts.Filter{State: till.CheckoutState(f.State), Reference: f.Reference, From: max(f.From, v.Earliest()), To: f.To}
	upto := now
	if upto.To == 0 || upto.To > f.Upto {
		upto.To = f.Upto
	}
	rows, total, err := checkouts.List(ctx, tx, v.Client.ID, upto, store.Page{Limit: list.PageSize, Offset: (f.Page - 1) * list.PageSize})
	if err != nil {
		return err
	}
	p.Total = total
	if p.Lines, err = v.lines(ctx, tx, rows); err != nil {
		return err
	}
	_, all, err := checkouts.List(ctx, tx, v.Client.ID, now, store.Page{})
	if err != nil {
		return err
	}
	if p.News = max(0, all-total); total > 0 || p.News > 0 || f.Narrowed() {
		return nil
	}
	_, all, err = checkouts.List(ctx, tx, v.Client.ID, checkouts.Filter{From: v.Earliest()}, store.Page{})
	p.Never = all == 0
	return err
}

// lines puts rows into words.
func (v *visit) lines(ctx context.Context, tx *store.Tx, rows []*checkouts.Row) ([]*line, error) {
	refs := make([]store.Ref, len(rows))
	for i, row := range rows {
		refs[i] = row.Ref()
	}
	asks, err := readAsks(ctx, tx, refs)
	if err != nil {
		return nil, err
	}
	out := make([]*line, len(rows))
	for i, row := range rows {
		s := v.situation(row, asks[row.Ref()])
		stands, _ := s.look()
		l := &line{ID: row.ID.String(), At: row.CreatedAt, Time: v.Clock.Time(row.CreatedAt), State: v.chip(stands), Amount: row.Amount, Reference: row.Reference,
			For: checkout.Description(&row.Checkout)}
		l.Path = v.ClientPath("/checkouts/" + l.ID)
		if stands.open() {
			l.Until = v.Clock.Moment(row.ExpiresAt, v.Now)
		}
		if i == 0 || !v.Clock.SameDay(l.At, rows[i-1].CreatedAt) {
			l.Day = v.Clock.Day(l.At, v.Now)
		}
		out[i] = l
	}
	return out, nil
}

// situation returns what the stand of a checkout depends on.
func (v *visit) situation(row *checkouts.Row, asks []*asked) *situation {
	return &situation{state: row.State, late: row.Late, expires: row.ExpiresAt, asks: asks, now: v.Now}
}

// readAsks reads the asks of checkouts, with their payments and what went back of them.
func readAsks(ctx context.Context, tx *store.Tx, refs []store.Ref) (map[store.Ref][]*asked, error) {
	all, err := checkouts.AsksOf(ctx, tx, refs)
	if err != nil {
		return nil, err
	}
	var paymentRefs []store.Ref
	for _, asks := range all {
		for i := range asks {
			if a := &asks[i]; !a.PaymentID.IsZero() {
				paymentRefs = append(paymentRefs, store.Ref{Client: a.ClientID, ID: a.PaymentID})
			}
		}
	}
	payments, err := tx.Payments(ctx, paymentRefs)
	if err != nil {
		return nil, err
	}
	sums, err := refunds.Sums(ctx, tx, paymentRefs)
	if err != nil {
		return nil, err
	}
	out := make(map[store.Ref][]*asked, len(all))
	for ref, asks := range all {
		for i := range asks {
			a := &asked{Ask: asks[i]}
			of := store.Ref{Client: a.ClientID, ID: a.PaymentID}
			if a.payment = payments[of]; a.payment != nil {
				if a.sums = sums[of]; a.sums.Amount == 0 {
					a.sums.Amount = a.payment.Amount.Minor
				}
			}
			out[ref] = append(out[ref], a)
		}
	}
	return out, nil
}

// looks are the tone and the icon of each stand; its words are checkouts.state_….
var looks = map[stand]shell.Chip{
	untried: {Tone: "pending", Icon: "clock"}, tried: {Tone: "pending", Icon: "clock"}, spent: {Tone: "ended", Icon: "bar"}, unsent: {Tone: "pending", Icon: "clock"},
	live: {Tone: "processing", Icon: "phone"}, unsure: {Tone: "processing", Icon: "turn"}, examined: {Tone: "examine", Icon: "gem"},
	paid: {Tone: "paid", Icon: "check"}, late: {Tone: "late", Icon: "check"}, twice: {Tone: "failed", Icon: "warn"}, repaying: {Tone: "processing", Icon: "undo"},
	once: {Tone: "paid", Icon: "check"}, returned: {Tone: "late", Icon: "undo"}, reversed: {Tone: "late", Icon: "undo"},
	expired: {Tone: "ended", Icon: "sand"}, cancelled: {Tone: "ended", Icon: "bar"},
}

// chip returns a stand as a state in its box.
func (v *visit) chip(s stand) shell.Chip {
	c := looks[s]
	c.Text = v.Words.T("checkouts.state_" + string(s))
	return c
}

// customerLook returns the language and the clock of a text for the customer: the language that
// the page is fixed to, else the merchant's, else the reader's.
func (v *visit) customerLook(fixed string) (string, look.Clock) {
	lang := cmp.Or(fixed, v.Profile.Language, v.Words.Lang())
	return lang, look.NewClock(lang, v.Profile.Zone)
}
