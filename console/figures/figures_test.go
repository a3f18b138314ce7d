package figures

import (
	"testing"
	"time"

	"till"
	"till/console/look"
	"till/store"
)

// E17: an hour falls on the day of the merchant's zone.
func TestDaysAreThoseOfTheZone(t *testing.T) {
	t.Parallel()
	for zone, hour := range map[string]int{"Africa/Brazzaville": 23, "Africa/Nairobi": 21, "UTC": 0, "America/New_York": 5} {
		clock := look.NewClock("en", zone)
		day := 14
		if hour > 12 {
			day = 13
		}
		midnight := till.TimeOf(time.Date(2026, 11, day, hour, 0, 0, 0, time.UTC)) // of the 14th, there
		f := &figures{clock: clock, From: clock.StartOfDay(midnight, -1), To: clock.StartOfDay(midnight, 1)}
		f.slots = []till.Time{f.From, midnight}
		if a, b := f.slotOf(store.HourOf(midnight.Add(-30*time.Minute))), f.slotOf(store.HourOf(midnight.Add(30*time.Minute))); a != 0 || b != 1 {
			t.Errorf("%s: half past eleven falls on slot %d, half past twelve on %d", zone, a, b)
		}
		if clock.StartOfDay(midnight.Add(time.Hour), 0) != midnight {
			t.Errorf("%s: the day does not begin at midnight", zone)
		}
	}
}
