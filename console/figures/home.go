package figures

import (
	"context"
	"slices"
	"strconv"
	"time"

	"till"
	"till/books"
	"till/console/list"
	"till/console/shell"
	"till/console/subject"
	"till/engine"
	"till/people"
	"till/store"
	"till/store/webhooks"
	"till/webhook"
)

// homePage is a merchant's first page.
type homePage struct {
	*shell.Frame
	*figures
	Region string // the address of the region, as the page was asked for

	Open      []openRow
	OpenAll   int64
	OpenMore  bool  // there are more than were counted
	Older     int64 // of them, older than five minutes
	OpenPath  string
	Wallets   []walletRow
	WalletsAt string // the page of wallets; "": not for this person
	Waiting   []waitingRow
	Operators []operatorRow
	Never     bool // there was no payment yet
	todoList       // until the first payment is paid
	Line      *balanceLine
	Curl      string
	Sandbox   string
	Collect   string
}

type openRow struct {
	shell.Chip
	N int64
}

type walletRow struct {
	Currency                  string
	Available, Reserved, Owed till.Money
}

type waitingRow struct{ Icon, Tone, Text, Note, Path string }

type operatorRow struct {
	Name string
	shell.Chip
	Note string
}

// openFor is how long a payment may be open before the page says so.
const openFor = 5 * time.Minute

// home is GET /c/{client}/home.
func (v *visit) home() error {
	p := &homePage{Frame: v.Frame(v.Words.T("menu.home"), "menu.home")}
	var methods []string
	err := v.View(func(ctx context.Context, tx *store.Tx) (err error) {
		scope := store.Scope{Client: v.Client.ID, Mode: v.Client.Mode}
		if p.figures, err = v.readFigures(ctx, tx, scope, v.ClientPath("/home"), v.ClientPath("/payments")); err != nil {
			return err
		}
		if err := v.readOpen(ctx, tx, p); err != nil {
			return err
		}
		if v.May(people.WalletsSee) {
			if err := v.readWallets(ctx, tx, p); err != nil {
				return err
			}
		}
		if err := v.readWaiting(ctx, tx, p); err != nil {
			return err
		}
		if err := v.readBalances(ctx, tx, p); err != nil {
			return err
		}
		if methods, err = tx.ClientMethods(ctx, v.Client.ID); err != nil {
			return err
		}
		return v.readGuide(ctx, tx, p)
	})
	if err != nil {
		return err
	}
	p.Title = p.heading(v.Words.T)
	p.Region = p.path()
	if v.May(people.Export) && len(p.Series) > 0 {
		p.CSV = p.pathOf(v.ClientPath("/home.csv"))
	}
	p.More = p.pathOf(v.ClientPath("/figures"))
	p.Operators = v.operators(methods)
	p.Curl = subject.Curl(v.Visit, "mtn_momo", "CG", "242061234567", till.Money{Minor: 5000, Currency: "XAF"})
	if p.Test && v.May(people.SandboxUse) {
		p.Sandbox = v.ClientPath("/sandbox")
	}
	if v.May(people.Collect) {
		p.Collect = v.ClientPath("/collect")
	}
	return v.Page("home", p)
}

// readOpen reads what is open now, by where it is.
func (v *visit) readOpen(ctx context.Context, tx *store.Tx, p *homePage) error {
	open, err := tx.OpenPayments(ctx, v.Client.ID, v.Now.Add(-openFor))
	if err != nil {
		return err
	}
	p.OpenPath = v.ClientPath("/payments") + "?range=all&state=" + subject.OpenState
	for _, where := range []struct{ name, tone, icon string }{{"phone", "processing", "phone"}, {"asked", "pending", "clock"}, {"unsent", "pending", "clock"}} {
		row := openRow{Chip: shell.Chip{Tone: where.tone, Icon: where.icon, Text: v.Words.T("home.open_" + where.name)}}
		for _, o := range open {
			if o.Where == where.name {
				row.N += o.N
				p.OpenAll += o.N
				p.Older += o.Older
			}
		}
		if row.N > 0 || where.name == "phone" {
			p.Open = append(p.Open, row)
		}
	}
	p.OpenMore = p.OpenAll >= store.MaxOpenOfClient
	return nil
}

func (v *visit) readWallets(ctx context.Context, tx *store.Tx, p *homePage) error {
	wallets, err := tx.UsedWallets(ctx, v.Client.ID)
	for _, w := range wallets {
		money := func(n int64) till.Money { return till.Money{Minor: n, Currency: w.Currency} }
		p.Wallets = append(p.Wallets, walletRow{w.Currency, money(w.Available()), money(w.Reserved), money(w.Owed)})
	}
	slices.SortStableFunc(p.Wallets, func(a, b walletRow) int {
		if a.Currency == p.Currency && b.Currency != p.Currency {
			return -1
		}
		return 0
	})
	p.WalletsAt = v.ClientPath("/wallets")
	return err
}

// readWaiting reads what needs somebody: payments with a case, webhooks that do
// not arrive.
func (v *visit) readWaiting(ctx context.Context, tx *store.Tx, p *homePage) error {
	cases, err := subject.OpenCases(v.Visit, ctx, tx)
	if err != nil {
		return err
	}
	for _, kind := range []string{"payments", "payouts", "refunds"} {
		n := len(subject.Examined(v.Visit, cases, kind))
		if n > 0 && (kind != "payouts" || v.May(people.WalletsSee)) {
			p.Waiting = append(p.Waiting, waitingRow{"gem", "examine", v.Words.T("home.examine_"+kind, "n", n), v.Words.T("home.examine_note"), v.ClientPath("/"+kind) + "?examine=1"})
		}
	}
	if err := v.pagesWaiting(ctx, tx, p, cases); err != nil || !v.May(people.WebhooksSee) {
		return err
	}
	endpoints, err := webhooks.Endpoints(ctx, tx, v.Client.ID, webhook.MaxEndpoints)
	for _, e := range endpoints {
		row := waitingRow{Icon: "warn", Tone: "failed", Note: v.Words.T("home.hook_note", "host", subject.HostOf(e.URL), "n", e.Backlog)}
		switch {
		case !e.Enabled && e.DisableReason != till.DisabledByClient:
			row.Text = v.Words.T("home.hook_off", "at", v.Clock.Moment(e.DisabledAt, v.Now))
		case e.Enabled && !e.FailingSince.IsZero():
			row.Text = v.Words.T("home.hook_fails", "at", v.Clock.Moment(e.FailingSince, v.Now))
		default:
			continue
		}
		row.Path = v.ClientPath("/webhooks")
		p.Waiting = append(p.Waiting, row)
	}
	return err
}

// operators returns how the merchant's methods do.
func (v *visit) operators(methods []string) (out []operatorRow) {
	for _, m := range till.Methods() {
		if v.Client.Mode != till.Test && !slices.Contains(methods, m.Code) || v.Console.Collector == nil {
			continue
		}
		o := v.Console.Collector.Offer(v.Client, m)
		if !o.Any() {
			continue
		}
		row := operatorRow{Name: m.Name, Chip: v.healthChip(o.Status)}
		if !o.Since.IsZero() {
			row.Note = v.Words.T("house.since", "at", v.Clock.Moment(o.Since, v.Now))
		}
		out = append(out, row)
	}
	return out
}

func (v *visit) healthChip(s engine.Status) shell.Chip {
	switch s {
	case engine.Closed:
		return shell.Chip{Tone: "failed", Icon: "cross", Text: v.Words.T("health.closed")}
	case engine.Degraded:
		return shell.Chip{Tone: "pending", Icon: "warn", Text: v.Words.T("health.degraded")}
	}
	return shell.Chip{Tone: "paid", Icon: "check", Text: v.Words.T("health.operational")}
}

// homeCSV is GET /c/{client}/home.csv: what the chart shows, by method, with what
// went out, the fees and what went back.
func (v *visit) homeCSV() error {
	var f *figures
	var sums []store.HourSum
	err := v.View(func(ctx context.Context, tx *store.Tx) (err error) {
		scope := store.Scope{Client: v.Client.ID, Mode: v.Client.Mode}
		if f, err = v.readFigures(ctx, tx, scope, v.ClientPath("/home"), ""); err != nil {
			return err
		}
		sums, err = tx.ScopeSums(ctx, scope, []string{store.SumIn, store.SumBack, store.SumOut, store.SumFee, store.SumRefunded}, store.HourOf(f.From), store.HourOf(f.end()))
		return err
	})
	if err != nil {
		return err
	}
	rows := [][]string{{"from_utc", "from_local", "zone", "method", "currency", "collections", "collected", "taken_back", "payouts", "paid_out", "fees", "refunds", "refunded"}}
	for i, start := range f.slots {
		for _, flow := range books.Flows(f.within(sums, i)) {
			amount := func(n int64) string { return list.PlainAmount(till.Money{Minor: n, Currency: flow.Currency}) }
			rows = append(rows, []string{start.String(), v.Clock.Local(start), v.Clock.Zone.String(), flow.Method, flow.Currency, strconv.FormatInt(flow.In.N, 10), amount(flow.In.Sum),
				amount(flow.Back.Sum), strconv.FormatInt(flow.Out.N, 10), amount(flow.Out.Sum), amount(flow.Fee.Sum),
				strconv.FormatInt(flow.Refunded.N, 10), amount(flow.Refunded.Sum)})
		}
	}
	return list.WriteTable(v.Visit, "collected", rows)
}
