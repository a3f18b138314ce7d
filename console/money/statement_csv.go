package money

import (
	"compress/gzip"
	"context"
	"net/http"
	"strconv"
	"time"

	"till"
	"till/books"
	"till/console/assets"
	"till/console/list"
	"till/console/shell"
	"till/ledger"
	"till/people"
	"till/store"
)

// statementWrite is how long a browser may take to read one slice of a statement.
const statementWrite = 60 * time.Second

// statementCSV is GET /c/{client}/wallets/{currency}/statement.csv: the lines of
// the page's range, of one moment, the oldest first. "," separates or, for Excel,
// ";" after a byte mark.
func (v *visit) statementCSV() error {
	if !v.May(people.Export) {
		return &people.Refusal{Code: people.NotAllowed, Need: people.Export}
	}
	leave, err := v.EnterTable()
	if err != nil {
		return err
	}
	defer leave()
	release, err := list.TakeSlot()
	if err != nil {
		return err
	}
	defer release()
	f := v.statementFilter()
	want := v.transactionFilter(f)
	total := int64(0)
	err = v.View(func(ctx context.Context, tx *store.Tx) error {
		if _, err := v.wallet(ctx, tx); err != nil {
			return err
		}
		_, n, err := tx.ListTransactions(ctx, v.Client.ID, want, store.Page{})
		total = n
		return err
	})
	if err != nil {
		return err
	}
	if total > maxStatement {
		return shell.ErrLongCSV
	}
	what := people.Act{Action: "export.statement", Detail: want.Currency + ", " + strconv.FormatInt(total, 10) + " lines"}
	if err := v.Console.People.NoteAct(v.R.Context(), v.Session, v.Client, what); err != nil {
		return err
	}
	release() // it is read in short slices from here on
	return v.streamStatement(want)
}

// streamStatement writes the table as it is read. It holds nothing of the
// database while the browser reads.
func (v *visit) streamStatement(want store.TransactionFilter) error {
	row := v.statementRow(v.R.URL.Query().Get("for") == "excel")
	out := &statementWriter{v: v, name: "statement-" + want.Currency + "-" + v.Clock.ISODay(v.Now) + ".csv"}
	_, err := books.Export(v.R.Context(), v.Console.Store, books.Statement{Client: v.Client.ID, Filter: want, Format: books.CSV,
		Head: string(row(nil, nil)), Line: row}, out)
	if err == nil {
		err = out.close()
	}
	if err != nil && v.Written {
		v.Console.Log.Warn("statement export aborted", "request_id", v.ID, "error", err)
		panic(http.ErrAbortHandler)
	}
	return err
}

// statementRow returns what writes a line of the table; without a line it writes
// the head. Amounts are in major units, and a line has either a credit or a debit.
func (v *visit) statementRow(excel bool) func(b []byte, t *ledger.Transaction) []byte {
	comma := byte(',')
	if excel {
		comma = ';'
	}
	return func(b []byte, t *ledger.Transaction) []byte {
		if t == nil {
			if excel {
				b = append(b, "\ufeff"...)
			}
			return list.AppendRow(b, comma, []string{"line", "created_utc", "created_local", "zone", "type", "what", "credit", "debit", "balance", "currency", "method", "reference", "receipt", "payment_id", "payout_id", "id"})
		}
		credit, debit := list.PlainAmount(t.Amount), ""
		if t.Direction != "credit" {
			credit, debit = debit, credit
		}
		return list.AppendRow(b, comma, []string{strconv.FormatInt(t.Sequence, 10), t.CreatedAt.String(), v.Clock.Local(t.CreatedAt), v.Clock.Zone.String(), t.Type, v.entryName(t.Type),
			credit, debit, list.PlainAmount(till.Money{Minor: t.BalanceAfter, Currency: t.Amount.Currency}), t.Amount.Currency, t.Method,
			t.Reference, t.ProviderReference, textOf(t.PaymentID), textOf(t.PayoutID), t.ID.String()})
	}
}

func textOf(id till.ID) string {
	if id.IsZero() {
		return ""
	}
	return id.String()
}

// statementWriter sends each slice at once, compressed if the browser takes that.
// Who lost the right meanwhile gets no further slice.
type statementWriter struct {
	v    *visit
	name string
	z    *gzip.Writer
}

// Write implements io.Writer.
func (w *statementWriter) Write(b []byte) (n int, err error) {
	v := w.v
	if !v.Written {
		h := v.W.Header()
		h.Set("Content-Type", "text/csv; charset=utf-8")
		h.Set("Content-Disposition", `attachment; filename="`+w.name+`"`)
		h.Set("Vary", "Accept-Encoding, Cookie")
		if assets.AcceptsGzip(v.R) {
			h.Set("Content-Encoding", "gzip")
			w.z = gzip.NewWriter(v.W)
		}
		v.Written = true
		v.W.WriteHeader(http.StatusOK)
	} else if err := v.SignIn(); err != nil {
		return 0, err
	} else if err := v.EnterClient(); err != nil {
		return 0, err
	}
	c := http.NewResponseController(v.W)
	_ = c.SetWriteDeadline(time.Now().Add(statementWrite)) // not every writer has one
	if w.z == nil {
		n, err = v.W.Write(b)
	} else if n, err = w.z.Write(b); err == nil {
		err = w.z.Flush()
	}
	_ = c.Flush() // the next write reports what could not be sent
	return n, err
}

func (w *statementWriter) close() error {
	if w.z == nil {
		return nil
	}
	return w.z.Close()
}
