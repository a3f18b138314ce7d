// Package backup saves a SQLite database, puts it back, and proves that it can
// be put back. PostgreSQL has tools of its own for this.
//
// A backup is one file: a tar of the database, the installation's secret and a
// manifest, in this order, compressed by gzip and encrypted by age. Without this
// program, 'age -d | tar xz' opens it. Without a recipient it is not encrypted,
// and the secret is left out.
//
// Write makes a backup of one snapshot, beside a running server. A Place keeps
// backups: a folder, or a bucket of object storage. Restore puts one into an empty
// folder and marks the database as restored before it gets its name, so that no
// server can start on it unmarked. Drill restores one into a folder that it
// deletes, and verifies the books.
//
// Start reading at write.go.
package backup
