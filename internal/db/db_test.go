package db

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"till"
)

// fake is an engine that writes down what it is told, and fails as planned.
type fake struct {
	log     []string
	fail    map[string][]error // by the first word of a call, one error for each
	clock   till.Time
	context error // of the last call
}

func (f *fake) call(ctx context.Context, call string) error {
	f.log = append(f.log, call)
	f.context = ctx.Err()
	word, _, _ := strings.Cut(call, " ")
	if errs := f.fail[word]; len(errs) > 0 {
		f.fail[word] = errs[1:]
		return errs[0]
	}
	return nil
}

func (f *fake) Dialect() Dialect { return SQLite }
func (f *fake) Close() error     { return f.call(context.Background(), "close") }

func (f *fake) Acquire(ctx context.Context, a Access) (Conn, error) {
	if err := f.call(ctx, fmt.Sprintf("acquire %d", a)); err != nil {
		return nil, err
	}
	return &fakeConn{f: f}, nil
}

func (f *fake) Classify(err error) error {
	if err != nil {
		return fmt.Errorf("classified: %w", err)
	}
	return nil
}

type fakeConn struct {
	f         *fake
	committed bool
}

func (c *fakeConn) Begin(ctx context.Context) error { return c.f.call(ctx, "begin") }

func (c *fakeConn) Send(ctx context.Context, b *Batch) error {
	return c.f.call(ctx, "send"+c.f.run(b))
}

func (f *fake) run(b *Batch) (names string) {
	for _, s := range b.Statements {
		if s.Clock != nil {
			f.clock++
			s.Clock(f.clock)
			names += " clock"
			continue
		}
		names += fmt.Sprint(" ", s.SQL.Name, s.Rows)
	}
	return names
}

func (c *fakeConn) Commit(ctx context.Context, b *Batch) error {
	err := c.f.call(ctx, "commit"+c.f.run(b))
	c.committed = err == nil
	return err
}

func (c *fakeConn) Rollback(ctx context.Context) error {
	if c.committed {
		return nil
	}
	return c.f.call(ctx, "rollback")
}
func (c *fakeConn) Script(ctx context.Context, text string) error {
	return c.f.call(ctx, "script "+text)
}
func (c *fakeConn) Release() { c.f.call(context.Background(), "release") }

func statement(name string) *SQL { return &SQL{Name: name, SQLite: name} }

func args(values ...int) (rows [][]any) {
	for _, v := range values {
		rows = append(rows, []any{v})
	}
	return rows
}

func (f *fake) expect(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(f.log, want) {
		t.Errorf("the engine was told\n%s\nwant\n%s", strings.Join(f.log, "\n"), strings.Join(want, "\n"))
	}
}

// Deferred writes go out in their order, before whatever comes after them.
func TestDeferredWritesKeepTheirOrder(t *testing.T) {
	t.Parallel()
	f := &fake{}
	d := New(f, 1, nil)
	ctx := t.Context()
	err := d.Update(ctx, Foreground, func(tx *Tx) error {
		return errors.Join(
			tx.Defer(statement("a"), args(1, 2)),
			tx.Defer(statement("none"), nil),
			tx.DeferExactly(statement("b"), args(3)),
			tx.Query(ctx, statement("c"), []any{4}, nil),
			tx.Defer(statement("d"), args(5)),
			tx.Script(ctx, "e"),
			tx.Defer(statement("f"), args(6)),
		)
	})
	if err != nil {
		t.Fatal(err)
	}
	f.expect(t, "acquire 1", "begin", "send a[[1] [2]] b[[3]] c[[4]]", "send d[[5]]", "script e", "commit f[[6]]", "release")
}

// The clock is read once where nobody has locked anything, and again behind locks.
func TestTheClock(t *testing.T) {
	t.Parallel()
	f := &fake{clock: 10}
	d := New(f, 1, nil)
	ctx := t.Context()
	err := d.Update(ctx, Foreground, func(tx *Tx) error {
		first, again := tx.Now(), tx.Now()
		var b Batch
		var at till.Time
		b.Query(statement("lock"), args(1), nil)
		b.Clock(&at)
		b.Query(statement("read"), args(2), nil)
		if err := tx.Send(ctx, &b); err != nil {
			return err
		}
		if first != 11 || again != 11 || at != 12 || tx.Now() != 12 {
			t.Errorf("the clock showed %d, %d, %d and %d", first, again, at, tx.Now())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	err = d.View(ctx, func(tx *Tx) error {
		if now := tx.Now(); now != 13 {
			t.Errorf("a view's clock shows %d", now)
		}
		return tx.Query(ctx, statement("read"), nil, nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	f.expect(t, "acquire 1", "begin", "send clock", "send lock[[1]] clock read[[2]]", "commit", "release",
		"acquire 0", "begin", "send clock", "send read[[]]", "rollback", "release")
	if now := d.Now(); now < 13 || now > 13+1_000_000 {
		t.Errorf("outside of transactions it is %d", now)
	}
}

// A clock that cannot be read fails the transaction, whatever f does.
func TestAClockThatCannotBeRead(t *testing.T) {
	t.Parallel()
	f := &fake{fail: map[string][]error{"send": {errors.New("no clock")}}}
	ctx := t.Context()
	err := New(f, 1, nil).Update(ctx, Foreground, func(tx *Tx) error {
		tx.Now()
		if err := tx.Query(ctx, statement("read"), nil, nil); err == nil {
			t.Error("a statement went out afterwards")
		}
		return nil
	})
	if err == nil || err.Error() != "classified: no clock" {
		t.Errorf("got %v", err)
	}
}

// What f decides by a clock that was never read says nothing.
func TestAnErrorBesideAClockThatCannotBeRead(t *testing.T) {
	t.Parallel()
	f := &fake{fail: map[string][]error{"send": {ErrUnavailable}}}
	refused := errors.New("it lies in the future")
	err := New(f, 1, nil).Update(t.Context(), Foreground, func(tx *Tx) error {
		if tx.Now() < 1 {
			return refused
		}
		return nil
	})
	if !errors.Is(err, ErrUnavailable) || errors.Is(err, refused) {
		t.Errorf("the transaction ended with %v", err)
	}
}

func TestRetries(t *testing.T) {
	t.Parallel()
	dead := fmt.Errorf("%w: cut", ErrNotStarted)
	unknown := fmt.Errorf("%w: %w", ErrUnknownCommit, ErrRetry)
	own := errors.New("our own")
	for _, c := range []struct {
		name string
		fail map[string][]error
		f    error // returned instead of what the statement returned
		runs int
		want error // nil: it goes well
	}{
		{"no error", nil, nil, 1, nil},
		{"a collision", map[string][]error{"send": {ErrRetry, ErrRetry}}, nil, 3, nil},
		{"a collision at commit", map[string][]error{"commit": {ErrRetry}}, nil, 2, nil},
		{"a collision at begin", map[string][]error{"begin": {ErrRetry}}, nil, 1, nil},
		{"collisions without end", map[string][]error{"send": slices.Repeat([]error{ErrRetry}, 20)}, nil, maxRetries, ErrUnavailable},
		{"a constraint", map[string][]error{"send": {ErrConstraint}}, nil, 1, ErrConstraint},
		{"a dead connection", map[string][]error{"send": {dead}}, nil, 2, nil},
		{"a dead connection, and f hides the error", map[string][]error{"send": {dead}}, own, 2, own},
		{"a dead connection at commit", map[string][]error{"commit": {dead}}, nil, 2, nil},
		{"two dead connections", map[string][]error{"send": {dead, dead}}, nil, 2, ErrNotStarted},
		{"no connection", map[string][]error{"acquire": {ErrUnavailable}}, nil, 0, ErrUnavailable},
		{"an unknown commit", map[string][]error{"commit": {unknown}}, nil, 1, ErrUnknownCommit},
		{"an error of f", nil, own, 1, own},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := &fake{fail: c.fail}
				d := New(f, 1, nil)
				runs := 0
				err := d.Update(t.Context(), Background, func(tx *Tx) error {
					runs++
					err := tx.Query(t.Context(), statement("read"), nil, nil)
					if c.f != nil {
						return c.f
					}
					return err
				})
				if !errors.Is(err, c.want) || runs != c.runs {
					t.Errorf("after %d runs: %v; want %d and %v", runs, err, c.runs, c.want)
				}
				acquired, released := 0, 0
				for _, l := range f.log {
					if strings.HasPrefix(l, "acquire") {
						acquired++
					}
					if l == "release" {
						released++
					}
				}
				if acquired != released && c.runs > 0 {
					t.Errorf("%d connections were acquired and %d released", acquired, released)
				}
				d.queue.enter(Foreground) // the place in the queue is free again
			})
		})
	}
}

// A view is not repeated after a collision: nobody holds a lock for it.
func TestAViewRunsTwiceOnADeadConnectionOnly(t *testing.T) {
	t.Parallel()
	for want, fail := range map[int]error{1: ErrRetry, 2: ErrNotStarted} {
		runs := 0
		f := &fake{fail: map[string][]error{"send": {fail}}}
		New(f, 1, nil).View(t.Context(), func(tx *Tx) error {
			runs++
			return tx.Flush(t.Context())
		})
		if runs != want {
			t.Errorf("%v: %d runs, want %d", fail, runs, want)
		}
	}
}

func TestAViewCannotDeferAWrite(t *testing.T) {
	t.Parallel()
	f := &fake{}
	err := New(f, 1, nil).View(t.Context(), func(tx *Tx) error { return tx.Defer(statement("a"), args(1)) })
	if !errors.Is(err, errReadOnly) {
		t.Errorf("got %v", err)
	}
	f.expect(t, "acquire 0", "begin", "rollback", "release")
}

func TestAPanicRollsBack(t *testing.T) {
	t.Parallel()
	f := &fake{}
	d := New(f, 1, nil)
	func() {
		defer func() {
			if recover() != "ouch" {
				t.Error("the panic was swallowed")
			}
		}()
		d.Update(t.Context(), Foreground, func(tx *Tx) error {
			tx.Defer(statement("a"), args(1))
			panic("ouch")
		})
	}()
	f.expect(t, "acquire 1", "begin", "rollback", "release")
	d.queue.enter(Foreground) // the place in the queue is free again
}

// A caller that goes away waits for no connection, but cancels no write.
func TestACancelledContext(t *testing.T) {
	t.Parallel()
	f := &fake{}
	d := New(f, 1, nil)
	ctx, cancel := context.WithCancel(t.Context())
	err := d.Update(ctx, Foreground, func(tx *Tx) error {
		cancel()
		err := tx.Query(ctx, statement("read"), nil, nil)
		if f.context != nil {
			t.Error("a write transaction's statement was cancelled")
		}
		return err
	})
	if err != nil || f.context != nil {
		t.Errorf("the update was cancelled: %v, %v", err, f.context)
	}
	d.View(ctx, func(tx *Tx) error {
		if f.context != nil {
			t.Error("a view's BEGIN was cancelled")
		}
		tx.Query(ctx, statement("read"), nil, nil)
		if f.context == nil {
			t.Error("a view's statement goes on for nobody")
		}
		return nil
	})
}

func TestAfterCommit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		commit         error
		known, unknown int
	}{{nil, 1, 0}, {ErrUnknownCommit, 0, 1}, {ErrConstraint, 0, 0}} {
		f := &fake{fail: map[string][]error{"commit": {c.commit}}}
		known, unknown := 0, 0
		New(f, 1, nil).Update(t.Context(), Foreground, func(tx *Tx) error {
			tx.AfterCommit(func() { known++ })
			tx.AfterUnknownCommit(func() { unknown++ })
			return nil
		})
		if known != c.known || unknown != c.unknown {
			t.Errorf("after %v it was told %d times as committed and %d times as unknown", c.commit, known, unknown)
		}
	}
}

func TestCloseWaitsForWriters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		d := New(f, 2, nil)
		go d.Update(t.Context(), Foreground, func(tx *Tx) error { time.Sleep(time.Second); return nil })
		synctest.Wait()
		if err := errors.Join(d.Close(), d.Close()); err != nil {
			t.Error(err)
		}
		f.expect(t, "acquire 1", "begin", "commit", "release", "close")
	})
}
