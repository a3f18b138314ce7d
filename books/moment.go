package books

import (
	"fmt"
	"time"

	"till"
)

// ParseZone reads a time zone: a name, or an offset.
func ParseZone(s string) (*time.Location, error) {
	if t, err := time.Parse("-07:00", s); err == nil {
		_, offset := t.Zone()
		return time.FixedZone(s, offset), nil
	}
	zone, err := time.LoadLocation(s)
	if err != nil || s == "" || s == "Local" {
		return nil, fmt.Errorf(`%q is not a zone that this machine knows, such as "Africa/Brazzaville", nor an offset such as "+01:00"`, s)
	}
	return zone, nil
}

// ParseMoment reads one end of a period: RFC 3339 with any offset, or a day in
// a zone. A day means its first microsecond or, as an end, its last.
func ParseMoment(text string, zone *time.Location, end bool) (till.Time, error) {
	t, err := time.Parse(time.RFC3339, text)
	if err == nil {
		return bounded(till.TimeOf(t)), nil
	}
	day, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return 0, fmt.Errorf("%q is neither a day such as 2026-11-15 nor a moment such as 2026-11-15T08:00:00Z", text)
	}
	if end {
		return bounded(till.TimeOf(dayStart(day.AddDate(0, 0, 1), zone)) - 1), nil
	}
	return bounded(till.TimeOf(dayStart(day, zone))), nil
}

// bounded keeps a time before 1970 from meaning none.
func bounded(t till.Time) till.Time { return max(t, 1) }

// dayStart returns the first moment of a day in a zone. If the clock changes
// at midnight, the day has no midnight, or two.
func dayStart(day time.Time, zone *time.Location) time.Time {
	t := time.Date(day.Year(), day.Month(), day.Day(), 0, 0, 0, 0, zone)
	if t.Day() != day.Day() { // put forward at midnight: the day begins with the change
		_, t = t.ZoneBounds()
		return t
	}
	if changed, _ := t.ZoneBounds(); !changed.IsZero() { // put back to midnight: the earlier of the two
		_, before := changed.Add(-time.Second).Zone()
		_, after := t.Zone()
		if earlier := t.Add(time.Duration(after-before) * time.Second); earlier.Before(changed) && before > after {
			return earlier
		}
	}
	return t
}
