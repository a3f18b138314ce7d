// Package sqlite is the db.Engine for one SQLite file. handle.go and row.go alone
// know the library.
package sqlite
