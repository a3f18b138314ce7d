package books_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"strings"
	"testing"

	"till/books"
)

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

func TestEvidenceIsReadWholeOrRefused(t *testing.T) {
	t.Parallel()
	e, err := books.ReadEvidence("letter.pdf", strings.NewReader("a letter"))
	if want := fmt.Sprintf("evidence letter.pdf sha256:%x", sha256.Sum256([]byte("a letter"))); err != nil || e.String() != want {
		t.Errorf("got %v, %v; want %s", e, err, want)
	}
	if _, err := books.ReadEvidence("empty.pdf", strings.NewReader("")); err == nil {
		t.Error("an empty file shows something")
	}
	if _, err := books.ReadEvidence("large.pdf", io.LimitReader(zeros{}, books.MaxEvidence+1)); err == nil {
		t.Error("a file that is too large is read")
	}
	if _, err := books.ReadEvidence("torn.pdf", io.MultiReader(strings.NewReader("a"), errorReader{})); err == nil {
		t.Error("a file that cannot be read to its end shows something")
	}
}

type errorReader struct{}

func (errorReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
