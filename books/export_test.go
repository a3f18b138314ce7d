package books

import "till"

// LogHeads is one round of RunHeads.
var LogHeads = logHeads

// NewLoggedHeads returns what a process remembers of what it told, at first.
func NewLoggedHeads() map[till.ID]AuditHead { return map[till.ID]AuditHead{} }
