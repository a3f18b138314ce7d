package figures

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"till"
	"till/console/chart"
	"till/console/look"
	"till/console/shell"
	"till/store"
)

// draw makes the chart and its table.
func (f *figures) draw(v *visit, sums []store.HourSum) {
	by := map[string][]int64{}
	whole := map[string]int64{}
	for _, s := range sums {
		if s.B != f.Currency {
			continue
		}
		if by[s.A] == nil {
			by[s.A] = make([]int64, len(f.slots))
		}
		by[s.A][f.slotOf(s.Hour)] += s.Sum.Sum
		whole[s.A] += s.Sum.Sum
	}
	var methods []string
	for m := range by {
		methods = append(methods, m)
	}
	slices.SortFunc(methods, func(a, b string) int { return cmp.Or(-cmp.Compare(whole[a], whole[b]), cmp.Compare(a, b)) })
	methods = methods[:min(len(methods), chart.MaxSeries)]
	amount := func(n int64) string { return look.Amount(f.lang, till.Money{Minor: n, Currency: f.Currency}) }
	c := &chart.Chart{ID: "in", Width: 624, Height: 276, Label: amount}
	for i, m := range methods {
		c.Series = append(c.Series, chart.Series{Name: shell.MethodName(m, ""), Values: by[m]})
		f.Series = append(f.Series, seriesRow{i + 1, shell.MethodName(m, ""), amount(whole[m]), share(whole[m], f.Collected.Minor)})
	}
	c.Now = f.nowSlot()
	for i := range f.slots {
		c.Slots = append(c.Slots, f.slotLabel(v, i))
		row := slotRow{Name: f.slotName(i)}
		var sum int64
		for _, m := range methods {
			row.Values = append(row.Values, amount(by[m][i]))
			sum += by[m][i]
		}
		if row.Total = amount(sum); sum > 0 {
			f.Table = append(f.Table, row)
		}
	}
	c.Value = func(i int) string { return f.slotValue(i, methods, by, amount) }
	key := "home.chart_days"
	if f.byHour {
		key = "home.chart_hours"
	}
	f.Unit = f.Currency
	f.Summary = v.Words.T(key+"_sum", "amount", look.Money(f.lang, f.Collected), "range", f.heading(v.Words.T))
	c.Title = f.Summary
	if len(f.Series) > 0 {
		f.Chart = c.Stacked()
	}
}

// nowSlot returns the slot that is not over, -1 if there is none.
func (f *figures) nowSlot() int {
	return slices.IndexFunc(f.slots, func(at till.Time) bool {
		return f.clock.SameDay(at, f.now) && (!f.byHour || f.clock.In(at).Hour() == f.clock.In(f.now).Hour())
	})
}

// share is look.Percent to the nearest hundredth.
func share(part, whole int64) string {
	if part < 1<<50 {
		part += whole / 200
	}
	return look.Percent(min(part, whole), whole)
}

// slotLabel is the text below a bar, slotName its whole name.
func (f *figures) slotLabel(v *visit, i int) string {
	at := f.slots[i]
	switch {
	case f.byHour:
		return strconv.Itoa(f.clock.In(at).Hour())
	case f.clock.SameDay(at, f.now):
		return v.Words.T("home.range_today")
	}
	return strconv.Itoa(f.clock.In(at).Day())
}

func (f *figures) slotName(i int) string {
	if at := f.slots[i]; f.byHour {
		return f.clock.Minute(at) + " – " + f.clock.Minute(at.Add(time.Hour))
	}
	return f.clock.ShortDate(f.slots[i])
}

func (f *figures) slotValue(i int, methods []string, by map[string][]int64, amount func(int64) string) string {
	var sum int64
	lines := ""
	for _, m := range methods {
		if n := by[m][i]; n != 0 {
			sum += n
			lines += "\n" + shell.MethodName(m, "") + " " + amount(n)
		}
	}
	return f.slotName(i) + ": " + amount(sum) + " " + f.Currency + lines
}
