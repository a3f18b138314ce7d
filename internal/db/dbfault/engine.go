package dbfault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"till/internal/db"
)

// Config says what may go wrong.
type Config struct {
	// Next is asked about each effect: a Plan's, or what calls it. Nil lets all pass.
	Next func(place string) Fault
	// Hang is how long an effect with the fault Hang takes.
	Hang time.Duration
	// Shared leaves the engine below open on Close: others use it too.
	Shared bool
}

// Engine is another engine with faults: one instance's way to the database.
type Engine struct {
	db.Engine
	c    Config
	dead atomic.Bool
}

var (
	errPlanned = fmt.Errorf("%w: a planned fault", db.ErrUnavailable)
	errDead    = fmt.Errorf("%w: the instance has crashed", db.ErrUnavailable)
	errLost    = fmt.Errorf("%w: %w: the answer is lost", db.ErrUnknownCommit, db.ErrUnavailable)
)

// New returns an engine with faults.
func New(e db.Engine, c Config) *Engine { return &Engine{Engine: e, c: c} }

// Kill lets nothing through any more. A commit that is under way may happen, and nobody
// hears of it.
func (e *Engine) Kill() { e.dead.Store(true) }

// Dead reports whether the instance has crashed.
func (e *Engine) Dead() bool { return e.dead.Load() }

// Classify implements db.Engine. A planned fault has its class already.
func (e *Engine) Classify(err error) error {
	if errors.Is(err, errPlanned) || errors.Is(err, errDead) || errors.Is(err, errLost) {
		return err
	}
	return e.Engine.Classify(err)
}

// Close implements db.Engine.
func (e *Engine) Close() error {
	if e.c.Shared {
		return nil
	}
	return e.Engine.Close()
}

// Acquire implements db.Engine.
func (e *Engine) Acquire(ctx context.Context, a db.Access) (db.Conn, error) {
	if e.Dead() {
		return nil, errDead
	}
	c, err := e.Engine.Acquire(ctx, a)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, e: e, access: a}, nil
}

// conn is a connection with faults.
type conn struct {
	db.Conn
	e      *Engine
	access db.Access
	failed error // of the transaction: it can only be rolled back
}

// next asks about an effect and returns the error that it ends with instead of happening.
func (c *conn) next(place string) error {
	if c.e.Dead() {
		c.failed = errDead
	}
	if c.failed != nil || c.e.c.Next == nil {
		return c.failed
	}
	switch c.e.c.Next(place) {
	case Error:
		c.failed = errPlanned
	case Crash:
		c.e.Kill()
		c.failed = errDead
	case Hang:
		time.Sleep(c.e.c.Hang)
		if c.e.Dead() {
			c.failed = errDead
		}
	}
	return c.failed
}

// Begin implements db.Conn.
func (c *conn) Begin(ctx context.Context) error {
	kind := "read"
	if c.access == db.Write {
		kind = "write"
	}
	c.failed = nil
	if err := c.next("begin " + kind); err != nil {
		return err
	}
	return c.Conn.Begin(ctx)
}

// Send implements db.Conn.
func (c *conn) Send(ctx context.Context, b *db.Batch) error {
	if err := c.next("send " + names(b)); err != nil {
		return err
	}
	return c.Conn.Send(ctx, b)
}

// Commit implements db.Conn.
func (c *conn) Commit(ctx context.Context, b *db.Batch) error {
	if err := c.next("commit " + names(b)); err != nil {
		return err
	}
	if err := c.Conn.Commit(ctx, b); err != nil {
		return err
	}
	if c.next("answer to commit "+names(b)) != nil {
		return errLost
	}
	return nil
}

// Rollback implements db.Conn. Whatever has failed, nothing stays open.
func (c *conn) Rollback(ctx context.Context) error { return c.Conn.Rollback(ctx) }

// Script implements db.Conn. Each statement is an effect.
func (c *conn) Script(ctx context.Context, text string) error {
	for _, s := range split(text) {
		if err := c.next("script " + beginning(s)); err != nil {
			return err
		}
		if err := c.Conn.Script(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// names returns the names of a batch's statements, each once.
func names(b *db.Batch) string {
	var all []string
	for _, s := range b.Statements {
		name := "clock"
		if s.SQL != nil {
			name = s.SQL.Name
		}
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	if all == nil {
		return "-"
	}
	return strings.Join(all, " ")
}
