package money

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"till"
	"till/console/list"
	"till/console/look"
	"till/console/shell"
	"till/ledger"
	"till/people"
	"till/store"
)

// walletsPage is what the merchant has, by currency.
type walletsPage struct {
	*shell.Frame
	Again   string
	Wallets []*walletBox
	Collect string
}

// walletBox is one wallet, ready for people.
type walletBox struct {
	Currency                           string
	Available, Balance, Reserved, Owed till.Money
	UpdatedAt                          till.Time
	Path                               string
	Payouts                            string // where what is reserved is listed
}

func (v *visit) walletBox(w *ledger.Wallet) *walletBox {
	money := func(minor int64) till.Money { return till.Money{Minor: minor, Currency: w.Currency} }
	return &walletBox{Currency: w.Currency, Available: money(w.Available()), Balance: money(w.Balance), Reserved: money(w.Reserved), Owed: money(w.Owed),
		UpdatedAt: w.UpdatedAt, Path: v.ClientPath("/wallets/" + w.Currency), Payouts: v.ClientPath("/payouts?range=all")}
}

// wallets is GET /c/{client}/wallets: those that something happened to, as the
// API lists them.
func (v *visit) wallets() error {
	p := &walletsPage{Frame: v.Frame(v.Words.T("menu.wallets"), "menu.wallets"), Again: v.R.URL.Path}
	err := v.View(func(ctx context.Context, tx *store.Tx) error {
		all, err := tx.UsedWallets(ctx, v.Client.ID)
		for _, w := range all {
			p.Wallets = append(p.Wallets, v.walletBox(w))
		}
		return err
	})
	if err != nil {
		return err
	}
	if v.May(people.Collect) {
		p.Collect = v.ClientPath("/collect")
	}
	return v.Page("wallets", p)
}

// Limits of a statement.
const (
	maxPrintLines  = 1000
	maxStatement   = 500_000 // lines of a table for spreadsheets
	offeredMonths  = 12
	statementTypes = "collection late_collection collection_reversal fee payout late_payout refund late_refund adjustment"
)

// statementPage is a wallet's lines in a range, with the balance after each.
type statementPage struct {
	*shell.Frame
	*walletBox
	Again    string
	Filter   *list.Filter
	Range    *list.RangePicker
	Types    []shell.Choice
	Type     string // the chosen one
	Lines    []*walletLine
	Total    int64
	Before   till.Money // the balance before the first line
	After    till.Money // and after the last
	Pages    *list.Pages
	CSV      string
	Print    string // the address that shows all lines, for printing
	Printing bool
	TooMany  bool // to print
	Head     []string
}

// walletLine is one line of a wallet, ready for people.
type walletLine struct {
	Sequence  int64
	At        till.Time
	Day, Time string
	What      string
	Credit    bool
	Amount    till.Money
	Balance   till.Money
	Path      string // of the payment or payout
	Statement string // where the line is, on other pages
	Reference string
	Method    string
	Receipt   string
}

// statement is GET /c/{client}/wallets/{currency}.
func (v *visit) statement() error {
	f, p := v.statementFilter(), &statementPage{Printing: v.R.URL.Query().Get("print") == "1", Head: shell.TextLines(v.Profile.ReceiptHead)}
	if f.Upto == 0 {
		f.Upto = v.Now
	}
	p.Filter, p.Again = f, v.R.URL.RequestURI()
	err := v.View(func(ctx context.Context, tx *store.Tx) error { return v.readStatement(ctx, tx, p) })
	if err != nil {
		return err
	}
	p.Frame = v.Frame(v.Words.T("statement.title", "currency", p.Currency), "menu.wallets")
	p.Pages = list.PagesOf(v.Visit, f, p.Total)
	if p.Printing {
		p.Pages = &list.Pages{}
		p.Modules, p.Styles = append(p.Modules, "counter.js"), append(p.Styles, "paper.css")
	}
	if v.May(people.Export) && p.Total > 0 {
		p.CSV = f.AddressAt(f.Base + "/statement.csv")
	}
	p.Print = f.Address("print", "1")
	v.statementChoices(p)
	return v.Page("statement", p)
}

// statementFilter reads the range and the type of lines of an address.
func (v *visit) statementFilter() *list.Filter {
	currency := v.R.PathValue("currency")
	return list.Read(v.Visit, v.ClientPath("/wallets/"+currency), strings.Fields(statementTypes))
}

// wallet reads the wallet of the path.
func (v *visit) wallet(ctx context.Context, tx *store.Tx) (*ledger.Wallet, error) {
	currency := v.R.PathValue("currency")
	if _, known := till.CurrencyDecimals(currency); !known {
		return nil, shell.ErrNoPage
	}
	w, err := tx.Wallet(ctx, v.Client.ID, currency)
	if err == nil && w == nil {
		return nil, shell.ErrNoPage
	}
	return w, err
}

// readStatement reads the lines, and the balances before and after them.
func (v *visit) readStatement(ctx context.Context, tx *store.Tx, p *statementPage) error {
	w, err := v.wallet(ctx, tx)
	if err != nil {
		return err
	}
	p.walletBox = v.walletBox(w)
	want := v.transactionFilter(p.Filter)
	page := store.Page{Limit: list.PageSize, Offset: (p.Filter.Page - 1) * list.PageSize}
	if p.Printing {
		page = store.Page{Limit: maxPrintLines, Ascending: true}
	}
	lines, total, err := tx.ListTransactions(ctx, v.Client.ID, want, page)
	if err != nil {
		return err
	}
	p.Total, p.TooMany = total, p.Printing && total > maxPrintLines
	p.Lines = v.walletLines(lines)
	if p.Before, err = v.balanceAt(ctx, tx, want.From-1); err != nil {
		return err
	}
	p.After, err = v.balanceAt(ctx, tx, want.To)
	return err
}

// transactionFilter returns the filter as the store takes it.
func (v *visit) transactionFilter(f *list.Filter) store.TransactionFilter {
	want := store.TransactionFilter{Type: f.State, Currency: v.R.PathValue("currency"), From: f.From, To: f.To}
	if upto := f.Upto; upto != 0 && (want.To == 0 || want.To > upto) {
		want.To = upto
	}
	return want
}

// balanceAt returns the balance after the last line up to a moment.
func (v *visit) balanceAt(ctx context.Context, tx *store.Tx, at till.Time) (till.Money, error) {
	m := till.Money{Currency: v.R.PathValue("currency")}
	if at <= 0 {
		return m, nil // before the first line
	}
	_, err := tx.EachTransaction(ctx, v.Client.ID, store.TransactionFilter{Currency: m.Currency, To: at}, till.ID{}, false, 1, func(t *ledger.Transaction) error {
		m.Minor = t.BalanceAfter
		return nil
	})
	return m, err
}

func (v *visit) walletLines(lines []*ledger.Transaction) []*walletLine {
	out := make([]*walletLine, len(lines))
	for i, t := range lines {
		l := &walletLine{Sequence: t.Sequence, At: t.CreatedAt, Time: v.Clock.Time(t.CreatedAt), What: v.entryName(t.Type), Credit: t.Direction == "credit", Amount: t.Amount,
			Balance: till.Money{Minor: t.BalanceAfter, Currency: t.Amount.Currency}, Reference: t.Reference, Receipt: t.ProviderReference}
		if t.Method != "" {
			l.Method = shell.MethodName(t.Method, "")
		}
		switch {
		case !t.PaymentID.IsZero() && !t.PayoutID.IsZero():
			l.Path = shell.PathOf(t.ClientID, "/refunds/"+t.PayoutID.String())
		case !t.PaymentID.IsZero():
			l.Path = shell.PathOf(t.ClientID, "/payments/"+t.PaymentID.String())
		case !t.PayoutID.IsZero():
			l.Path = shell.PathOf(t.ClientID, "/payouts/"+t.PayoutID.String())
		}
		if i == 0 || !v.Clock.SameDay(l.At, lines[i-1].CreatedAt) {
			l.Day = v.Clock.Day(l.At, v.Now)
		}
		out[i] = l
	}
	return out
}

// statementPath returns where a line is in the statement of its day.
func (v *visit) statementPath(t *ledger.Transaction) string {
	day := v.Clock.ISODay(t.CreatedAt)
	return shell.PathOf(t.ClientID, "/wallets/"+t.Amount.Currency+"?from="+day+"&to="+day) + "#l" + strconv.FormatInt(t.Sequence, 10)
}

// entryName returns the type of a line in words.
func (v *visit) entryName(kind string) string {
	if key := "entry." + kind; v.Words.Has(key) {
		return v.Words.T(key)
	}
	return kind
}

// Name returns what a line leads to.
func (l *walletLine) Name() string {
	if l.Reference != "" {
		return l.Reference
	}
	if l.Path != "" {
		return "…" + l.Path[len(l.Path)-8:]
	}
	return "—"
}

// Sign is in front of an amount: + or −.
func (l *walletLine) Sign() string {
	if l.Credit {
		return "+"
	}
	return "\u2212"
}

// statementChoices fills in the links of the filters.
func (v *visit) statementChoices(p *statementPage) {
	t, f := v.Words.T, p.Filter
	p.Type = t("statement.every")
	p.Range = list.PickRange(v.Visit, p.Frame, f, f.Kept(), f.Address)
	for i := range offeredMonths {
		from := v.Clock.StartOfMonth(v.Now, -i)
		first, last := v.Clock.ISODay(from), v.Clock.ISODay(v.Clock.StartOfMonth(v.Now, 1-i)-1)
		name := v.Clock.Month(from) + " " + strconv.Itoa(v.Clock.In(from).Year())
		current := f.FromDay == first && f.ToDay == last
		if p.Range.Months = append(p.Range.Months, shell.Choice{Text: name, Path: f.Address("range", "", "from", first, "to", last), Current: current}); current {
			p.Range.Word = name
		}
	}
	p.Types = append(p.Types, shell.Choice{Text: t("statement.every"), Path: f.Address("state", ""), Current: f.State == ""})
	for name := range strings.FieldsSeq(statementTypes) {
		p.Types = append(p.Types, shell.Choice{Text: v.entryName(name), Path: f.Address("state", name), Current: f.State == name})
	}
	if i := slices.IndexFunc(p.Types, func(c shell.Choice) bool { return c.Current }); i > 0 {
		p.Type = p.Types[i].Text
	}
}

// Span returns the ends of the range, in whole words for print.
func (p *statementPage) Span() string {
	to := p.Filter.Upto
	if p.Filter.To != 0 && p.Filter.To < to {
		to = p.Filter.To
	}
	if p.Filter.From == 0 {
		return p.T("list.until", "to", p.Clock.DateTime(to), "zone", p.Clock.Offset(p.Now))
	}
	return p.T("list.span", "from", p.Clock.DateTime(p.Filter.From), "to", p.Clock.DateTime(to), "zone", p.Clock.Offset(p.Now))
}

// Plain returns an amount with its currency, signed as it is.
func (p *statementPage) Plain(m till.Money) string { return look.Money(p.Lang(), m) }
