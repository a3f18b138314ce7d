package request

import (
	"crypto/sha256"
	"encoding/binary"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"till/internal/jsonx"
)

var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 2048); return &b }}

// Hash returns the same value for two bodies exactly if write writes the same for them. It
// reports false if something cannot be written. Member order, white space and unknown
// members do not count; null equals absent; numbers compare by value, strings by code
// points.
func Hash(write func(h *Hasher)) ([32]byte, bool) {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	h := Hasher{b: (*buf)[:0]}
	write(&h)
	*buf = h.b
	return sha256.Sum256(h.b), h.err == nil
}

// Hasher writes an unambiguous form: a mark for absent or present, and the length before
// each text.
type Hasher struct {
	b   []byte
	err error
}

// Object writes whether a member is there, and reports it.
func (h *Hasher) Object(present bool) bool {
	if !present {
		h.b = append(h.b, 0)
		return false
	}
	h.b = append(h.b, 1)
	return true
}

// Text writes a text.
func (h *Hasher) Text(s *string) {
	if h.Object(s != nil) {
		h.Length(len(*s))
		h.b = append(h.b, *s...)
	}
}

// Flag writes true or false.
func (h *Hasher) Flag(v *bool) {
	if h.Object(v != nil) {
		h.Object(*v)
	}
}

// Length writes the number of following items.
func (h *Hasher) Length(n int) { h.b = binary.AppendUvarint(h.b, uint64(n)) }

// Amount writes an amount.
func (h *Hasher) Amount(a *Amount) {
	if h.Object(a != nil) {
		h.Text(a.Value)
		h.Text(a.Currency)
	}
}

// Value writes a JSON value in its canonical form.
func (h *Hasher) Value(v jsontext.Value) {
	if !h.Object(len(v) > 0) {
		return
	}
	b, err := jsonx.Canonical(h.b, v)
	if err != nil {
		h.err = err
		return
	}
	h.b = b
}
