package server

import (
	"io"
	"net/http"
	"sync"
)

// Limits of what is kept of the log: so many lines, and so many bytes of each.
const (
	ringLines   = 2000
	maxRingLine = 4 << 10
)

// LogRing passes a log on, and keeps its last 2 000 lines in memory for a support bundle.
// It must be the writer of NewLogger, so that what it keeps is masked.
type LogRing struct {
	next io.Writer

	mu    sync.Mutex
	lines [][]byte // their memory is used again
	at    int      // where the next line goes
}

// NewLogRing returns a ring that writes to w.
func NewLogRing(w io.Writer) *LogRing { return &LogRing{next: w} }

// Write implements io.Writer. A line comes with one call.
func (r *LogRing) Write(line []byte) (int, error) {
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
func (r *LogRing) Last() (text []byte) {
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

// serveLog answers with the lines that are kept.
func (s *Server) serveLog(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Write(s.c.LogRing.Last())
}
