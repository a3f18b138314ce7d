package secret

import (
	"context"

	"till/books"
	"till/certificates"
	"till/internal/seal"
	"till/people"
	"till/store"
	"till/store/admin"
	"till/tokens"
	"till/webhook"
)

// sealedUse says how a column of sealed bytes is sealed.
type sealedUse struct {
	label string
	place func(k admin.SealedKey) []byte // what a value is bound to
}

// keyPlace binds a value to the key of its row.
func keyPlace(k admin.SealedKey) []byte { return []byte(k.First) }

func secretPlace(k admin.SealedKey) []byte { return webhook.SealPlace(k.IDs()) }

// sealedUses has each column of store.SealedKinds.
var sealedUses = map[admin.SealedKind]sealedUse{
	admin.SealedSecrets:      {webhook.SealLabel, secretPlace},
	admin.SealedOldSecrets:   {webhook.SealLabel, secretPlace},
	admin.SealedTokens:       {tokens.SealLabel, func(k admin.SealedKey) []byte { return tokens.SealPlace(k.First, k.Second) }},
	admin.SealedStrays:       {books.StrayLabel, keyPlace},
	admin.SealedTOTP:         {people.TOTPLabel, keyPlace},
	admin.SealedCertificates: {certificates.SealLabel, keyPlace},
}

// resealSlice is how many values one transaction seals anew.
const resealSlice = 100

// Resealed counts what Reseal did.
type Resealed struct {
	Sealed     int64 // anew
	Unreadable int64 // not opened, and left as they are
}

// Reseal seals all values that another generation sealed with the one in use, a slice at a
// time, behind requests. It may be interrupted at any moment and run by several instances: a
// value is replaced only if it is still the one that was opened.
func Reseal(ctx context.Context, s *store.Store, ring *seal.Ring) (done Resealed, err error) {
	for _, kind := range admin.SealedKinds() {
		use := sealedUses[kind]
		sealer, err := ring.Sealer(use.label)
		if err != nil {
			return done, err
		}
		r := resealer{store: s, kind: kind, use: use, sealer: sealer, generation: ring.Used()}
		for more := true; more; {
			if more, err = r.slice(ctx, &done); err != nil {
				return done, err
			}
		}
	}
	return done, nil
}

// resealer seals one column anew.
type resealer struct {
	store      *store.Store
	kind       admin.SealedKind
	use        sealedUse
	sealer     *seal.Sealer
	generation int
	after      admin.SealedKey
}

// slice seals the next values anew, and reports whether there may be more.
func (r *resealer) slice(ctx context.Context, done *Resealed) (more bool, err error) {
	var found []admin.Sealed
	err = r.store.View(ctx, func(tx *store.Tx) error {
		found, err = admin.SealedByOthers(ctx, tx, r.kind, r.generation, r.after, resealSlice)
		return err
	})
	if err != nil || len(found) == 0 {
		return false, err
	}
	r.after = found[len(found)-1].Key
	again := make([][]byte, len(found))
	for i := range found {
		place := r.use.place(found[i].Key)
		text, err := r.sealer.Open(found[i].Bytes, place)
		if err != nil {
			done.Unreadable++
			continue
		}
		again[i] = r.sealer.Seal(text, place)
	}
	n := int64(0)
	err = r.store.UpdateBackground(ctx, func(tx *store.Tx) error {
		n = 0
		for i := range found {
			if again[i] == nil {
				continue
			}
			wrote, err := admin.WriteSealed(ctx, tx, r.kind, &found[i], again[i])
			if err != nil {
				return err
			}
			if wrote {
				n++
			}
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	done.Sealed += n
	return len(found) == resealSlice, nil
}
