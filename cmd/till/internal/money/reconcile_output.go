package money

import (
	"bufio"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"till"
	"till/books"
	"till/cmd/till/internal/cli"
	"till/reconcile"
)

// maxBrokenShown is how many broken lines are printed; the file has them all.
const maxBrokenShown = 20

// findings writes findings to a file, which gets its name when it is complete.
type findings struct {
	path   string
	file   *os.File // nil: to no file
	buffer *bufio.Writer
	csv    *csv.Writer
	cells  []string
	broken []brokenJSON
}

type brokenJSON struct {
	Line   uint32 `json:"line"`
	Reason string `json:"reason"`
}

// findingColumns are the columns of the file. Amounts are in minor units, as
// in the API.
var findingColumns = []string{"class", "line", "line_reference", "line_external_id", "line_receipt", "line_amount", "line_currency", "line_status", "line_time",
	"kind", "client_id", "id", "our_receipt", "our_amount", "our_currency", "our_status", "created_at", "booked_amount", "booked_at", "remedy", "explanation"}

func (o *reconcileOptions) newOutput(statement os.FileInfo) (*findings, error) {
	f := &findings{path: o.output}
	if o.output == "" {
		return f, nil
	}
	if there, err := os.Stat(o.output); err == nil && os.SameFile(there, statement) {
		return nil, errors.New("--output would overwrite the statement")
	}
	var err error
	if f.file, err = os.CreateTemp(filepath.Dir(o.output), ".reconcile-*.csv"); err != nil {
		return nil, fmt.Errorf("write the differences: %w", err)
	}
	f.buffer = bufio.NewWriterSize(f.file, 1<<16)
	f.csv = csv.NewWriter(f.buffer)
	return f, f.csv.Write(findingColumns)
}

// found writes one finding.
func (f *findings) found(b *reconcile.Finding) error {
	if b.Class == reconcile.BrokenLine && len(f.broken) < maxBrokenShown {
		f.broken = append(f.broken, brokenJSON{b.Line, b.Why})
	}
	if f.file == nil {
		return nil
	}
	f.cells = append(f.cells[:0], string(b.Class))
	if b.Line == 0 || b.Class == reconcile.BrokenLine {
		number := ""
		if b.Line != 0 {
			number = strconv.FormatUint(uint64(b.Line), 10)
		}
		f.cells = append(f.cells, number, "", "", "", "", "", "", "")
	} else {
		f.cells = append(f.cells, strconv.FormatUint(uint64(b.Line), 10), cli.PlainCell(b.Reference), cli.PlainCell(b.ExternalID), cli.PlainCell(b.Receipt),
			b.Said.Value(), cli.PlainCell(b.Said.Currency), cli.PlainCell(b.SaidStatus), cli.TimeText(b.SaidAt))
	}
	if c := b.Ours; c != nil {
		booked := ""
		if !c.Booked.IsZero() {
			booked = c.Booked.Value()
		}
		f.cells = append(f.cells, string(c.Kind), c.Client.String(), c.ID.String(), cli.PlainCell(c.Receipt), c.Amount.Value(), c.Amount.Currency, string(c.Status),
			c.CreatedAt.String(), booked, cli.TimeText(c.BookedAt))
	} else {
		f.cells = append(f.cells, "", "", "", "", "", "", "", "", "", "")
	}
	f.cells = append(f.cells, string(b.Remedy), cli.PlainCell(b.Why))
	return f.csv.Write(f.cells)
}

// keep gives the complete file its name.
func (f *findings) keep() error {
	if f.file == nil {
		return nil
	}
	f.csv.Flush()
	err := errors.Join(f.csv.Error(), f.buffer.Flush(), f.file.Chmod(0o600), f.file.Sync(), f.file.Close())
	if err == nil {
		err = os.Rename(f.file.Name(), f.path)
	}
	if err != nil {
		return fmt.Errorf("write the differences: %w", err)
	}
	f.file = nil
	return nil
}

// discard removes an incomplete file.
func (f *findings) discard() {
	if f.file != nil {
		f.file.Close()
		os.Remove(f.file.Name())
	}
}

// reconciledJSON is the result as the command prints it.
type reconciledJSON struct {
	Clean       bool         `json:"clean"`
	Connection  string       `json:"connection"`
	SHA256      string       `json:"sha256"`
	From        string       `json:"from"`
	To          string       `json:"to"`
	Lines       int64        `json:"lines"`
	Ignored     int64        `json:"ignored"`
	Outside     int64        `json:"outside"`
	BrokenCount int64        `json:"broken_count"`
	Broken      []brokenJSON `json:"broken"` // the first of them
	Compared    int64        `json:"compared"`
	Differences int64        `json:"differences"`
	Classes     []classJSON  `json:"classes"`
	Applied     *appliedJSON `json:"applied"` // null without --apply
	Output      *string      `json:"output"`
}

type classJSON struct {
	Class      reconcile.Class `json:"class"`
	Currency   *string         `json:"currency"`
	Count      int64           `json:"count"`
	Operator   string          `json:"operator"`
	Ours       string          `json:"ours"`
	Difference bool            `json:"difference"`
}

type appliedJSON struct {
	Settled   int64         `json:"settled"`
	Unchanged int64         `json:"unchanged"`
	Cases     int64         `json:"cases"`
	Known     int64         `json:"known"`
	Strays    straysJSON    `json:"strays"`
	Refused   int64         `json:"refused"`
	Refusals  []refusalJSON `json:"refusals"`
}

type straysJSON struct {
	Kept   int64 `json:"kept"`
	Known  int64 `json:"known"`
	Beyond int64 `json:"beyond_limit"`
}

type refusalJSON struct {
	Line   uint32 `json:"line"`
	ID     string `json:"id"`
	Reason string `json:"reason"`
}

func (o *reconcileOptions) print(w io.Writer, r *reconcile.Result, f *findings, a *reconcile.ApplyResult) error {
	if o.asJSON {
		return cli.PrintJSON(w, o.reportOf(r, f, a))
	}
	cli.Printf(w, "%s: %s, %d of them ignored, %d outside the time, %d broken; %s compared\n",
		filepath.Base(o.statement), cli.Count(r.Lines, "line", "lines"), r.Ignored, r.Outside, r.Broken, cli.Count(r.Rows, "payment or payout", "payments and payouts"))
	cli.Printf(w, "from %s to %s\nsha256 %s\n\n", r.From, r.To, hex.EncodeToString(r.Digest[:]))
	err := cli.Table(w, func(row func(...any)) {
		row("CLASS", "CURRENCY", "COUNT", "OPERATOR", "OURS")
		for _, s := range r.Sums {
			currency := s.Currency
			if currency == "" {
				currency = "-"
			}
			row(strings.ReplaceAll(string(s.Class), "_", " "), currency, s.Count, inUnits(&s.Operator, s.Currency), inUnits(&s.Ours, s.Currency))
		}
	})
	if err != nil {
		return err
	}
	for _, b := range f.broken {
		cli.Printf(w, "line %d: %s\n", b.Line, b.Reason)
	}
	if more := r.Broken - int64(len(f.broken)); more > 0 {
		cli.Printf(w, "and %s\n", cli.Count(more, "more broken line", "more broken lines"))
	}
	if a != nil {
		cli.Printf(w, "\napplied: %d settled, %d settled meanwhile, %s opened, %d known already, %d refused\n",
			a.Settled, a.Unchanged, cli.Count(a.Cases, "case", "cases"), a.Known, a.Refused)
		if a.Strays+a.Kept+a.Beyond > 0 {
			cli.Printf(w, "strays: %d kept or confirmed, %d known already; see 'till strays'\n", a.Strays, a.Kept)
		}
		if a.Beyond > 0 {
			cli.Printf(w, "%s not kept as strays: at most %d may be open\n", cli.Count(a.Beyond, "line was", "lines were"), books.MaxStrays)
		}
		for _, x := range a.Refusals {
			cli.Printf(w, "line %d, %s: %s\n", x.Line, x.ID, x.Why)
		}
	}
	if f.path != "" {
		cli.Printf(w, "\nThe differences are in %s.\n", f.path)
	}
	if unresolvedCount(r, a) == 0 {
		_, err = cli.Printf(w, "\nThe statement and the books agree.\n")
	}
	return err
}

func (o *reconcileOptions) reportOf(r *reconcile.Result, f *findings, a *reconcile.ApplyResult) reconciledJSON {
	out := reconciledJSON{Clean: unresolvedCount(r, a) == 0, Connection: o.connection, SHA256: hex.EncodeToString(r.Digest[:]), From: r.From.String(), To: r.To.String(),
		Lines: r.Lines, Ignored: r.Ignored, Outside: r.Outside, BrokenCount: r.Broken, Broken: f.broken, Compared: r.Rows, Differences: r.Differences(),
		Classes: make([]classJSON, len(r.Sums))}
	if out.Broken == nil {
		out.Broken = []brokenJSON{}
	}
	for i, s := range r.Sums {
		out.Classes[i] = classJSON{s.Class, nil, s.Count, s.Operator.String(), s.Ours.String(), s.Class.Difference()}
		if s.Currency != "" {
			out.Classes[i].Currency = &s.Currency
		}
	}
	if a != nil {
		out.Applied = &appliedJSON{a.Settled, a.Unchanged, a.Cases, a.Known, straysJSON{a.Strays, a.Kept, a.Beyond}, a.Refused, make([]refusalJSON, len(a.Refusals))}
		for i, x := range a.Refusals {
			out.Applied.Refusals[i] = refusalJSON{x.Line, x.ID.String(), x.Why}
		}
	}
	if f.path != "" {
		out.Output = &f.path
	}
	return out
}

// inUnits writes a sum of minor units with the decimals of its currency.
func inUnits(n *big.Int, currency string) string {
	decimals, _ := till.CurrencyDecimals(currency)
	text := new(big.Int).Abs(n).String()
	if decimals > 0 {
		text = strings.Repeat("0", max(decimals+1-len(text), 0)) + text
		text = text[:len(text)-decimals] + "." + text[len(text)-decimals:]
	}
	if n.Sign() < 0 {
		return "-" + text
	}
	return text
}
