package seal_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"till/internal/seal"
)

// Each generation opens what it sealed, the one in use seals, and a retired one is good for
// nothing else.
func TestARingSealsWithTheGenerationInUse(t *testing.T) {
	t.Parallel()
	keys := map[int][]byte{}
	for g := 1; g <= 3; g++ {
		keys[g] = bytes.Repeat([]byte{byte(g)}, 32)
	}
	ring, err := seal.NewRing(map[int][]byte{1: keys[1]}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := ring.Sealer("one use")
	if err != nil {
		t.Fatal(err)
	}
	here := []byte("here")
	first := s.Seal([]byte("first"), here)
	single, err := seal.New(keys[1], "one use")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := single.Open(first, here); err != nil || string(got) != "first" {
		t.Errorf("the first generation is not the secret as it was: %q, %v", got, err)
	}
	opens := func(sealed []byte, generation int, text string) {
		t.Helper()
		if got, err := s.Open(sealed, here); err != nil || string(got) != text || seal.Generation(sealed) != generation {
			t.Errorf("got %q of generation %d, %v; want %q of %d", got, seal.Generation(sealed), err, text, generation)
		}
	}
	if err := ring.Set(map[int][]byte{1: keys[1], 2: keys[2]}, 2, nil); err != nil {
		t.Fatal(err)
	}
	second := s.Seal([]byte("second"), here)
	opens(first, 1, "first")
	opens(second, 2, "second")
	if live := ring.Live(); len(live) != 2 || !bytes.Equal(live[0], keys[2]) || !bytes.Equal(live[1], keys[1]) {
		t.Error("the generation in use is not the first of those that count")
	}
	changed := bytes.Clone(second)
	changed[0] = 1
	if _, err := s.Open(changed, here); !errors.Is(err, seal.ErrSealed) {
		t.Errorf("as if another generation had sealed it, it opens: %v", err)
	}

	if err := ring.Set(keys, 3, []int{1, 2}); err != nil {
		t.Fatal(err)
	}
	opens(first, 1, "first")
	opens(second, 2, "second")
	if live := ring.Live(); len(live) != 1 || !bytes.Equal(live[0], keys[3]) {
		t.Error("retired generations still count")
	}
	if !bytes.Equal(ring.Root(), keys[1]) || !slices.Equal(ring.Generations(), []int{1, 2, 3}) || ring.Used() != 3 {
		t.Errorf("the ring has %v and uses %d", ring.Generations(), ring.Used())
	}

	for name, wrong := range map[string]func() error{
		"without the one in use": func() error { return ring.Set(map[int][]byte{1: keys[1]}, 2, nil) },
		"without the root":       func() error { return ring.Set(map[int][]byte{2: keys[2]}, 2, nil) },
		"with a short key":       func() error { return ring.Set(map[int][]byte{1: keys[1], 2: keys[2][:8]}, 1, nil) },
		"with a number too high": func() error { return ring.Set(map[int][]byte{1: keys[1], 256: keys[2]}, 1, nil) },
	} {
		if wrong() == nil {
			t.Errorf("a ring %s is taken", name)
		}
	}
	if ring.Used() != 3 {
		t.Error("a refused change has changed the ring")
	}
	if err := ring.Set(map[int][]byte{1: keys[1], 3: keys[3]}, 3, []int{1, 2}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(second, here); !errors.Is(err, seal.ErrGeneration) {
		t.Errorf("of a generation that is not here: %v", err)
	}
}

// What lives minutes dies with the key that could forge it: it opens under the generation
// in use, or a newer one that an instance in front uses already.
func TestABriefSealerOpensNothingOfAReplacedGeneration(t *testing.T) {
	t.Parallel()
	keys := map[int][]byte{}
	for g := 1; g <= 3; g++ {
		keys[g] = bytes.Repeat([]byte{byte(g)}, 32)
	}
	at := func(use int, retired ...int) *seal.Sealer {
		ring, err := seal.NewRing(keys, use, retired)
		if err != nil {
			t.Fatal(err)
		}
		s, err := ring.BriefSealer("one use")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	here := []byte("here")
	for _, c := range []struct {
		name        string
		sealed, use int
		retired     []int
		opens       bool
	}{
		{"the one in use", 2, 2, nil, true},
		{"a newer one", 3, 2, nil, true},
		{"one that was replaced", 1, 2, nil, false},
		{"one that is retired", 1, 2, []int{1}, false},
		{"a newer one that is retired", 3, 2, []int{3}, false},
	} {
		_, err := at(c.use, c.retired...).Open(at(c.sealed).Seal([]byte("text"), here), here)
		if (err == nil) != c.opens || err != nil && !errors.Is(err, seal.ErrSealed) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
