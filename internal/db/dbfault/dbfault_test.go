package dbfault_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"till"
	"till/internal/db"
	"till/internal/db/dbfault"
	"till/internal/db/sqlite"
)

var (
	put   = db.Define(db.SQL{Name: "fault.put", SQLite: `INSERT INTO t (k) VALUES ($1)`})
	count = db.Define(db.SQL{Name: "fault.count", SQLite: `SELECT count(*) FROM t`})
)

// base is a file with an empty table t.
type base struct {
	*sqlite.Engine
	straight *db.DB
}

func open(t *testing.T) *base {
	t.Helper()
	now := func() till.Time { return till.TimeOf(time.Now()) }
	e, err := sqlite.Open(filepath.Join(t.TempDir(), "t.db"), 2, now)
	if err != nil {
		t.Fatal(err)
	}
	b := &base{e, db.New(e, sqlite.Writers, now)}
	t.Cleanup(func() { b.straight.Close() })
	if err := b.straight.Update(t.Context(), db.Foreground, func(tx *db.Tx) error {
		return tx.Script(t.Context(), `CREATE TABLE t (k INTEGER PRIMARY KEY) STRICT`)
	}); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *base) rows(t *testing.T) (n int) {
	t.Helper()
	err := b.straight.View(t.Context(), func(tx *db.Tx) error {
		_, err := tx.QueryRow(t.Context(), count, nil, &n)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// through returns an instance's database, whose faults a plan decides.
func (b *base) through(p *dbfault.Plan) (*db.DB, *dbfault.Engine) {
	e := dbfault.New(b.Engine, dbfault.Config{Next: p.Next, Hang: time.Minute, Shared: true})
	return db.New(e, 1, func() till.Time { return till.TimeOf(time.Now()) }), e
}

// write writes one row behind a read: begin, send, commit, answer.
func write(t *testing.T, d *db.DB, key int) error {
	return d.Update(t.Context(), db.Foreground, func(tx *db.Tx) error {
		var n int
		if _, err := tx.QueryRow(t.Context(), count, nil, &n); err != nil {
			return err
		}
		return tx.Defer(put, [][]any{{key}})
	})
}

// Each effect of a transaction fails in each way: what was not committed is not there, what
// was is, and only the answer to a commit is unknown.
func TestEachEffectFails(t *testing.T) {
	t.Parallel()
	plan := &dbfault.Plan{}
	b := open(t)
	d, _ := b.through(plan)
	plan.Start(dbfault.None, 0, false)
	if err := write(t, d, 1000); err != nil {
		t.Fatal(err)
	}
	places := plan.Seen()
	if want := []string{"begin write", "send fault.count", "commit fault.put", "answer to commit fault.put"}; !slices.Equal(places, want) {
		t.Fatalf("the effects are %q, want %q", places, want)
	}
	rows := 1
	for n, place := range places {
		for _, f := range []dbfault.Fault{dbfault.Error, dbfault.Crash} {
			for _, stays := range []bool{false, true} {
				d, e := b.through(plan)
				plan.Start(f, n+1, stays)
				err := write(t, d, rows)
				answer := strings.HasPrefix(place, "answer")
				if answer {
					rows++
				}
				if !errors.Is(err, db.ErrUnavailable) || errors.Is(err, db.ErrUnknownCommit) != answer {
					t.Errorf("%s of %s: %v", f, place, err)
				}
				if got := b.rows(t); got != rows {
					t.Fatalf("%s of %s: %d rows are there, want %d", f, place, got, rows)
				}
				if got := plan.Failed(); len(got) != 1 || got[0] != place {
					t.Errorf("%s of %s: failed were %q", f, place, got)
				}
				// Once, the next one goes through; what stays ends with the plan, and an
				// instance that has crashed reaches nothing any more.
				if err := write(t, d, rows); (err == nil) != (f == dbfault.Error && !stays) {
					t.Errorf("after %s of %s: %v", f, place, err)
				} else if err == nil {
					rows++
				}
				plan.End()
				if err := write(t, d, rows); (err == nil) != (f == dbfault.Error) || e.Dead() != (f == dbfault.Crash) {
					t.Errorf("after the end of %s of %s: %v", f, place, err)
				} else if err == nil {
					rows++
				}
			}
		}
	}
}

// A transaction whose caller ignores an error is not committed.
func TestAFailedTransactionStaysFailed(t *testing.T) {
	t.Parallel()
	b := open(t)
	plan := &dbfault.Plan{}
	d, _ := b.through(plan)
	plan.Start(dbfault.Error, 2, false)
	err := d.Update(t.Context(), db.Foreground, func(tx *db.Tx) error {
		tx.Exec(t.Context(), put, 1) // fails, and nobody looks
		return tx.Defer(put, [][]any{{2}})
	})
	if !errors.Is(err, db.ErrUnavailable) || b.rows(t) != 0 {
		t.Errorf("%v, and %d rows", err, b.rows(t))
	}
}

// What hangs happens later, unless the instance has crashed meanwhile. The clock of the
// test is virtual.
func TestAHang(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := open(t)
		defer b.straight.Close()
		plan := &dbfault.Plan{}
		d, _ := b.through(plan)
		began := time.Now()
		plan.Start(dbfault.Hang, 3, false)
		if err := write(t, d, 1); err != nil || b.rows(t) != 1 || time.Since(began) < time.Minute {
			t.Errorf("%v after %s, and %d rows", err, time.Since(began), b.rows(t))
		}
		d, e := b.through(plan)
		plan.Start(dbfault.Hang, 3, false)
		time.AfterFunc(time.Second, e.Kill)
		if err := write(t, d, 2); err == nil || errors.Is(err, db.ErrUnknownCommit) || b.rows(t) != 1 {
			t.Errorf("%v, and %d rows", err, b.rows(t))
		}
	})
}

// Each statement of a migration is an effect: also behind comments, in quotes, in triggers
// and functions.
func TestEachStatementOfAScriptFails(t *testing.T) {
	t.Parallel()
	const script = `-- one; two
CREATE TABLE a (k TEXT DEFAULT ';') STRICT; -- and; so on
CREATE TRIGGER no BEFORE DELETE ON a BEGIN
	SELECT CASE WHEN 1 THEN RAISE(ABORT, 'END;') END;
	SELECT 1;
END;
INSERT INTO a VALUES ('$$');
`
	b := open(t)
	plan := &dbfault.Plan{}
	run := func(n int) error {
		d, _ := b.through(plan)
		plan.Start(dbfault.Error, n, false)
		return d.Update(t.Context(), db.Foreground, func(tx *db.Tx) error { return tx.Script(t.Context(), script) })
	}
	for n := 3; n <= 5; n++ { // behind begin and the flush
		if err := run(n); !errors.Is(err, db.ErrUnavailable) {
			t.Errorf("effect %d: %v", n, err)
		}
		if got := plan.Failed(); len(got) != 1 || !strings.HasPrefix(got[0], "script ") {
			t.Errorf("effect %d is %q", n, got)
		}
	}
	if err := run(0); err != nil {
		t.Fatal(err)
	}
	want := "begin write|send -|script CREATE TABLE a (k TEXT DEFAULT|script CREATE TRIGGER no BEFORE DELETE ON|script INSERT INTO a VALUES ('$$')|commit -|answer to commit -"
	if got := strings.Join(plan.Seen(), "|"); got != want {
		t.Errorf("the effects are %s, want %s", got, want)
	}
}

// A plan fails the n-th effect, of all or at one place, once or from then on.
func TestAPlan(t *testing.T) {
	t.Parallel()
	effects := strings.Fields("a b a c a b")
	for _, c := range []struct {
		place string
		n     int
		stays bool
		want  string // by the number of the effect
	}{
		{"", 0, true, ""}, {"", 3, false, "3"}, {"", 5, true, "5 6"}, {"", 7, true, ""},
		{"a", 2, false, "3"}, {"a", 2, true, "3 4 5 6"}, {"b", 2, false, "6"}, {"c", 2, true, ""}, {"d", 1, true, ""},
	} {
		p := &dbfault.Plan{}
		p.Next("a") // before the start
		p.StartAt(dbfault.Crash, c.place, c.n, c.stays)
		var got []string
		for i, e := range effects {
			if p.Next(e) == dbfault.Crash {
				got = append(got, fmt.Sprint(i+1))
			}
		}
		if strings.Join(got, " ") != c.want || len(p.Failed()) != len(got) || len(p.Seen()) != len(effects) {
			t.Errorf("%+v: failed were %v", c, got)
		}
		if p.End(); p.Next("a") != dbfault.None || p.Stays() {
			t.Errorf("%+v: it goes on behind the end", c)
		}
	}
}

// A second fault comes behind the first.
func TestASecondFault(t *testing.T) {
	t.Parallel()
	p := &dbfault.Plan{}
	p.StartAt(dbfault.Error, "b", 1, false)
	p.Again(dbfault.Crash, 2)
	var got []string
	for _, e := range strings.Fields("a b a b a a") {
		got = append(got, p.Next(e).String())
	}
	if want := "none error none crash none none"; strings.Join(got, " ") != want || len(p.Failed()) != 2 {
		t.Errorf("the faults are %v, want %s", got, want)
	}
}

func Example() {
	plan := &dbfault.Plan{}
	plan.Start(dbfault.Error, 2, false)
	fmt.Println(plan.Next("one"), plan.Next("two"), plan.Next("three"))
	// Output: none error none
}
