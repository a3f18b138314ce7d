package db

import (
	"errors"
	"fmt"
)

// The classes of errors that callers branch on. An engine decides them in
// Classify and in Commit.
var (
	// ErrUnknownCommit says that COMMIT may or may not have happened. Read back
	// by key, then adopt or redo.
	ErrUnknownCommit = errors.New("db: outcome of the commit is unknown")

	// ErrUnavailable says that the database cannot be used now: no server, a
	// lock that is not released, a full disk. Nothing was changed, unless
	// ErrUnknownCommit is with it.
	ErrUnavailable = errors.New("db: database unavailable")

	// ErrDiskFull says that the database has no room on its disk. It is an ErrUnavailable too.
	ErrDiskFull = fmt.Errorf("%w: the disk is full", ErrUnavailable)

	// ErrBusy says that no connection for reading was free in time.
	ErrBusy = errors.New("db: all readers are busy")

	// ErrConstraint says that a constraint rejected a row.
	ErrConstraint = errors.New("db: rejected by a constraint")

	// ErrConflict says that a statement sent by DeferExactly did not change
	// exactly one row for each row of arguments. It is an ErrConstraint too.
	ErrConflict = fmt.Errorf("%w: a row is not as it was read", ErrConstraint)

	// ErrRetry says that the transaction collided with another one, changed
	// nothing and may run again.
	ErrRetry = errors.New("db: collided with another transaction")

	// ErrNotStarted says that the connection was dead before the transaction
	// started. Another connection may be used.
	ErrNotStarted = errors.New("db: the transaction never started")

	errReadOnly = errors.New("db: a view cannot write")
)
