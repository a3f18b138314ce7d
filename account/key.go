package account

import (
	"crypto/rand"
	"crypto/sha256"
	"hash/crc32"
	"strings"

	"till"
)

// The form of a key: till_live_<id>_<secret><checksum>, all base62. The secret's 43
// characters hold 256 bits. The checksum covers everything before it. So a leak scanner
// recognises a real key, and a mistyped key never reaches the database.
const (
	livePrefix  = "till_live_"
	testPrefix  = "till_test_"
	idLen       = 12
	secretLen   = 43
	checksumLen = 6
	keyLen      = len(livePrefix) + idLen + 1 + secretLen + checksumLen
)

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// NewKey creates a random key. The text is shown to its owner once. The Key holds what is
// stored; its owner, name, scopes and times are still to be set.
func NewKey(mode till.Mode) (text string, key till.Key) { return keyFrom(mode, randomText) }

// keyFrom makes a key of texts of a given length.
func keyFrom(mode till.Mode, draw func(n int) string) (text string, key till.Key) {
	prefix := testPrefix
	if mode == till.Live {
		prefix = livePrefix
	}
	id, secret := draw(idLen), draw(secretLen)
	text = prefix + id + "_" + secret
	return text + checksum(text), till.Key{ID: id, SecretHash: hashSecret(secret)}
}

// ParseKey splits a key's text. It reports false for anything but a complete key with the
// right checksum. It does not say whether the key exists.
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

// hashSecret returns the stored hash of a secret. A slow hash would add nothing: the secret
// has 256 random bits.
func hashSecret(secret string) [32]byte {
	var b [secretLen]byte
	n := copy(b[:], secret)
	return sha256.Sum256(b[:n])
}

// randomText returns n base62 characters, each equally likely: bytes beyond the last whole
// multiple of 62 are drawn again.
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

// seededText returns texts that follow from a seed: the same seed, the same texts. Bytes
// are drawn as randomText does.
func seededText(seed []byte) func(n int) string {
	block, left := 0, []byte(nil)
	return func(n int) string {
		var out strings.Builder
		for out.Len() < n {
			if len(left) == 0 {
				sum := sha256.Sum256(append([]byte{byte(block)}, seed...))
				block, left = block+1, sum[:]
			}
			if c := left[0]; c < 4*62 {
				out.WriteByte(base62[c%62])
			}
			left = left[1:]
		}
		return out.String()
	}
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

// putChecksum writes the CRC-32 (IEEE) of s in base62. The loop is that of hash/crc32, but
// on a string: the package's function would copy the key to the heap for every request.
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
