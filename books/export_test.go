package books

import (
	"context"

	"till"
	"till/store"
)

// SliceFor makes a comparison read so many rows at once, and look up so many
// lines by key before it walks.
func SliceFor(slice, seeks int) func(c *ReconcileOptions) {
	return func(c *ReconcileOptions) { c.slice, c.maxLookups = slice, seeks }
}

// LogHeads is one round of RunHeads.
var LogHeads = logHeads

// NewLoggedHeads returns what a process remembers of what it told, at first.
func NewLoggedHeads() map[till.ID]AuditHead { return map[till.ID]AuditHead{} }

// PersonDataInPages is PersonData that reads so many payments, and compares so many phones,
// at once.
func PersonDataInPages(ctx context.Context, s *store.Store, key store.PhoneKey, phone string, refs, scanned int, each func(r *PersonRecord) error) error {
	return personData(ctx, s, personReader{key: key, phone: phone, each: each, refs: refs, scanned: scanned})
}
