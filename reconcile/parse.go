package reconcile

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"till"
)

// What an operator's file says in its own words, turned into ours. Whatever is
// not plainly one thing is refused: an amount that is read wrongly is worse
// than one that is not read.

// lineStatus is what a line says became of a movement of money.
type lineStatus uint8

const (
	lineSuccess lineStatus = iota + 1
	lineFailed
	lineReversed
	linePending
)

func (s lineStatus) String() string {
	return [...]string{"", "success", "failed", "reversed", "pending"}[s]
}

// direction is which way a line says that money moved.
type direction uint8

const (
	anyDirection direction = iota // the line does not say
	incoming                      // from a customer: a payment
	outgoing                      // to a recipient: a payout
	ignored                       // neither: nothing of ours
)

var (
	errNoDigits  = errors.New("the amount is not a number")
	errGroups    = errors.New("the thousands of the amount are not groups of three digits")
	errTooLarge  = errors.New("the amount is too large")
	errDecimals  = errors.New("the amount has more decimals than its currency")
	errNegative  = errors.New("the amount is negative")
	errZero      = errors.New("the amount is zero")
	errNoTime    = errors.New("the time is not written as time_layout says")
	errTimeRange = errors.New("the time is not between 2000 and 2100")
)

// parseAmount reads an amount in minor units of a currency with so many
// decimals, and reports whether it is below zero.
func (l *layout) parseAmount(s string, decimals int) (minor int64, negative bool, err error) {
	s = strings.TrimSpace(s)
	switch {
	case strings.HasPrefix(s, "-"):
		s, negative = s[1:], true
	case strings.HasPrefix(s, "+"):
		s = s[1:]
	}
	whole, fraction, point := strings.Cut(s, string(l.mark))
	if point && (fraction == "" || l.minor) || whole == "" {
		return 0, false, errNoDigits
	}
	if l.thousands != "" && strings.Contains(whole, l.thousands) {
		groups := strings.Split(whole, l.thousands)
		for i, g := range groups {
			if i == 0 && (len(g) < 1 || len(g) > 3) || i > 0 && len(g) != 3 {
				return 0, false, errGroups
			}
		}
		whole = strings.Join(groups, "")
	}
	if !isDigits(whole) || point && !isDigits(fraction) {
		return 0, false, errNoDigits
	}
	whole = strings.TrimLeft(whole, "0")
	if !l.minor {
		// 5000.00 francs are 5 000 francs; 5000.50 are nothing that exists.
		for len(fraction) > decimals {
			if fraction[len(fraction)-1] != '0' {
				return 0, false, errDecimals
			}
			fraction = fraction[:len(fraction)-1]
		}
		whole += fraction + strings.Repeat("0", decimals-len(fraction))
		whole = strings.TrimLeft(whole, "0")
	}
	if whole == "" {
		return 0, negative, nil
	}
	minor, ok := till.ParseMinor(whole)
	if !ok {
		return 0, false, errTooLarge
	}
	return minor, negative, nil
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// Layouts of times that are no pattern.
const (
	layoutUnix       = "unix"
	layoutUnixMillis = "unix_ms"
)

// timeTokens turn a pattern such as DD/MM/YYYY hh:mm:ss into Go's.
var timeTokens = strings.NewReplacer("YYYY", "2006", "YY", "06", "MMM", "Jan", "MM", "01", "DD", "02",
	"hh12", "03", "hh", "15", "mm", "04", "ss", "05", "AMPM", "PM", "ZZZ", "Z07:00")

// timeLayout returns the layout that a mapping means: "rfc3339", "unix" (seconds
// since 1970), "unix_ms", or a pattern of YYYY, YY, MM, MMM (Jan), DD, hh, hh12,
// mm, ss, AMPM and ZZZ (+01:00). Digits beyond the second are read in any case.
func timeLayout(s string) (string, error) {
	switch s {
	case "rfc3339":
		return time.RFC3339, nil
	case layoutUnix, layoutUnixMillis:
		return s, nil
	}
	layout := timeTokens.Replace(s)
	for _, part := range []string{"2006|06", "01|Jan", "02"} {
		found := false
		for _, p := range strings.Split(part, "|") {
			found = found || strings.Contains(layout, p)
		}
		if !found || len(s) > maxWordLength {
			return "", fmt.Errorf(`%q is not "rfc3339", "unix", "unix_ms" or a pattern such as "DD/MM/YYYY hh:mm:ss"`, s)
		}
	}
	return layout, nil
}

var earliest, latest = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)

// parseTime reads a moment.
func (l *layout) parseTime(s string) (till.Time, error) {
	s = strings.TrimSpace(s)
	var t time.Time
	switch l.time {
	case layoutUnix, layoutUnixMillis:
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || !isDigits(s) {
			return 0, errNoTime
		}
		if t = time.Unix(n, 0); l.time == layoutUnixMillis {
			t = time.UnixMilli(n)
		}
	default:
		var err error
		if t, err = time.ParseInLocation(l.time, s, l.zone); err != nil {
			return 0, errNoTime
		}
	}
	if t.Before(earliest) || !t.Before(latest) {
		return 0, errTimeRange
	}
	return till.TimeOf(t), nil
}
