package privacy

import (
	"context"

	"till/store"
	"till/store/lookup"
)

// PersonDataInPages is PersonData that reads so many payments, and compares so many phones,
// at once.
func PersonDataInPages(ctx context.Context, s *store.Store, key lookup.PhoneKey, phone string, refs, scanned int, each func(r *PersonRecord) error) error {
	return personData(ctx, s, personReader{key: key, phone: phone, each: each, refs: refs, scanned: scanned})
}
