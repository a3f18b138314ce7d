package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"filippo.io/age"

	"till/internal/system"
	"till/recovery"
	"till/store"
	"till/store/admin"
)

// RestoreRequest says what to put back and where to.
type RestoreRequest struct {
	Archive    io.Reader
	Identities []age.Identity
	Database   string // the file to make; the caller holds its lock
	SecretFile string // the secret to use; "" means the one in the backup
	By         string

	// Installation, if not "", is the only one whose backup is taken. Name, if not nil, is
	// what the archive is called: its manifest must say the same.
	Installation string
	Name         *Name

	// ReadSecret reads a secret's file, CheckSecret compares the file with a database.
	ReadSecret  func(path string) ([]byte, error)
	CheckSecret func(ctx context.Context, s *store.Store, path string) error

	// Read, if not nil, reads what the caller wants to know of the database that was put
	// back. It is called before the database gets its name: nobody has to open it afterwards.
	Read func(ctx context.Context, s *store.Store) error

	// SkipPages leaves the check of the database's pages out: the caller verifies
	// the books, which includes it.
	SkipPages bool
}

// Restored is a database that was put back.
type Restored struct {
	Manifest *Manifest
	Migrated []string // the migrations that it lacked
	Marked   *recovery.RestoreResult
}

// stagingName is the folder beside the database in which it is put together. It
// stays behind if the command is killed, and the next one deletes it.
const stagingName = ".till-restore"

// Restore puts a backup into an empty folder. The database is checked, migrated and
// marked as restored before it gets its name: whatever interrupts it, no server
// finds a database that looks as if nothing was lost. Nobody has reviewed the keys
// yet when it returns (recovery.MarkRestored).
func Restore(ctx context.Context, r RestoreRequest) (out *Restored, err error) {
	target := filepath.Dir(r.Database)
	staging := filepath.Join(target, stagingName)
	if err := checkEmpty(r.Database); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(staging); err != nil {
		return nil, fmt.Errorf("delete what an interrupted restore has left: %w", err)
	}
	if err := os.Mkdir(staging, 0o700); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(staging)) }()
	m, err := unpack(ctx, r.Archive, r.Identities, staging)
	if err != nil {
		return nil, err
	}
	if r.Installation != "" && m.Installation != r.Installation {
		return nil, fmt.Errorf("this is a backup of another installation: it is of %s, and not of %s", m.Installation, r.Installation)
	}
	if r.Name != nil && *r.Name != NameOf(m, r.Name.Encrypted) {
		return nil, fmt.Errorf("the archive is called %s, and its manifest says %s: somebody has renamed it, or made it", r.Name, NameOf(m, r.Name.Encrypted))
	}
	if err := r.placeSecret(m, staging); err != nil {
		return nil, err
	}
	if out, err = r.prepare(ctx, m, staging); err != nil {
		return nil, err
	}
	return out, r.moveIn(staging)
}

// checkEmpty refuses a folder in which something is that a restore could spoil or
// be spoiled by: a database, and most of all the log of one.
func checkEmpty(database string) error {
	folder := filepath.Dir(database)
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	var found []string
	for _, e := range entries {
		switch e.Name() {
		case stagingName, filepath.Base(database) + ".lock", "lost+found":
		case secretName: // an interrupted restore may have moved it in; it is compared
		default:
			found = append(found, e.Name())
		}
	}
	if len(found) > 0 {
		return fmt.Errorf("%s is not empty (%s): a backup is put into an empty folder. Move the old one away whole, its -wal and -shm files too, and delete nothing",
			folder, strings.Join(found[:min(len(found), 3)], ", "))
	}
	return nil
}

// placeSecret makes sure that the secret is in the staging folder, and that no
// other lies where it belongs.
func (r *RestoreRequest) placeSecret(m *Manifest, staging string) error {
	path := filepath.Join(staging, secretName)
	if !m.HasSecret() && r.SecretFile == "" {
		return errors.New("the backup holds no secret, because it is not encrypted: name the installation's secret with --secret-file")
	}
	// A named one is newer than the backup's: it may have generations that were added since.
	if r.SecretFile != "" {
		if _, err := r.ReadSecret(r.SecretFile); err != nil {
			return err
		}
		text, err := os.ReadFile(r.SecretFile)
		if err == nil {
			err = os.WriteFile(path, text, 0o600)
		}
		if err != nil {
			return err
		}
	}
	there, err := os.ReadFile(filepath.Join(filepath.Dir(r.Database), secretName))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	mine, mineErr := os.ReadFile(path)
	if err := errors.Join(err, mineErr); err != nil {
		return err
	}
	if !bytes.Equal(bytes.TrimSpace(there), bytes.TrimSpace(mine)) {
		return fmt.Errorf("%s holds another secret: put the backup into an empty folder", filepath.Dir(r.Database))
	}
	return nil
}

// prepare opens the database in the staging folder, checks it and marks it.
func (r *RestoreRequest) prepare(ctx context.Context, m *Manifest, staging string) (out *Restored, err error) {
	path := filepath.Join(staging, databaseName)
	s, err := store.Open(ctx, store.Config{Path: path, Readers: 1})
	if err != nil {
		return nil, fmt.Errorf("%w: the database in it cannot be opened: %w", errDamaged, err)
	}
	defer func() {
		// Closing copies the log into the file and deletes it.
		if err = errors.Join(err, s.Close()); err == nil {
			err = checkClosed(path)
		}
	}()
	if !r.SkipPages {
		if found, err := s.Damage(ctx); err != nil {
			return nil, err
		} else if len(found) > 0 {
			return nil, fmt.Errorf("%w: the database was damaged already when the backup was made: %s", errDamaged, found[0])
		}
	}
	out = &Restored{Manifest: m}
	if out.Migrated, err = s.Migrate(ctx); err != nil {
		return nil, err
	}
	secret, err := r.ReadSecret(filepath.Join(staging, secretName))
	if err != nil {
		return nil, err
	}
	if err := r.CheckSecret(ctx, s, filepath.Join(staging, secretName)); err != nil {
		return nil, fmt.Errorf("the secret does not belong to this backup: %w", err)
	}
	if err := checkInstallation(ctx, s, m); err != nil {
		return nil, err
	}
	out.Marked, err = recovery.MarkRestored(ctx, s, recovery.RestoreRequest{Secret: secret, LostFrom: m.Taken(), By: r.By})
	if err == nil && r.Read != nil {
		err = r.Read(ctx, s)
	}
	return out, err
}

// checkInstallation makes sure that the database is of the installation that the manifest
// names. The manifest is the word of the archive's maker; the database's installation
// comes from the proof of its secret, which was compared with the secret.
func checkInstallation(ctx context.Context, s *store.Store, m *Manifest) error {
	return s.View(ctx, func(tx *store.Tx) error {
		i, err := admin.ReadInstallation(ctx, tx)
		if err != nil {
			return err
		}
		if i == nil || InstallationID(i.SecretCheck) != m.Installation {
			return fmt.Errorf("the manifest says that this is a backup of %s, and the database in it is another installation's: this program has not made it", m.Installation)
		}
		return nil
	})
}

// checkClosed makes sure that nothing of the database is outside of its file.
func checkClosed(path string) error {
	for _, more := range []string{"-wal", "-shm"} {
		if _, err := os.Stat(path + more); err == nil {
			return fmt.Errorf("%s is still in use", path)
		}
	}
	return nil
}

// moveIn gives the files their names, the database last: without it, nothing was
// restored.
func (r *RestoreRequest) moveIn(staging string) error {
	target := filepath.Dir(r.Database)
	for _, f := range []struct{ from, to string }{{secretName, filepath.Join(target, secretName)}, {databaseName, r.Database}} {
		from := filepath.Join(staging, f.from)
		// The server's user, not the one who restores, has to read them.
		if err := system.SameOwner(from, target); err != nil {
			return fmt.Errorf("give the files to the owner of %s: %w", target, err)
		}
		if err := os.Rename(from, f.to); err != nil {
			return err
		}
		if err := system.SyncFolder(target); err != nil {
			return err
		}
	}
	return nil
}
