package list

import (
	"net/http"
	"strings"
	"sync"

	"till"
	"till/books"
	"till/console/look"
	"till/console/shell"
	"till/people"
)

// Limits of a table for spreadsheets. It is read from one snapshot into memory,
// so that a slow line holds no reader of the database.
const (
	MaxRows   = 50_000
	Slice     = 500
	MaxAtOnce = 2 // made at once on this instance
)

var csvSlots = make(chan struct{}, MaxAtOnce)

// TakeSlot lets one more table be made, until release is called: before it is
// written to a browser, which may read slowly.
func TakeSlot() (release func(), err error) {
	select {
	case csvSlots <- struct{}{}:
		return sync.OnceFunc(func() { <-csvSlots }), nil
	default:
		return nil, shell.ErrAway
	}
}

// Answer answers with a table that read makes: one of a person at a time, and few at once
// on this instance. The log says what was taken.
func Answer(v *shell.Visit, name string, read func() (rows [][]string, taken string, err error)) error {
	leave, err := v.EnterTable()
	if err != nil {
		return err
	}
	defer leave()
	release, err := TakeSlot()
	if err != nil {
		return err
	}
	defer release()
	rows, taken, err := read()
	if err != nil {
		return err
	}
	if err := v.Console.People.NoteAct(v.R.Context(), v.Session, v.Client, people.Act{Action: "export." + name, Detail: taken}); err != nil {
		return err
	}
	release() // a slow reader must not hold it
	return WriteTable(v, name, rows)
}

// PlainAmount returns an amount in major units with a point, as programs read
// it.
func PlainAmount(m till.Money) string {
	return strings.ReplaceAll(look.Amount(look.English, m), ",", "")
}

// WriteTable answers with a table: "," or, for Excel, ";" with a byte mark.
func WriteTable(v *shell.Visit, name string, rows [][]string) error {
	var b []byte
	comma := byte(',')
	if v.R.Form.Get("for") == shell.ForExcel {
		b = append(b, "\ufeff"...)
		comma = ';'
	}
	for _, row := range rows {
		b = AppendRow(b, comma, row)
	}
	v.W.Header().Set("Content-Disposition", `attachment; filename="`+name+"-"+v.Clock.ISODay(v.Now)+`.csv"`)
	v.Answer(http.StatusOK, "text/csv; charset=utf-8", b)
	return nil
}

// AppendRow writes a line of a table. Each cell is guarded and has quotes around
// it, because spreadsheets split and run what others chose.
func AppendRow(b []byte, comma byte, row []string) []byte {
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
