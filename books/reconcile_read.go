package books

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"till"
)

// Limits of an operator's statement.
const (
	MaxStatementLines  = 10_000_000 // a line takes about 110 bytes of memory
	MaxStatementLine   = 64 << 10   // bytes of one line
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

// lines reads the physical lines of a file, whatever their length.
type lines struct {
	in     *bufio.Reader
	digest hash.Hash
	offset int64 // of the next line
	number uint32
}

var errLong = fmt.Errorf("the line is longer than %d KiB", MaxStatementLine>>10)

// next returns the next line without its end, and where it begins. A line
// that is too long is errLong, and the one after it comes next.
func (l *lines) next() (text []byte, offset int64, err error) {
	offset, l.number = l.offset, l.number+1
	text, err = l.in.ReadSlice('\n')
	l.took(text)
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		for errors.Is(err, bufio.ErrBufferFull) {
			var rest []byte
			rest, err = l.in.ReadSlice('\n')
			l.took(rest)
		}
		if err != nil && err != io.EOF {
			return nil, offset, err
		}
		return nil, offset, errLong
	case err == io.EOF && len(text) > 0:
		err = nil
	}
	return trimEnd(text), offset, err
}

func (l *lines) took(b []byte) {
	l.digest.Write(b)
	l.offset += int64(len(b))
}

func trimEnd(b []byte) []byte {
	b = bytes.TrimSuffix(b, []byte("\n"))
	return bytes.TrimSuffix(b, []byte("\r"))
}

// begin takes the first lines: a mark of the encoding, and the header.
func (f *statementFile) begin(l *lines) error {
	first, _ := l.in.Peek(3)
	switch {
	case bytes.HasPrefix(first, []byte("\xef\xbb\xbf")):
		l.in.Discard(3)
		l.took(first)
	case bytes.HasPrefix(first, []byte("\xff\xfe")), bytes.HasPrefix(first, []byte("\xfe\xff")):
		return errors.New("the statement is in UTF-16: save it as UTF-8")
	case bytes.HasPrefix(first, []byte("PK\x03")):
		return errors.New("the statement is a spreadsheet or an archive: save it as CSV")
	}
	for range f.layout.header {
		text, _, err := l.next()
		switch {
		case err == io.EOF:
			return fmt.Errorf("the statement ends before line %d, where the names of its columns should be", f.layout.header)
		case err != nil:
			return fmt.Errorf("line %d: %w", l.number, err)
		case int(l.number) < f.layout.header:
			continue
		}
		if err := f.split(text); err != nil {
			return fmt.Errorf("line %d, the names of the columns: %w", l.number, err)
		}
	}
	return f.locate()
}

// locate finds the columns of the mapping in the header.
func (f *statementFile) locate() error {
	l := f.layout
	f.width = len(f.fields)
	for i, name := range l.columns {
		if name == "" {
			continue
		}
		if number, ok := strings.CutPrefix(name, "#"); ok {
			n, _ := strconv.Atoi(number) // checked with the mapping
			if l.header > 0 && n > f.width {
				return fmt.Errorf("%s: there is no column %s, only %d", columnKeys[i], name, f.width)
			}
			f.columns[i] = n
			continue
		}
		for j, h := range f.fields {
			if !strings.EqualFold(strings.TrimSpace(h), name) {
				continue
			}
			if f.columns[i] != 0 {
				return fmt.Errorf("%s: two columns are called %q: name it by its number, such as \"#%d\"", columnKeys[i], name, j+1)
			}
			f.columns[i] = j + 1
		}
		if f.columns[i] == 0 && !l.defaulted[i] {
			return fmt.Errorf("%s: there is no column %q on line %d", columnKeys[i], name, l.header)
		}
	}
	switch {
	case f.columns[columnAmount] == 0:
		return fmt.Errorf("amount: there is no column \"amount\" on line %d: name it in the mapping", l.header)
	case f.columns[columnReference] == 0 && f.columns[columnExternalID] == 0 && f.columns[columnReceipt] == 0:
		return fmt.Errorf("reference: there is no column \"reference\", \"external_id\" or \"receipt\" on line %d: name one in the mapping", l.header)
	case f.columns[columnCurrency] == 0 && l.currency == "":
		return fmt.Errorf("currency: there is no column \"currency\" on line %d: name it in the mapping, or set fixed_currency", l.header)
	}
	return nil
}

// split cuts a line into fields. The fields live until the next call.
func (f *statementFile) split(text []byte) error {
	if !utf8.Valid(text) {
		return errors.New("the line is not UTF-8")
	}
	if bytes.IndexByte(text, 0) >= 0 {
		return errors.New("the line holds a NUL byte")
	}
	f.fields = f.fields[:0]
	// One string for the line; what is quoted is written without its quotes
	// first.
	f.scratch = f.scratch[:0]
	var ends [maxFields]int
	n := 0
	for i := 0; ; {
		if n == maxFields {
			return fmt.Errorf("the line has more than %d fields", maxFields)
		}
		if i < len(text) && text[i] == '"' {
			end, err := f.unquote(text, i+1)
			if err != nil {
				return err
			}
			i = end
		} else {
			end := bytes.IndexByte(text[i:], f.layout.delimiter)
			if end < 0 {
				end = len(text) - i
			}
			if bytes.IndexByte(text[i:i+end], '"') >= 0 {
				return errors.New("there is a quote inside a field that is not quoted")
			}
			f.scratch = append(f.scratch, text[i:i+end]...)
			i += end
		}
		ends[n] = len(f.scratch)
		n++
		if i == len(text) {
			break
		}
		i++ // the delimiter
	}
	line, start := string(f.scratch), 0
	for _, end := range ends[:n] {
		f.fields = append(f.fields, line[start:end])
		start = end
	}
	return nil
}

// unquote appends a quoted field to the scratch and returns where it ends: at
// a delimiter or the end of the line.
func (f *statementFile) unquote(text []byte, i int) (int, error) {
	for ; i < len(text); i++ {
		if text[i] != '"' {
			f.scratch = append(f.scratch, text[i])
			continue
		}
		switch {
		case i+1 == len(text):
			return i + 1, nil
		case text[i+1] == '"':
			f.scratch = append(f.scratch, '"')
			i++
		case text[i+1] == f.layout.delimiter:
			return i + 1, nil
		default:
			return 0, errors.New("a quote ends inside a field")
		}
	}
	return 0, errors.New("a quote is not closed on its line")
}

func (f *statementFile) field(column int) string {
	if f.columns[column] == 0 {
		return ""
	}
	return strings.TrimSpace(f.fields[f.columns[column]-1])
}

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

// readStatement reads a file into records. It tells broken lines to broken,
// and counts in c what it met.
func readStatement(ctx context.Context, in io.Reader, f *statementFile, c *ReadCounts, broken func(line uint32, why string) error, progress func(bytes int64)) (*records, error) {
	l := &lines{in: bufio.NewReaderSize(in, MaxStatementLine), digest: sha256.New()}
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
		if c.Lines++; c.Lines > MaxStatementLines {
			return nil, fmt.Errorf("the statement has more than %d lines: cut it in pieces", MaxStatementLines)
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
	for _, size := range []int{usualLine, MaxStatementLine} {
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
