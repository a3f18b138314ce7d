package config

import (
	"slices"
	"time"
)

// maxRefundAge is the most days that a payment may be old when it is given back.
const maxRefundAge = 540

// RefundWays are the ways by which the payments of a connection are given back: by the
// operator's own call, by a payout, or not at all.
var RefundWays = []string{"operator", "payout", "off"}

// Refunds is the part of a file about giving payments back.
type Refunds struct {
	// MaxAgeDays is how old a payment may be; 0 means 90 days.
	MaxAgeDays int `toml:"max_age_days"`
	// Retired are connections that are gone for good: refunds of their payments take the route
	// of payouts.
	Retired []string `toml:"retired"`
}

// MaxAge returns how old a payment may be; 0 means the default.
func (f *Refunds) MaxAge() time.Duration { return time.Duration(f.MaxAgeDays) * 24 * time.Hour }

// refunds checks the part about refunds, after the connections are known.
func (r *reader) refunds(f Refunds) {
	r.checkRange("refunds.max_age_days", f.MaxAgeDays, maxRefundAge)
	for _, name := range f.Retired {
		switch {
		case !validName.MatchString(name):
			r.problem(r.lines.line("refunds.retired"), "a connection's name has lower-case letters, digits, _ and - only")
		case slices.ContainsFunc(r.file.Connections, func(c *Connection) bool { return c.Name == name }):
			r.problem(r.lines.line("refunds.retired"), "the connection %s is in the file, so it is not retired", name)
		}
	}
	r.file.Refunds = f
}
