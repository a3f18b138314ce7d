package secret

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"till"
	"till/internal/seal"
	"till/internal/system"
	"till/store"
	"till/store/admin"
)

// File returns the default path of a database's secret.
func File(database string) string {
	return filepath.Join(filepath.Dir(database), "till.secret")
}

// secretSize is the length of the installation's secret in bytes.
const secretSize = 32

// Read reads the installation's secret from its file: the root, from which derives
// what never changes. An error that is fs.ErrNotExist says that there is no such file.
func Read(path string) ([]byte, error) {
	keys, err := ReadKeys(path)
	return keys[1], err
}

// Check rejects a secret that is not the one the database was created with.
// References, by which operators detect duplicates, derive from it: with another secret, a
// retry could charge a customer twice.
func Check(ctx context.Context, s *store.Store, secret []byte) error {
	i, err := installation(ctx, s)
	if err != nil {
		return err
	}
	if i == nil {
		return errors.New("the database has not been started yet: start 'till serve' once")
	}
	if !hmac.Equal(i.SecretCheck, secretCheck(secret)) {
		return errors.New("it is not the secret that the database was made with")
	}
	return nil
}

func secretCheck(secret []byte) []byte {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte("check"))
	return h.Sum(nil)
}

func installation(ctx context.Context, s *store.Store) (i *admin.Installation, err error) {
	err = s.View(ctx, func(tx *store.Tx) error {
		i, err = admin.ReadInstallation(ctx, tx)
		return err
	})
	return i, err
}

// Open reads the secret, or creates one for a new database, whose name is in errors. It never
// replaces a missing file of an existing database: only its owner can bring the file back.
func Open(ctx context.Context, s *store.Store, path, database string) (*seal.Ring, error) {
	i, err := installation(ctx, s)
	if err != nil {
		return nil, err
	}
	_, err = ReadKeys(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && i == nil:
		if err := createSecret(path); err != nil {
			return nil, err
		}
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("the secret file %s is missing, and the database %s was made with one: put it back from your backup; "+
			"with a new one, customers could be charged twice", path, database)
	case err != nil:
		return nil, err
	}
	if i == nil {
		secret, err := Read(path)
		if err != nil {
			return nil, err
		}
		err = s.Update(ctx, func(tx *store.Tx) error {
			err := admin.InsertInstallation(ctx, tx, &admin.Installation{
				LogID: till.NewID(tx.Now()), SecretCheck: secretCheck(secret), CreatedAt: tx.Now(),
			})
			if err == nil { // no older program has ever run on it
				_, err = admin.RaiseLevel(ctx, tx, admin.Level)
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("write the installation down: %w", err)
		}
	}
	ring, err := OpenRing(ctx, s, path)
	if err != nil {
		return nil, fmt.Errorf("the secret in %s does not fit the database %s: %w", path, database, err)
	}
	return ring, nil
}

// createSecret creates a random secret in a file that is complete or does not exist.
func createSecret(path string) error {
	if err := WritePrivate(path, []byte(hex.EncodeToString(newKey())+"\n")); err != nil {
		return fmt.Errorf("write the secret: %w", err)
	}
	return nil
}

func newKey() []byte {
	key := make([]byte, secretSize)
	rand.Read(key) // never returns an error; it crashes the program instead
	return key
}

// WritePrivate writes a file of mode 0600 atomically.
func WritePrivate(path string, b []byte) error {
	return writeAtomic(path, b, func(string) error { return nil })
}

// partialSuffix is of a file that is being written. A person's copy of a secret has other
// names.
const partialSuffix = ".partial"

// writeAtomic writes a file, which is complete or as it was. prepare gets its temporary
// name, which is of mode 0600.
func writeAtomic(path string, b []byte, prepare func(name string) error) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, filepath.Base(path)+".*"+partialSuffix) // of mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(b)
	err = errors.Join(err, f.Sync(), f.Close(), prepare(f.Name()))
	if err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	// The file's name must survive a power cut, too.
	return system.SyncFolder(dir)
}

// removePartial deletes what a killed writeAtomic has left beside a file.
func removePartial(path string) error {
	dir := filepath.Dir(path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		middle, ours := strings.CutPrefix(e.Name(), filepath.Base(path)+".")
		number, partial := strings.CutSuffix(middle, partialSuffix)
		if _, err := strconv.ParseUint(number, 10, 64); !ours || !partial || err != nil || !e.Type().IsRegular() {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
