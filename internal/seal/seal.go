package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
)

const (
	keySize = 32 // AES-256
	minSeed = 16 // a shorter installation secret is a mistake
)

// Sealer seals for one use, with the generation that its ring uses, and opens what any
// generation of the ring sealed, unless it is brief.
type Sealer struct {
	ring    *Ring
	label   string
	brief   bool     // see BriefSealer
	ciphers sync.Map // from a generation's key, as a string, to its cipher.AEAD
}

// New returns the sealer of a secret that has one generation.
func New(installation []byte, label string) (*Sealer, error) {
	return Single(installation).Sealer(label)
}

// cipher returns the cipher of a generation's key.
func (s *Sealer) cipher(secret []byte) (cipher.AEAD, error) {
	if c, ok := s.ciphers.Load(string(secret)); ok {
		return c.(cipher.AEAD), nil
	}
	key, err := Key(secret, s.label)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("derive a key: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("derive a key: %w", err)
	}
	s.ciphers.Store(string(secret), aead)
	return aead, nil
}

// Key returns the installation's key for the use that the label names.
func Key(installation []byte, label string) ([]byte, error) {
	if len(installation) < minSeed {
		return nil, errShort
	}
	key, err := hkdf.Key(sha256.New, installation, nil, label, keySize)
	if err != nil {
		return nil, fmt.Errorf("derive a key: %w", err)
	}
	return key, nil
}

// ErrSealed says that sealed bytes do not open: they were changed, belong to
// another place, or were sealed with another installation's secret.
var ErrSealed = errors.New("sealed bytes do not open: they were changed, moved, or sealed by another installation")

// ErrGeneration says that sealed bytes are of a generation that is not in the keyring.
var ErrGeneration = fmt.Errorf("%w: their generation is not in the keyring", ErrSealed)

// Seal encrypts a text: the generation, a random nonce, and the text with a tag.
// The place is bound in, so that what is copied to another does not open there.
func (s *Sealer) Seal(text, place []byte) []byte {
	state := s.ring.state.Load()
	aead, err := s.cipher(state.keys[state.used])
	if err != nil {
		panic("seal: " + err.Error()) // Set and Sealer refuse keys that this can happen with
	}
	n := aead.NonceSize()
	out := make([]byte, 1+n, 1+n+len(text)+aead.Overhead())
	out[0] = byte(state.used)
	rand.Read(out[1:]) // never returns an error; it crashes the program instead
	return aead.Seal(out, out[1:], text, place)
}

// Open decrypts what Seal made for the same place.
func (s *Sealer) Open(sealed, place []byte) ([]byte, error) {
	if len(sealed) == 0 {
		return nil, ErrSealed
	}
	state, generation := s.ring.state.Load(), Generation(sealed)
	key := state.keys[generation]
	if key == nil || s.brief && (generation < state.used || slices.Contains(state.retired, generation)) {
		return nil, ErrGeneration
	}
	aead, err := s.cipher(key)
	if err != nil {
		return nil, err
	}
	n := aead.NonceSize()
	if len(sealed) < 1+n {
		return nil, ErrSealed
	}
	text, err := aead.Open(nil, sealed[1:1+n], sealed[1+n:], place)
	if err != nil {
		return nil, ErrSealed
	}
	return text, nil
}

// Generation returns the generation that sealed some bytes, 0 if there are none.
func Generation(sealed []byte) int {
	if len(sealed) == 0 {
		return 0
	}
	return int(sealed[0])
}
