package shell

import (
	"testing"

	"till/internal/seal"
)

// Sealed addresses and handset links end with the key that sealed them.
func TestSealedAddressesEndWithTheirKey(t *testing.T) {
	t.Parallel()
	w := newHouse(t)
	keys := map[int][]byte{1: []byte("a secret for tests only"), 2: []byte("another secret of tests")}
	ring, err := seal.NewRing(keys, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := w.console.Config
	c.Ring = ring
	k, err := New(c, Rooms{})
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*seal.Sealer{"a phone in an address": k.addresses, "a handset's link": k.Phones} {
		sealed := s.Seal([]byte("242061230001"), nil)
		if _, err := s.Open(sealed, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := ring.Set(keys, 2, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Open(sealed, nil); err == nil {
			t.Errorf("%s opens after the rotation", name)
		}
		if err := ring.Set(keys, 1, nil); err != nil {
			t.Fatal(err)
		}
	}
}
