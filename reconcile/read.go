package reconcile

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"till"
)

// Limits of an operator's statement.
const (
	maxStatementLines  = 10_000_000 // a line takes about 110 bytes of memory
	maxStatementLine   = 64 << 10   // bytes of one line
	maxFields          = 256        // of one line
	maxReceipt         = 128        // characters, as of a payment
	progressEveryLines = 1 << 16
)

// errChanged says that a line was not the same when it was read again.
var errChanged = errors.New("the statement was changed while it was being read")

// statementFile is an operator's statement on its way into records. A record
// is one line of the file: a quoted field that goes on in the next line is
// refused, so that one forgotten quote cannot swallow its neighbours.
type statementFile struct {
	layout  *layout
	columns [columnCount]int // 1 + the field; 0: there is none
	width   int              // fields of a line; 0 while unknown
	fields  []string
	scratch []byte
}

// fileLine is a line in its own words.
type fileLine struct {
	reference, externalID, receipt, code string // code is of the currency
	record
}

// errNothing says that a line holds no movement of ours: it is blank, or the
// mapping ignores it.
var errNothing = errors.New("nothing of ours")

// parse reads one line. It returns errNothing for a line without a movement;
// any other error says what is wrong with the line.
func (f *statementFile) parse(text []byte) (*fileLine, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, errNothing
	}
	for _, prefix := range f.layout.skip {
		if bytes.HasPrefix(text, []byte(prefix)) {
			return nil, errNothing
		}
	}
	if err := f.split(text); err != nil {
		return nil, err
	}
	if f.width == 0 {
		f.width = len(f.fields) // without a header, the first line decides
	}
	if len(f.fields) != f.width {
		return nil, fmt.Errorf("the line has %d fields instead of %d", len(f.fields), f.width)
	}
	for i, c := range f.columns {
		if c > f.width {
			return nil, fmt.Errorf("%s: there is no column #%d, only %d", columnKeys[i], c, f.width)
		}
	}
	line := &fileLine{reference: f.field(columnReference), externalID: f.field(columnExternalID), receipt: f.field(columnReceipt)}
	line.status = lineSuccess
	if word := f.field(columnDirection); f.columns[columnDirection] != 0 {
		d, known := f.layout.direction[strings.ToLower(word)]
		if !known {
			return nil, fmt.Errorf("the direction %q is not known", clip(word))
		}
		if line.direction = d; d == ignored {
			return nil, errNothing
		}
	}
	if word := f.field(columnStatus); f.columns[columnStatus] != 0 {
		s, known := f.layout.status[strings.ToLower(word)]
		if !known {
			return nil, fmt.Errorf("the status %q is not known", clip(word))
		}
		line.status = s
	}
	if err := f.parseValues(line); err != nil {
		return nil, err
	}
	line.keys = [3]key{referenceKey(line.reference), referenceKey(line.externalID), receiptKey(line.receipt)}
	return line, nil
}

// parseValues reads the amount and the time of a line.
func (f *statementFile) parseValues(line *fileLine) error {
	currency := f.layout.currency
	if currency == "" {
		currency = strings.ToUpper(f.field(columnCurrency))
	}
	decimals, known := till.CurrencyDecimals(currency)
	if !known {
		return fmt.Errorf("the currency %q is not known", clip(currency))
	}
	line.code = currency
	amount, negative, err := f.layout.parseAmount(f.field(columnAmount), decimals)
	switch {
	case err != nil:
		return err
	case amount == 0:
		return errZero
	case negative && f.layout.negative == "outgoing":
		line.direction = outgoing
	case negative && f.layout.negative == "reversed":
		line.status = lineReversed
	case negative:
		return errNegative
	}
	line.amount = amount
	if f.columns[columnTime] != 0 {
		if line.at, err = f.layout.parseTime(f.field(columnTime)); err != nil {
			return err
		}
	}
	if utf8.RuneCountInString(line.receipt) > maxReceipt {
		return fmt.Errorf("the receipt is longer than %d characters", maxReceipt)
	}
	return nil
}

// clip returns what is quoted of a word in a message.
func clip(s string) string {
	if r := []rune(s); len(r) > 32 {
		return string(r[:32]) + "…"
	}
	return s
}

// readStatement reads a file into records. It reports broken lines to broken,
// and counts in c what it met.
func readStatement(ctx context.Context, in io.Reader, f *statementFile, c *ReadCounts, broken func(line uint32, why string) error, progress func(bytes int64)) (*records, error) {
	l := &lines{in: bufio.NewReaderSize(in, maxStatementLine), digest: sha256.New()}
	if err := f.begin(l); err != nil {
		return nil, err
	}
	r := &records{}
	for {
		text, offset, err := l.next()
		if err == io.EOF {
			break
		}
		if err != nil && !errors.Is(err, errLong) {
			return nil, err
		}
		if c.Lines++; c.Lines > maxStatementLines {
			return nil, fmt.Errorf("the statement has more than %d lines: cut it in pieces", maxStatementLines)
		}
		if c.Lines%progressEveryLines == 0 {
			progress(l.offset)
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
		var line *fileLine
		if err == nil {
			line, err = f.parse(text)
		}
		switch {
		case errors.Is(err, errNothing):
			c.Ignored++
			continue
		case err != nil:
			c.Broken++
			if err := broken(l.number, err.Error()); err != nil {
				return nil, err
			}
			continue
		}
		line.offset, line.number, line.currency = offset, l.number, r.currencyIndex(line.code)
		r.add(line.record)
	}
	copy(c.Digest[:], l.digest.Sum(nil))
	progress(l.offset)
	r.build()
	return r, nil
}

// usualLine is what is read again of a line at first.
const usualLine = 1 << 10

// reread reads a line once more, in its own words. The buffer is for it alone.
func (f *statementFile) reread(file io.ReaderAt, want *record, buffer []byte) (*fileLine, error) {
	var text []byte
	for _, size := range []int{usualLine, maxStatementLine} {
		n, err := file.ReadAt(buffer[:size], want.offset)
		if err != nil && err != io.EOF {
			return nil, err
		}
		text = buffer[:n]
		if end := bytes.IndexByte(text, '\n'); end >= 0 {
			text = text[:end+1]
			break
		}
	}
	line, err := f.parse(trimEnd(text))
	if err != nil || line.keys != want.keys || line.amount != want.amount || line.status != want.status || line.at != want.at {
		return nil, errChanged
	}
	line.record = *want
	return line, nil
}
