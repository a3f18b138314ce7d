package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"till"
	"till/bench/seed"
	"till/store"
)

// testbed is one database with one test client: a folder of its own, and a file
// in it or a database of the run's PostgreSQL server.
type testbed struct {
	in     *installation
	db     *database
	name   string // of the server's database
	dir    string
	url    string
	apiKey string
}

// newTestbed makes a database that holds nothing but a client.
func (r *engineRun) newTestbed(ctx context.Context, name string) (*testbed, error) {
	s := &testbed{in: r.in, db: r.db, name: name, dir: filepath.Join(r.in.dir, r.db.engine+"-"+name)}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, err
	}
	var err error
	if s.url, err = r.db.create(ctx, s.dir, name); err != nil {
		return nil, err
	}
	r.testbeds = append(r.testbeds, s)
	if _, err := s.in.till(ctx, "migrate", "--database", s.url); err != nil {
		return nil, err
	}
	if _, s.apiKey, err = s.newClient(ctx, "bench"); err != nil {
		return nil, err
	}
	return s, nil
}

// remove drops the database, which nobody has open any more.
func (s *testbed) remove(ctx context.Context) error {
	if err := s.db.drop(ctx, s.name); err != nil {
		return err
	}
	return os.RemoveAll(s.dir)
}

// newClient makes a test client and returns its key.
func (s *testbed) newClient(ctx context.Context, name string) (id till.ID, apiKey string, err error) {
	b, err := s.in.till(ctx, "client", "create", "--name", name, "--mode", "test", "--database", s.url, "--json")
	if err != nil {
		return id, "", err
	}
	var made struct {
		ClientID string `json:"client_id"`
		APIKey   string `json:"api_key"`
	}
	if err := json.Unmarshal(b, &made); err != nil || made.APIKey == "" {
		return id, "", fmt.Errorf("till client create printed no key (%v)", err)
	}
	id, err = till.ParseID(made.ClientID)
	return id, made.APIKey, err
}

// serve starts `till serve --role api` as it is shipped, but for the rate
// limit, and without the second address, which another instance may hold. Of
// flags that are there twice, the last holds.
func (s *testbed) serve(ctx context.Context, name string, more ...string) (*process, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	flags := append([]string{"serve", "--role", "api", "--rate-limit", "0", "--test-quota", "0", "--listen", addr, "--admin-listen", "", "--database", s.url,
		"--secret-file", s.secretFile()}, more...)
	return start(ctx, name, addr, s.apiKey, filepath.Join(s.dir, "till.log"), s.in.program, flags...)
}

func (s *testbed) secretFile() string { return filepath.Join(s.dir, "till.secret") }

// open opens the database in this process.
func (s *testbed) open(ctx context.Context) (*store.Store, error) {
	return store.Open(ctx, store.Config{Path: s.url, Readers: 1})
}

// client returns the one client.
func (s *testbed) client(ctx context.Context, st *store.Store) (c *till.Client, err error) {
	err = st.View(ctx, func(tx *store.Tx) error {
		clients, err := tx.Clients(ctx, till.ID{}, 2)
		if err == nil && len(clients) != 1 {
			err = fmt.Errorf("the database has other clients")
		}
		if err == nil {
			c = clients[0]
		}
		return err
	})
	return c, err
}

// openForClient opens the database with its only client.
func (s *testbed) openForClient(ctx context.Context) (*store.Store, *till.Client, error) {
	st, err := s.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	c, err := s.client(ctx, st)
	if err != nil {
		st.Close()
		return nil, nil, err
	}
	return st, c, nil
}

// seeding is how a database was filled.
type seeding struct {
	Rows    int64   `json:"rows"`
	Seconds float64 `json:"seconds"`
	CPU     float64 `json:"cpu_seconds"` // of this process and the database server
	Bytes   int64   `json:"database_bytes"`

	from, to till.Time // between which the payments were made
}

// seedDays is over how many days the payments are spread.
const seedDays = 90

// seed fills the database with payments of the last days by SQL.
func (s *testbed) seed(ctx context.Context, rows int64, say func(string, ...any)) (*seeding, error) {
	return s.fill(ctx, seed.Config{Rows: rows}, say)
}

// seedBooks is seed with all that belongs to payments that have ended.
func (s *testbed) seedBooks(ctx context.Context, rows int64, say func(string, ...any)) (*seeding, error) {
	return s.fill(ctx, seed.Config{Rows: rows, Books: true}, say)
}

func (s *testbed) fill(ctx context.Context, c seed.Config, say func(string, ...any)) (*seeding, error) {
	rows := c.Rows
	st, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	client, err := s.client(ctx, st)
	if err != nil {
		st.Close()
		return nil, err
	}
	began, cpu := time.Now(), selfCPU()+s.db.cpu()
	d := &seeding{Rows: rows, to: st.Now().Add(-time.Hour)}
	d.from = d.to.Add(-seedDays * 24 * time.Hour)
	c.Client, c.From, c.To, c.Progress = client.ID, d.from, d.to, func(n int64) {
		if n%500_000 == 0 {
			say("seeded %d payments (%.0f s)", n, time.Since(began).Seconds())
		}
	}
	err = seed.Payments(ctx, st, c)
	st.Close()
	if err == nil {
		err = s.db.vacuum(ctx, s.name)
	}
	if err != nil {
		return nil, err
	}
	d.Seconds, d.CPU = time.Since(began).Seconds(), (selfCPU() + s.db.cpu() - cpu).Seconds()
	d.Bytes = s.db.size(s.url)
	say("seeded %d payments in %.0f s (%.1f s of CPU), %s", rows, d.Seconds, d.CPU, megabytes(d.Bytes))
	return d, nil
}

// largeTestbed returns the database of so many rows as the flags ask for. It is made
// once and shared.
func (r *engineRun) largeTestbed(ctx context.Context) (*testbed, error) {
	if r.seeded != nil {
		return r.seeded, nil
	}
	s, err := r.newTestbed(ctx, "large")
	if err != nil {
		return nil, err
	}
	if r.report.Seeding, err = s.seed(ctx, r.rows, r.logf); err != nil {
		return nil, err
	}
	r.seeded = s
	return s, nil
}
