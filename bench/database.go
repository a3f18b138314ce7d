package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"till/store/pgtest"
)

// The engines that Till runs on.
const (
	engineSQLite   = "sqlite"
	enginePostgres = "postgres"
)

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

// database is where the payments of a run are: a file in the run's folder, or
// a PostgreSQL server of its own with the durability it ships with.
type database struct {
	engine  string
	url     string
	cluster *pgtest.Cluster
	pid     int // of the server's first process, 0 for a file or where unknown
}

// openDatabase names the file, or starts the server.
func openDatabase(ctx context.Context, engine, dir string) (*database, error) {
	if engine == engineSQLite {
		return &database{engine: engine, url: filepath.Join(dir, "till.db")}, nil
	}
	cluster, err := pgtest.New(ctx)
	if err != nil {
		return nil, err
	}
	d := &database{engine: engine, url: cluster.URL("postgres"), cluster: cluster}
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

// size returns the bytes of the database, 0 where unknown: the file with its
// write-ahead log, or the server's tables and indexes without its log.
func (d *database) size() int64 {
	var sum int64
	if d.engine == engineSQLite {
		for _, suffix := range []string{"", "-wal"} {
			if info, err := os.Stat(d.url + suffix); err == nil {
				sum += info.Size()
			}
		}
		return sum
	}
	root, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(d.pid), "cwd"))
	if err != nil {
		return 0
	}
	filepath.WalkDir(filepath.Join(root, "base"), func(_ string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			if info, err := e.Info(); err == nil {
				sum += info.Size()
			}
		}
		return nil
	})
	return sum
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

// stat is the fields of /proc/PID/stat after the name of the command.
type stat []string

// statOf reads the fields, nil where unknown. The command's name stands in
// parentheses and may contain anything.
func statOf(pid int) stat {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return nil
	}
	return strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
}

// ticks returns the sum of two fields that hold CPU times.
func (s stat) ticks(a, b int) time.Duration {
	if len(s) <= max(a, b) {
		return 0
	}
	x, _ := strconv.ParseInt(s[a], 10, 64)
	y, _ := strconv.ParseInt(s[b], 10, 64)
	return time.Duration(x+y) * (time.Second / ticksPerSec)
}

// children returns the processes that a process has started, by the name of
// their command unless it is "".
func children(parent int, name string) []int {
	entries, _ := os.ReadDir("/proc")
	var out []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if s := statOf(pid); len(s) < 2 || s[1] != strconv.Itoa(parent) {
			continue
		}
		comm, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "comm"))
		if name == "" || strings.TrimSpace(string(comm)) == name {
			out = append(out, pid)
		}
	}
	return out
}
