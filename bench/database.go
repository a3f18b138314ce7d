package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"till/bench/seed"
	"till/internal/db/pgtest"
	"till/store"
)

// The engines that Till runs on.
const (
	engineSQLite   = "sqlite"
	enginePostgres = "postgres"
)

var engineNames = map[string]string{engineSQLite: "SQLite", enginePostgres: "PostgreSQL"}

// enginesOf returns the engines that a flag names.
func enginesOf(flag string) ([]string, error) {
	switch flag {
	case engineSQLite, enginePostgres:
		return []string{flag}, nil
	case "both":
		return []string{engineSQLite, enginePostgres}, nil
	}
	return nil, fmt.Errorf("-engine must be %s, %s or both", engineSQLite, enginePostgres)
}

// serverSettings are what anybody would change who runs PostgreSQL for more
// than a try; durability is as it ships.
var serverSettings = []string{"shared_buffers = 512MB", "max_wal_size = 4GB", "min_wal_size = 2GB"}

// logFiles of 16 MB are as many as that server keeps for using them again.
const logFiles = 128

// database is where the sites of an engine are: files in the run's folder, or
// a PostgreSQL server of the run's own.
type database struct {
	engine  string
	dir     string // on the disk that is written to
	cluster *pgtest.Cluster
	pid     int // of the server's first process, 0 for files or where unknown
}

// openDatabase starts the server, if there is one.
func openDatabase(ctx context.Context, engine, dir string) (*database, error) {
	if engine == engineSQLite {
		return &database{engine: engine, dir: dir}, nil
	}
	cluster, err := pgtest.New(ctx, serverSettings...)
	if err != nil {
		return nil, err
	}
	if err := cluster.Age(ctx, logFiles); err != nil {
		cluster.Remove()
		return nil, err
	}
	d := &database{engine: engine, dir: os.TempDir(), cluster: cluster}
	if own := children(os.Getpid(), "postgres"); len(own) > 0 {
		d.pid = slices.Max(own)
	}
	return d, nil
}

// close stops and removes the server, if there is one.
func (d *database) close() {
	if d.cluster != nil {
		d.cluster.Remove()
	}
}

// create makes an empty database and returns its address for Till.
func (d *database) create(ctx context.Context, dir, name string) (string, error) {
	if d.cluster == nil {
		path := filepath.Join(dir, "till.db")
		return path, os.WriteFile(path, nil, 0o600)
	}
	return d.cluster.SocketURL(name), d.cluster.Create(ctx, name)
}

// vacuum does what a server does by itself some time after a table was filled,
// so that it does not do it in the middle of a measurement.
func (d *database) vacuum(ctx context.Context, name string) error {
	if d.cluster == nil {
		return nil
	}
	return d.cluster.Vacuum(ctx, name)
}

// drop removes a database of the server; a file goes with its folder.
func (d *database) drop(ctx context.Context, name string) error {
	if d.cluster == nil {
		return nil
	}
	return d.cluster.Drop(ctx, name)
}

// checkpoint has the server write to the disk what is only in its memory.
func (d *database) checkpoint(ctx context.Context) error {
	if d.cluster == nil {
		return nil
	}
	return d.cluster.Checkpoint(ctx)
}

// size returns the bytes of a database, 0 where unknown: the file with its
// write-ahead log, or the server's tables and indexes without its log.
func (d *database) size(database string) int64 {
	var sum int64
	if !store.IsPostgres(database) {
		for _, suffix := range []string{"", "-wal"} {
			if info, err := os.Stat(database + suffix); err == nil {
				sum += info.Size()
			}
		}
		return sum
	}
	sizes, err := sizesOf(context.Background(), database)
	if err != nil {
		return 0
	}
	for _, t := range sizes {
		sum += t.Bytes
	}
	return sum
}

// sizesOf measures the tables of a database that nobody else has open.
func sizesOf(ctx context.Context, database string) ([]seed.TableSize, error) {
	s, err := store.Open(ctx, store.Config{Path: database, Readers: 1})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return seed.Sizes(ctx, s)
}

// cpu returns the CPU time of the server's processes, also of those that have
// ended; 0 for a file, whose work is done in Till's own process.
func (d *database) cpu() time.Duration {
	if d == nil || d.pid == 0 {
		return 0
	}
	f := statOf(d.pid)
	if f == nil {
		return 0
	}
	sum := f.ticks(11, 12) + f.ticks(13, 14)
	for _, pid := range children(d.pid, "") {
		sum += statOf(pid).ticks(11, 12)
	}
	return sum
}
