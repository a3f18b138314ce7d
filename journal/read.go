package journal

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"till"
	"till/internal/seal"
)

// ErrForeign means that a journal belongs to another installation.
var ErrForeign = errors.New("this is the journal of another installation")

// maxSegmentFile is the size of the largest file that is read: what a Writer makes, and
// its last batch.
const maxSegmentFile = segmentBytes + 512*maxFrame

// Report is what Read has found.
type Report struct {
	Segments int
	Records  int
	Cut      []Place // ends that were not written completely, because the program or the machine stopped
	Damaged  []Place // bytes that were altered, or records that are missing in the middle
}

// Place is a part of a segment that cannot be read.
type Place struct {
	File   string
	Offset int
	Bytes  int // 0: only a record before it is missing
}

func (p Place) String() string {
	if p.Bytes == 0 {
		return fmt.Sprintf("%s, before byte %d", p.File, p.Offset)
	}
	return fmt.Sprintf("%s, %d bytes from byte %d on", p.File, p.Bytes, p.Offset)
}

// Read calls each with the records of some journals, a folder after the other, each from
// its oldest segment on. It reads on behind bytes that were altered. A folder without a
// segment is an error, because a wrong name would look like a journal that lacks nothing.
func Read(folders []string, secret []byte, installation till.Time, each func(r *Record) error) (*Report, error) {
	sealer, err := seal.New(secret, segmentLabel)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	out := &Report{}
	for _, folder := range folders {
		paths, err := segments(folder)
		if err != nil {
			return nil, fmt.Errorf("read the journal: %w", err)
		}
		if len(paths) == 0 {
			return nil, fmt.Errorf("there is no journal in %s", folder)
		}
		for _, path := range paths {
			r := reader{sealer: sealer, installation: installation, path: path, report: out, each: each}
			if err := r.read(); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			out.Segments++
		}
	}
	return out, nil
}

// reader reads one segment.
type reader struct {
	sealer       *seal.Sealer
	installation till.Time
	path         string
	report       *Report
	each         func(r *Record) error

	data []byte
	id   till.ID
	next uint32 // the number of the next frame
}

func (r *reader) read() error {
	info, err := os.Stat(r.path)
	if err != nil {
		return err
	}
	if info.Size() > maxSegmentFile {
		return fmt.Errorf("it has %d bytes, which is more than a segment can have", info.Size())
	}
	if r.data, err = os.ReadFile(r.path); err != nil {
		return err
	}
	if len(r.data) < headLength {
		if !bytes.HasPrefix([]byte(magic), r.data[:min(len(r.data), len(magic))]) && !allZero(r.data) {
			return errors.New("it is no journal")
		}
		r.report.Cut = append(r.report.Cut, Place{r.path, 0, len(r.data)})
		return nil
	}
	switch {
	case bytes.HasPrefix(r.data, []byte(magic)):
	case bytes.HasPrefix(r.data, []byte(magicStart)):
		return errors.New("a newer release has written it")
	default:
		return errors.New("it is no journal, or its first bytes were altered")
	}
	r.id = till.ID(r.data[len(magic):headLength])
	return r.frames()
}

// frames reads all frames that open. Bytes between them were altered; at the end they may
// also be a frame that was not written completely.
func (r *reader) frames() error {
	opened, bad := 0, -1 // bad is where the bytes begin that do not open
	at := headLength
	for at < len(r.data) {
		number, text, length, ok := r.open(at)
		if !ok {
			if bad < 0 {
				bad = at
			}
			skip := bytes.Index(r.data[at+1:], []byte(mark))
			if skip < 0 {
				break
			}
			at += 1 + skip
			continue
		}
		opened++
		switch {
		case bad >= 0:
			r.report.Damaged = append(r.report.Damaged, Place{r.path, bad, at - bad})
			bad = -1
		case number != r.next:
			r.report.Damaged = append(r.report.Damaged, Place{r.path, at, 0})
		}
		r.next = number + 1
		if err := r.take(number, text); err != nil {
			return err
		}
		at += length
	}
	switch {
	case bad >= 0 && r.isCut(bad):
		r.report.Cut = append(r.report.Cut, Place{r.path, bad, len(r.data) - bad})
	case opened == 0 && bad >= 0:
		return fmt.Errorf("%w, or it was altered: nothing in it opens with this secret", ErrForeign)
	case bad >= 0:
		r.report.Damaged = append(r.report.Damaged, Place{r.path, bad, len(r.data) - bad})
	}
	return nil
}

// open opens the frame at an offset.
func (r *reader) open(at int) (number uint32, text []byte, length int, ok bool) {
	b := r.data[at:]
	if len(b) < frameHead || !bytes.HasPrefix(b, []byte(mark)) {
		return 0, nil, 0, false
	}
	number = binary.BigEndian.Uint32(b[len(mark):])
	n := int(binary.BigEndian.Uint32(b[len(mark)+4:]))
	if n > maxFrame || frameHead+n > len(b) {
		return 0, nil, 0, false
	}
	text, err := r.sealer.Open(b[frameHead:frameHead+n], place(r.id, number))
	return number, text, frameHead + n, err == nil
}

// isCut reports whether the bytes from an offset to the end are a frame that was not
// written completely: it is shorter than it says. The disk may have given room to the rest,
// which is zeros then.
func (r *reader) isCut(at int) bool {
	b := bytes.TrimRight(r.data[at:], "\x00")
	if len(b) < frameHead {
		return bytes.HasPrefix([]byte(mark), b[:min(len(b), len(mark))])
	}
	number, n := binary.BigEndian.Uint32(b[len(mark):]), int(binary.BigEndian.Uint32(b[len(mark)+4:]))
	return bytes.HasPrefix(b, []byte(mark)) && number == r.next && n <= maxFrame && frameHead+n > len(b)
}

func allZero(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }

// take hands a frame on.
func (r *reader) take(number uint32, text []byte) error {
	if number == 0 {
		var head headJSON
		if err := json.Unmarshal(text, &head); err != nil {
			return errRecord
		}
		if till.Time(head.Installation) != r.installation {
			return fmt.Errorf("%w: %s has written it", ErrForeign, &head)
		}
		return nil
	}
	record, err := decode(text)
	if err != nil {
		return err
	}
	r.report.Records++
	return r.each(record)
}
