package journal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"till"
	"till/engine"
	"till/internal/loop"
	"till/internal/seal"
	"till/internal/system"
)

// The limits of a Writer.
const (
	segmentBytes = 64 << 20  // a larger segment is closed and the next one opened
	segmentAge   = time.Hour // an older one too
	writeEvery   = time.Second / 4
	keepEvery    = 10 * time.Minute
	warnEvery    = time.Minute
	// maxWaiting is how many bytes of documents, about, wait for a disk that does not write.
	// What comes after that is not journaled, and logged.
	maxWaiting = 32 << 20
	entryBytes = 600 // of an entry beside its document

	// The defaults of Config, and their least values.
	DefaultKeep = 7 * 24 * time.Hour
	minKeep     = time.Hour
	DefaultMax  = 8 << 30
	minMax      = 2 * segmentBytes
)

// Config configures a Writer.
type Config struct {
	Folder       string
	Secret       []byte    // the installation's
	Installation till.Time // when it was made
	// Sync writes each create to the disk before its commit. Otherwise it is written
	// within a second after it.
	Sync bool
	Keep time.Duration // how old a segment becomes; 0 means DefaultKeep
	Max  int64         // bytes of all segments; 0 means DefaultMax
	Log  *slog.Logger  // nil: nothing is logged

	// Count, if not nil, is called with how many records were written, and how many were not.
	Count func(written, failed int)
}

// Writer appends creates to a journal. It is an engine.Journal.
type Writer struct {
	c      Config
	sealer *seal.Sealer
	now    func() time.Time // a test has its own
	space  func(folder string) (size, free int64, ok bool)

	writing sync.Mutex // held while the segment is used
	open    *segment   // nil after an error: the next write opens another

	mu      sync.Mutex
	failing bool // the last write failed
	waiting []waiting
	bytes   int
	warned  time.Time
	missed  int // since it was last logged
}

// waiting is an entry that is not written yet.
type waiting struct {
	kind  till.SubjectKind
	entry engine.JournalEntry
}

// Open makes the folder if there is none, and the first segment: a folder that cannot be
// written is an error here, and not at the first create. Run keeps the Writer working;
// Close ends it.
func Open(c Config) (*Writer, error) {
	if c.Keep == 0 {
		c.Keep = DefaultKeep
	}
	if c.Max == 0 {
		c.Max = DefaultMax
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Keep < minKeep {
		return nil, fmt.Errorf("a journal is kept for %s at least", minKeep)
	}
	if c.Max < minMax {
		return nil, fmt.Errorf("a journal may have %d MiB at least", minMax>>20)
	}
	sealer, err := seal.New(c.Secret, segmentLabel)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	if err := os.MkdirAll(c.Folder, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the journal: %w", err)
	}
	w := &Writer{c: c, sealer: sealer, now: time.Now, space: system.DiskSpace}
	if w.open, err = newSegment(c.Folder, sealer, c.Installation, w.now()); err != nil {
		return nil, fmt.Errorf("the journal cannot be written: %w", err)
	}
	return w, nil
}

// Synchronous reports whether rows are written before their commit.
func (w *Writer) Synchronous() bool { return w.c.Sync }

// Committing writes new rows before their commit, through to the disk. After an error they must not be committed.
func (w *Writer) Committing(kind till.SubjectKind, entries []engine.JournalEntry) error {
	if len(entries) == 0 {
		return nil
	}
	batch := make([]waiting, len(entries))
	for i, e := range entries {
		batch[i] = waiting{kind, e}
	}
	if err := w.write(batch); err != nil {
		w.warn(len(entries), err)
		return err
	}
	return nil
}

// Committed takes rows that were committed, if the journal is not synchronous. It does not
// wait for the disk.
func (w *Writer) Committed(kind till.SubjectKind, entries []engine.JournalEntry) {
	if w.c.Sync {
		return
	}
	dropped := 0
	w.mu.Lock()
	for _, e := range entries {
		if size := entryBytes + len(e.Row.Document); w.bytes+size <= maxWaiting {
			w.bytes += size
			w.waiting = append(w.waiting, waiting{kind, e})
		} else {
			dropped++
		}
	}
	w.mu.Unlock()
	if dropped > 0 {
		w.warn(dropped, errors.New("too many creates wait for it"))
	}
}

// Run writes what waits, and deletes what is too old or too much, until ctx ends.
func (w *Writer) Run(ctx context.Context) {
	var kept time.Time
	loop.Run(ctx, loop.Options{Interval: writeEvery, Step: func(context.Context) time.Duration {
		w.flush()
		if now := w.now(); now.Sub(kept) >= keepEvery {
			w.keep()
			kept = now
		}
		return -1
	}})
}

// Close writes what waits and closes the segment. Nothing may be committed any more.
func (w *Writer) Close() error {
	w.flush()
	w.mu.Lock()
	left := len(w.waiting)
	w.mu.Unlock()
	if left > 0 {
		w.c.Log.Error("journal not complete", "missing", left)
	}
	w.writing.Lock()
	defer w.writing.Unlock()
	if w.open == nil {
		return nil
	}
	g := w.open
	w.open = nil
	return g.close()
}

// Failing reports whether the last write failed.
func (w *Writer) Failing() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failing
}

// flush writes what waits. What cannot be written waits on. After a failure it also tries
// with nothing to write, so that Failing shows when the disk works again: not before there
// is space for a whole record, because the head of a segment fits where no create does.
func (w *Writer) flush() {
	w.mu.Lock()
	batch, bytes, failing := w.waiting, w.bytes, w.failing
	w.waiting = nil
	w.mu.Unlock()
	if len(batch) == 0 {
		if !failing {
			return
		}
		if _, free, ok := w.space(w.c.Folder); ok && free < maxFrame {
			return
		}
	}
	err := w.write(batch)
	w.mu.Lock()
	if err != nil {
		w.waiting = append(batch, w.waiting...)
	} else {
		w.bytes -= bytes
	}
	w.mu.Unlock()
	if err != nil {
		w.warn(0, err)
	}
}

// write appends a batch to the segment, in one write, and waits for the disk. After an
// error the segment is given up: what it has of the batch is an end that does not open, or
// is there twice, and both are known to readers.
func (w *Writer) write(batch []waiting) (err error) {
	w.writing.Lock()
	defer w.writing.Unlock()
	defer func() {
		w.mu.Lock()
		w.failing = err != nil
		w.mu.Unlock()
	}()
	if g := w.open; g != nil && g.frames > 1 && (g.bytes >= segmentBytes || w.now().Sub(g.opened) >= segmentAge) {
		w.open = nil
		if err := g.close(); err != nil {
			return err
		}
	}
	if w.open == nil {
		if w.open, err = newSegment(w.c.Folder, w.sealer, w.c.Installation, w.now()); err != nil {
			return err
		}
	}
	texts := make([][]byte, len(batch))
	for i := range batch {
		if texts[i], err = encode(batch[i].kind, &batch[i].entry); err != nil {
			return err
		}
	}
	var b []byte
	for _, text := range texts { // each takes a number: a number that is missing looks like a record taken out
		b = w.open.frame(b, text)
	}
	if err = w.open.write(b); err == nil {
		err = w.open.file.Sync()
	}
	if err != nil {
		w.open.file.Close()
		w.open = nil
		return err
	}
	w.count(len(batch), 0)
	return nil
}

func (w *Writer) count(written, failed int) {
	if w.c.Count != nil {
		w.c.Count(written, failed)
	}
}

// warn logs that the journal lacks creates, or could not be written, once a minute.
func (w *Writer) warn(failed int, err error) {
	w.count(0, failed)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.missed += failed
	if now := w.now(); now.Sub(w.warned) >= warnEvery {
		w.c.Log.Error("journal not written", "folder", w.c.Folder, "missing", w.missed, "waiting", len(w.waiting), "error", err)
		w.warned, w.missed = now, 0
	}
}
