package pawapay

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"till/provider/wire"
)

// The limits on pawaPay's public keys.
const (
	maxKeys            = 32
	keyLife            = 24 * time.Hour   // then the keys are read again
	minKeyReadInterval = 30 * time.Second // between two reads, whatever key ids callbacks name
	keyTimeout         = 5 * time.Second
	minRSABits         = 2048
)

// keyring caches pawaPay's public keys. An unknown key id makes it read them again, but at
// most every half minute: anyone can send a callback with an invented id.
type keyring struct {
	now   func() time.Time
	fetch func(context.Context) (map[string]crypto.PublicKey, error)

	mu      sync.Mutex
	keys    map[string]crypto.PublicKey
	readAt  time.Time // when they were read
	triedAt time.Time // when reading was tried
}

func newKeyring(now func() time.Time, fetch func(context.Context) (map[string]crypto.PublicKey, error)) *keyring {
	return &keyring{now: now, fetch: fetch}
}

// key returns the key of an id. Callers that come during a read wait for it.
func (k *keyring) key(id string) (crypto.PublicKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	if key, ok := k.keys[id]; ok && now.Sub(k.readAt) < keyLife {
		return key, nil
	}
	if k.triedAt.IsZero() || now.Sub(k.triedAt) >= minKeyReadInterval {
		k.triedAt = now
		ctx, cancel := context.WithTimeout(context.Background(), keyTimeout)
		defer cancel()
		keys, err := k.fetch(ctx)
		if err != nil {
			return nil, fmt.Errorf("pawaPay's public keys: %w", err)
		}
		k.keys, k.readAt = keys, now
	}
	if key, ok := k.keys[id]; ok && now.Sub(k.readAt) < keyLife {
		return key, nil
	}
	return nil, errors.New("pawaPay has no key of that id")
}

// fetchKeys fetches pawaPay's public keys.
func (o *Operator) fetchKeys(ctx context.Context) (map[string]crypto.PublicKey, error) {
	reply, err := o.call(ctx, http.MethodGet, "/v2/public-key/http", nil)
	if err != nil {
		return nil, err
	}
	if err := statusError(reply.Status); err != nil {
		return nil, err
	}
	return readKeys(reply.Body)
}

// readKeys parses the list of keys. It skips a key that is unreadable or too weak: a new
// kind of key must not disable the old ones.
func readKeys(body []byte) (map[string]crypto.PublicKey, error) {
	var list []struct {
		ID  wire.Text `json:"id"`
		Key wire.Text `json:"key"`
	}
	if err := wire.Decode(body, &list); err != nil {
		return nil, err
	}
	if len(list) > maxKeys {
		return nil, fmt.Errorf("more than %d keys", maxKeys)
	}
	keys := make(map[string]crypto.PublicKey, len(list))
	for _, item := range list {
		block, _ := pem.Decode([]byte(item.Key))
		if block == nil {
			continue
		}
		key, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			continue
		}
		switch k := key.(type) {
		case *ecdsa.PublicKey:
			keys[string(item.ID)] = k
		case *rsa.PublicKey:
			if k.N.BitLen() >= minRSABits {
				keys[string(item.ID)] = k
			}
		}
	}
	return keys, nil
}
