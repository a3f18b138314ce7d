package books

import "till"

// SliceFor makes a comparison read so many rows at once, and look up so many
// lines by key before it walks.
func SliceFor(slice, seeks int) func(c *ReconcileOptions) {
	return func(c *ReconcileOptions) { c.slice, c.maxLookups = slice, seeks }
}

// LogHeads is one round of RunHeads.
var LogHeads = logHeads

// NewLoggedHeads returns what a process remembers of what it told, at first.
func NewLoggedHeads() map[till.ID]AuditHead { return map[till.ID]AuditHead{} }
