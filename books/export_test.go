package books

import "till"

// SliceFor makes a comparison read so many rows at once, and look up so many
// lines by key before it walks.
func SliceFor(slice, seeks int) func(c *Comparison) {
	return func(c *Comparison) { c.slice, c.maxSeeks = slice, seeks }
}

// TellHeads is one round of RunHeads.
var TellHeads = tellHeads

// NewTold returns what a process remembers of what it told, at first.
func NewTold() map[till.ID]AuditHead { return map[till.ID]AuditHead{} }
