package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
)

const (
	keySize = 32 // AES-256
	minSeed = 16 // a shorter installation secret is a mistake
)

// Version is the first byte of everything sealed.
const Version = 1

// Sealer seals for one use.
type Sealer struct {
	aead cipher.AEAD
}

// New returns the sealer of an installation for the use that the label names.
func New(installation []byte, label string) (*Sealer, error) {
	key, err := Key(installation, label)
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
	return &Sealer{aead}, nil
}

// Key returns the installation's key for the use that the label names.
func Key(installation []byte, label string) ([]byte, error) {
	if len(installation) < minSeed {
		return nil, errors.New("the installation's secret is too short to seal with")
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

// Seal encrypts a text: the version, a random nonce, and the text with a tag.
// The place is bound in, so that what is copied to another does not open there.
func (s *Sealer) Seal(text, place []byte) []byte {
	n := s.aead.NonceSize()
	out := make([]byte, 1+n, 1+n+len(text)+s.aead.Overhead())
	out[0] = Version
	rand.Read(out[1:]) // never returns an error; it crashes the program instead
	return s.aead.Seal(out, out[1:], text, place)
}

// Open decrypts what Seal made for the same place.
func (s *Sealer) Open(sealed, place []byte) ([]byte, error) {
	n := s.aead.NonceSize()
	if len(sealed) < 1+n || sealed[0] != Version {
		return nil, ErrSealed
	}
	text, err := s.aead.Open(nil, sealed[1:1+n], sealed[1+n:], place)
	if err != nil {
		return nil, ErrSealed
	}
	return text, nil
}
