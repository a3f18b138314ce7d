package api

import (
	"errors"
	"io"
	"slices"

	"till"
	"till/internal/quota"
	"till/store"
)

// How many bytes of request bodies this instance holds at once: from reading until the call
// is answered, so also while creates wait for the database. A call takes about five times
// as much memory as its body: the bytes, the decoded request, the row and the answer.
const (
	maxBodies       = 12 << 20 // then 503
	maxClientBodies = 2 << 20  // of one client, then 429
	maxCallbacks    = 4 << 20  // of all operators, then 503; clients cannot use this part
)

// How many bytes of answers this instance holds at once: the rows, and the encoded answers
// until they are written. The largest page fits into one client's part, once.
const (
	maxAnswers       = 48 << 20 // then 503
	maxClientAnswers = 28 << 20 // of one client, then 429
)

// byteHold is bytes of a quota that a call holds.
type byteHold struct {
	of     *quota.Quota
	client till.ID
	bytes  int64
}

// holdBytes takes bytes, which are given back when the call ends.
func (c *exchange) holdBytes(of *quota.Quota, client till.ID, n int64) error {
	switch err := of.Take(client, n); {
	case errors.Is(err, quota.ErrClientFull) && !client.IsZero():
		c.Header()["Retry-After"] = retryAfter
		return &till.Error{Code: till.CodeRateLimited}
	case err != nil:
		return &till.Error{Code: till.CodeServiceUnavailable}
	}
	if last := len(c.heldBytes) - 1; last >= 0 && c.heldBytes[last].of == of {
		c.heldBytes[last].bytes += n
	} else {
		c.heldBytes = append(c.heldBytes, byteHold{of, client, n})
	}
	return nil
}

// countRows counts the bytes that tx reads for the answer, twice: as rows and as the
// encoded answer.
func (c *exchange) countRows(tx *store.Tx) {
	if c.session == nil {
		return
	}
	c.releaseBytesOf(c.s.answers) // of an earlier read
	c.read = 0
	tx.Weigh(func(bytes int) error {
		c.read += bytes
		return c.holdBytes(c.s.answers, c.session.Client.ID, 2*int64(bytes))
	})
}

// quotaReader is a body whose bytes are counted as they come. A client that announces many
// and sends none costs nothing.
type quotaReader struct {
	io.Reader
	c      *exchange
	of     *quota.Quota
	client till.ID
}

// Read implements io.Reader.
func (r *quotaReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if refused := r.c.holdBytes(r.of, r.client, int64(n)); refused != nil {
		return 0, refused
	}
	return n, err
}

// releaseBytes gives back all bytes that the call holds.
func (c *exchange) releaseBytes() {
	for _, h := range c.heldBytes {
		h.of.Give(h.client, h.bytes)
	}
	c.heldBytes = nil
}

// releaseBytesOf gives back the bytes of one quota.
func (c *exchange) releaseBytesOf(of *quota.Quota) {
	c.heldBytes = slices.DeleteFunc(c.heldBytes, func(h byteHold) bool {
		if h.of == of {
			h.of.Give(h.client, h.bytes)
		}
		return h.of == of
	})
}
