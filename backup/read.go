package backup

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"filippo.io/age"
)

// The beginnings of the two forms of an archive.
const (
	ageMagic  = "age-encryption.org/"
	gzipMagic = "\x1f\x8b"
)

// unpack writes the database and the secret of an archive into a folder, under
// their names in the archive, and checks each of them against the manifest.
func unpack(ctx context.Context, r io.Reader, identities []age.Identity, folder string) (*Manifest, error) {
	end := &endReader{r: contextReader{ctx, r}}
	plain, err := decrypt(end, identities)
	if err != nil {
		return nil, err
	}
	plain = &cutReader{plain, end}
	z, err := gzip.NewReader(plain)
	if err != nil {
		return nil, damaged(err)
	}
	m, err := extract(tar.NewReader(z), folder)
	if err != nil {
		return nil, err
	}
	// What follows the last entry must end as it was written: the checksums of gzip
	// and age are behind it.
	if n, err := io.Copy(io.Discard, z); err != nil {
		return nil, damaged(err)
	} else if n > maxTail {
		return nil, fmt.Errorf("%w: there is more behind its end", errDamaged)
	}
	return m, nil
}

// endReader notes that an archive was read to its end.
type endReader struct {
	r     io.Reader
	ended bool
}

func (e *endReader) Read(b []byte) (int, error) {
	n, err := e.r.Read(b)
	e.ended = e.ended || err == io.EOF
	return n, err
}

// cutReader distinguishes an encrypted archive that is cut off from one that was altered before its
// end: to age, the last part of the former is a wrong one.
type cutReader struct {
	io.Reader
	end *endReader
}

func (c *cutReader) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	if err != nil && err != io.EOF && c.end.ended {
		err = fmt.Errorf("%w: it is cut off before its end, or its last part was altered (%v)", errDamaged, err)
	}
	return n, err
}

// maxTail is how many bytes follow the end of a tar: blocks of zeroes.
const maxTail = 20 << 10

// decrypt returns the compressed archive.
func decrypt(r io.Reader, identities []age.Identity) (io.Reader, error) {
	b := bufio.NewReaderSize(r, 64<<10)
	start, err := b.Peek(len(ageMagic))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch {
	case len(start) == 0:
		return nil, fmt.Errorf("%w: it is empty", errDamaged)
	case string(start[:min(2, len(start))]) == gzipMagic:
		return b, nil
	case string(start) != ageMagic:
		return nil, fmt.Errorf("%w: this is no backup of Till", errDamaged)
	case len(identities) == 0:
		return nil, errors.New("the backup is encrypted: name the file of an age identity with --identity")
	}
	plain, err := age.Decrypt(b, identities...)
	var other *age.NoIdentityMatchError
	switch {
	case errors.As(err, &other):
		return nil, errors.New("the backup is encrypted for others: none of the identities opens it")
	case err != nil:
		return nil, damaged(err)
	}
	return plain, nil
}

// extract reads the entries: the database, perhaps the secret, the manifest.
func extract(t *tar.Reader, folder string) (*Manifest, error) {
	var got []File
	for {
		h, err := t.Next()
		if err != nil {
			return nil, damaged(err)
		}
		names := []string{databaseName, secretName, manifestName}
		if at := slices.Index(names, h.Name); h.Typeflag != tar.TypeReg || at < len(got) || len(got) == 0 && at > 0 {
			return nil, fmt.Errorf("%w: it holds other files than a backup of Till", errDamaged)
		}
		switch h.Name {
		case manifestName:
			text, err := io.ReadAll(io.LimitReader(t, maxManifest))
			if err != nil {
				return nil, damaged(err)
			}
			m, err := parseManifest(text)
			if err != nil {
				return nil, err
			}
			return m, compare(m, got)
		case secretName:
			if h.Size > maxSecret {
				return nil, fmt.Errorf("%w: its secret is too long", errDamaged)
			}
		}
		f, err := writeEntry(t, h, folder)
		if err != nil {
			return nil, err
		}
		got = append(got, f)
	}
}

// writeEntry writes an entry to a file, which is on the disk when it returns.
func writeEntry(t *tar.Reader, h *tar.Header, folder string) (File, error) {
	f, err := os.OpenFile(filepath.Join(folder, h.Name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.Copy(writerOnly{f}, io.TeeReader(readerOnly{t}, sum))
	if err != nil {
		return File{}, err
	}
	return File{h.Name, n, hex.EncodeToString(sum.Sum(nil))}, errors.Join(f.Sync(), f.Close())
}

// writerOnly and readerOnly distinguish a failed write from a failed read: the disk is full, or
// the archive is damaged.
type writerOnly struct{ f *os.File }

func (w writerOnly) Write(b []byte) (int, error) {
	n, err := w.f.Write(b)
	if err != nil {
		err = fmt.Errorf("write what the backup holds: %w", err)
	}
	return n, err
}

type readerOnly struct{ r io.Reader }

func (r readerOnly) Read(b []byte) (int, error) {
	n, err := r.r.Read(b)
	if err != nil && err != io.EOF {
		err = damaged(err)
	}
	return n, err
}

func compare(m *Manifest, got []File) error {
	for _, want := range m.Files {
		if !slices.Contains(got, want) {
			return fmt.Errorf("%w: %s is not what was written (its SHA-256 differs)", errDamaged, want.Name)
		}
	}
	if len(got) != len(m.Files) {
		return fmt.Errorf("%w: it holds a file that its manifest does not name", errDamaged)
	}
	return nil
}

// damaged says what an error of reading means: an archive is cut off, altered, or
// cannot be read for another reason.
func damaged(err error) error {
	var file *os.PathError
	switch {
	case errors.Is(err, errDamaged), errors.As(err, &file), errors.Is(err, context.Canceled), errors.Is(err, errPlace):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return fmt.Errorf("%w: it is cut off before its end", errDamaged)
	}
	return fmt.Errorf("%w: it was altered, or a disk has changed it (%v)", errDamaged, err)
}

// contextReader ends a long read when the command is to stop.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (r contextReader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, context.Canceled
	}
	return r.r.Read(b)
}
