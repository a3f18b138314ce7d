package look

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // a machine without a zone table still shows the merchant's time

	"till"
)

var (
	months = map[string][12]string{
		English: {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"},
		French:  {"janv.", "févr.", "mars", "avr.", "mai", "juin", "juil.", "août", "sept.", "oct.", "nov.", "déc."},
	}
	wholeMonths = map[string][12]string{
		English: {"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"},
		French:  {"janvier", "février", "mars", "avril", "mai", "juin", "juillet", "août", "septembre", "octobre", "novembre", "décembre"},
	}
	weekdays = map[string][7]string{
		English: {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"},
		French:  {"dimanche", "lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi"},
	}
)

// Clock shows moments in one language and one zone.
type Clock struct {
	Lang string
	Zone *time.Location
}

// NewClock returns the clock of a zone; an unknown name is UTC.
func NewClock(lang, zone string) Clock {
	l, err := time.LoadLocation(zone)
	if err != nil || zone == "Local" {
		l = time.UTC
	}
	return Clock{lang, l}
}

// In returns the moment in the clock's zone.
func (c Clock) In(t till.Time) time.Time { return t.Std().In(c.Zone) }

// Time returns 14:02:10.
func (c Clock) Time(t till.Time) string { return c.In(t).Format("15:04:05") }

// Minute returns 14:02.
func (c Clock) Minute(t till.Time) string { return c.In(t).Format("15:04") }

// Millis returns what follows the seconds of Time: .120, in French ,120.
func (c Clock) Millis(t till.Time) string {
	_, point := marks(c.Lang)
	return point + fmt.Sprintf("%03d", c.In(t).Nanosecond()/1_000_000)
}

// Date returns 14 Nov 2026.
func (c Clock) Date(t till.Time) string { return c.ShortDate(t) + " " + strconv.Itoa(c.In(t).Year()) }

// ShortDate returns 14 Nov.
func (c Clock) ShortDate(t till.Time) string {
	at := c.In(t)
	day := strconv.Itoa(at.Day())
	if c.Lang == French && day == "1" {
		day = "1er"
	}
	return day + " " + months[c.Lang][at.Month()-1]
}

// DateTime returns 14 Nov 2026, 14:02.
func (c Clock) DateTime(t till.Time) string { return c.Date(t) + ", " + c.Minute(t) }

// Moment returns the time of a moment, with the day in front if it is another
// day than that of now.
func (c Clock) Moment(t, now till.Time) string {
	if c.SameDay(t, now) {
		return c.Time(t)
	}
	return c.ShortDate(t) + ", " + c.Time(t)
}

// Day returns Saturday 14 Nov, with the year where it is not that of now.
func (c Clock) Day(t, now till.Time) string {
	at := c.In(t)
	s := weekdays[c.Lang][at.Weekday()] + " " + c.ShortDate(t)
	if at.Year() != c.In(now).Year() {
		s += " " + strconv.Itoa(at.Year())
	}
	return s
}

// Month returns November, in lower case in French.
func (c Clock) Month(t till.Time) string { return wholeMonths[c.Lang][c.In(t).Month()-1] }

// SameDay reports whether two moments are on one day of the zone.
func (c Clock) SameDay(t, u till.Time) bool {
	a, b := c.In(t), c.In(u)
	return a.YearDay() == b.YearDay() && a.Year() == b.Year()
}

// StartOfDay returns the first moment of the day of t, some days later.
func (c Clock) StartOfDay(t till.Time, days int) till.Time {
	at := c.In(t)
	return till.TimeOf(time.Date(at.Year(), at.Month(), at.Day()+days, 0, 0, 0, 0, c.Zone))
}

// StartOfMonth returns the first moment of the month of t, some months later.
func (c Clock) StartOfMonth(t till.Time, later int) till.Time {
	at := c.In(t)
	return till.TimeOf(time.Date(at.Year(), at.Month()+time.Month(later), 1, 0, 0, 0, 0, c.Zone))
}

// Ranges are the names that Range knows, as lists offer them.
var Ranges = []string{"today", "yesterday", "week", "month", "last_month", "all"}

// Range returns the ends of a named range of time, both included: zero where it has none.
func (c Clock) Range(name string, now till.Time) (from, to till.Time) {
	switch name {
	case "today":
		from = c.StartOfDay(now, 0)
	case "yesterday":
		from, to = c.StartOfDay(now, -1), c.StartOfDay(now, 0)-1
	case "week":
		from = c.StartOfDay(now, -(int(c.In(now).Weekday())+6)%7)
	case "month":
		from = c.StartOfMonth(now, 0)
	case "last_month":
		from, to = c.StartOfMonth(now, -1), c.StartOfMonth(now, 0)-1
	}
	return from, to
}

// ParseDay reads 2026-11-14 as the first moment of that day in the zone.
func (c Clock) ParseDay(s string) (till.Time, bool) {
	t, err := time.ParseInLocation("2006-01-02", s, c.Zone)
	if err != nil || t.Year() < 1970 || t.Year() > 9999 {
		return 0, false
	}
	return till.TimeOf(t), true
}

// ISODay returns 2026-11-14, as a date field wants it.
func (c Clock) ISODay(t till.Time) string { return c.In(t).Format("2006-01-02") }

// Local returns 2026-11-14 14:02:10, for tables that a program reads.
func (c Clock) Local(t till.Time) string { return c.In(t).Format("2006-01-02 15:04:05") }

// Offset returns the zone's offset from UTC at a moment: UTC+1.
func (c Clock) Offset(t till.Time) string {
	_, seconds := c.In(t).Zone()
	sign := "+"
	if seconds < 0 {
		sign, seconds = minusSign, -seconds
	}
	switch minutes := seconds / 60; {
	case minutes == 0:
		return "UTC"
	case minutes%60 == 0:
		return "UTC" + sign + strconv.Itoa(minutes/60)
	default:
		return fmt.Sprintf("UTC%s%d:%02d", sign, minutes/60, minutes%60)
	}
}

// City returns the place that the zone is named after: Brazzaville.
func (c Clock) City() string {
	name := c.Zone.String()
	return strings.ReplaceAll(name[strings.LastIndexByte(name, '/')+1:], "_", " ")
}

// Span returns a length of time in its two largest units: 4 min 12 s.
func Span(lang string, d time.Duration) string {
	day := "d"
	if lang == French {
		day = "j"
	}
	units := []struct {
		size time.Duration
		name string
	}{{24 * time.Hour, day}, {time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}}
	for i, u := range units {
		if d < u.size && u.size > time.Second {
			continue
		}
		s := Count(lang, int64(d/u.size)) + wideSpace + u.name
		if i+1 < len(units) {
			if rest := d % u.size / units[i+1].size; rest > 0 {
				s += " " + strconv.FormatInt(int64(rest), 10) + wideSpace + units[i+1].name
			}
		}
		return s
	}
	return ""
}
