package account

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"till"
)

const (
	maxAge     = time.Second // of an entry: how long a revocation may go unnoticed
	maxEntries = 10_000
	shardCount = 16
)

// entry is the result of one read of a key id.
type entry struct {
	session *Session  // nil: there is no such key
	readAt  time.Time // when the read began

	renewing      atomic.Bool  // a caller is reading it again
	lastUseMinute atomic.Int64 // the last use that was recorded
}

// cache holds entries for the second in which they are valid. Key ids are random, so their
// first byte spreads them over the shards.
type cache struct{ shards [shardCount]shard }

type shard struct {
	mu      sync.RWMutex
	entries map[string]*entry
	reads   map[string]*sharedRead
}

// sharedRead is a read under way that several callers wait for.
type sharedRead struct {
	done  chan struct{}
	entry *entry
	err   error
}

func (c *cache) init() {
	for i := range c.shards {
		c.shards[i].entries = make(map[string]*entry)
		c.shards[i].reads = make(map[string]*sharedRead)
	}
}

func (c *cache) shard(id string) *shard { return &c.shards[id[0]%shardCount] }

func (c *cache) get(id string) *entry {
	s := c.shard(id)
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.entries[id]
}

// put stores an entry. A full shard does not store an id that does not exist: a flood of
// invented keys would push out real ones.
func (c *cache) put(id string, e *entry) {
	s := c.shard(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.entries[id]; old != nil {
		if old.readAt.Before(e.readAt) {
			s.entries[id] = e
		}
		return
	}
	if len(s.entries) >= maxEntries/shardCount && !s.makeRoom(e) {
		return
	}
	s.entries[strings.Clone(id)] = e // a copy: id is part of a request's header
}

// makeRoom drops expired entries, or else any one entry for that of a real key.
func (s *shard) makeRoom(newest *entry) bool {
	before := len(s.entries)
	for id, e := range s.entries {
		if newest.readAt.Sub(e.readAt) >= maxAge {
			delete(s.entries, id)
		}
	}
	if len(s.entries) < before {
		return true
	}
	if newest.session == nil {
		return false
	}
	for id := range s.entries {
		delete(s.entries, id)
		break
	}
	return true
}

// shareRead returns the read of an id that is under way, or starts one, which the caller
// must do.
func (c *cache) shareRead(id string) (r *sharedRead, mine bool) {
	s := c.shard(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.reads[id]; r != nil {
		return r, false
	}
	r = &sharedRead{done: make(chan struct{})}
	s.reads[strings.Clone(id)] = r
	return r, true
}

// endRead ends a read.
func (c *cache) endRead(id string, r *sharedRead) {
	s := c.shard(id)
	s.mu.Lock()
	delete(s.reads, id)
	s.mu.Unlock()
	close(r.done)
}

// forget drops all entries of a client after a change. Other instances see the change when
// their entries expire.
func (c *cache) forget(client till.ID) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		for id, e := range s.entries {
			if e.session != nil && e.session.Client.ID == client {
				delete(s.entries, id)
			}
		}
		s.mu.Unlock()
	}
}
