package reconcile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"till"
	"till/books"
)

// Mapping says how an operator's statement file is written: which column
// holds what, and in which words. The zero value is a generic layout: a comma
// between the fields, the names of the columns on the first line, amounts like
// 1500.00, times in RFC 3339. It is part of a connection's configuration.
//
// A column is named by what is in the header line, in any case, or by its
// number: "#3" is the third.
type Mapping struct {
	Delimiter    string   `toml:"delimiter"`     // between fields: one character; "," unless set
	HeaderLine   *int     `toml:"header_line"`   // the line with the names of the columns; 1 unless set, 0 means none
	SkipPrefixes []string `toml:"skip_prefixes"` // a line that begins so holds no movement: a total, a footer

	Reference  string `toml:"reference"`   // what we sent as our reference; "reference" unless set
	ExternalID string `toml:"external_id"` // the payment's or payout's id, or our reference; "external_id" unless set
	Receipt    string `toml:"receipt"`     // the operator's own id of the movement; "receipt" unless set
	Amount     string `toml:"amount"`      // "amount" unless set
	Currency   string `toml:"currency"`    // "currency" unless set
	Status     string `toml:"status"`      // "status" unless set
	Time       string `toml:"time"`        // "time" unless set
	Direction  string `toml:"direction"`   // "direction" unless set

	FixedCurrency string   `toml:"fixed_currency"` // of every line, where no column says it
	Success       []string `toml:"success"`        // words of the status column that mean that money moved
	Failed        []string `toml:"failed"`         // that none did
	Reversed      []string `toml:"reversed"`       // that it was taken back
	Pending       []string `toml:"pending"`        // that it is not decided
	Incoming      []string `toml:"incoming"`       // words of the direction column: a payment
	Outgoing      []string `toml:"outgoing"`       // a payout or a refund
	Ignored       []string `toml:"ignored"`        // neither: the operator's own fees, transfers to a bank
	Negative      string   `toml:"negative"`       // an amount below zero: "refuse" (unless set), "outgoing" or "reversed"

	AmountUnit  string `toml:"amount_unit"`  // "major" (unless set): 50.00 shillings; "minor": 5000 cents
	DecimalMark string `toml:"decimal_mark"` // "." unless set, or ","
	Thousands   string `toml:"thousands"`    // between groups of three digits; none unless set

	TimeLayout string `toml:"time_layout"` // see timeLayout; "rfc3339" unless set
	TimeZone   string `toml:"time_zone"`   // of times that name none: "Africa/Brazzaville" or "+01:00"; UTC unless set
}

// noColumn is what a column that a statement does not have is mapped to.
const noColumn = "-"

// Limits of a mapping.
const (
	maxWords      = 64  // of one meaning
	maxWordLength = 128 // in bytes; also of a column's name
	maxHeaderLine = 1000
)

// words are the defaults of the words, compared in lower case.
var words = map[string][]string{
	"success":  {"success", "successful", "succeeded", "completed", "complete", "paid", "ok"},
	"failed":   {"failed", "failure", "rejected", "declined", "expired", "cancelled", "canceled"},
	"reversed": {"reversed", "reversal", "refunded"},
	"pending":  {"pending", "processing", "in progress", "open"},
	"incoming": {"in", "credit", "collection", "payment", "deposit"},
	"outgoing": {"out", "debit", "payout", "disbursement", "withdrawal", "refund"},
	"ignored":  {"fee", "charge", "commission"},
}

// layout is a mapping that was found good, in the form that reading needs.
type layout struct {
	delimiter byte
	header    int
	skip      []string
	columns   [columnCount]string // the names or numbers of columns; "" for none
	defaulted [columnCount]bool   // by us: it may be missing
	currency  string
	status    map[string]lineStatus
	direction map[string]direction
	negative  string
	minor     bool
	mark      byte
	thousands string
	time      string
	zone      *time.Location
}

// The columns that a mapping knows.
const (
	columnReference = iota
	columnExternalID
	columnReceipt
	columnAmount
	columnCurrency
	columnStatus
	columnTime
	columnDirection
	columnCount
)

var columnKeys = [columnCount]string{"reference", "external_id", "receipt", "amount", "currency", "status", "time", "direction"}

// Validate returns an error that names the key which is wrong.
func (m *Mapping) Validate() error {
	_, err := m.layout()
	return err
}

func (m *Mapping) layout() (*layout, error) {
	l := &layout{delimiter: ',', header: 1, skip: m.SkipPrefixes, currency: m.FixedCurrency, negative: or(m.Negative, "refuse"), mark: '.', thousands: m.Thousands}
	for _, check := range []func(l *layout) error{m.shape, m.names, m.meanings, m.numbers, m.times} {
		if err := check(l); err != nil {
			return nil, fmt.Errorf("the statement's mapping: %w", err)
		}
	}
	return l, nil
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// shape takes how a line is cut into fields.
func (m *Mapping) shape(l *layout) error {
	if m.Delimiter != "" {
		if len(m.Delimiter) != 1 || strings.ContainsAny(m.Delimiter, "\"\r\n") || m.Delimiter[0] >= utf8.RuneSelf {
			return fmt.Errorf(`delimiter: %q is not one character such as "," ";" "|" or "\t"`, m.Delimiter)
		}
		l.delimiter = m.Delimiter[0]
	}
	if m.HeaderLine != nil {
		if l.header = *m.HeaderLine; l.header < 0 || l.header > maxHeaderLine {
			return fmt.Errorf("header_line: %d is not between 0 (none) and %d", l.header, maxHeaderLine)
		}
	}
	if len(m.SkipPrefixes) > maxWords || slices.Contains(m.SkipPrefixes, "") {
		return fmt.Errorf("skip_prefixes: at most %d, and none of them empty", maxWords)
	}
	return nil
}

// names takes which column holds what.
func (m *Mapping) names(l *layout) error {
	for i, name := range [columnCount]string{m.Reference, m.ExternalID, m.Receipt, m.Amount, m.Currency, m.Status, m.Time, m.Direction} {
		key := columnKeys[i]
		switch {
		case len(name) > maxWordLength:
			return fmt.Errorf("%s: the name of a column has at most %d bytes", key, maxWordLength)
		case name == "" && l.header > 0:
			name, l.defaulted[i] = key, true
		case name == noColumn || name == "":
			continue
		}
		if number, ok := strings.CutPrefix(name, "#"); ok {
			if n, err := strconv.Atoi(number); err != nil || n < 1 || n > maxFields {
				return fmt.Errorf("%s: %q is not a column between #1 and #%d", key, name, maxFields)
			}
		} else if l.header == 0 {
			return fmt.Errorf(`%s: without a header line, columns are numbers such as "#3"`, key)
		}
		l.columns[i] = name
	}
	if l.columns[columnAmount] == "" {
		return fmt.Errorf("amount: a statement needs a column of amounts")
	}
	if l.columns[columnReference] == "" && l.columns[columnExternalID] == "" && l.columns[columnReceipt] == "" {
		return fmt.Errorf("reference: name at least one of the columns reference, external_id and receipt")
	}
	if m.FixedCurrency != "" {
		if _, known := till.CurrencyDecimals(m.FixedCurrency); !known {
			return fmt.Errorf("fixed_currency: %q is not a currency that is known", m.FixedCurrency)
		}
		if m.Currency != "" && m.Currency != noColumn {
			return fmt.Errorf("fixed_currency: the column %q says the currency already", m.Currency)
		}
		l.columns[columnCurrency] = ""
	} else if l.columns[columnCurrency] == "" {
		return fmt.Errorf("currency: name the column, or set fixed_currency")
	}
	return nil
}

// meanings takes which words mean what: first those that were set, so that a
// default gives way to them. A word that means two things means nothing.
func (m *Mapping) meanings(l *layout) error {
	l.status, l.direction = map[string]lineStatus{}, map[string]direction{}
	kinds := []meaning{
		{"success", m.Success, lineSuccess, 0}, {"failed", m.Failed, lineFailed, 0}, {"reversed", m.Reversed, lineReversed, 0}, {"pending", m.Pending, linePending, 0},
		{"incoming", m.Incoming, 0, incoming}, {"outgoing", m.Outgoing, 0, outgoing}, {"ignored", m.Ignored, 0, ignored},
	}
	for _, k := range kinds {
		if len(k.words) > maxWords {
			return fmt.Errorf("%s: at most %d words", k.key, maxWords)
		}
		for _, w := range k.words {
			word := strings.ToLower(strings.TrimSpace(w))
			if len(word) > maxWordLength || word == "" {
				return fmt.Errorf("%s: a word has 1 to %d bytes", k.key, maxWordLength)
			}
			if !l.learn(&k, word) {
				return fmt.Errorf("%s: %q has a meaning already", k.key, w)
			}
		}
	}
	for _, k := range kinds {
		if k.words == nil {
			for _, word := range words[k.key] {
				l.learn(&k, word)
			}
		}
	}
	switch l.negative {
	case "refuse", "outgoing", "reversed":
		return nil
	}
	return fmt.Errorf(`negative: %q is not "refuse", "outgoing" or "reversed"`, m.Negative)
}

// meaning is the words for one status or direction.
type meaning struct {
	key       string
	words     []string
	status    lineStatus
	direction direction
}

// learn gives a word its meaning, and reports whether it had none yet.
func (l *layout) learn(k *meaning, word string) bool {
	if k.status != 0 {
		if _, taken := l.status[word]; taken {
			return false
		}
		l.status[word] = k.status
		return true
	}
	if _, taken := l.direction[word]; taken {
		return false
	}
	l.direction[word] = k.direction
	return true
}

// numbers takes how amounts are written.
func (m *Mapping) numbers(l *layout) error {
	switch m.AmountUnit {
	case "", "major":
	case "minor":
		l.minor = true
	default:
		return fmt.Errorf(`amount_unit: %q is not "major" or "minor"`, m.AmountUnit)
	}
	switch m.DecimalMark {
	case "", ".":
	case ",":
		l.mark = ','
	default:
		return fmt.Errorf(`decimal_mark: %q is not "." or ","`, m.DecimalMark)
	}
	switch m.Thousands {
	case "", " ", "\u00a0", "\u202f", "'", ".", ",":
	default:
		return fmt.Errorf(`thousands: %q is not a space, a point, a comma or an apostrophe`, m.Thousands)
	}
	if m.Thousands == string(l.mark) {
		return fmt.Errorf("thousands: %q is the decimal mark", m.Thousands)
	}
	return nil
}

// times takes how moments are written.
func (m *Mapping) times(l *layout) error {
	l.zone = time.UTC
	if m.TimeZone != "" {
		zone, err := books.ParseZone(m.TimeZone)
		if err != nil {
			return fmt.Errorf("time_zone: %w", err)
		}
		l.zone = zone
	}
	layout, err := timeLayout(or(m.TimeLayout, "rfc3339"))
	if err != nil {
		return fmt.Errorf("time_layout: %w", err)
	}
	l.time = layout
	return nil
}

// Zone returns the zone of times that name none.
func (m *Mapping) Zone() (*time.Location, error) {
	if m.TimeZone == "" {
		return time.UTC, nil
	}
	return books.ParseZone(m.TimeZone)
}
