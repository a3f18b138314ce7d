package store

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"till"
	"till/internal/db"
	"till/internal/hint"
)

// ErrEnough, from the function given to Weigh, says that the last row is the last
// that is wanted of a log.
var ErrEnough = errors.New("store: enough was read")

// rowWeight is about how many bytes a row takes beside its document. payoutWeight
// is added for a payout in an event: it is read after the events.
const (
	rowWeight    = 1 << 10
	payoutWeight = 4 << 10
)

// Store is an open database.
type Store struct {
	db             *db.DB
	hints          *hint.Hub
	partRows       int64
	nodes          nodes
	checkKeysUntil atomic.Int64 // see checkKeysFor; in nanoseconds of Unix time
}

// The classes of errors that callers branch on; see internal/db.
var (
	ErrUnknownCommit = db.ErrUnknownCommit
	ErrUnavailable   = db.ErrUnavailable
	ErrDiskFull      = db.ErrDiskFull
	ErrBusy          = db.ErrBusy
	ErrConstraint    = db.ErrConstraint
)

// Close closes the database after the write transactions have ended and their
// hints were sent.
func (s *Store) Close() error {
	s.hints.StopWatching()
	err := s.db.Close()
	s.hints.Flush()
	return err
}

// Writers returns how many write transactions run at once.
func (s *Store) Writers() int { return s.db.Writers() }

// Now returns the database's time. Leases and due times are decided by the clock
// that a transaction reads.
func (s *Store) Now() till.Time { return s.db.Now() }

// Shared reports whether other servers may be using the database too.
func (s *Store) Shared() bool { return s.db.Dialect() != db.SQLite }

// ClockOffset returns the database's clock minus this machine's.
func (s *Store) ClockOffset() time.Duration { return s.db.ClockOffset() }

// Sessions returns how many connections to the database there are.
func (s *Store) Sessions() db.Sessions { return s.db.Sessions() }

// Shrink gives memory back that was not worth having since the last call. A server calls
// it at intervals.
func (s *Store) Shrink() { s.db.Shrink() }

// DiskFull reports whether a write has found the database's disk full a short time ago.
func (s *Store) DiskFull() bool { return s.db.DiskFull() }

// HintsLive reports whether other processes' hints arrive.
func (s *Store) HintsLive() bool { return s.hints.Live() }

// Tx is one transaction.
type Tx struct {
	db *db.Tx
	s  *Store

	checkKeys  bool // InsertPayments checks the index for keys that exist
	assumedNew bool // InsertPayments has assumed that all are

	scale func(bytes int) error // see Weigh; nil: sizes are not reported

	grown []till.ID  // whose event logs this transaction makes longer
	first [1]till.ID // room for the first of them: most batches have one client
}

// grew notes that a client's event log is longer after the commit.
func (tx *Tx) grew(client till.ID) {
	if tx.grown == nil {
		tx.grown = tx.first[:0]
		tell := func() { tx.s.hints.Committed(tx.grown) }
		tx.db.AfterCommit(tell)
		tx.db.AfterUnknownCommit(tell) // it may have happened
		tx.s.hints.Prepare()
	}
	tx.grown = append(tx.grown, client)
}

// AfterCommit has f called when the transaction is known to be committed. f must not wait:
// the caller waits for it.
func (tx *Tx) AfterCommit(f func()) { tx.db.AfterCommit(f) }

// AfterUnknownCommit has f called if nobody knows whether the transaction was committed. f
// must not wait either.
func (tx *Tx) AfterUnknownCommit(f func()) { tx.db.AfterUnknownCommit(f) }

// Flush sends the writes that wait for the commit. What the database refuses of them is
// known when it returns.
func (tx *Tx) Flush(ctx context.Context) error { return tx.db.Flush(ctx) }

// Now returns the database's time: when it was first read in this transaction, or
// when the heads were locked.
func (tx *Tx) Now() till.Time { return tx.db.Now() }

// Shared reports whether several processes can serve the database, as Store.Shared does.
func (tx *Tx) Shared() bool { return tx.db.Dialect() != db.SQLite }

// DB returns the transaction below the nouns. The product does not use it: it is
// for packages that fill or measure a database, and only they import internal/db.
func (tx *Tx) DB() *db.Tx { return tx.db }

// Writes reports whether the transaction may write.
func (tx *Tx) Writes() bool { return tx.db.Writes() }

// Update runs f in one write transaction. Requests use it: they go before
// whatever waits in UpdateBackground. f may run more than once.
func (s *Store) Update(ctx context.Context, f func(tx *Tx) error) error {
	return s.update(ctx, db.Foreground, f)
}

// UpdateBackground is Update for work that can wait a moment: the workers'.
func (s *Store) UpdateBackground(ctx context.Context, f func(tx *Tx) error) error {
	return s.update(ctx, db.Background, f)
}

func (s *Store) update(ctx context.Context, p db.Priority, f func(tx *Tx) error) error {
	checkKeys := !s.Shared() || time.Now().UnixNano() < s.checkKeysUntil.Load()
	assumedNew, err := s.updateOnce(ctx, p, checkKeys, f)
	if !assumedNew || !errors.Is(err, db.ErrConstraint) || errors.Is(err, db.ErrUnknownCommit) {
		return err
	}
	s.checkKeysUntil.Store(time.Now().Add(checkKeysFor).UnixNano())
	_, err = s.updateOnce(ctx, p, true, f)
	return err
}

// updateOnce reports whether the transaction assumed that the payments that it
// inserts are new.
func (s *Store) updateOnce(ctx context.Context, p db.Priority, checkKeys bool, f func(tx *Tx) error) (assumedNew bool, err error) {
	err = s.db.Update(ctx, p, func(inner *db.Tx) error {
		tx := &Tx{db: inner, s: s, checkKeys: checkKeys}
		err := f(tx)
		assumedNew = tx.assumedNew
		return err
	})
	return assumedNew, err
}

// checkKeysFor is how long every insert checks the index for keys, after one had
// wrongly assumed that its keys were new. A client that repeats itself does so for
// a while.
const checkKeysFor = time.Second

// RetryUnknown runs f in a write transaction, by Store.Update or its like. If
// the outcome of the commit is unknown, it runs f once more, with again set: f
// must then adopt what the first run may have left. It reports whether there was
// a second run.
func RetryUnknown(ctx context.Context, update func(context.Context, func(tx *Tx) error) error, f func(tx *Tx, again bool) error) (again bool, err error) {
	err = update(ctx, func(tx *Tx) error { return f(tx, false) })
	if !errors.Is(err, ErrUnknownCommit) {
		return false, err
	}
	return true, update(ctx, func(tx *Tx) error { return f(tx, true) })
}

// View runs f on one snapshot. f must not write, and may run twice.
func (s *Store) View(ctx context.Context, f func(tx *Tx) error) error {
	return s.db.View(ctx, func(inner *db.Tx) error { return f(&Tx{db: inner, s: s}) })
}

// LockThenRead runs statements around one that locks rows, in the order of its
// arguments. When it has the locks, it reads the clock.
func (tx *Tx) LockThenRead(ctx context.Context, before []db.Statement, lock db.Statement, after ...db.Statement) error {
	var b db.Batch
	b.Add(before...)
	b.Add(lock)
	b.Clock(nil)
	b.Add(after...)
	return tx.db.Send(ctx, &b)
}

// Subscribe returns a Subscription to one client's event log. It gets a hint of
// everything that is committed after Subscribe returns, so subscribe first and read
// then.
func (s *Store) Subscribe(client till.ID) *hint.Subscription { return s.hints.Subscribe(client) }

// SubscribeAll returns a Subscription to every client's event log.
func (s *Store) SubscribeAll() *hint.Subscription { return s.hints.SubscribeAll() }

// SubscribeRemote is SubscribeAll for the commits of other processes.
func (s *Store) SubscribeRemote() *hint.Subscription { return s.hints.SubscribeRemote() }

// Weigh has f called with the size in bytes of each payment, payout and event that
// this transaction reads from now on. An error of f ends the read. The size of a
// page is the client's choice, so its reader must be able to stop before memory
// runs out.
func (tx *Tx) Weigh(f func(bytes int) error) { tx.scale = f }

func (tx *Tx) weigh(bytes int) error {
	if tx.scale == nil {
		return nil
	}
	return tx.scale(rowWeight + bytes)
}

// Weight returns about how many bytes the event takes, with what it is about.
func (e *EventRow) Weight() int { return rowWeight + e.documents() }

func (e *EventRow) documents() int {
	n := len(e.Document)
	if e.Payment != nil {
		n += len(e.Payment.Document)
	}
	if ofPayout(e.Kind) {
		n += payoutWeight
	}
	return n
}
