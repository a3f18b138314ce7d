package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"till"
)

// Config says which database to open and how.
type Config struct {
	// Path is a SQLite file or a postgres:// URL.
	Path string

	// Now is the database's clock; nil means the machine's for a file and the
	// server's for PostgreSQL. A test may bend it.
	Now func() till.Time

	// Readers is how many reads run at once; 0 means 4.
	Readers int

	// NoSkipLocked leaves an optimisation of PostgreSQL unused. Nothing
	// depends on it.
	NoSkipLocked bool

	// NoSets sends a statement for each row, as an engine needs that finds the
	// node of a row by the arguments. Nothing depends on it.
	NoSets bool

	// NoNotify leaves NOTIFY of PostgreSQL unused: instances see each other's
	// commits when they look. Nothing depends on it. A listening connection
	// waits on the network, so a test in a bubble of virtual time needs this.
	NoNotify bool

	// PartRows is how many rows a part of a busy hour has; 0 means 2000. Two parts
	// make an hour busy. A test sets it, so that few rows do.
	PartRows int

	Log *slog.Logger // nil: silence
}

// Store is an open database.
type Store struct {
	now      func() till.Time // nil: the server's clock, by offset
	offset   atomic.Int64     // the server's clock minus ours, in microseconds
	e        engine
	gate     gate
	partRows int64
	wary     atomic.Int64 // until when trusts is false, in nanoseconds of Unix time
	hints    *hints
	writers  *pool
	readers  *pool
}

var (
	// ErrUnknownCommit says that an error came at COMMIT: the transaction may
	// or may not have happened. Read back by key, then adopt or redo.
	ErrUnknownCommit = errors.New("store: outcome of the commit is unknown")

	// ErrUnavailable says that the database cannot be used now: it is away or
	// locked, its disk is full or it is being closed. Nothing was changed.
	ErrUnavailable = errors.New("store: database unavailable")

	// ErrBusy says that no reader was free in time: many ask, or those who have
	// one wait for the database themselves.
	ErrBusy = errors.New("store: all readers are busy")

	// ErrRefused says that the database refused a row by one of its
	// constraints.
	ErrRefused = errors.New("store: refused by a constraint")

	// ErrConflict says that a row that was to be written was not there, or not as
	// it had been read. It is a refusal.
	ErrConflict = fmt.Errorf("%w: a row was not there as it was read", ErrRefused)

	// errBeforeCommit says that a statement failed and COMMIT never ran.
	errBeforeCommit = errors.New("store: a statement failed")

	// errAgain says that the transaction met another one, changed nothing and
	// may run again.
	errAgain = errors.New("met another transaction")
)

// pgWriters is how many write transactions run at once on PostgreSQL. More
// only wait for each other at the same rows and the same log.
const pgWriters = 6

// Open opens the database. It migrates nothing: see Migrate and CheckSchema.
func Open(ctx context.Context, c Config) (*Store, error) {
	if c.Readers <= 0 {
		c.Readers = 4
	}
	if c.PartRows <= 0 {
		c.PartRows = partRows
	}
	s := &Store{now: c.Now, partRows: int64(c.PartRows), hints: newHints(c.Log)}
	writers := 1
	var err error
	if IsPostgres(c.Path) {
		writers = pgWriters
		var e *postgres
		if e, err = openPostgres(c, s.saw); err == nil && !c.NoNotify {
			s.hints.post = newPost(s.hints, e)
			s.hints.watch = s.hints.post.hear
		}
		s.e = e
	} else {
		if s.now == nil {
			s.now = func() till.Time { return till.TimeOf(time.Now()) }
		}
		s.e = &sqlite{path: c.Path, now: s.now}
		if err = checkLiteLog(c.Path); err == nil {
			err = makeLite(c.Path)
		}
		s.hints.watch = s.watchFile
	}
	if err != nil {
		return nil, err
	}
	s.gate.size = writers
	s.writers, s.readers = newPool(writers), newPool(c.Readers)
	// One connection is made now, so that a database that cannot be used is
	// noticed at once.
	if err := s.View(ctx, func(tx *Tx) error { return tx.ses.reach(ctx) }); err != nil {
		s.e.close()
		return nil, err
	}
	return s, nil
}

// Close closes the database after the transactions under way have ended, and
// after others were told of them.
func (s *Store) Close() error {
	s.hints.deafen()
	for range s.writers.size() {
		s.gate.lock(first)
		if w, _ := s.writers.take(context.Background()); w != nil {
			w.close()
		}
	}
	s.hints.flush()
	for range s.readers.size() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		if r, _ := s.readers.take(ctx); r != nil {
			r.close()
		}
		cancel()
	}
	s.e.close()
	return nil
}

// Writers returns how many write transactions run at once.
func (s *Store) Writers() int { return s.writers.size() }

// Now returns the database's time: on PostgreSQL the machine's, corrected by
// what the last transaction showed. What decides over leases and due times is
// read inside transactions.
func (s *Store) Now() till.Time {
	if s.now != nil {
		return s.now()
	}
	return till.TimeOf(time.Now()) + till.Time(s.offset.Load())
}

// Tx is one transaction.
type Tx struct {
	ses     session
	s       *Store
	writes  bool
	trusted bool // it took for granted that what it inserts is new

	scale func(bytes int) error // see Weigh; nil: nobody asks

	grown []till.ID  // whose event logs this transaction makes longer
	first [1]till.ID // room for the first of them: most batches have one client
}

// grew notes that a client's event log is longer after the commit.
func (tx *Tx) grew(client till.ID) {
	if tx.grown == nil {
		tx.grown = tx.first[:0]
		if tx.s.hints.post != nil {
			tx.s.hints.post.warm()
		}
	}
	tx.grown = append(tx.grown, client)
}

// Shared reports whether other servers may be using the database too.
func (s *Store) Shared() bool { return s.e.name() == "postgres" }

// Now returns the database's time at the start of the transaction, or when
// the heads were locked.
func (tx *Tx) Now() till.Time { return tx.ses.now() }

// Writes reports whether the transaction may write.
func (tx *Tx) Writes() bool { return tx.writes }

// Update runs f in one write transaction. Requests come through here: they
// go before whatever waits in UpdateBehind. f may run more than once.
func (s *Store) Update(ctx context.Context, f func(tx *Tx) error) error {
	return s.update(ctx, first, f)
}

// UpdateBehind is Update for work that can wait a moment: the engine's.
func (s *Store) UpdateBehind(ctx context.Context, f func(tx *Tx) error) error {
	return s.update(ctx, behind, f)
}

// maxAgain is how often a transaction that met another one is run again
// before the caller is told.
const maxAgain = 8

func (s *Store) update(ctx context.Context, p priority, f func(tx *Tx) error) error {
	// A cancelled request must not roll back a batch that others wait for.
	ctx = context.WithoutCancel(ctx)
	s.gate.lock(p)
	defer s.gate.unlock()
	for n := 1; ; n++ {
		err := s.updateOnce(ctx, f)
		if !errors.Is(err, errAgain) || errors.Is(err, ErrUnknownCommit) {
			return err
		}
		if n == maxAgain {
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		// Two that met would meet again if they came back in step.
		time.Sleep(rand.N(time.Duration(n) * 5 * time.Millisecond))
	}
}

func (s *Store) updateOnce(ctx context.Context, f func(tx *Tx) error) (err error) {
	w, err := s.writers.take(ctx)
	if err != nil {
		return err
	}
	defer func() { s.writers.put(w) }() // also after a panic
	for {
		fresh := w == nil
		if w, err = s.begin(ctx, w, true); err != nil {
			return err
		}
		started, err := s.try(ctx, w, f)
		// A connection that died while nobody used it is replaced, once.
		if err == nil || started || fresh || !w.broken() {
			return err
		}
		w.close()
		w = nil
	}
}

// try runs f and commits. It reports whether the transaction ever reached the
// engine.
func (s *Store) try(ctx context.Context, w session, f func(tx *Tx) error) (started bool, err error) {
	done := false
	defer func() {
		started = w.started()
		if !done { // an error or a panic
			w.rollback(ctx)
		}
	}()
	tx := &Tx{ses: w, s: s, writes: true}
	if err := f(tx); err != nil {
		return false, s.refused(tx, s.e.classify(err))
	}
	err = w.commit(ctx)
	if errors.Is(err, errBeforeCommit) {
		return false, s.refused(tx, s.e.classify(err))
	}
	s.hints.committed(tx.grown) // also if it is unknown: it may have happened
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrUnknownCommit, s.e.classify(err))
	}
	done = true
	return true, nil
}

// distrust is how long nothing is taken for granted after a row that was
// thought to be new was not: a client that repeats itself does so for a while.
const distrust = time.Second

// trusts reports whether rows may be taken for new.
func (s *Store) trusts() bool { return s.e.remote() && time.Now().UnixNano() > s.wary.Load() }

// refused makes a transaction run again that took too much for granted.
func (s *Store) refused(tx *Tx, err error) error {
	if tx.trusted && errors.Is(err, ErrRefused) {
		s.wary.Store(time.Now().Add(distrust).UnixNano())
		return fmt.Errorf("%w: %w", errAgain, err)
	}
	return err
}

// View runs f on one snapshot. f must not write. It runs once more if the
// first thing that it asks for finds a dead connection.
func (s *Store) View(ctx context.Context, f func(tx *Tx) error) error {
	r, err := s.readers.take(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBusy, err)
	}
	defer func() { s.readers.put(r) }()
	ctx = context.WithoutCancel(ctx)
	for {
		fresh := r == nil
		if r, err = s.begin(ctx, r, false); err != nil {
			return err
		}
		err := s.look(ctx, r, f)
		if err == nil || r.started() || fresh || !r.broken() {
			return err
		}
		r.close()
		r = nil
	}
}

func (s *Store) look(ctx context.Context, r session, f func(tx *Tx) error) error {
	defer r.rollback(ctx) // also after a panic
	return s.e.classify(f(&Tx{ses: r, s: s}))
}

// begin starts a transaction on a session, which is made if there is none. A
// connection that turns out to be dead at this point is replaced once: nothing
// has happened on it yet. It returns the session, if there is one, also with
// an error.
func (s *Store) begin(ctx context.Context, ses session, write bool) (session, error) {
	for {
		fresh := ses == nil
		if fresh {
			var err error
			if ses, err = s.e.connect(ctx, write); err != nil {
				return nil, s.e.classify(err)
			}
		}
		err := ses.begin(ctx, write)
		if err == nil {
			return ses, nil
		}
		if fresh || !ses.broken() {
			ses.rollback(ctx)
			return ses, s.e.classify(err)
		}
		ses.close()
		ses = nil
	}
}

// saw notes how far the server's clock is ahead of ours.
func (s *Store) saw(sent time.Time, now till.Time) {
	// A slow answer says little about when the clock was read.
	if took := time.Since(sent); took < 100*time.Millisecond {
		at := sent.Add(took / 2)
		s.offset.Store(int64(now - till.TimeOf(at)))
	}
}

// exec runs a write and returns how many rows it touched.
func (tx *Tx) exec(ctx context.Context, query any, args ...any) (int64, error) {
	return tx.ses.exec(ctx, sqlOf(query), args)
}

// later runs one write for many rows, in their order, before the commit.
func (tx *Tx) later(ctx context.Context, query any, rows [][]any) error {
	return tx.ses.later(ctx, sqlOf(query), rows)
}

// set runs one write for many rows that do not touch each other, before the
// commit. It may find that there is nothing to do for some.
func (tx *Tx) set(ctx context.Context, query any, rows [][]any) error {
	return tx.ses.set(ctx, sqlOf(query), rows, false)
}

// setAll is set for rows each of which must be there: if one is not, the
// transaction fails.
func (tx *Tx) setAll(ctx context.Context, query any, rows [][]any) error {
	if _, text := query.(string); text {
		for _, args := range rows {
			if n, err := tx.exec(ctx, query, args...); err != nil {
				return err
			} else if n != 1 {
				return ErrConflict
			}
		}
		return nil
	}
	return tx.ses.set(ctx, sqlOf(query), rows, true)
}

// rows runs a query and calls scan for each row.
func (tx *Tx) rows(ctx context.Context, query any, args []any, scan func(r row) error) error {
	return tx.ses.query(ctx, sqlOf(query), args, scan)
}

// rowsEach runs one query for many arguments, in their order: its text takes no
// arrays.
func (tx *Tx) rowsEach(ctx context.Context, query any, args [][]any, scan func(i int, r row) error) error {
	return tx.ses.queryEach(ctx, read{query: query, args: args, scan: scan})
}

// rowsOf runs one query by key for many arguments; the answers come in any
// order.
func (tx *Tx) rowsOf(ctx context.Context, query any, args [][]any, scan func(i int, r row) error) error {
	return tx.ses.queryEach(ctx, read{query: query, args: args, scan: scan})
}

// one runs a query for at most one row and reports whether there was one.
func (tx *Tx) one(ctx context.Context, query any, args []any, dest ...any) (bool, error) {
	found := false
	err := tx.rows(ctx, query, args, func(r row) error {
		found = true
		return r.Scan(dest...)
	})
	return found, err
}
