package webhook

import (
	"errors"
	"fmt"

	"till"
	"till/internal/seal"
)

// SealLabel separates this key from all other keys that are derived from the installation's
// secret.
const SealLabel = "till webhook secrets v1"

// SecretSealer encrypts endpoints' secrets for the database, with a key derived from the
// installation's secret. So a copy of the database alone cannot sign.
type SecretSealer struct {
	sealer *seal.Sealer
}

// NewSecretSealer returns the sealer of an installation.
func NewSecretSealer(ring *seal.Ring) (*SecretSealer, error) {
	s, err := ring.Sealer(SealLabel)
	if err != nil {
		return nil, fmt.Errorf("webhook secrets: %w", err)
	}
	return &SecretSealer{s}, nil
}

// errSealed says that a sealed secret cannot be decrypted: it was changed, belongs to
// another endpoint, or was sealed with another installation's secret.
var errSealed = errors.New("the webhook secret does not open: it was changed, moved, or sealed by another installation")

// Seal encrypts an endpoint's secret. The ids are part of the encryption, so a row that is
// copied to another endpoint cannot be decrypted there.
func (v *SecretSealer) Seal(secret Secret, client, endpoint till.ID) []byte {
	return v.sealer.Seal(secret, SealPlace(client, endpoint))
}

// Open decrypts what Seal made for the same client and endpoint.
func (v *SecretSealer) Open(sealed []byte, client, endpoint till.ID) (Secret, error) {
	s, err := v.sealer.Open(sealed, SealPlace(client, endpoint))
	if err != nil {
		return nil, errSealed
	}
	return s, nil
}

// contextVersion begins what is bound in. It does not change with the generation, so that
// old secrets open.
const contextVersion = 1

// SealPlace returns what a sealed secret is bound to.
func SealPlace(client, endpoint till.ID) []byte {
	b := make([]byte, 0, 1+len(client)+len(endpoint))
	b = append(b, contextVersion)
	b = append(b, client[:]...)
	return append(b, endpoint[:]...)
}
