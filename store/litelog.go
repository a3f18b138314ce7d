package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"time"

	sqlite3 "modernc.org/sqlite/lib"
)

// A SQLite file has its newest commits in a log beside it, the file with the
// ending -wal. SQLite replays whatever log it finds there. One that a crash of
// another database left, for instance of the one that a backup has replaced,
// would bring pages of that other database back: the backup is ignored, or the
// file is broken, and no error says so.
//
// So the file and its log are stamped: the number user_version on the first
// page goes up with the first commit of a connection that writes, and with a
// commit in every second after it. The log of a file begins with the file's
// own stamp or the next one.

// liteStampEvery is how often the stamp goes up while there are commits.
const liteStampEvery = time.Second

// stamp raises the stamp, if it is time, in a transaction that has changed
// something.
func (ses *liteSession) stamp() error {
	if !ses.write || time.Since(ses.stamped) < liteStampEvery && !ses.stamped.IsZero() ||
		sqlite3.Xsqlite3_total_changes64(ses.c.tls, ses.c.db) == ses.changes {
		return nil
	}
	var n int64
	if _, err := ses.c.run("PRAGMA user_version", nil, func(r row) error { return r.Scan(&n) }); err != nil {
		return err
	}
	if err := ses.c.script("PRAGMA user_version = " + strconv.FormatInt((n+1)&0x7fffffff, 10)); err != nil {
		return err
	}
	ses.stamped = time.Now()
	return nil
}

// ForeignLogError says that the log beside a SQLite file is another file's.
type ForeignLogError struct{ Path, Detail string }

func (e *ForeignLogError) Error() string {
	return fmt.Sprintf("%[1]s-wal is not the log of %[1]s (%[2]s): another database was in this place before. Nothing was opened or changed. "+
		"If %[1]s was put back from a backup, move %[1]s-wal and %[1]s-shm away and start again; put backups into an empty folder", e.Path, e.Detail)
}

// checkLiteLog refuses a file beside which lies the log of another one. A
// process that uses the database may be writing both meanwhile: what does not
// fit counts only if it stands still.
func checkLiteLog(path string) error {
	var last litePair
	for {
		pair, err := readLitePair(path)
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

// litePair is what a file and the log beside it say of themselves.
type litePair struct {
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

// mismatch says in which way a log is not the file's, "" if it is or cannot be
// told from one.
func (p *litePair) mismatch() string {
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

// The places in SQLite's file format that tell: https://www.sqlite.org/fileformat2.html
const (
	liteHeader   = 100 // bytes of a file's header
	liteLogHead  = 32  // bytes of a log's header
	liteLogFrame = 24  // bytes before each page in a log
)

func readLitePair(path string) (p litePair, err error) {
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
	head := make([]byte, liteHeader)
	if n, err := file.ReadAt(head, 0); n == liteHeader {
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

// readLog goes through the frames that belong to the log's latest beginning;
// what follows them is left from before.
func (p *litePair) readLog(log io.ReaderAt) error {
	var head [liteLogHead]byte
	if n, err := log.ReadAt(head[:], 0); n < len(head) {
		return noEOF(err)
	}
	if magic := binary.BigEndian.Uint32(head[:]); magic&^1 != 0x377f0682 {
		return nil // SQLite will not take it for a log
	}
	p.logPage = binary.BigEndian.Uint32(head[8:])
	p.salts = [8]byte(head[16:24])
	frame := make([]byte, liteLogFrame+liteHeader)
	for at := int64(liteLogHead); ; at += liteLogFrame + int64(p.logPage) {
		if n, err := log.ReadAt(frame, at); n < len(frame) {
			return noEOF(err)
		}
		if [8]byte(frame[8:16]) != p.salts {
			return nil
		}
		p.frames++
		if binary.BigEndian.Uint32(frame) == 1 {
			p.last = binary.BigEndian.Uint32(frame[liteLogFrame+60:])
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
