package till

import (
	"time"
)

// Time is a moment in microseconds since 1970 UTC, the precision at which
// everything is stored, compared and shown. Zero means unset.
type Time int64

// TimeOf returns t cut to microseconds.
func TimeOf(t time.Time) Time { return Time(t.UnixMicro()) }

// Add returns the moment d later.
func (t Time) Add(d time.Duration) Time { return t + Time(d.Microseconds()) }

// Sub returns the span from u to t.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t-u) * time.Microsecond }

// Std returns the moment as a time.Time in UTC.
func (t Time) Std() time.Time { return time.UnixMicro(int64(t)).UTC() }

// IsZero reports whether the moment is unset.
func (t Time) IsZero() bool { return t == 0 }

// timeLayout has exactly six decimals, so that a value copied from an answer
// into a date filter includes its own payment.
const timeLayout = "2006-01-02T15:04:05.000000Z"

// Append appends the moment as RFC 3339 in UTC with six decimals.
func (t Time) Append(b []byte) []byte { return t.Std().AppendFormat(b, timeLayout) }

// String returns the moment as RFC 3339 in UTC with six decimals.
func (t Time) String() string { return t.Std().Format(timeLayout) }

// maxTime is the last moment that has a four-digit year.
var maxTime = TimeOf(time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC))

// ParseTime reads an RFC 3339 timestamp in UTC: its zone is Z or +00:00, and
// a plus sign that a URL turned into a space is accepted. Digits beyond the
// microsecond are cut off. It reports false for anything else.
func ParseTime(s string) (Time, bool) {
	if n := len(s); n > 6 && s[n-6] == ' ' && s[n-5:] == "00:00" {
		s = s[:n-6] + "+00:00"
	}
	// time.Parse alone would take a comma, a one-digit hour and any zone.
	if len(s) < 20 || len(s) > 40 || s[10] != 'T' || s[13] != ':' {
		return 0, false
	}
	for i := range len(s) {
		if s[i] == ',' {
			return 0, false
		}
	}
	if s[len(s)-1] != 'Z' && s[len(s)-6:] != "+00:00" {
		return 0, false
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return 0, false
	}
	if t.Year() < 1 {
		return 0, false
	}
	// Before 1970 nothing exists; the filter still means what it says.
	return min(max(TimeOf(t), 1), maxTime), true
}
