package webhook

import (
	"bytes"
	"errors"
	"testing"

	"till"
	"till/internal/seal"
)

func TestVault(t *testing.T) {
	t.Parallel()
	installation := bytes.Repeat([]byte{7}, 32)
	v, err := NewSecretSealer(seal.Single(installation))
	if err != nil {
		t.Fatal(err)
	}
	client, endpoint, other := till.NewID(1), till.NewID(2), till.NewID(3)
	secret := NewSecret()
	sealed := v.Seal(secret, client, endpoint)

	again, err := NewSecretSealer(seal.Single(installation))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := again.Open(sealed, client, endpoint); err != nil || !bytes.Equal(got, secret) {
		t.Fatalf("the same installation does not open it: %v", err)
	}
	if bytes.Contains(sealed, secret[:8]) {
		t.Error("the secret can be read in what is sealed")
	}
	if bytes.Equal(sealed, v.Seal(secret, client, endpoint)) {
		t.Error("sealed twice, it looks the same: the nonce was used again")
	}

	stranger, err := NewSecretSealer(seal.Single(bytes.Repeat([]byte{8}, 32)))
	if err != nil {
		t.Fatal(err)
	}
	refuse := func(name string, v *SecretSealer, b []byte, client, endpoint till.ID) {
		t.Helper()
		if s, err := v.Open(b, client, endpoint); !errors.Is(err, errSealed) || s != nil {
			t.Errorf("%s: got %v, want %v", name, err, errSealed)
		}
	}
	refuse("another installation", stranger, sealed, client, endpoint)
	refuse("copied to another endpoint", v, sealed, client, other)
	refuse("copied to another client", v, sealed, other, endpoint)
	refuse("client and endpoint exchanged", v, sealed, endpoint, client)
	for i := range sealed {
		changed := bytes.Clone(sealed)
		changed[i] ^= 1
		refuse("one bit changed", v, changed, client, endpoint)
		refuse("cut", v, sealed[:i], client, endpoint)
	}
	refuse("something behind", v, append(bytes.Clone(sealed), 0), client, endpoint)

	if _, err := NewSecretSealer(seal.Single(installation[:15])); err == nil {
		t.Error("a short secret is accepted")
	}
}
