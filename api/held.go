package api

import (
	"errors"
	"io"
	"slices"

	"till"
	"till/internal/quota"
	"till/store"
)

// How many bytes of request bodies this instance has in its hands at once:
// from when they are read until the call is answered, so also while creates wait
// for the database. A call takes about five times as much memory as its body
// has: what was read, what was understood, what is written and what is answered.
const (
	maxBodies       = 12 << 20 // then 503
	maxClientBodies = 2 << 20  // of one client, then 429
	maxCallbacks    = 4 << 20  // of all operators, then 503; clients leave them this room
)

// How many bytes this instance has in its hands of what clients read: rows, and
// the answers made of them until they are written out. The largest page fits
// into a client's part, once.
const (
	maxAnswers       = 48 << 20 // then 503
	maxClientAnswers = 28 << 20 // of one client, then 429
)

// holding is bytes that a call has taken.
type holding struct {
	of     *quota.Quota
	client till.ID
	bytes  int64
}

// hold takes bytes that are given back when the call ends.
func (c *call) hold(of *quota.Quota, client till.ID, n int64) error {
	switch err := of.Take(client, n); {
	case errors.Is(err, quota.ErrClientFull) && !client.IsZero():
		c.Header()["Retry-After"] = retryAfter
		return &till.Error{Code: till.CodeRateLimited}
	case err != nil:
		return &till.Error{Code: till.CodeServiceUnavailable}
	}
	if last := len(c.held) - 1; last >= 0 && c.held[last].of == of {
		c.held[last].bytes += n
	} else {
		c.held = append(c.held, holding{of, client, n})
	}
	return nil
}

// weigh holds what is read for the answer, from now on: the rows and, once more,
// what is written of them.
func (c *call) weigh(tx *store.Tx) {
	if c.session == nil {
		return
	}
	c.letGoOf(c.s.answers) // of a look before this one
	c.read = 0
	tx.Weigh(func(bytes int) error {
		c.read += bytes
		return c.hold(c.s.answers, c.session.Client.ID, 2*int64(bytes))
	})
}

// heldReader is a body whose bytes are held as they come: who announces many and
// sends none costs nothing.
type heldReader struct {
	io.Reader
	c      *call
	of     *quota.Quota
	client till.ID
}

// Read implements io.Reader.
func (r *heldReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if refused := r.c.hold(r.of, r.client, int64(n)); refused != nil {
		return 0, refused
	}
	return n, err
}

// letGo gives back all that the call has taken.
func (c *call) letGo() {
	for _, h := range c.held {
		h.of.Give(h.client, h.bytes)
	}
	c.held = nil
}

// letGoOf gives back what it has taken of one quota.
func (c *call) letGoOf(of *quota.Quota) {
	c.held = slices.DeleteFunc(c.held, func(h holding) bool {
		if h.of == of {
			h.of.Give(h.client, h.bytes)
		}
		return h.of == of
	})
}
