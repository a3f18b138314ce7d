package db_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"till"
	"till/internal/db"
	"till/internal/db/postgres"
	"till/internal/db/sqlite"
)

// The statements of these tests, on a table things (id, n, word, flag).
var (
	insert = db.Define(db.SQL{Name: "test.insert",
		SQLite: `INSERT INTO things (owner, id, n, word, flag) VALUES ($1, $2, $3, $4, $5)`})
	insertAll = db.Define(db.SQL{Name: "test.insertAll",
		SQLite: `INSERT INTO things (owner, id, n, word, flag) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING`,
		Postgres: `INSERT INTO things (owner, id, n, word, flag) SELECT u.a1, u.a2, u.a3, u.a4, u.a5
			FROM (SELECT unnest($1::bytea[]) AS a1, unnest($2::bytea[]) AS a2, unnest($3::bigint[]) AS a3, unnest($4::text[]) AS a4,
				unnest($5::bigint[]) AS a5 LIMIT $6::bigint) AS u
			ON CONFLICT DO NOTHING RETURNING id`,
		Arrays: true})
	insertBeside = db.Define(db.SQL{Name: "test.insertBeside",
		SQLite: `INSERT INTO things (owner, id, n, flag) VALUES ($1, $2, 0, 0)`,
		Postgres: `INSERT INTO things (owner, id, n, flag) SELECT u.a1, u.a2, 0, 0
			FROM (SELECT unnest($1::bytea[]) AS a1, unnest($2::bytea[]) AS a2 LIMIT $3::bigint) AS u`,
		OneClient: `INSERT INTO things (owner, id, n, flag) SELECT c.owner, u.a2, 0, 0
			FROM things AS c, (SELECT unnest($2::bytea[]) AS a2 LIMIT $3::bigint) AS u WHERE c.id = $1`,
		Client: 1, Arrays: true})
	add = db.Define(db.SQL{Name: "test.add",
		SQLite: `UPDATE things SET n = n + $1 WHERE id = $2`,
		Postgres: `UPDATE things SET n = n + u.a1
			FROM (SELECT unnest($1::bigint[]) AS a1, unnest($2::bytea[]) AS a2, unnest($3::bigint[]) AS nth LIMIT $4::bigint) AS u
			WHERE id = u.a2 RETURNING u.nth`,
		Arrays: true})
	addExactly = db.Define(db.SQL{Name: "test.addExactly",
		SQLite: `UPDATE things SET n = n + $1 WHERE id = $2`,
		Postgres: `WITH changed AS (UPDATE things SET n = n + u.a1
			FROM (SELECT unnest($1::bigint[]) AS a1, unnest($2::bytea[]) AS a2 LIMIT $3::bigint) AS u
			WHERE id = u.a2 RETURNING 1)
			SELECT till_expect_rows(count(*), $3) FROM changed`,
		Arrays: true})
	double = db.Define(db.SQL{Name: "test.double", SQLite: `UPDATE things SET n = n * 2 WHERE id = $1`})
	lock   = db.Define(db.SQL{Name: "test.lock",
		SQLite: `SELECT n FROM things WHERE id = $1`, Postgres: `SELECT n FROM things WHERE id = $1 FOR UPDATE`})
	find = db.Define(db.SQL{Name: "test.find",
		SQLite: `SELECT n, word, flag FROM things WHERE id = $1`,
		Postgres: `SELECT u.nth, n, word, flag FROM things,
			(SELECT unnest($1::bytea[]) AS a1, unnest($2::bigint[]) AS nth LIMIT $3::bigint) AS u WHERE id = u.a1`,
		Arrays: true})
	count = db.Define(db.SQL{Name: "test.count", SQLite: `SELECT count(*) FROM things`})
)

const (
	schema = `CREATE TABLE things (owner BLOB NOT NULL, id BLOB PRIMARY KEY, n BIGINT NOT NULL CHECK (n >= 0), word TEXT, flag BIGINT NOT NULL)`
	expect = `CREATE FUNCTION till_expect_rows(got BIGINT, want BIGINT) RETURNS BIGINT LANGUAGE plpgsql AS $$
		BEGIN IF got <> want THEN RAISE EXCEPTION '% rows changed, not %', got, want USING ERRCODE = 'TL001'; END IF; RETURN got; END $$`
)

// engines runs f on an empty database of each engine.
func engines(t *testing.T, f func(t *testing.T, d *db.DB)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		now := func() till.Time { return till.TimeOf(time.Now()) }
		e, err := sqlite.Open(filepath.Join(t.TempDir(), "till.db"), 2, now)
		if err != nil {
			t.Fatal(err)
		}
		f(t, open(t, e, sqlite.Writers, now, schema))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		f(t, openPostgres(t, newSchema(t), schema))
	})
	t.Run("citus", func(t *testing.T) {
		t.Parallel()
		f(t, openURL(t, newSchema(t), true, schema))
	})
}

func open(t *testing.T, e db.Engine, writers int, now func() till.Time, scripts ...string) *db.DB {
	t.Helper()
	d := db.New(e, writers, now)
	t.Cleanup(func() { d.Close() })
	for _, text := range scripts {
		update(t, d, func(tx *db.Tx) error { return tx.Script(t.Context(), text) })
	}
	return d
}

// openPostgres opens a URL, and makes the schema if it is given.
func openPostgres(t *testing.T, url string, scripts ...string) *db.DB {
	t.Helper()
	return openURL(t, url, false, scripts...)
}

func openURL(t *testing.T, url string, citus bool, scripts ...string) *db.DB {
	t.Helper()
	e, err := postgres.Open(t.Context(), postgres.Config{URL: url, Readers: 2, Citus: citus})
	if err != nil {
		t.Fatal(err)
	}
	for i := range scripts {
		scripts[i] = strings.ReplaceAll(scripts[i], "BLOB", "BYTEA") + ";" + expect
	}
	return open(t, e, postgres.Writers, nil, scripts...)
}

// newSchema returns a URL of an empty schema.
func newSchema(t *testing.T) string {
	t.Helper()
	server := os.Getenv("TILL_TEST_POSTGRES_URL")
	if server == "" {
		t.Skip("TILL_TEST_POSTGRES_URL names no server; make test starts one")
	}
	name := "t_" + strings.ReplaceAll(till.NewID(till.TimeOf(time.Now())).String(), "-", "")
	run := func(query string) {
		ctx := context.Background()
		conn, err := pgx.Connect(ctx, server)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(ctx)
		if _, err := conn.Exec(ctx, query); err != nil {
			t.Fatal(err)
		}
	}
	run("CREATE SCHEMA " + name)
	t.Cleanup(func() { run("DROP SCHEMA " + name + " CASCADE") })
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("search_path", name)
	u.RawQuery = q.Encode()
	return u.String()
}

func update(t *testing.T, d *db.DB, f func(tx *db.Tx) error) {
	t.Helper()
	if err := d.Update(t.Context(), db.Foreground, f); err != nil {
		t.Fatal(err)
	}
}

// thing returns the arguments of a thing whose id ends in a number.
func thing(k byte, n int) []any {
	return []any{[]byte("somebody, or so."), id(k), int64(n), fmt.Sprint("word ", n), k%2 == 0}
}

func id(k byte) []byte { return till.ID{15: k}.Bytes() }

// word is a destination that takes a null for nothing.
type word struct{ text *string }

func (w word) ScanColumn(c db.Column) { *w.text = string(c.Bytes) }

// yes is a destination for a number that is a boolean.
type yes struct{ is *bool }

func (y yes) ScanColumn(c db.Column) { *y.is = c.Int != 0 }

// numbers returns the numbers of things, -1 for one that is not there.
func numbers(t *testing.T, d *db.DB, keys ...byte) []int {
	t.Helper()
	out := slices.Repeat([]int{-1}, len(keys))
	err := d.View(t.Context(), func(tx *db.Tx) error {
		var rows [][]any
		for _, k := range keys {
			rows = append(rows, []any{id(k)})
		}
		return tx.QueryEach(t.Context(), find, rows, func(i int, r db.Row) error {
			var text string
			var flag bool
			err := r.Scan(&out[i], word{&text}, yes{&flag})
			if flag != (keys[i]%2 == 0) {
				t.Errorf("thing %d has the flag %t", keys[i], flag)
			}
			return err
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func expectNumbers(t *testing.T, d *db.DB, want ...int) {
	t.Helper()
	keys := make([]byte, len(want))
	for i := range keys {
		keys[i] = byte(i + 1)
	}
	if got := numbers(t, d, keys...); !slices.Equal(got, want) {
		t.Errorf("the numbers are %v, want %v", got, want)
	}
}

func TestStatements(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, d *db.DB) {
		ctx := t.Context()
		update(t, d, func(tx *db.Tx) error {
			n, err := tx.Exec(ctx, insert, thing(1, 1)...)
			if err != nil || n != 1 {
				t.Errorf("an insert changed %d rows", n)
			}
			new, err2 := tx.ExecReport(ctx, insertAll, [][]any{thing(2, 2), thing(1, 9), thing(3, 3)})
			if !slices.Equal(new, []bool{true, false, true}) {
				t.Errorf("new are %v", new)
			}
			changed, err3 := tx.ExecReport(ctx, add, [][]any{{10, id(3)}, {10, id(99)}, {10, id(1)}})
			if !slices.Equal(changed, []bool{true, false, true}) {
				t.Errorf("changed are %v", changed)
			}
			return errors.Join(err, err2, err3)
		})
		expectNumbers(t, d, 11, 2, 13, -1)

		// Deferred writes are seen by what comes after them, in their order.
		update(t, d, func(tx *db.Tx) error {
			var n int
			found, err := false, errors.Join(
				tx.Defer(add, [][]any{{1, id(1)}, {1, id(2)}}), // 12, 3
				tx.Defer(double, [][]any{{id(1)}, {id(1)}}),    // 48
				tx.DeferExactly(addExactly, [][]any{{2, id(1)}, {2, id(3)}}))
			if err == nil {
				found, err = tx.QueryRow(ctx, lock, []any{id(1)}, &n)
			}
			if !found || n != 50 {
				t.Errorf("found %t %d, want 50", found, n)
			}
			return errors.Join(err, tx.Defer(double, [][]any{{id(2)}}))
		})
		expectNumbers(t, d, 50, 6, 15)
	})
}

// On Citus, several rows of one client are inserted beside a row of the client's. If that is
// missing, the database inserts nothing and says nothing.
func TestRowsThatAreNotInsertedAreNoticed(t *testing.T) {
	t.Parallel()
	d := openURL(t, newSchema(t), true, schema)
	rows := func(owner []byte) (out [][]any) {
		for i := range 4 {
			out = append(out, []any{owner, id(byte(i + 10))})
		}
		return out
	}
	insertRows := func(owner []byte) error {
		return d.Update(t.Context(), db.Foreground, func(tx *db.Tx) error { return tx.Defer(insertBeside, rows(owner)) })
	}
	if err := insertRows(id(1)); !errors.Is(err, db.ErrConflict) {
		t.Errorf("nothing was inserted: %v", err)
	}
	update(t, d, func(tx *db.Tx) error { return tx.Defer(insert, [][]any{{id(1), id(1), 0, nil, 0}}) })
	if err := insertRows(id(1)); err != nil {
		t.Error(err)
	}
}

func TestNullsGoWhereTheyHaveAMeaning(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, d *db.DB) {
		row := thing(2, 5)
		row[3] = nil
		update(t, d, func(tx *db.Tx) error { return tx.Defer(insertAll, [][]any{row}) })
		expectNumbers(t, d, -1, 5)
		err := d.View(t.Context(), func(tx *db.Tx) error {
			var n, flag int
			var text string
			_, err := tx.QueryRow(t.Context(), find, []any{id(2)}, &n, &text, &flag)
			return err
		})
		if err == nil {
			t.Error("a null became a text")
		}
	})
}

// One test per class of error, on both engines.
func TestClassesOfErrors(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, d *db.DB) {
		ctx := t.Context()
		update(t, d, func(tx *db.Tx) error { return tx.Defer(insertAll, [][]any{thing(1, 1), thing(2, 2)}) })
		for _, c := range []struct {
			name string
			f    func(tx *db.Tx) error
			is   []error
		}{
			{"a second row under a key", func(tx *db.Tx) error { _, err := tx.Exec(ctx, insert, thing(1, 1)...); return err }, []error{db.ErrConstraint}},
			{"the same, deferred", func(tx *db.Tx) error { return tx.Defer(insert, [][]any{thing(1, 1)}) }, []error{db.ErrConstraint}},
			{"a check", func(tx *db.Tx) error { return tx.Defer(add, [][]any{{-9, id(1)}}) }, []error{db.ErrConstraint}},
			{"a row that is missing", func(tx *db.Tx) error { return tx.DeferExactly(addExactly, [][]any{{1, id(1)}, {1, id(9)}}) },
				[]error{db.ErrConstraint, db.ErrConflict}},
			{"the same, sent at once", func(tx *db.Tx) error {
				return errors.Join(tx.DeferExactly(addExactly, [][]any{{1, id(9)}}), tx.Flush(ctx))
			}, []error{db.ErrConflict}},
			{"a statement that cannot be run", func(tx *db.Tx) error { return tx.Script(ctx, "nonsense") }, nil},
		} {
			err := d.Update(ctx, db.Foreground, func(tx *db.Tx) error {
				if err := tx.Defer(double, [][]any{{id(2)}}); err != nil {
					return err
				}
				return c.f(tx)
			})
			if err == nil {
				t.Errorf("%s: no error", c.name)
			}
			for _, class := range []error{db.ErrConstraint, db.ErrConflict, db.ErrRetry, db.ErrUnavailable, db.ErrUnknownCommit, db.ErrNotStarted} {
				want := slices.Contains(c.is, class) || class == db.ErrConstraint && slices.Contains(c.is, db.ErrConflict)
				if errors.Is(err, class) != want {
					t.Errorf("%s: %v: is it %v? %t", c.name, err, class, !want)
				}
			}
			expectNumbers(t, d, 1, 2) // and nothing of the transaction has happened
		}
		if err := d.Update(ctx, db.Foreground, func(tx *db.Tx) error {
			return tx.Defer(insertAll, [][]any{{struct{}{}, id(3), 1, "secret", 1}})
		}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("an argument of the wrong type: %v", err)
		}
		// A statement that comes after one that failed is known to the server.
		update(t, d, func(tx *db.Tx) error { return tx.Defer(double, [][]any{{id(2)}}) })
		expectNumbers(t, d, 1, 4)
	})
}

func TestAViewIsOneSnapshot(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, d *db.DB) {
		ctx := t.Context()
		err := d.View(ctx, func(tx *db.Tx) error {
			for range 2 {
				n := -1
				if _, err := tx.QueryRow(ctx, count, nil, &n); err != nil || n != 0 {
					t.Errorf("it sees %d rows, %v", n, err)
				}
				update(t, d, func(tx *db.Tx) error { return tx.Defer(insertAll, [][]any{thing(1, 1)}) })
			}
			_, err := tx.Exec(ctx, insert, thing(2, 2)...)
			return err
		})
		if err == nil {
			t.Error("a view could write")
		}
		expectNumbers(t, d, 1, -1)
	})
}

// The clock is read behind the locks: the one that waited for one is later than
// the one that had it.
func TestTheClockIsReadBehindTheLocks(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, d *db.DB) {
		ctx := t.Context()
		update(t, d, func(tx *db.Tx) error { return tx.Defer(insertAll, [][]any{thing(1, 0)}) })
		locked := func(tx *db.Tx) (at till.Time, err error) {
			var b db.Batch
			b.Query(lock, [][]any{{id(1)}}, func(_ int, r db.Row) error { var n int; return r.Scan(&n) })
			b.Clock(&at)
			b.Query(find, [][]any{{id(1)}}, func(_ int, r db.Row) error { return nil })
			err = tx.Send(ctx, &b)
			return at, err
		}
		var first, second till.Time
		held, ended := make(chan struct{}), make(chan error)
		go func() {
			ended <- d.Update(ctx, db.Foreground, func(tx *db.Tx) (err error) {
				if _, err = locked(tx); err != nil {
					return err
				}
				close(held)
				time.Sleep(50 * time.Millisecond)
				var b db.Batch
				b.Clock(&first)
				return tx.Send(ctx, &b)
			})
		}()
		<-held
		update(t, d, func(tx *db.Tx) (err error) { second, err = locked(tx); return err })
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if second <= first {
			t.Errorf("the second holder's clock shows %d, the first one's showed %d", second, first)
		}
	})
}

// A caller that cannot wait is told that all are busy; one whose transaction is
// under way is not cancelled.
func TestNoFreeReader(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, d *db.DB) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		err := d.View(t.Context(), func(*db.Tx) error {
			return d.View(t.Context(), func(*db.Tx) error {
				return d.View(ctx, func(*db.Tx) error { t.Error("three reads at once"); return nil })
			})
		})
		if !errors.Is(err, db.ErrBusy) || errors.Is(err, db.ErrUnavailable) {
			t.Errorf("got %v, want that all readers are busy", err)
		}
	})
}

func TestAPanicLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, d *db.DB) {
		for range 10 { // more often than there are connections
			func() {
				defer func() { recover() }()
				d.Update(t.Context(), db.Foreground, func(tx *db.Tx) error {
					if _, err := tx.Exec(t.Context(), insert, thing(1, 1)...); err != nil {
						t.Error(err)
					}
					panic("no")
				})
			}()
			func() {
				defer func() { recover() }()
				d.View(t.Context(), func(tx *db.Tx) error { tx.Now(); panic("no") })
			}()
		}
		expectNumbers(t, d, -1)
	})
}

// An error of a scan function ends the reading, and not the transaction.
func TestAScanThatFails(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, d *db.DB) {
		ctx := t.Context()
		enough := errors.New("enough")
		update(t, d, func(tx *db.Tx) error {
			if err := tx.Defer(insertAll, [][]any{thing(1, 1), thing(2, 2)}); err != nil {
				return err
			}
			rows := 0
			err := tx.QueryEach(ctx, find, [][]any{{id(1)}, {id(2)}}, func(int, db.Row) error { rows++; return enough })
			if !errors.Is(err, enough) || rows != 1 {
				t.Errorf("after %d rows: %v", rows, err)
			}
			return tx.Defer(double, [][]any{{id(2)}})
		})
		expectNumbers(t, d, 1, 4)
	})
}
