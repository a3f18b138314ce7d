package figures

import (
	"context"
	"strconv"

	"till"
	"till/console/chart"
	"till/console/look"
	"till/console/shell"
	"till/people"
	"till/store"
)

// balanceDays is how many days the line of a wallet goes back.
const balanceDays = 30

// balanceLine is what a wallet held at the end of each day.
type balanceLine struct {
	*shell.Frame
	Currency  string
	Summary   string
	Chart     shell.Block
	Table     []balanceRow
	Statement string
	CSV       string // "": not for this person
}

type balanceRow struct{ Day, Balance string }

// readBalances reads the line of the leading wallet. It is outside the region that
// is fetched again: days that are over do not change.
func (v *visit) readBalances(ctx context.Context, tx *store.Tx, p *homePage) error {
	if len(p.Wallets) == 0 || v.R.Header.Get("Till-Region") != "" {
		return nil
	}
	currency := p.Wallets[0].Currency
	var ends []till.Time
	for i := balanceDays - 1; i >= 0; i-- {
		ends = append(ends, min(v.Clock.StartOfDay(v.Now, 1-i), v.Now+1))
	}
	balances, err := tx.BalancesBefore(ctx, v.Client.ID, currency, ends)
	if err != nil || len(balances) == 0 {
		return err
	}
	p.Line = v.balanceLine(p, currency, ends, balances)
	return nil
}

func (v *visit) balanceLine(p *homePage, currency string, ends []till.Time, balances []int64) *balanceLine {
	lang := v.Words.Lang()
	amount := func(n int64) string { return look.Amount(lang, till.Money{Minor: n, Currency: currency}) }
	l := &balanceLine{Frame: p.Frame, Currency: currency}
	c := &chart.Chart{ID: "purse", Now: len(ends) - 1, Width: 960, Height: 160, Label: amount, Series: []chart.Series{{Name: currency, Values: balances}}}
	for i, end := range ends {
		day := v.Clock.ShortDate(end - 1)
		l.Table = append(l.Table, balanceRow{day, amount(balances[i])})
		c.Slots = append(c.Slots, strconv.Itoa(v.Clock.In(end-1).Day()))
	}
	c.Value = func(i int) string { return l.Table[i].Day + ": " + l.Table[i].Balance + " " + currency }
	first, last := l.Table[0], l.Table[len(l.Table)-1]
	l.Summary = v.Words.T("home.line_sum", "currency", currency, "from", first.Day, "first", first.Balance, "last", last.Balance)
	c.Title = l.Summary
	l.Chart = c.Lines()
	days := "?from=" + v.Clock.ISODay(ends[0]-1) + "&to=" + v.Clock.ISODay(v.Now)
	l.Statement = v.ClientPath("/wallets/"+currency) + days
	if v.May(people.Export) {
		l.CSV = v.ClientPath("/wallets/"+currency+"/statement.csv") + days
	}
	return l
}
