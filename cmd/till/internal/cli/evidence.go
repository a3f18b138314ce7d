package cli

import (
	"fmt"
	"os"
	"path/filepath"

	"till/books"
	"till/internal/logs"
)

// ReadEvidence reads a file of evidence. Phone numbers in its name are masked.
func ReadEvidence(path string) (*books.Evidence, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the evidence: %w", err)
	}
	defer f.Close()
	e, err := books.ReadEvidence(logs.Redact(filepath.Base(path)), f)
	if err != nil {
		return nil, fmt.Errorf("the evidence %s: %w", path, err)
	}
	return e, nil
}
