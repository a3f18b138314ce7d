package figures

import (
	"cmp"
	"context"
	"slices"
	"time"

	"till"
	"till/books"
	"till/console/chart"
	"till/console/look"
	"till/console/shell"
	"till/console/subject"
	"till/people"
	"till/store"
)

// maxReasonRows is how many payments that failed or expired are looked through for
// their reasons, of each the newest.
const maxReasonRows = 2000

// figuresPage has what home has no room for: how payments ended by day and by
// method, how long approvals took, why payments failed, what moved by method.
type figuresPage struct {
	*shell.Frame
	*figures
	Home    string
	Ends    endsChart
	Methods []methodShare
	Times   shell.Block // the histogram
	TimeRow []shareRow
	Reasons []shareRow
	Sample  bool // there are more than were looked through
	Flows   []flowRow
}

// endsChart is how the payments of each slot ended.
type endsChart struct {
	Chart  shell.Block
	Legend []seriesRow
	Table  []slotRow
}

// methodShare is how the payments of a method ended.
type methodShare struct {
	Name, Note, Share string
}

// shareRow is a part of a whole.
type shareRow struct {
	Name  string
	N     int64
	Share string
}

// flowRow is what moved by a method.
type flowRow struct {
	Name               string
	In, Fee, Out, Back till.Money
	Refunded           till.Money
	WithBack           bool
	WithRefunds        bool
}

// ending is a state of payments: the key of its word, and the statuses.
type ending struct {
	key string
	is  func(till.Status) bool
}

// endings are in the order of the chart.
var endings = []ending{
	{"state.success", func(s till.Status) bool { return s == till.Success }},
	{"state.failed", func(s till.Status) bool { return s == till.Failed }},
	{"state.expired", func(s till.Status) bool { return s == till.Expired }},
	{"state.open", func(s till.Status) bool { return !s.Final() }},
}

// moreFigures is GET /c/{client}/figures.
func (v *visit) moreFigures() error {
	p := &figuresPage{Frame: v.Frame(v.Words.T("figures.title"), "menu.home")}
	p.figures = v.readRange(v.ClientPath("/figures"))
	p.Until = p.until(v)
	p.links(v, "")
	scope := store.Scope{Client: v.Client.ID, Mode: v.Client.Mode}
	from, to := store.HourOf(p.From), store.HourOf(p.end())
	err := v.View(func(ctx context.Context, tx *store.Tx) error {
		counts, err := tx.Sums(ctx, v.Client.ID, store.CountedPayments, from, to)
		if err != nil {
			return err
		}
		v.drawEnds(p, counts)
		var sums []store.HourSum
		for _, nouns := range [][2]string{{store.SumApproval, store.SumFee}, {store.SumIn, store.SumOut}, {store.SumBack, store.SumRefunded}} {
			some, err := tx.Totals(ctx, scope, nouns, from, to)
			if err != nil {
				return err
			}
			sums = append(sums, some...)
		}
		p.addApproval(v, sums)
		v.drawTimes(p, sums)
		if v.May(people.WalletsSee) {
			v.addFlows(p, sums)
		}
		return v.readReasons(ctx, tx, p)
	})
	if err != nil {
		return err
	}
	p.Home = p.pathOf(v.ClientPath("/home"))
	return v.Page("figures", p)
}

// drawEnds counts payments by state, by slot and by method. A payment counts in the
// hour in which it was made.
func (v *visit) drawEnds(p *figuresPage, counts []store.HourSum) {
	f, all := p.figures, int64(0)
	series := make([][]int64, len(endings))
	whole := make([]int64, len(endings))
	by := map[string][]int64{}
	for i := range series {
		series[i] = make([]int64, len(f.slots))
	}
	for _, s := range counts {
		i := slices.IndexFunc(endings, func(e ending) bool { return e.is(till.Status(s.B)) })
		if by[s.A] == nil {
			by[s.A] = make([]int64, len(endings))
		}
		series[i][f.slotOf(s.Hour)] += s.N
		by[s.A][i] += s.N
		whole[i] += s.N
		all += s.N
	}
	if all == 0 {
		return
	}
	count := func(n int64) string { return look.Count(f.lang, n) }
	c := &chart.Chart{ID: "ends", Title: v.Words.T("figures.ends_sum", "n", all, "range", f.heading(v.Words.T)), Width: 624, Height: 276, Label: count, Now: f.nowSlot()}
	for i, e := range endings {
		name := v.Words.T(e.key)
		c.Series = append(c.Series, chart.Series{Name: name, Values: series[i]})
		p.Ends.Legend = append(p.Ends.Legend, seriesRow{i + 1, name, count(whole[i]), share(whole[i], all)})
	}
	for i := range f.slots {
		c.Slots = append(c.Slots, f.slotLabel(v, i))
		row, sum := slotRow{Name: f.slotName(i)}, int64(0)
		for k := range endings {
			row.Values = append(row.Values, count(series[k][i]))
			sum += series[k][i]
		}
		if row.Total = count(sum); sum > 0 {
			p.Ends.Table = append(p.Ends.Table, row)
		}
	}
	c.Value = func(i int) string {
		text := f.slotName(i)
		for k, e := range endings {
			if n := series[k][i]; n > 0 {
				text += "\n" + v.Words.T(e.key) + " " + count(n)
			}
		}
		return text
	}
	p.Ends.Chart = c.Stacked()
	v.addShares(p, by)
}

// addShares says how the payments of each method ended, the busiest first.
func (v *visit) addShares(p *figuresPage, by map[string][]int64) {
	type counted struct {
		method                 string
		all, paid, ended, open int64
	}
	var rows []counted
	for m, n := range by {
		r := counted{method: m, paid: n[0], ended: n[0] + n[1] + n[2], open: n[3]}
		if r.all = r.ended + r.open; r.all > 0 {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b counted) int { return cmp.Or(-cmp.Compare(a.all, b.all), cmp.Compare(a.method, b.method)) })
	for _, r := range rows {
		row := methodShare{Name: shell.MethodName(r.method, ""), Note: v.Words.T("figures.method_note", "paid", p.Count(r.paid), "ended", p.Count(r.ended), "open", p.Count(r.open)), Share: "—"}
		if r.ended > 0 {
			row.Share = look.Percent(r.paid, r.ended)
		}
		p.Methods = append(p.Methods, row)
	}
}

// drawTimes draws how long approvals took.
func (v *visit) drawTimes(p *figuresPage, sums []store.HourSum) {
	f, all := p.figures, int64(0)
	by := map[string]int64{}
	for _, s := range sums {
		if s.Noun == store.SumApproval {
			by[s.B] += s.N
			all += s.N
		}
	}
	if all == 0 {
		return
	}
	c := &chart.Chart{ID: "times", Title: v.Words.T("figures.times_sum", "n", all), Now: -1, Width: 288, Height: 276, Whole: true, Label: func(n int64) string { return look.Count(f.lang, n) }}
	values := make([]int64, len(store.ApprovalBuckets))
	for i, b := range store.ApprovalBuckets {
		name := v.Words.T("figures.longer")
		if b.Seconds > 0 {
			name = look.Span(f.lang, time.Duration(b.Seconds)*time.Second)
		}
		values[i] = by[b.Name]
		c.Slots = append(c.Slots, name)
		p.TimeRow = append(p.TimeRow, shareRow{name, values[i], share(values[i], all)})
	}
	c.Series = []chart.Series{{Name: c.Title, Values: values}}
	c.Value = func(i int) string { return c.Slots[i] + ": " + c.Label(values[i]) }
	p.Times = c.Stacked()
}

// addFlows says what moved, by method.
func (v *visit) addFlows(p *figuresPage, sums []store.HourSum) {
	for _, f := range books.Flows(sums) {
		money := func(n int64) till.Money { return till.Money{Minor: n, Currency: f.Currency} }
		p.Flows = append(p.Flows, flowRow{Name: shell.MethodName(f.Method, ""), In: money(f.In.Sum), Fee: money(f.Fee.Sum), Out: money(f.Out.Sum), Back: money(f.Back.Sum), WithBack: f.Back.N > 0,
			Refunded: money(f.Refunded.Sum), WithRefunds: f.Refunded.N > 0})
	}
}

// readReasons counts why payments failed or expired.
func (v *visit) readReasons(ctx context.Context, tx *store.Tx, p *figuresPage) error {
	by, looked := map[till.FailureReason]int64{}, int64(0)
	for _, status := range []till.Status{till.Failed, till.Expired} {
		want := store.PaymentFilter{Status: status, From: max(p.From, v.Earliest()), To: p.end()}
		rows, total, err := tx.ListPayments(ctx, v.Client.ID, want, store.Page{Limit: maxReasonRows})
		if err != nil {
			return err
		}
		p.Sample = p.Sample || total > int64(len(rows))
		for _, r := range rows {
			by[r.FailureReason]++
			looked++
		}
	}
	for reason, n := range by {
		p.Reasons = append(p.Reasons, shareRow{subject.Reason(v.Visit, reason), n, share(n, looked)})
	}
	slices.SortFunc(p.Reasons, func(a, b shareRow) int { return cmp.Or(-cmp.Compare(a.N, b.N), cmp.Compare(a.Name, b.Name)) })
	return nil
}
