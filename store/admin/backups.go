package admin

import (
	"context"

	"till"
	"till/internal/db"
	"till/store"
)

var saveBackupResult = db.Define(db.SQL{Name: "backups.saveResult",
	SQLite: `INSERT INTO backup_results (kind, ended_at, taken_at, place, bytes, took_ms, failed_at, problem) VALUES ($1, $2, $3, $4, $5, $6, 0, '')
		ON CONFLICT (kind) DO UPDATE SET ended_at = excluded.ended_at, taken_at = excluded.taken_at, place = excluded.place, bytes = excluded.bytes,
			took_ms = excluded.took_ms, failed_at = 0, problem = ''`})

var saveBackupProblem = db.Define(db.SQL{Name: "backups.saveProblem",
	SQLite: `INSERT INTO backup_results (kind, ended_at, taken_at, place, bytes, took_ms, failed_at, problem) VALUES ($1, 0, 0, '', 0, 0, $2, $3)
		ON CONFLICT (kind) DO UPDATE SET failed_at = excluded.failed_at, problem = excluded.problem`})

var selectBackupResult = db.Define(db.SQL{Name: "backups.selectResult",
	SQLite: `SELECT ended_at, taken_at, place, bytes, took_ms, failed_at, problem FROM backup_results WHERE kind = $1`})

// BackupKind says what a BackupResult is of.
type BackupKind string

// The kinds.
const (
	KindBackup BackupKind = "backup"
	KindDrill  BackupKind = "drill"
)

// maxBackupProblem is how many bytes of an error are kept.
const maxBackupProblem = 500

// BackupResult is what became of the last backup, or of the last drill.
type BackupResult struct {
	EndedAt till.Time // of the last that went well; zero: none has
	TakenAt till.Time // the snapshot of that one
	Place   string
	Bytes   int64
	TookMS  int64

	FailedAt till.Time // of the last one, if it failed; zero: it went well
	Problem  string
}

// SaveBackupResult records a backup or a drill that went well.
func SaveBackupResult(ctx context.Context, tx *store.Tx, kind BackupKind, r *BackupResult) error {
	_, err := tx.DB().Exec(ctx, saveBackupResult,
		string(kind), int64(r.EndedAt), int64(r.TakenAt), r.Place, r.Bytes, r.TookMS)
	return err
}

// SaveBackupProblem records a backup or a drill that failed. What is known of the
// last good one stays.
func SaveBackupProblem(ctx context.Context, tx *store.Tx, kind BackupKind, problem string) error {
	_, err := tx.DB().Exec(ctx, saveBackupProblem,
		string(kind), int64(tx.Now()), problem[:min(len(problem), maxBackupProblem)])
	return err
}

// ReadBackup returns what became of the last backup or drill, nil if there was
// none.
func ReadBackup(ctx context.Context, tx *store.Tx, kind BackupKind) (*BackupResult, error) {
	r := &BackupResult{}
	found, err := tx.DB().QueryRow(ctx, selectBackupResult, []any{string(kind)},
		&r.EndedAt, &r.TakenAt, &r.Place, &r.Bytes, &r.TookMS, &r.FailedAt, &r.Problem)
	if err != nil || !found {
		return nil, err
	}
	return r, nil
}

var selectArchived = db.Define(db.SQL{Name: "backups.selectArchived",
	Postgres: `SELECT COALESCE((extract(epoch FROM last_archived_time) * 1000000)::bigint, 0), COALESCE((extract(epoch FROM last_failed_time) * 1000000)::bigint, 0) FROM pg_stat_archiver`})

// Archived returns when PostgreSQL last archived a part of its log and when that last failed;
// zero: never. Only a shared database has one.
func Archived(ctx context.Context, tx *store.Tx) (ok, failed till.Time, err error) {
	_, err = tx.DB().QueryRow(ctx, selectArchived, nil, &ok, &failed)
	return ok, failed, err
}
