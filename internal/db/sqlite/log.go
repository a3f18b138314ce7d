package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"time"

	"till/internal/db"
)

// A SQLite file has its newest commits in a log beside it, in a file whose name
// ends in -wal. SQLite replays any log that it finds there. After a restore from
// a backup that can be the log of the replaced database: its pages would
// overwrite the backup or break the file, and no error says so.
//
// So the file and its log are stamped. The stamp is user_version on the first
// page. A connection raises it with its first commit, and then with one commit in
// every second. A file's log begins with the file's own stamp or the next one.

// stampInterval is the least time between two changes of the stamp.
const stampInterval = time.Second

// stamp raises the stamp in a transaction that has changed rows, if the last
// time is long enough ago.
func (c *conn) stamp() error {
	if time.Since(c.stamped) < stampInterval && !c.stamped.IsZero() || c.h.totalChanges() == c.changes {
		return nil
	}
	var n int64
	if _, err := c.h.run("PRAGMA user_version", nil, func(r db.Row) error { return r.Scan(&n) }); err != nil {
		return err
	}
	if err := c.h.script("PRAGMA user_version = " + strconv.FormatInt((n+1)&0x7fffffff, 10)); err != nil {
		return err
	}
	c.stamped = time.Now()
	return nil
}

// ForeignLogError says that the log beside a file belongs to another file.
type ForeignLogError struct{ Path, Detail string }

func (e *ForeignLogError) Error() string {
	return fmt.Sprintf("%[1]s-wal is not the log of %[1]s (%[2]s): another database was in this place before. Nothing was opened or changed. "+
		"If %[1]s was put back from a backup, move %[1]s-wal and %[1]s-shm away and start again; put backups into an empty folder", e.Path, e.Detail)
}

// checkLog returns a ForeignLogError if the log beside a file belongs to another
// one. A process that uses the database may be writing both files meanwhile, so
// a mismatch counts only if it is read twice.
func checkLog(path string) error {
	var last logPair
	for {
		pair, err := readPair(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("look at the log of %s: %w", path, err)
		}
		why := pair.mismatch()
		if why == "" {
			return nil
		}
		if pair == last {
			return &ForeignLogError{Path: path, Detail: why}
		}
		last = pair
		time.Sleep(50 * time.Millisecond)
	}
}

// logPair holds what identifies a file and the log beside it.
type logPair struct {
	size        int64 // of the file
	filePage    uint32
	fileIsWAL   bool
	fileStamp   uint32
	salts       [8]byte // of the log: new each time that it begins anew
	logPage     uint32
	frames      int
	stamped     bool   // the log holds the first page
	first, last uint32 // the stamps on it
}

// mismatch says why a log is not the file's, "" if nothing speaks against it.
func (p *logPair) mismatch() string {
	switch {
	case p.frames == 0:
		return "" // there is nothing to replay
	case p.size == 0:
		return "the database is missing or empty, and the log is not"
	case !p.fileIsWAL:
		return "the database is a copy that has no log"
	case p.filePage != p.logPage:
		return "their pages have different sizes"
	case p.stamped && (p.fileStamp+1 < p.first || p.fileStamp > p.last):
		return fmt.Sprintf("the database is stamped %d, the log goes from %d to %d", p.fileStamp, p.first, p.last)
	}
	return ""
}

// Sizes in SQLite's file format: https://www.sqlite.org/fileformat2.html
const (
	fileHeader  = 100 // bytes of a file's header
	logHeader   = 32  // bytes of a log's header
	frameHeader = 24  // bytes before each page in a log
)

func readPair(path string) (p logPair, err error) {
	log, err := os.Open(path + "-wal")
	if err != nil {
		return p, err
	}
	defer log.Close()
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) { // SQLite would make a file, and delete the log
		return p, p.readLog(log)
	}
	if err != nil {
		return p, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return p, err
	}
	p.size = info.Size()
	head := make([]byte, fileHeader)
	if n, err := file.ReadAt(head, 0); n == fileHeader {
		if p.filePage = uint32(binary.BigEndian.Uint16(head[16:])); p.filePage == 1 {
			p.filePage = 65536
		}
		p.fileIsWAL = head[18] == 2
		p.fileStamp = binary.BigEndian.Uint32(head[60:])
	} else if err != io.EOF {
		return p, err
	}
	return p, p.readLog(log)
}

// readLog reads the frames of the log's last start. The frames behind them are
// left over from before.
func (p *logPair) readLog(log io.ReaderAt) error {
	var head [logHeader]byte
	if n, err := log.ReadAt(head[:], 0); n < len(head) {
		return noEOF(err)
	}
	if magic := binary.BigEndian.Uint32(head[:]); magic&^1 != 0x377f0682 {
		return nil // SQLite does not read it as a log
	}
	p.logPage = binary.BigEndian.Uint32(head[8:])
	p.salts = [8]byte(head[16:24])
	frame := make([]byte, frameHeader+fileHeader)
	for at := int64(logHeader); ; at += frameHeader + int64(p.logPage) {
		if n, err := log.ReadAt(frame, at); n < len(frame) {
			return noEOF(err)
		}
		if [8]byte(frame[8:16]) != p.salts {
			return nil
		}
		p.frames++
		if binary.BigEndian.Uint32(frame) == 1 {
			p.last = binary.BigEndian.Uint32(frame[frameHeader+60:])
			if !p.stamped {
				p.stamped, p.first = true, p.last
			}
		}
	}
}

func noEOF(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}
