package account

import (
	"crypto/subtle"
	"strings"
	"sync"

	"till"
)

// seen holds the keys that opened a session on this instance, since it was
// started and until they end. It decides nothing but who waits behind whom: a
// key that is known here never waits behind those that are tried out.
type seen struct {
	mu   sync.RWMutex
	keys map[string]seenKey // by key id
}

type seenKey struct {
	client till.ID
	hash   [32]byte
}

// maxSeen bounds the keys that are held. One more takes the place of any one,
// which is a stranger then until its next use.
const maxSeen = 10_000

func (s *seen) init() { s.keys = make(map[string]seenKey) }

// find returns the client of a key that has opened a session here, with this
// secret; false for any other.
func (s *seen) find(id, secret string) (till.ID, bool) {
	s.mu.RLock()
	k, found := s.keys[id]
	s.mu.RUnlock()
	got := hashSecret(secret)
	same := subtle.ConstantTimeCompare(got[:], k.hash[:]) == 1
	return k.client, found && same
}

// keep notes that a key has opened a session.
func (s *seen) keep(k *till.Key) {
	s.mu.RLock()
	_, found := s.keys[k.ID]
	s.mu.RUnlock()
	if found {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.keys {
		if len(s.keys) < maxSeen {
			break
		}
		delete(s.keys, id)
	}
	s.keys[strings.Clone(k.ID)] = seenKey{k.ClientID, k.SecretHash}
}

// drop forgets a key that has ended.
func (s *seen) drop(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.keys, id)
}

// Known returns the client and the id of a key that has opened a session on
// this instance, without the database. It lets nobody in: the key may have
// ended since.
func (a *Accounts) Known(text string) (client till.ID, id string, known bool) {
	_, id, secret, ok := ParseKey(text)
	if !ok {
		return client, "", false
	}
	client, known = a.seen.find(id, secret)
	return client, id, known
}
