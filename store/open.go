package store

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"till"
	"till/internal/db"
	"till/internal/db/postgres"
	"till/internal/db/sqlite"
	"till/internal/hint"
	"till/store/schema"
)

// Config says which database to open and how.
type Config struct {
	// Path is a SQLite file or a postgres:// URL.
	Path string

	// Now is the database's clock; nil means the machine's for a file and the
	// server's for PostgreSQL. Tests replace it.
	Now func() till.Time

	// Readers is how many reads run at once, on each node of Citus; 0 means 4.
	Readers int

	// PlainSQL sends the texts for Citus, where Open does not find out by itself that
	// the database is distributed: no SKIP LOCKED, and statements about one client each.
	PlainSQL bool

	// NoNotify sends no NOTIFY on PostgreSQL and watches no file: instances see each
	// other's commits when they poll. A listening connection waits on the network, so a
	// test in virtual time needs this; and there a file would be read 50 times a second,
	// for hours that pass in a moment.
	NoNotify bool

	// PartRows is how many rows a part of a busy hour has; 0 means 2000. Two parts
	// make an hour busy. Tests set a small number.
	PartRows int

	// Wrap puts an engine around the one that was opened, for tests that let it fail; nil:
	// none.
	Wrap func(db.Engine) db.Engine

	// Observer is notified of transactions; nil: nobody is.
	Observer db.Observer

	Log *slog.Logger // nil: silence
}

func (c *Config) wrap(e db.Engine) db.Engine {
	if c.Wrap == nil {
		return e
	}
	return c.Wrap(e)
}

// IsPostgres reports whether a database is named by a PostgreSQL URL.
func IsPostgres(database string) bool {
	return strings.HasPrefix(database, "postgres://") || strings.HasPrefix(database, "postgresql://")
}

// ForeignLogError says that the log beside a SQLite file belongs to another file.
type ForeignLogError = sqlite.ForeignLogError

// Open opens the database. It migrates nothing: see Migrate and CheckSchema.
func Open(ctx context.Context, c Config) (*Store, error) {
	if c.Readers <= 0 {
		c.Readers = postgres.Readers
	}
	if c.PartRows <= 0 {
		c.PartRows = partRows
	}
	s := &Store{hints: hint.NewHub(c.Log), partRows: int64(c.PartRows)}
	var err error
	if IsPostgres(c.Path) {
		err = s.openPostgres(ctx, &c)
	} else {
		err = s.openSQLite(&c)
	}
	if err != nil {
		return nil, err
	}
	s.db.Observe(c.Observer)
	// One connection is made now, so that a database that cannot be used is
	// noticed at once.
	if err := s.View(ctx, func(tx *Tx) error { return tx.db.Flush(ctx) }); err != nil {
		s.db.Close()
		return nil, err
	}
	return s, nil
}

func (s *Store) openPostgres(ctx context.Context, c *Config) error {
	e, err := postgres.Open(ctx, postgres.Config{URL: c.Path, Readers: c.Readers, Now: c.Now, Citus: c.PlainSQL})
	if err != nil {
		return err
	}
	s.db = db.New(c.wrap(e), postgres.Writers, c.Now)
	distributed, err := schema.IsDistributed(ctx, s.db)
	if err == nil && distributed {
		err = s.useNodes(ctx, e)
	}
	if err != nil {
		s.db.Close()
		return err
	}
	if !c.NoNotify {
		s.hints.UsePostgres(e.Connect)
	}
	return nil
}

// useNodes sends the texts for Citus from now on. Each node has as many readers and writers
// as one server has: those that wait for one node must not keep others waiting.
func (s *Store) useNodes(ctx context.Context, e *postgres.Engine) error {
	var n int
	if err := s.View(ctx, func(tx *Tx) error {
		_, err := tx.db.QueryRow(ctx, countNodes, nil, &n)
		return err
	}); err != nil {
		return err
	}
	if err := e.UseCitus(ctx, n); err != nil {
		return err
	}
	s.nodes.known = true
	s.db.SetWriters(postgres.Writers * postgres.Shares(n))
	return nil
}

func (s *Store) openSQLite(c *Config) error {
	if c.Now == nil {
		c.Now = func() till.Time { return till.TimeOf(time.Now()) }
	}
	e, err := sqlite.Open(c.Path, c.Readers, c.Now)
	if err != nil {
		return err
	}
	s.db = db.New(c.wrap(e), sqlite.Writers, c.Now)
	if !c.NoNotify {
		s.hints.UseFile(e.DataVersion)
	}
	return nil
}

// PlainHosts returns the hosts other than this machine to which a database's URL
// allows connections without TLS.
func PlainHosts(database string) []string {
	if !IsPostgres(database) {
		return nil
	}
	return postgres.PlainHosts(database)
}

// Damage returns what is wrong with the pages of a SQLite file. PostgreSQL checks
// its pages itself.
func (s *Store) Damage(ctx context.Context) ([]string, error) {
	if s.Shared() {
		return nil, nil
	}
	return sqlite.Damage(ctx, s.db)
}

// AnalyzeNewTables runs ANALYZE on PostgreSQL's tables without statistics and
// returns their names.
func (s *Store) AnalyzeNewTables(ctx context.Context) ([]string, error) {
	if !s.Shared() {
		return nil, nil
	}
	return postgres.AnalyzeNewTables(ctx, s.db)
}

// SchemaError says that the database's schema is not this program's.
type SchemaError = schema.Error

// Migrate brings the schema up to this program's, and returns which migrations were
// applied.
func (s *Store) Migrate(ctx context.Context) (applied []string, err error) {
	return schema.Migrate(ctx, s.db)
}

// PendingStop returns the migrations that Migrate would apply and on which the release
// before must not run.
func (s *Store) PendingStop(ctx context.Context) ([]string, error) {
	return schema.PendingStop(ctx, s.db)
}

// KnowsInstances reports whether the database has a table of instances yet: one of an old
// release that was not migrated does not.
func (s *Store) KnowsInstances(ctx context.Context) (bool, error) {
	return schema.HasInstances(ctx, s.db)
}

// DefaultShards is into how many parts Distribute divides the clients by default.
const DefaultShards = schema.DefaultShards

// Placed reports whether all tables are in their places on Citus.
func (s *Store) Placed(ctx context.Context) (bool, error) {
	place, err := schema.PlaceOf(ctx, s.db)
	return place == schema.Placed, err
}

// Distribute puts each table in its place on Citus, and says each command before it runs.
// The store must have been opened with PlainSQL, and be ReadyToDistribute. shards is 0 for as
// many as there are, or DefaultShards.
func (s *Store) Distribute(ctx context.Context, shards int, say func(command string)) error {
	return schema.Distribute(ctx, s.db, shards, say)
}

// GoOnDistributing is Distribute for a database on which it was interrupted, and nothing for
// any other. It comes before Migrate, which needs all tables in their places.
func (s *Store) GoOnDistributing(ctx context.Context, shards int, say func(command string)) error {
	if place, err := schema.PlaceOf(ctx, s.db); err != nil || place != schema.InPart {
		return err
	}
	return s.Distribute(ctx, shards, say)
}

// Distributed reports whether Citus has distributed the database, as far as Open could see.
func (s *Store) Distributed() bool { return s.db.Dialect() == db.Citus }

// WithoutIdentity returns the tables whose shards Citus could not move while they are written.
func (s *Store) WithoutIdentity(ctx context.Context) ([]string, error) {
	return schema.WithoutIdentity(ctx, s.db)
}

// SchemaNumber returns the number of this program\'s newest migration.
func (s *Store) SchemaNumber() int { return schema.Number(s.db.Dialect()) }

// CheckSchema returns nil if the schema is this program's, or that of a newer release that
// this program may run beside, and a SchemaError that says what to do if it is not.
func (s *Store) CheckSchema(ctx context.Context) error { return schema.Check(ctx, s.db) }

// SchemaVersion returns the newest migration that was applied.
func (s *Store) SchemaVersion(ctx context.Context) (string, error) { return schema.Version(ctx, s.db) }
