package money

import (
	"context"

	"till/console/list"
	"till/console/look"
	"till/console/shell"
	"till/console/subject"
	"till/people"
	"till/store"
)

// paymentsCSV is GET /c/{client}/payments.csv: what the list shows, all pages.
func (v *visit) paymentsCSV() error {
	return v.listCSV("payments", v.paymentFilter(), v.listPayments, false)
}

// payoutsCSV is GET /c/{client}/payouts.csv.
func (v *visit) payoutsCSV() error {
	return v.listCSV("payouts", v.payoutFilter(), v.listPayouts, false)
}

// refundsCSV is GET /c/{client}/refunds.csv.
func (v *visit) refundsCSV() error {
	return v.listCSV("refunds", v.refundFilter(), v.listRefunds, false)
}

// listCSV writes what a list shows as a table. Phones are masked, unless they are
// asked for whole.
func (v *visit) listCSV(kind string, f *list.Filter, read reader, whole bool) error {
	if !v.May(people.Export) {
		return &people.Refusal{Code: people.NotAllowed, Need: people.Export}
	}
	return list.Answer(v.Visit, kind, func() ([][]string, string, error) {
		var lines []*subject.Line
		err := v.View(func(ctx context.Context, tx *store.Tx) (err error) {
			lines, err = v.readAllLines(ctx, tx, kind, f, read)
			return err
		})
		table := [][]string{{"id", "created_utc", "created_local", "zone", "state", "amount", "currency", kind[:len(kind)-1] + "_phone", "method", "reference", "receipt"}}
		for _, l := range lines {
			table = append(table, v.csvRow(l, whole))
		}
		phones := map[bool]string{true: "whole", false: "masked"}[whole]
		return table, look.Count(look.English, int64(len(lines))) + " rows, phones " + phones, err
	})
}

// readAllLines reads all pages of a list.
func (v *visit) readAllLines(ctx context.Context, tx *store.Tx, kind string, f *list.Filter, read reader) (all []*subject.Line, err error) {
	if f.Examine {
		cases, err := subject.OpenCases(v.Visit, ctx, tx)
		if err != nil {
			return nil, err
		}
		return v.examinedLines(ctx, tx, kind, subject.Examined(v.Visit, cases, kind))
	}
	want := f.Payments()
	if want.To == 0 || want.To > v.Now {
		want.To = v.Now
	}
	switch long, err := tooMany(ctx, tx, want, read); {
	case err != nil:
		return nil, err
	case long:
		return nil, shell.ErrLongCSV
	}
	most := int64(list.MaxRows)
	if f.State == subject.OpenState {
		most = maxOpenRead
	}
	for {
		lines, total, err := read(ctx, tx, want, store.Page{Limit: list.Slice, Offset: len(all)})
		if err != nil {
			return nil, err
		}
		if total > most {
			return nil, shell.ErrLongCSV
		}
		if all = append(all, lines...); len(lines) < list.Slice {
			return all, nil
		}
	}
}

func (v *visit) csvRow(l *subject.Line, whole bool) []string {
	phone := l.Phone
	if whole {
		phone = l.Whole
	}
	return []string{l.ID, l.At.String(), v.Clock.Local(l.At), v.Clock.Zone.String(), l.State.Text, list.PlainAmount(l.Amount), l.Amount.Currency, phone, l.Method, l.Reference, l.Receipt}
}
