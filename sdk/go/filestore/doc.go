// Package filestore keeps the three tables of a till.Store in a folder, for
// scripts and first steps. Each change is one line of a file, which is synced to
// the disk; programs that share the folder take turns by a lock.
//
// Its transaction is its own file: it cannot hold your orders together with what
// the SDK writes, unless they are small enough for Tx.Set. A shop with a database
// uses sqlstore.
package filestore
