package books

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
)

// MaxEvidence is how large a file of evidence may be, in bytes.
const MaxEvidence = 64 << 20

// Evidence is a file that shows something: its name, and the SHA-256 of what is in it.
// What is in it is not kept.
type Evidence struct {
	Name   string
	Digest []byte
}

// String returns how the audit log names it.
func (e *Evidence) String() string {
	return "evidence " + e.Name + " sha256:" + hex.EncodeToString(e.Digest)
}

// ReadEvidence reads a file of evidence to its end. The name is kept as it is: the caller
// masks what is private in it.
func ReadEvidence(name string, r io.Reader) (*Evidence, error) {
	sum := sha256.New()
	n, err := io.Copy(sum, io.LimitReader(r, MaxEvidence+1))
	switch {
	case err != nil:
		return nil, err
	case n > MaxEvidence:
		return nil, fmt.Errorf("it is larger than %d MiB", MaxEvidence>>20)
	case n == 0:
		return nil, errors.New("it is empty")
	}
	return &Evidence{Name: name, Digest: sum.Sum(nil)}, nil
}
