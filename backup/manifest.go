package backup

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"crypto/sha256"

	"till"
)

// format is the version of the archive. A reader rejects a newer one.
const format = 1

// The names in an archive, in their order.
const (
	databaseName = "till.db"
	secretName   = "till.secret"
	manifestName = "manifest.json"
)

// Limits of what an archive holds beside the database.
const (
	maxSecret   = 4 << 10 // bytes
	maxManifest = 8 << 20 // bytes
	maxHeads    = 10_000  // heads of audit chains
)

// Manifest says what a backup holds. It is the last entry of the archive, so an
// archive that has one is complete.
type Manifest struct {
	Format       int      `json:"format"`
	Program      string   `json:"program"`      // the version that made it
	Installation string   `json:"installation"` // whose it is; see InstallationID
	LogID        string   `json:"log_id"`
	TakenAt      string   `json:"taken_at"` // the snapshot is of this time or later
	Schema       string   `json:"schema"`   // the newest migration
	Pages        int64    `json:"pages"`
	PageSize     int64    `json:"page_size"`
	Files        []File   `json:"files"`
	Heads        []string `json:"audit_heads"` // each is part of its chain in the database
}

// File is an entry of an archive.
type File struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Taken returns the time from which on everything is lost after a restore.
func (m *Manifest) Taken() till.Time {
	t, _ := till.ParseTime(m.TakenAt) // checked when it was read
	return t
}

// HasSecret reports whether the installation's secret is in the backup.
func (m *Manifest) HasSecret() bool { return m.file(secretName) != nil }

func (m *Manifest) file(name string) *File {
	for i := range m.Files {
		if m.Files[i].Name == name {
			return &m.Files[i]
		}
	}
	return nil
}

// InstallationID returns the name by which backups of one installation belong
// together. It stays the same after a restore, because it comes from the proof of
// the installation's secret.
func InstallationID(secretCheck []byte) string {
	sum := sha256.Sum256(append([]byte("till installation\x00"), secretCheck...))
	return hex.EncodeToString(sum[:6])
}

// parseManifest reads a manifest and rejects one that this program cannot use.
func parseManifest(text []byte) (*Manifest, error) {
	m := &Manifest{}
	if err := json.Unmarshal(text, m); err != nil {
		return nil, fmt.Errorf("%w: its manifest cannot be read", errDamaged)
	}
	if m.Format > format {
		return nil, fmt.Errorf("a newer program (%s) has made this backup: restore it with that one", m.Program)
	}
	if _, ok := till.ParseTime(m.TakenAt); !ok || m.Format < 1 || m.file(databaseName) == nil || m.Installation == "" {
		return nil, fmt.Errorf("%w: its manifest lacks what a restore needs", errDamaged)
	}
	return m, nil
}

// errDamaged says that an archive is not what was written: cut off, altered, or
// no backup at all.
var errDamaged = errors.New("the backup is damaged")
