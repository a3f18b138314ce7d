package seal

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
)

// MaxGeneration is the highest generation: its number is one byte.
const MaxGeneration = 255

// Ring holds the keys of an installation. The root derives what must never change. Each
// generation seals, and its number is the first byte of what it sealed. The root is also
// the first generation. Generations change while the program runs. A Ring is safe for
// concurrent use.
type Ring struct {
	root  []byte
	state atomic.Pointer[ringState]
}

// ringState never changes: a reader sees one moment.
type ringState struct {
	keys map[int][]byte
	used int
	live [][]byte // the keys of generations that are not retired, the used one first

	retired []int
}

// NewRing returns a ring that seals with one of its generations. Retired generations still
// open what they sealed, and are good for nothing else.
func NewRing(generations map[int][]byte, use int, retired []int) (*Ring, error) {
	r := &Ring{root: slices.Clone(generations[1])}
	if err := r.Set(generations, use, retired); err != nil {
		return nil, err
	}
	return r, nil
}

// Single returns the ring of a secret that is root and only generation.
func Single(secret []byte) *Ring {
	secret = slices.Clone(secret)
	r := &Ring{root: secret}
	r.state.Store(&ringState{keys: map[int][]byte{1: secret}, used: 1, live: [][]byte{secret}})
	return r
}

var errShort = errors.New("the installation's secret is too short to seal with")

// Set replaces the generations, and says which one seals from now on.
func (r *Ring) Set(generations map[int][]byte, use int, retired []int) error {
	s := &ringState{keys: map[int][]byte{}, used: use, retired: slices.Clone(retired)}
	for g, key := range generations {
		if g < 1 || g > MaxGeneration {
			return fmt.Errorf("a generation is from 1 to %d, not %d", MaxGeneration, g)
		}
		if len(key) < minSeed {
			return errShort
		}
		s.keys[g] = slices.Clone(key)
	}
	if s.keys[1] == nil || s.keys[use] == nil {
		return fmt.Errorf("generation %d is not in the keyring", use)
	}
	s.live = append(s.live, s.keys[use])
	for _, g := range slices.Sorted(maps.Keys(s.keys)) {
		if g != use && !slices.Contains(retired, g) {
			s.live = append(s.live, s.keys[g])
		}
	}
	r.state.Store(s)
	return nil
}

// Root returns the secret that is never rotated.
func (r *Ring) Root() []byte { return r.root }

// Used returns the generation that seals.
func (r *Ring) Used() int { return r.state.Load().used }

// Generations returns the generations that open, in order.
func (r *Ring) Generations() []int { return slices.Sorted(maps.Keys(r.state.Load().keys)) }

// Keys returns the key of each generation that opens.
func (r *Ring) Keys() map[int][]byte { return maps.Clone(r.state.Load().keys) }

// Live returns the keys of the generations that are not retired, the one that seals first.
// The caller must not change them.
func (r *Ring) Live() [][]byte { return r.state.Load().live }

// Sealer returns the sealer for the use that the label names.
func (r *Ring) Sealer(label string) (*Sealer, error) {
	s := &Sealer{ring: r, label: label}
	for _, key := range r.state.Load().keys {
		if _, err := s.cipher(key); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// BriefSealer is Sealer for what lives for minutes or hours and is kept nowhere: forms,
// addresses, links. It opens what the generation in use sealed, or a newer one that other
// instances use already. So nobody can forge anything with a key that was replaced.
func (r *Ring) BriefSealer(label string) (*Sealer, error) {
	s, err := r.Sealer(label)
	if err == nil {
		s.brief = true
	}
	return s, err
}
