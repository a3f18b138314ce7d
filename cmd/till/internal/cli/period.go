package cli

import (
	"errors"
	"fmt"
	"time"
	_ "time/tzdata" // days are of zones, and small machines do not know them

	"github.com/spf13/cobra"

	"till"
	"till/books"
)

// Period is the period of statement, audit and reconcile.
type Period struct{ from, to, zone string }

// AddPeriod adds --from, --to and --zone.
func AddPeriod(cmd *cobra.Command, p *Period, what, zoneDefault string) {
	f := cmd.Flags()
	f.StringVar(&p.from, "from", "", what+" from this day (2026-11-15) or time (2026-11-15T08:00:00Z) on")
	f.StringVar(&p.to, "to", "", what+" up to the end of this day, or up to this time")
	f.StringVar(&p.zone, "zone", "", `the time zone of days, such as Africa/Brazzaville or +01:00 (default `+zoneDefault+`)`)
}

// Read returns the bounds, both included, zero if unset. Days are in the zone
// of the flag, or else in the given one.
func (p *Period) Read(zone *time.Location) (from, to till.Time, err error) {
	if p.zone != "" {
		if zone, err = books.ParseZone(p.zone); err != nil {
			return 0, 0, fmt.Errorf("--zone %w", err)
		}
	}
	if p.from != "" {
		if from, err = books.ParseMoment(p.from, zone, false); err != nil {
			return 0, 0, fmt.Errorf("--from %w", err)
		}
	}
	if p.to != "" {
		if to, err = books.ParseMoment(p.to, zone, true); err != nil {
			return 0, 0, fmt.Errorf("--to %w", err)
		}
	}
	if to != 0 && from > to {
		return 0, 0, errors.New("--from is after --to")
	}
	return from, to, nil
}

// ParseMoment reads a time from a flag, zero if it is not set.
func ParseMoment(flag, text string) (till.Time, error) {
	if text == "" {
		return 0, nil
	}
	t, ok := till.ParseTime(text)
	if !ok {
		return 0, fmt.Errorf("--%s must be an RFC 3339 time in UTC, for example 2026-03-02T09:15:42Z", flag)
	}
	return t, nil
}
