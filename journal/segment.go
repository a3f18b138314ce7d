package journal

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"till"
	"till/internal/seal"
	"till/internal/system"
)

// A segment is a file: magic, the segment's id, and frames. A frame is a mark, a
// number, a length, and that many sealed bytes. Frame 0 says whose journal it is. The
// place that is sealed in is the segment's id and the frame's number.
const (
	magic      = "till journal 1\n"
	magicStart = "till journal " // of any version
	mark       = "TLJ\x01"
	headLength = len(magic) + 16
	frameHead  = len(mark) + 4 + 4

	// maxFrame is the longest sealed record: a body of 64 KiB in base64, and some more. A
	// greater length is no length.
	maxFrame = 256 << 10
)

// segmentLabel separates this key from others that are derived from the installation's
// secret.
const segmentLabel = "till journal v1"

// The names of segments sort by the time they were opened.
const (
	namePrefix = "journal-"
	nameSuffix = ".till"
	nameTime   = "20060102T150405.000000Z"
)

// maxSegments is how many segments a folder may have. A Writer makes about 24 a day.
const maxSegments = 100_000

// segments returns the paths of a folder's segments, the oldest first.
func segments(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if name := e.Name(); e.Type().IsRegular() && strings.HasPrefix(name, namePrefix) && strings.HasSuffix(name, nameSuffix) {
			out = append(out, filepath.Join(folder, name))
		}
	}
	if len(out) > maxSegments {
		return nil, fmt.Errorf("%s has more than %d segments", folder, maxSegments)
	}
	slices.Sort(out)
	return out, nil
}

// segment is a file that records are appended to.
type segment struct {
	file   *os.File
	sealer *seal.Sealer
	id     till.ID
	opened time.Time
	frames uint32 // so far, with frame 0
	bytes  int64
}

// newSegment makes a file with the frame that says whose journal it is, on the disk.
func newSegment(folder string, sealer *seal.Sealer, installation till.Time, now time.Time) (*segment, error) {
	g := &segment{sealer: sealer, id: till.NewID(till.TimeOf(now)), opened: now}
	stamp := now.UTC().Format(nameTime)
	path := filepath.Join(folder, namePrefix+stamp+"-"+g.id.String()[24:]+nameSuffix)
	var err error
	if g.file, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return nil, err
	}
	head, err := json.Marshal(headJSON{Installation: int64(installation), Opened: stamp})
	if err == nil {
		b := append([]byte(magic), g.id[:]...)
		err = g.write(g.frame(b, head))
	}
	if err == nil {
		err = g.file.Sync()
	}
	if err == nil {
		err = system.SyncFolder(folder)
	}
	if err != nil {
		g.file.Close()
		os.Remove(path)
		return nil, err
	}
	return g, nil
}

// place returns where a frame is.
func place(segment till.ID, number uint32) []byte {
	return binary.BigEndian.AppendUint32(append(make([]byte, 0, 20), segment[:]...), number)
}

// frame appends the next frame, with a text, to some bytes.
func (g *segment) frame(b, text []byte) []byte {
	sealed := g.sealer.Seal(text, place(g.id, g.frames))
	b = append(b, mark...)
	b = binary.BigEndian.AppendUint32(b, g.frames)
	b = binary.BigEndian.AppendUint32(b, uint32(len(sealed)))
	g.frames++
	return append(b, sealed...)
}

func (g *segment) write(b []byte) error {
	n, err := g.file.Write(b)
	g.bytes += int64(n)
	return err
}

// close closes the file, and deletes it if nothing but frame 0 is in it.
func (g *segment) close() error {
	err := g.file.Close()
	if g.frames == 1 {
		os.Remove(g.file.Name())
	}
	return err
}
