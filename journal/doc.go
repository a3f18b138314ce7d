// Package journal keeps a sealed record of each create outside of the database, in a
// folder that should be on another disk. When the database is lost and an older one
// is put back, recovery.Remake makes the payments and payouts again that were created
// since (ADR 0044).
//
// A Writer appends records to segments, which are files of bounded size and age. It
// writes either behind the commit, or before it and through to the disk. Read reads
// them again. It distinguishes an end that was not written completely from bytes that were
// altered, and the journal of another installation from both. Records can be read
// with the installation's secret only, and none can be moved, inserted or taken out
// of the middle without notice.
//
// The package knows nothing of the database. Start reading at record.go.
package journal
