package backup

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"filippo.io/age"

	"till"
	"till/books"
	"till/store"
	"till/store/admin"
)

// Source is what a backup is made of.
type Source struct {
	Store      *store.Store
	Secret     []byte // the content of the secret's file; left out if there is no recipient
	Program    string // the version of this program
	Recipients []age.Recipient
	WithHeads  bool // the schema is this program's, so that heads of audit chains can be read

	// Progress, if not nil, is called with the pages that were read and their number.
	Progress func(pages, all int64)
}

// errNotStarted says that there is no installation yet.
var errNotStarted = errors.New("the database has not been started yet: there is nothing to back up")

// Prepare reads what the manifest says beside the pages. It comes before the
// snapshot: what it finds is in the snapshot, too.
func (src *Source) Prepare(ctx context.Context) (*Manifest, error) {
	m := &Manifest{Format: format, Program: src.Program, TakenAt: src.Store.Now().String(), Heads: []string{}}
	err := src.Store.View(ctx, func(tx *store.Tx) error {
		i, err := admin.ReadInstallation(ctx, tx)
		if err != nil {
			return err
		}
		if i == nil {
			return errNotStarted
		}
		m.Installation, m.LogID = InstallationID(i.SecretCheck), i.LogID.String()
		return nil
	})
	if err != nil {
		return nil, err
	}
	if m.Schema, err = src.Store.SchemaVersion(ctx); err != nil {
		return nil, err
	}
	if !src.WithHeads {
		return m, nil
	}
	err = books.EachHead(ctx, src.Store, func(h books.AuditHead) bool {
		m.Heads = append(m.Heads, h.String())
		return len(m.Heads) < maxHeads
	})
	return m, err
}

// Write writes a backup of one snapshot to w and completes the manifest. Writers
// of the database are not held up. After an error, w holds an archive that
// nobody can restore.
func (src *Source) Write(ctx context.Context, m *Manifest, w io.Writer) (err error) {
	if len(src.Recipients) > 0 {
		sealed, err := age.Encrypt(w, src.Recipients...)
		if err != nil {
			return fmt.Errorf("encrypt the backup: %w", err)
		}
		if err := src.compress(ctx, m, sealed); err != nil {
			return err
		}
		return sealed.Close()
	}
	return src.compress(ctx, m, w)
}

func (src *Source) compress(ctx context.Context, m *Manifest, w io.Writer) error {
	// The fastest level: pages of a database compress well, and the rest of the
	// machine is busy with requests.
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	if err := src.entries(ctx, m, t); err != nil {
		return err
	}
	return errors.Join(t.Close(), z.Close())
}

func (src *Source) entries(ctx context.Context, m *Manifest, t *tar.Writer) error {
	if err := src.pages(ctx, m, t); err != nil {
		return err
	}
	if len(src.Recipients) > 0 && len(src.Secret) > 0 {
		if err := addFile(t, m.Taken(), secretName, src.Secret); err != nil {
			return err
		}
		m.Files = append(m.Files, File{secretName, int64(len(src.Secret)), hexSHA256(src.Secret)})
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return addFile(t, m.Taken(), manifestName, append(text, '\n'))
}

// pages writes the snapshot. Its size is known before its content, because both are
// read in one transaction.
func (src *Source) pages(ctx context.Context, m *Manifest, t *tar.Writer) error {
	sum := sha256.New()
	err := src.Store.View(ctx, func(tx *store.Tx) (err error) {
		if m.Pages > 0 { // the first run has written a part
			return errors.New("the snapshot was lost")
		}
		if m.Pages, m.PageSize, err = tx.PageCount(ctx); err != nil {
			return err
		}
		if err := t.WriteHeader(header(m.Taken(), databaseName, m.Pages*m.PageSize)); err != nil {
			return err
		}
		n := int64(0)
		err = tx.Pages(ctx, func(page []byte) error {
			n++
			sum.Write(page)
			if src.Progress != nil {
				src.Progress(n, m.Pages)
			}
			_, err := t.Write(page)
			return err
		})
		if err == nil && n != m.Pages {
			err = fmt.Errorf("%d of %d pages were read", n, m.Pages)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("copy the database: %w", err)
	}
	m.Files = append(m.Files, File{databaseName, m.Pages * m.PageSize, hex.EncodeToString(sum.Sum(nil))})
	return nil
}

func addFile(t *tar.Writer, at till.Time, name string, b []byte) error {
	if err := t.WriteHeader(header(at, name, int64(len(b)))); err != nil {
		return err
	}
	_, err := t.Write(b)
	return err
}

func header(at till.Time, name string, size int64) *tar.Header {
	return &tar.Header{Name: name, Size: size, Mode: 0o600, ModTime: at.Std().Truncate(time.Second), Typeflag: tar.TypeReg}
}

func hexSHA256(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
