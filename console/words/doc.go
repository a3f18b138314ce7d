// Package words holds what the console says, in English and French. A catalogue
// maps a key to a text with named places, {n}, and picks the plural. Tests hold
// that both have the same keys and places, that each is used and none is
// missing.
//
// Start reading at words.go.
package words
