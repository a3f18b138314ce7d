package till

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"sync"
)

// ID is a UUID in its 16 bytes. Ids that the service makes are UUIDv7 whose
// first bits hold the creation time to the microsecond, so that within one
// client the order of ids is the order of creation times, exactly, and one
// index serves both lookups and lists.
type ID [16]byte

// ErrBadID says that a text is not a canonical UUID.
var ErrBadID = errors.New("not a canonical UUID")

// NewID returns an id for something created at t, with 62 random bits.
func NewID(t Time) ID {
	id := idBound(t)
	var r [8]byte
	randomBytes(r[:])
	copy(id[8:], r[:])
	id[8] = id[8]&0x3f | 0x80
	return id
}

// FirstID returns the smallest id that something created at t can have.
func FirstID(t Time) ID { return idBound(t) }

// LastID returns the largest id that something created at t can have.
func LastID(t Time) ID {
	id := idBound(t)
	for i := 8; i < 16; i++ {
		id[i] = 0xff
	}
	id[8] = 0xbf
	return id
}

// idBound lays the time out: 48 bits of milliseconds, the version, then the
// microseconds inside the millisecond in the twelve bits that RFC 9562 leaves
// to the maker (its method 3).
func idBound(t Time) ID {
	var id ID
	ms, us := int64(t)/1000, int64(t)%1000
	binary.BigEndian.PutUint64(id[:8], uint64(ms)<<16|0x7000|uint64(us))
	id[8] = 0x80
	return id
}

// Time returns the creation time that an id made by NewID holds.
func (id ID) Time() Time {
	n := binary.BigEndian.Uint64(id[:8])
	return Time(int64(n>>16)*1000 + int64(n&0xfff))
}

// EventID returns the id of a client's n-th event, made at t. It is derived,
// not drawn: the sequence can be read back from it, so the log needs no index
// by id.
func EventID(client ID, sequence int64, t Time) ID {
	id := idBound(t)
	sum := sha256.Sum256(client[:])
	copy(id[8:11], sum[:3])
	id[8] = id[8]&0x3f | 0x80
	binary.BigEndian.PutUint32(id[12:], uint32(sequence))
	id[11] = byte(sequence >> 32)
	return id
}

// EventSequence returns the sequence that EventID put into an id.
func (id ID) EventSequence() int64 {
	return int64(id[11])<<32 | int64(binary.BigEndian.Uint32(id[12:]))
}

// IsZero reports whether the id is unset.
func (id ID) IsZero() bool { return id == ID{} }

// String returns the canonical lower-case form.
func (id ID) String() string { return string(id.Append(make([]byte, 0, 36))) }

// AppendJSON appends the id as a JSON string, the zero id as null.
func (id ID) AppendJSON(b []byte) []byte {
	if id.IsZero() {
		return append(b, "null"...)
	}
	b = append(b, '"')
	b = id.Append(b)
	return append(b, '"')
}

// Append appends the canonical form to b.
func (id ID) Append(b []byte) []byte {
	var t [36]byte
	hex.Encode(t[0:8], id[0:4])
	t[8] = '-'
	hex.Encode(t[9:13], id[4:6])
	t[13] = '-'
	hex.Encode(t[14:18], id[6:8])
	t[18] = '-'
	hex.Encode(t[19:23], id[8:10])
	t[23] = '-'
	hex.Encode(t[24:36], id[10:16])
	return append(b, t[:]...)
}

// Bytes returns the id as a new slice, the form that the database keeps.
func (id ID) Bytes() []byte { return append([]byte(nil), id[:]...) }

// ParseID reads a canonical UUID of any version: 8-4-4-4-12 hexadecimal
// digits, either case. Braces, URNs and bare digits are refused.
func ParseID(s string) (ID, error) {
	var id ID
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return id, ErrBadID
	}
	n := 0
	for i := 0; i < 36; {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			i++
			continue
		}
		hi, lo := hexDigit(s[i]), hexDigit(s[i+1])
		if hi > 15 || lo > 15 {
			return ID{}, ErrBadID
		}
		id[n] = hi<<4 | lo
		n++
		i += 2
	}
	return id, nil
}

func hexDigit(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 255
}

// pool holds random bytes, drawn from the system in larger pieces: an id on
// the hot path then costs a copy instead of a system call.
var pool struct {
	sync.Mutex
	buf  [1024]byte
	used int
}

func init() { pool.used = len(pool.buf) }

func randomBytes(b []byte) {
	pool.Lock()
	defer pool.Unlock()
	if pool.used+len(b) > len(pool.buf) {
		rand.Read(pool.buf[:]) // never returns an error; it crashes the program instead
		pool.used = 0
	}
	copy(b, pool.buf[pool.used:])
	pool.used += len(b)
}
