package books

import (
	"context"
	"io"
	"strconv"
	"strings"

	"till"
	"till/internal/jsonx"
	"till/ledger"
	"till/store"
	"till/store/proof"
)

// Format is the format of a statement.
type Format string

// The formats. JSON Lines is for programs: each line is a transaction exactly
// as GET /transactions shows it. CSV is for people and their spreadsheets.
const (
	CSV   Format = "csv"
	JSONL Format = "jsonl"
)

// Formats lists the formats.
var Formats = []Format{CSV, JSONL}

// statementSlice is how many lines are read in one snapshot and written at
// once: half a megabyte, some tens of milliseconds.
const statementSlice = 2_000

// Statement says what to export.
type Statement struct {
	Client    till.ID
	Filter    store.TransactionFilter
	NewestTop bool // newest first; otherwise oldest first, as statements are read
	Format    Format
	// Text, if not nil, changes a text that somebody else chose, in CSV only.
	// JSON Lines are never changed.
	Text func(string) string

	// Line, if not nil, writes the lines instead of the format, after Head.
	Head string
	Line func(b []byte, t *ledger.Transaction) []byte

	// Progress, if not nil, is called with the number of lines written so far.
	Progress func(lines int64)
}

// Export writes all matching lines and returns their number. It reads in short
// snapshots and holds one slice in memory. The end is fixed at the start:
// later commits are left out, so the lines are those of one moment. After an
// error the lines written so far are incomplete. It returns
// CodeClientNotFound.
func Export(ctx context.Context, s *store.Store, st Statement, w io.Writer) (lines int64, err error) {
	if err := st.fixEnd(ctx, s); err != nil {
		return 0, err
	}
	b, line := []byte(st.Format.Header()), st.Format.Append
	if st.Line != nil {
		b, line = []byte(st.Head), st.Line
	}
	var last till.ID
	for {
		if err := ctx.Err(); err != nil {
			return lines, err
		}
		n := 0
		err := s.View(ctx, func(tx *store.Tx) (err error) {
			n, err = tx.EachTransaction(ctx, st.Client, st.Filter, last, !st.NewestTop, statementSlice, func(t *ledger.Transaction) error {
				last = t.ID
				if st.Text != nil && st.Format == CSV {
					t.Reference, t.ProviderReference = st.Text(t.Reference), st.Text(t.ProviderReference)
				}
				b = line(b, t)
				return nil
			})
			return err
		})
		if err != nil {
			return lines, err
		}
		if len(b) > 0 {
			if _, err := w.Write(b); err != nil {
				return lines, err
			}
		}
		b = b[:0]
		lines += int64(n)
		if st.Progress != nil {
			st.Progress(lines)
		}
		if n < statementSlice {
			return lines, nil
		}
	}
}

// fixEnd limits the statement to the client's last timestamp: later commits
// have later ones.
func (st *Statement) fixEnd(ctx context.Context, s *store.Store) error {
	return s.View(ctx, func(tx *store.Tx) error {
		if _, err := tx.Client(ctx, st.Client); err != nil {
			return err
		}
		head, err := proof.Head(ctx, tx, st.Client)
		if err != nil {
			return err
		}
		if head != nil && (st.Filter.To.IsZero() || st.Filter.To > head.LastTime) {
			st.Filter.To = head.LastTime
		}
		return nil
	})
}

// Header returns the text before the first line.
func (f Format) Header() string {
	if f == CSV {
		return csvHeader
	}
	return ""
}

// Append appends a line.
func (f Format) Append(b []byte, t *ledger.Transaction) []byte {
	if f == CSV {
		return appendCSV(b, t)
	}
	return append(AppendTransaction(b, t), '\n')
}

// payoutAndRefund returns the payout and the refund that a line is about, zero for none. A line
// that names a payment and a payout is a refund's.
func payoutAndRefund(t *ledger.Transaction) (payout, refund till.ID) {
	if t.PaymentID.IsZero() {
		return t.PayoutID, till.ID{}
	}
	return till.ID{}, t.PayoutID
}

// AppendTransaction appends a transaction as clients see it.
func AppendTransaction(b []byte, t *ledger.Transaction) []byte {
	b = append(b, `{"id":`...)
	b = t.ID.AppendJSON(b)
	b = append(b, `,"sequence":`...)
	b = strconv.AppendInt(b, t.Sequence, 10)
	b = append(b, `,"wallet_id":`...)
	b = t.WalletID.AppendJSON(b)
	b = append(b, `,"type":`...)
	b = jsonx.AppendString(b, t.Type)
	b = append(b, `,"direction":`...)
	b = jsonx.AppendString(b, t.Direction)
	b = append(b, `,"amount":{"value":"`...)
	b = strconv.AppendInt(b, t.Amount.Minor, 10)
	b = append(b, `","currency":`...)
	b = jsonx.AppendString(b, t.Amount.Currency)
	b = append(b, `},"balance_after":"`...)
	b = strconv.AppendInt(b, t.BalanceAfter, 10)
	b = append(b, `","payment_id":`...)
	b = t.PaymentID.AppendJSON(b)
	payout, refund := payoutAndRefund(t)
	b = append(b, `,"payout_id":`...)
	b = payout.AppendJSON(b)
	b = append(b, `,"refund_id":`...)
	b = refund.AppendJSON(b)
	b = append(b, `,"reference":`...)
	b = jsonx.AppendStringOrNull(b, t.Reference)
	b = append(b, `,"provider_reference":`...)
	b = jsonx.AppendStringOrNull(b, t.ProviderReference)
	b = append(b, `,"created_at":"`...)
	b = t.CreatedAt.Append(b)
	b = append(b, `","method":`...)
	b = jsonx.AppendStringOrNull(b, t.Method)
	return append(b, '}')
}

// csvHeader names the columns. Lines end as RFC 4180 says.
const csvHeader = "id,sequence,wallet_id,type,direction,amount,currency,balance_after,payment_id,payout_id,reference,provider_reference,created_at,method,refund_id\r\n"

func appendCSV(b []byte, t *ledger.Transaction) []byte {
	b = t.ID.Append(b)
	b = append(b, ',')
	b = strconv.AppendInt(b, t.Sequence, 10)
	b = append(b, ',')
	b = t.WalletID.Append(b)
	b = append(b, ',')
	b = appendCell(b, t.Type)
	b = append(b, ',')
	b = appendCell(b, t.Direction)
	b = append(b, ',')
	b = strconv.AppendInt(b, t.Amount.Minor, 10)
	b = append(b, ',')
	b = appendCell(b, t.Amount.Currency)
	b = append(b, ',')
	b = strconv.AppendInt(b, t.BalanceAfter, 10)
	payout, refund := payoutAndRefund(t)
	for _, id := range []till.ID{t.PaymentID, payout} {
		b = append(b, ',')
		if !id.IsZero() {
			b = id.Append(b)
		}
	}
	b = append(b, ',')
	b = appendCell(b, t.Reference)
	b = append(b, ',')
	b = appendCell(b, t.ProviderReference)
	b = append(b, ',')
	b = t.CreatedAt.Append(b)
	b = append(b, ',')
	b = appendCell(b, t.Method)
	if b = append(b, ','); !refund.IsZero() {
		b = refund.Append(b)
	}
	return append(b, "\r\n"...)
}

// What spreadsheets make of a text. Each takes one of the separators for the end of a cell,
// not always ours. It runs a cell as a formula that begins with one of formulaStart,
// whatever quotes and spaces are before it; some take the wide characters for the narrow
// ones. The apostrophe keeps it from doing so.
const (
	separators   = ",;|\t\r\n"
	formulaStart = "=+-@'＝＋－＠"
)

// appendCell writes a text, with quotes around it if a spreadsheet could split it.
func appendCell(b []byte, s string) []byte {
	guarded := Guard(s)
	if guarded == s && !strings.ContainsAny(s, `"`+separators) {
		return append(b, s...)
	}
	b = append(b, '"')
	b = append(b, strings.ReplaceAll(guarded, `"`, `""`)...)
	return append(b, '"')
}

// Guard returns a text for a cell of CSV: with an apostrophe in front of what a
// spreadsheet would run as a formula, at the beginning and after each separator, and of an
// apostrophe there. A program that removes one apostrophe at the beginning and one after
// each separator has the text as it was.
func Guard(s string) string {
	if !strings.ContainsAny(s, formulaStart+separators) {
		return s
	}
	var b strings.Builder
	begins := true // a cell, for some spreadsheet
	for i, r := range s {
		if begins && strings.IndexAny(strings.TrimLeft(s[i:], ` "`), formulaStart) == 0 || i == 0 && strings.ContainsRune("\t\r\n", r) {
			b.WriteByte('\'')
		}
		b.WriteRune(r)
		begins = strings.ContainsRune(separators, r)
	}
	return b.String()
}
