package console

import (
	"context"
	"net/http"
	"strings"
	"sync"

	"till"
	"till/books"
	"till/console/look"
	"till/people"
	"till/store"
)

// Limits of a table for spreadsheets. It is read from one snapshot into memory,
// so that a slow line holds no reader of the database.
const (
	maxCSVRows = 50_000
	csvSlice   = 500
	maxCSVs    = 2 // made at once on this instance
)

var csvSlots = make(chan struct{}, maxCSVs)

// takeCSVSlot lets one more table be made, until release is called: before it is
// written to a browser, which may read slowly.
func takeCSVSlot() (release func(), err error) {
	select {
	case csvSlots <- struct{}{}:
		return sync.OnceFunc(func() { <-csvSlots }), nil
	default:
		return nil, errAway
	}
}

// paymentsCSV is GET /c/{client}/payments.csv: what the list shows, all pages.
func (v *visit) paymentsCSV() error {
	return v.listCSV("payments", v.paymentFilter(), v.listPayments, false)
}

// payoutsCSV is GET /c/{client}/payouts.csv.
func (v *visit) payoutsCSV() error {
	return v.listCSV("payouts", v.payoutFilter(), v.listPayouts, false)
}

// listCSV writes what a list shows as a table. Phones are masked, unless they are
// asked for whole.
func (v *visit) listCSV(kind string, f *filter, read reader, whole bool) error {
	if !v.may(people.Export) {
		return &people.Refusal{Code: people.NotAllowed, Need: people.Export}
	}
	leave, err := v.enterTable()
	if err != nil {
		return err
	}
	defer leave()
	release, err := takeCSVSlot()
	if err != nil {
		return err
	}
	defer release()
	table := [][]string{{"id", "created_utc", "created_local", "zone", "state", "amount", "currency", kind[:len(kind)-1] + "_phone", "method", "reference", "receipt"}}
	var lines []*Line
	err = v.view(func(ctx context.Context, tx *store.Tx) (err error) {
		lines, err = v.readAllLines(ctx, tx, kind, f, read)
		return err
	})
	if err != nil {
		return err
	}
	phones := map[bool]string{true: "whole", false: "masked"}[whole]
	for _, l := range lines {
		table = append(table, v.csvRow(l, whole))
	}
	if err := v.k.People.NoteAct(v.r.Context(), v.session, v.client, people.Act{Action: "export." + kind, Detail: look.Count(look.English, int64(len(lines))) + " rows, phones " + phones}); err != nil {
		return err
	}
	release() // whoever reads slowly must not hold it
	return v.writeCSV(kind, table)
}

// readAllLines reads all pages of a list.
func (v *visit) readAllLines(ctx context.Context, tx *store.Tx, kind string, f *filter, read reader) (all []*Line, err error) {
	if f.Examine {
		cases, err := v.openCases(ctx, tx)
		if err != nil {
			return nil, err
		}
		return v.examinedLines(ctx, tx, kind, v.examined(cases, kind == "payouts"))
	}
	want := f.store()
	if want.To == 0 || want.To > v.now {
		want.To = v.now
	}
	switch long, err := tooMany(ctx, tx, want, read); {
	case err != nil:
		return nil, err
	case long:
		return nil, errLongCSV
	}
	most := int64(maxCSVRows)
	if f.State == openState {
		most = maxOpenRead
	}
	for {
		lines, total, err := read(ctx, tx, want, store.Page{Limit: csvSlice, Offset: len(all)})
		if err != nil {
			return nil, err
		}
		if total > most {
			return nil, errLongCSV
		}
		if all = append(all, lines...); len(lines) < csvSlice {
			return all, nil
		}
	}
}

func (v *visit) csvRow(l *Line, whole bool) []string {
	phone := l.Phone
	if whole {
		phone = l.phone
	}
	return []string{l.ID, l.At.String(), v.clock.Local(l.At), v.clock.Zone.String(), l.State.Text, plainAmount(l.Amount), l.Amount.Currency, phone, l.Method, l.Reference, l.Receipt}
}

// plainAmount returns an amount in major units with a point, as programs read
// it.
func plainAmount(m till.Money) string {
	return strings.ReplaceAll(look.Amount(look.English, m), ",", "")
}

// forExcel, as "for" in an address or a form, asks for a table that Excel opens.
const forExcel = "excel"

// Excel returns the address of a table as Excel opens it.
func (f *Frame) Excel(table string) string {
	mark := "?"
	if strings.Contains(table, "?") {
		mark = "&"
	}
	return table + mark + "for=" + forExcel
}

// writeCSV answers with a table: "," or, for Excel, ";" with a byte mark.
func (v *visit) writeCSV(name string, rows [][]string) error {
	var b []byte
	comma := byte(',')
	if v.r.Form.Get("for") == forExcel {
		b = append(b, "\ufeff"...)
		comma = ';'
	}
	for _, row := range rows {
		b = appendRow(b, comma, row)
	}
	v.w.Header().Set("Content-Disposition", `attachment; filename="`+name+"-"+v.clock.ISODay(v.now)+`.csv"`)
	v.write(http.StatusOK, "text/csv; charset=utf-8", b)
	return nil
}

// appendRow writes a line of a table. Each cell is guarded and has quotes around
// it, because spreadsheets split and run what others chose.
func appendRow(b []byte, comma byte, row []string) []byte {
	for i, cell := range row {
		if i > 0 {
			b = append(b, comma)
		}
		b = append(b, '"')
		b = append(b, strings.ReplaceAll(books.Guard(cell), `"`, `""`)...)
		b = append(b, '"')
	}
	return append(b, "\r\n"...)
}
