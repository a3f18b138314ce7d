package relay

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"till/internal/system"
)

// maxCursors is how many cursors a file keeps: one per log and handler, the newest ones.
const maxCursors = 32

// position is how far a log was relayed to a handler: everything up to Read was accepted,
// but for what is Pending.
type position struct {
	LogID   string  `json:"log_id"`
	To      string  `json:"to"`
	Read    int64   `json:"read"`
	Pending []int64 `json:"pending"`
}

// cursorFile keeps positions on the disk. One process holds it at a time.
type cursorFile struct {
	path string
	lock *os.File

	mu    sync.Mutex
	known []position // of all logs and handlers, the newest last
}

// errHeld says that another process holds the file.
var errHeld = errors.New("another till listen is using it; give this one a cursor of its own, as with --name second")

// openCursorFile reads a file, or begins one. Its folder is made if it is missing.
func openCursorFile(path string) (*cursorFile, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	f := &cursorFile{path: path, lock: lock}
	if system.Lock(lock) != nil {
		lock.Close()
		return nil, fmt.Errorf("%s: %w", path, errHeld)
	}
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &f.known)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		lock.Close()
		return nil, fmt.Errorf("the cursor in %s cannot be read: %w; delete it, and say --since", path, err)
	}
	return f, nil
}

// close lets another process have the file.
func (f *cursorFile) close() error { return f.lock.Close() }

// find returns what is known of a log and a handler.
func (f *cursorFile) find(log, to string) (position, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.known {
		if p.LogID == log && p.To == to {
			return p, true
		}
	}
	return position{}, false
}

// save replaces the file, so that it is whole whenever the process is killed: the old one or
// the new one. It does not wait for the disk, which would let hundreds of events come again
// after a kill. If a power cut leaves half a file, openCursorFile says so.
func (f *cursorFile) save(p position) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known = slices.DeleteFunc(f.known, func(k position) bool { return k.LogID == p.LogID && k.To == p.To })
	f.known = append(f.known, p)
	if extra := len(f.known) - maxCursors; extra > 0 {
		f.known = f.known[extra:]
	}
	text, err := json.Marshal(f.known)
	if err != nil {
		return err
	}
	if err := os.WriteFile(f.path+".new", append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(f.path+".new", f.path)
}

// cursor is a position in memory.
type cursor struct {
	log, to string
	read    int64
	pending map[int64]bool
}

func (p position) cursor() *cursor {
	c := &cursor{log: p.LogID, to: p.To, read: p.Read, pending: map[int64]bool{}}
	for _, n := range p.Pending {
		c.pending[n] = true
	}
	return c
}

func (c *cursor) position() position {
	return position{c.log, c.to, c.read, slices.AppendSeq([]int64{}, slices.Values(slices.Sorted(maps.Keys(c.pending))))}
}

// next returns the sequence after which the log has to be read at a start.
func (c *cursor) next() int64 {
	next := c.read
	for n := range c.pending {
		next = min(next, n-1)
	}
	return next
}

// take records that an event was read, and reports whether it is still to be accepted.
func (c *cursor) take(sequence int64) bool {
	if sequence > c.read {
		c.pending[sequence] = true
	}
	return c.pending[sequence]
}
