package journal

import (
	"errors"
	"io/fs"
	"os"
	"time"
)

// keep deletes segments that are older than they are kept, and then the oldest while all
// of them are too large. The one that is written to stays.
func (w *Writer) keep() {
	paths, err := segments(w.c.Folder)
	if err != nil {
		w.c.Log.Warn("old journal not deleted", "error", err)
		return
	}
	w.writing.Lock()
	current := ""
	if w.open != nil {
		current = w.open.file.Name()
	}
	w.writing.Unlock()
	type kept struct {
		path     string
		size     int64
		modified time.Time
	}
	var all []kept
	var total int64
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			continue // another instance has deleted it
		}
		all, total = append(all, kept{path, info.Size(), info.ModTime()}), total+info.Size()
	}
	early := 0
	for _, f := range all {
		old := w.now().Sub(f.modified) > w.c.Keep
		if f.path == current || !old && total <= w.c.Max {
			continue
		}
		if err := os.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			w.c.Log.Warn("old journal not deleted", "error", err)
			continue
		}
		total -= f.size
		if !old {
			early++
		}
	}
	if early > 0 {
		w.c.Log.Warn("journal shortened", "folder", w.c.Folder, "segments", early, "max_bytes", w.c.Max)
	}
}
