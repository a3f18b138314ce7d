package webhook

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"

	"till"
)

const (
	vaultLabel   = "till webhook secrets v1" // so that no other use of the installation's secret has this key
	vaultKeySize = 32                        // AES-256
	vaultVersion = 1                         // the first byte of everything sealed
	minVaultSeed = 16                        // a shorter installation secret is a mistake
)

// Vault seals the secrets of endpoints for the database, with a key that is
// derived from the installation's secret: whoever reads the database alone
// cannot sign.
type Vault struct {
	aead cipher.AEAD
}

// NewVault returns the vault of an installation.
func NewVault(installation []byte) (*Vault, error) {
	if len(installation) < minVaultSeed {
		return nil, errors.New("the installation's secret is too short to seal webhook secrets with")
	}
	key, err := hkdf.Key(sha256.New, installation, nil, vaultLabel, vaultKeySize)
	if err != nil {
		return nil, fmt.Errorf("derive the key of webhook secrets: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("derive the key of webhook secrets: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("derive the key of webhook secrets: %w", err)
	}
	return &Vault{aead}, nil
}

// ErrSealed says that sealed bytes do not open: they were changed, belong to
// another endpoint, or were sealed with another installation's secret.
var ErrSealed = errors.New("the webhook secret does not open: it was changed, moved, or sealed by another installation")

// Seal encrypts an endpoint's secret: the version, a random nonce, and the
// secret with a tag. The ids are bound in, so that a row copied to another
// endpoint does not open there.
func (v *Vault) Seal(secret Secret, client, endpoint till.ID) []byte {
	n := v.aead.NonceSize()
	out := make([]byte, 1+n, 1+n+len(secret)+v.aead.Overhead())
	out[0] = vaultVersion
	rand.Read(out[1:]) // never returns an error; it crashes the program instead
	return v.aead.Seal(out, out[1:], secret, vaultContext(client, endpoint))
}

// Open decrypts what Seal made for the same client and endpoint.
func (v *Vault) Open(sealed []byte, client, endpoint till.ID) (Secret, error) {
	n := v.aead.NonceSize()
	if len(sealed) < 1+n || sealed[0] != vaultVersion {
		return nil, ErrSealed
	}
	s, err := v.aead.Open(nil, sealed[1:1+n], sealed[1+n:], vaultContext(client, endpoint))
	if err != nil {
		return nil, ErrSealed
	}
	return s, nil
}

func vaultContext(client, endpoint till.ID) []byte {
	b := make([]byte, 0, 1+len(client)+len(endpoint))
	b = append(b, vaultVersion)
	b = append(b, client[:]...)
	return append(b, endpoint[:]...)
}
