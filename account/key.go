package account

import (
	"crypto/rand"
	"crypto/sha256"
	"hash/crc32"
	"strings"

	"till"
)

// The form of a key: till_live_<id>_<secret><checksum>, all base62. The
// secret's 43 characters hold 256 bits. The checksum covers everything before
// it, so that a leak scanner knows a real key from a lookalike and a mistyped
// one never reaches the database.
const (
	livePrefix  = "till_live_"
	testPrefix  = "till_test_"
	idLen       = 12
	secretLen   = 43
	checksumLen = 6
	keyLen      = len(livePrefix) + idLen + 1 + secretLen + checksumLen
)

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// NewKey draws a key. The text is shown to its owner once; the Key holds what
// is stored, and still lacks its owner, name, scopes and times.
func NewKey(mode till.Mode) (text string, key till.Key) {
	prefix := testPrefix
	if mode == till.Live {
		prefix = livePrefix
	}
	id, secret := randomText(idLen), randomText(secretLen)
	text = prefix + id + "_" + secret
	return text + checksum(text), till.Key{ID: id, SecretHash: hashSecret(secret)}
}

// ParseKey takes a key's text apart. It reports false for anything that is
// not a whole key with the right checksum; it does not say whether the key
// exists.
func ParseKey(text string) (mode till.Mode, id, secret string, ok bool) {
	if len(text) != keyLen {
		return "", "", "", false
	}
	switch text[:len(livePrefix)] {
	case livePrefix:
		mode = till.Live
	case testPrefix:
		mode = till.Test
	default:
		return "", "", "", false
	}
	rest := text[len(livePrefix):]
	id, secret = rest[:idLen], rest[idLen+1:idLen+1+secretLen]
	if rest[idLen] != '_' || !isBase62(id) || !isBase62(secret) {
		return "", "", "", false
	}
	body := text[:keyLen-checksumLen]
	var sum [checksumLen]byte
	putChecksum(&sum, body)
	if string(sum[:]) != text[len(body):] {
		return "", "", "", false
	}
	return mode, id, secret, true
}

// hashSecret returns what is stored of a secret. A slow hash would add
// nothing: the secret has 256 random bits, not a person's choice.
func hashSecret(secret string) [32]byte {
	var b [secretLen]byte
	n := copy(b[:], secret)
	return sha256.Sum256(b[:n])
}

// randomText returns n base62 characters, each equally likely: bytes beyond
// the last whole multiple of 62 are drawn again.
func randomText(n int) string {
	var out strings.Builder
	var b [64]byte
	for out.Len() < n {
		rand.Read(b[:]) // never returns an error; it crashes the program instead
		for _, c := range b {
			if c < 4*62 && out.Len() < n {
				out.WriteByte(base62[c%62])
			}
		}
	}
	return out.String()
}

func isBase62(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

func checksum(s string) string {
	var sum [checksumLen]byte
	putChecksum(&sum, s)
	return string(sum[:])
}

// putChecksum writes the CRC-32 (IEEE) of s in base62. The loop is crc32's
// own, on a string: the package's function would make every request copy its
// key to the heap.
func putChecksum(out *[checksumLen]byte, s string) {
	crc := ^uint32(0)
	for i := range len(s) {
		crc = crc32.IEEETable[byte(crc)^s[i]] ^ crc>>8
	}
	crc = ^crc
	for i := checksumLen - 1; i >= 0; i-- {
		out[i] = base62[crc%62]
		crc /= 62
	}
}
