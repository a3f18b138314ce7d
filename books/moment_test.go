package books

import (
	"testing"
	"time"
	_ "time/tzdata" // the zones of the table
)

func TestADayIsAWholeDayOfItsZone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, zone, from, to string }{
		{"2026-11-15", "UTC", "2026-11-15T00:00:00.000000Z", "2026-11-15T23:59:59.999999Z"},
		{"2026-11-15", "+01:00", "2026-11-14T23:00:00.000000Z", "2026-11-15T22:59:59.999999Z"},
		{"2026-11-15", "Africa/Brazzaville", "2026-11-14T23:00:00.000000Z", "2026-11-15T22:59:59.999999Z"},
		{"2026-11-15", "-09:30", "2026-11-15T09:30:00.000000Z", "2026-11-16T09:29:59.999999Z"},
		{"2024-02-29", "Africa/Nairobi", "2024-02-28T21:00:00.000000Z", "2024-02-29T20:59:59.999999Z"},
		{"2025-03-30", "Europe/Paris", "2025-03-29T23:00:00.000000Z", "2025-03-30T21:59:59.999999Z"},   // 23 hours
		{"2025-10-26", "Europe/Paris", "2025-10-25T22:00:00.000000Z", "2025-10-26T22:59:59.999999Z"},   // 25 hours
		{"2023-04-28", "Africa/Cairo", "2023-04-27T22:00:00.000000Z", "2023-04-28T20:59:59.999999Z"},   // it has no midnight
		{"2023-04-27", "Africa/Cairo", "2023-04-26T22:00:00.000000Z", "2023-04-27T21:59:59.999999Z"},   // nor has the end of this one
		{"2023-11-05", "America/Havana", "2023-11-05T04:00:00.000000Z", "2023-11-06T04:59:59.999999Z"}, // it has two
		{"2023-10-27", "Africa/Cairo", "2023-10-26T22:00:00.000000Z", "2023-10-27T21:59:59.999999Z"},   // the day before ended an hour later
		{"2026-11-15T08:00:00+02:00", "Africa/Cairo", "2026-11-15T06:00:00.000000Z", "2026-11-15T06:00:00.000000Z"},
		{"2026-11-15T08:00:00.123456Z", "+01:00", "2026-11-15T08:00:00.123456Z", "2026-11-15T08:00:00.123456Z"},
		{"1969-12-31", "UTC", "1970-01-01T00:00:00.000001Z", "1970-01-01T00:00:00.000001Z"}, // not "no bound"
	} {
		zone, err := ParseZone(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		from, err1 := ParseMoment(c.text, zone, false)
		to, err2 := ParseMoment(c.text, zone, true)
		if err1 != nil || err2 != nil || from.String() != c.from || to.String() != c.to {
			t.Errorf("%s in %s is from %s to %s, %v %v; want %s to %s", c.text, c.zone, from, to, err1, err2, c.from, c.to)
		}
	}
	for _, text := range []string{"", "yesterday", "2026-02-30", "2026-11-15T08:00:00", "15/11/2026", "2026-11-15 08:00"} {
		if got, err := ParseMoment(text, time.UTC, false); err == nil {
			t.Errorf("%q is %s", text, got)
		}
	}
	for _, zone := range []string{"", "Local", "Mars/Olympus", "+1", "../../etc/passwd"} {
		if got, err := ParseZone(zone); err == nil {
			t.Errorf("%q is the zone %s", zone, got)
		}
	}
}
