package logs

import (
	"io"
	"sync"
)

// Limits of what is kept of the log: so many lines, and so many bytes of each.
const (
	ringLines   = 2000
	maxRingLine = 4 << 10
)

// Ring passes a log on, and keeps its last 2 000 lines in memory for a support bundle.
// It must be the writer of New, so that what it keeps is masked.
type Ring struct {
	next io.Writer

	mu    sync.Mutex
	lines [][]byte // their memory is used again
	at    int      // where the next line goes
}

// NewRing returns a ring that writes to w.
func NewRing(w io.Writer) *Ring { return &Ring{next: w} }

// Write implements io.Writer. A line comes with one call.
func (r *Ring) Write(line []byte) (int, error) {
	kept := line
	if len(kept) > maxRingLine {
		kept = kept[:maxRingLine]
	}
	r.mu.Lock()
	if len(r.lines) < ringLines {
		r.lines = append(r.lines, nil)
	}
	r.lines[r.at] = append(r.lines[r.at][:0], kept...)
	if len(line) > maxRingLine {
		r.lines[r.at] = append(r.lines[r.at], "…\n"...)
	}
	r.at = (r.at + 1) % ringLines
	r.mu.Unlock()
	return r.next.Write(line)
}

// Last returns the lines that are kept, oldest first. A nil ring has none.
func (r *Ring) Last() (text []byte) {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.lines {
		text = append(text, r.lines[(r.at+i)%len(r.lines)]...)
	}
	return text
}
