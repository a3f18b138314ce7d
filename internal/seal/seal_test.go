package seal_test

import (
	"bytes"
	"errors"
	"testing"

	"till/internal/seal"
)

func TestWhatIsSealedOpensInItsPlaceOnly(t *testing.T) {
	t.Parallel()
	secret := bytes.Repeat([]byte{7}, 32)
	s, err := seal.New(secret, "one use")
	if err != nil {
		t.Fatal(err)
	}
	sealed := s.Seal([]byte("a token"), []byte("here"))
	if got, err := s.Open(sealed, []byte("here")); err != nil || string(got) != "a token" {
		t.Errorf("got %q, %v", got, err)
	}
	if bytes.Contains(sealed, []byte("a token")) {
		t.Error("it is not encrypted")
	}
	if again := s.Seal([]byte("a token"), []byte("here")); bytes.Equal(again, sealed) {
		t.Error("the same text is sealed to the same bytes twice")
	}
	another, _ := seal.New(secret, "another use")
	foreign, _ := seal.New(bytes.Repeat([]byte{8}, 32), "one use")
	changed := bytes.Clone(sealed)
	changed[len(changed)-1] ^= 1
	for name, open := range map[string]func() ([]byte, error){
		"in another place":        func() ([]byte, error) { return s.Open(sealed, []byte("there")) },
		"for another use":         func() ([]byte, error) { return another.Open(sealed, []byte("here")) },
		"by another installation": func() ([]byte, error) { return foreign.Open(sealed, []byte("here")) },
		"changed":                 func() ([]byte, error) { return s.Open(changed, []byte("here")) },
		"cut":                     func() ([]byte, error) { return s.Open(sealed[:5], []byte("here")) },
		"empty":                   func() ([]byte, error) { return s.Open(nil, []byte("here")) },
	} {
		if got, err := open(); !errors.Is(err, seal.ErrSealed) {
			t.Errorf("%s it opens: %q, %v", name, got, err)
		}
	}
	if _, err := seal.New([]byte("short"), "one use"); err == nil {
		t.Error("a short secret is taken")
	}
}
