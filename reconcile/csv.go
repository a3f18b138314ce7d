package reconcile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// lines reads the physical lines of a file, whatever their length.
type lines struct {
	in     *bufio.Reader
	digest hash.Hash
	offset int64 // of the next line
	number uint32
}

var errLong = fmt.Errorf("the line is longer than %d KiB", maxStatementLine>>10)

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
