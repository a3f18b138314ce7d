package cli

import (
	"fmt"
	"io"
	"os"
	"time"

	"till/internal/escape"
)

// How often progress is shown: on a terminal in place, elsewhere as lines.
const (
	progressOften  = 200 * time.Millisecond
	progressSeldom = 5 * time.Second
)

// progress shows the progress of a long command.
type progress struct {
	w        io.Writer
	what     string // what is counted: "rows"
	Terminal bool
	every    time.Duration
	begun    time.Time
	told     time.Time
	open     bool // a line on the terminal is to be overwritten
}

// NewProgress writes progress to w. Short work shows none.
func NewProgress(w io.Writer, what string) *progress {
	now := time.Now()
	p := &progress{w: w, what: what, every: progressSeldom, begun: now, told: now}
	if e, ok := w.(*escape.Writer); ok && IsTerminal(e.Raw()) {
		// Our own escape codes draw it; it has no text of others.
		p.w, p.Terminal, p.every = e.Raw(), true, progressOften
	}
	return p
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// At shows that n of all are done; all is 0 if unknown.
func (p *progress) At(n, all int64) {
	now := time.Now()
	if now.Sub(p.told) < p.every {
		return
	}
	p.told = now
	text := fmt.Sprintf("till: %d %s", n, p.what)
	if all > 0 {
		text += fmt.Sprintf(" of %d, %d %%", all, min(n*100/all, 100))
	}
	text += fmt.Sprintf(", %s", now.Sub(p.begun).Round(time.Second))
	if p.Terminal {
		fmt.Fprintf(p.w, "\r%s\x1b[K", text)
		p.open = true
		return
	}
	PrintLine(p.w, text)
}

// End ends the line on a terminal.
func (p *progress) End() {
	if p.open {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.open = false
	}
}
