package checkout

import (
	"crypto/rand"
	"strings"
)

// TokenSize is how many characters the token of a page's address has. Each holds five
// random bits.
const TokenSize = 20

// alphabet is Crockford's base32: without I, L, O and U.
const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// NewToken returns the token of a new page: 100 random bits.
func NewToken() string {
	var b [TokenSize]byte
	rand.Read(b[:]) // never returns an error; it crashes the program instead
	for i, c := range b {
		b[i] = alphabet[c%32]
	}
	return string(b[:])
}

// ParseToken reads a token as people type it from a screen: in capitals or not, with o for
// 0, and i or l for 1. It reports false for what no page has.
func ParseToken(s string) (string, bool) {
	if len(s) != TokenSize {
		return "", false
	}
	var b [TokenSize]byte
	for i := range len(s) {
		c := s[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		switch c {
		case 'o':
			c = '0'
		case 'i', 'l':
			c = '1'
		}
		if strings.IndexByte(alphabet, c) < 0 {
			return "", false
		}
		b[i] = c
	}
	return string(b[:]), true
}
