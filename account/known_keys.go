package account

import (
	"crypto/subtle"
	"strings"
	"sync"

	"till"
)

// knownKeys holds the keys that have opened a session on this instance since its
// start, until they are revoked or expire. It only chooses the slot for a read: a
// known key never waits behind unknown ones.
type knownKeys struct {
	mu   sync.RWMutex
	keys map[string]knownKey // by key id
}

type knownKey struct {
	client till.ID
	hash   [32]byte
}

// maxKnownKeys is how many keys are held. Another key evicts an arbitrary one, which
// counts as unknown until its next use.
const maxKnownKeys = 10_000

func (s *knownKeys) init() { s.keys = make(map[string]knownKey) }

// find returns the client of a key that has opened a session here with this secret; false
// for any other.
func (s *knownKeys) find(id, secret string) (till.ID, bool) {
	s.mu.RLock()
	k, found := s.keys[id]
	s.mu.RUnlock()
	got := hashSecret(secret)
	same := subtle.ConstantTimeCompare(got[:], k.hash[:]) == 1
	return k.client, found && same
}

// add notes that a key has opened a session.
func (s *knownKeys) add(k *till.Key) {
	s.mu.RLock()
	_, found := s.keys[k.ID]
	s.mu.RUnlock()
	if found {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.keys {
		if len(s.keys) < maxKnownKeys {
			break
		}
		delete(s.keys, id)
	}
	s.keys[strings.Clone(k.ID)] = knownKey{k.ClientID, k.SecretHash}
}

// remove forgets a key that has ended.
func (s *knownKeys) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.keys, id)
}

// KnownKey returns the client and id of a key that has opened a session on this instance,
// without reading the database. It authenticates nobody: the key may have ended since.
func (a *Accounts) KnownKey(text string) (client till.ID, id string, known bool) {
	_, id, secret, ok := ParseKey(text)
	if !ok {
		return client, "", false
	}
	client, known = a.knownKeys.find(id, secret)
	return client, id, known
}
