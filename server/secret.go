package server

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"till"
	"till/internal/system"
	"till/store"
)

// secretSize is the length of the installation's secret in bytes.
const secretSize = 32

// ReadSecret reads the installation's secret from its file. An error that is
// fs.ErrNotExist says that there is no such file.
func ReadSecret(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the secret: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 4*secretSize))
	if err != nil {
		return nil, fmt.Errorf("read the secret: %w", err)
	}
	secret, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(secret) != secretSize {
		return nil, fmt.Errorf("%s does not hold a secret: it should be %d hexadecimal digits", path, 2*secretSize)
	}
	return secret, nil
}

// CheckSecret rejects a secret that is not the one the database was created with.
// References, by which operators detect duplicates, derive from it: with another secret, a
// retry could charge a customer twice.
func CheckSecret(ctx context.Context, s *store.Store, secret []byte) error {
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

func installation(ctx context.Context, s *store.Store) (i *store.Installation, err error) {
	err = s.View(ctx, func(tx *store.Tx) error {
		i, err = tx.Installation(ctx)
		return err
	})
	return i, err
}

// openSecret reads the secret, or creates one for a new database. It never replaces a
// missing file of an existing database: only its owner can bring the file back.
func (s *Server) openSecret(ctx context.Context) error {
	i, err := installation(ctx, s.store)
	if err != nil {
		return err
	}
	secret, err := ReadSecret(s.c.SecretFile)
	switch {
	case errors.Is(err, fs.ErrNotExist) && i == nil:
		if secret, err = createSecret(s.c.SecretFile); err != nil {
			return err
		}
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the secret file %s is missing, and the database %s was made with one: put it back from your backup; "+
			"with a new one, customers could be charged twice", s.c.SecretFile, s.c.databaseName())
	case err != nil:
		return err
	}
	if i == nil {
		err := s.store.Update(ctx, func(tx *store.Tx) error {
			return tx.InsertInstallation(ctx, &store.Installation{
				LogID: till.NewID(tx.Now()), SecretCheck: secretCheck(secret), CreatedAt: tx.Now(),
			})
		})
		if err != nil {
			return fmt.Errorf("write the installation down: %w", err)
		}
	}
	if err := CheckSecret(ctx, s.store, secret); err != nil {
		return fmt.Errorf("the secret in %s does not fit the database %s: %w", s.c.SecretFile, s.c.databaseName(), err)
	}
	s.secret = secret
	return nil
}

// createSecret creates a random secret in a file that is complete or does not exist.
func createSecret(path string) ([]byte, error) {
	secret := make([]byte, secretSize)
	rand.Read(secret) // never returns an error; it crashes the program instead
	if err := writePrivate(path, []byte(hex.EncodeToString(secret)+"\n")); err != nil {
		return nil, fmt.Errorf("write the secret: %w", err)
	}
	return secret, nil
}

// writePrivate writes a file of mode 0600 atomically.
func writePrivate(path string, b []byte) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, filepath.Base(path)+".*") // of mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(b)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	// The file's name must survive a power cut, too.
	return system.SyncFolder(dir)
}
