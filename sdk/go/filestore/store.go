package filestore

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	till "github.com/till-project/till/sdk/go"
)

// Store is a till.Store in a folder.
type Store struct {
	folder string

	mu   sync.Mutex
	file *os.File // lines of changes
	turn *os.File // who holds its lock may read on and append
	read int64    // how much of the file is in state
	state
}

// state is what the lines add up to.
type state struct {
	rows     map[string]till.Row // by key
	orders   map[string][]string // keys by kind and order, oldest first
	subjects map[string]till.Subject
	cursors  map[string]till.Cursor
	notes    map[string]string
}

// change is one line: what a transaction wrote.
type change struct {
	Rows     []till.Row        `json:"rows,omitempty"`
	Subjects []till.Subject    `json:"subjects,omitempty"`
	Cursors  []till.Cursor     `json:"cursors,omitempty"`
	Notes    map[string]string `json:"notes,omitempty"`
}

var _ till.Store[*Tx] = (*Store)(nil)

// Open opens the store in a folder, and makes both if they are missing.
func Open(folder string) (*Store, error) {
	s := &Store{folder: folder}
	s.state = state{map[string]till.Row{}, map[string][]string{}, map[string]till.Subject{}, map[string]till.Cursor{}, map[string]string{}}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	var err error
	if s.turn, err = os.OpenFile(filepath.Join(folder, "lock"), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, err
	}
	if s.file, err = os.OpenFile(filepath.Join(folder, "till.jsonl"), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		_ = s.turn.Close()
		return nil, err
	}
	return s, s.view(func() error { return nil })
}

// Close closes the files.
func (s *Store) Close() error { return errors.Join(s.file.Close(), s.turn.Close()) }

// Install implements till.Store; Open did it.
func (s *Store) Install(context.Context) error { return nil }

// Tx is a transaction: what is written in it becomes one line, or nothing.
type Tx struct {
	s *Store
	change
}

// Set keeps a small value under a name, in the transaction.
func (tx *Tx) Set(name, value string) {
	if tx.Notes == nil {
		tx.Notes = map[string]string{}
	}
	tx.Notes[name] = value
}

// Get returns a value that was set; "" if none was.
func (tx *Tx) Get(name string) string {
	if v, ok := tx.Notes[name]; ok {
		return v
	}
	return tx.s.notes[name]
}

// Get returns a value that a transaction set.
func (s *Store) Get(name string) (value string, err error) {
	err = s.view(func() error { value = s.notes[name]; return nil })
	return value, err
}

// All returns every value that transactions set, by name.
func (s *Store) All() (all map[string]string, err error) {
	err = s.view(func() error { all = maps.Clone(s.notes); return nil })
	return all, err
}

// Update runs a transaction. Nobody else writes meanwhile, so it makes no calls
// but Collect, PayOut, Set and Get.
func (s *Store) Update(_ context.Context, fn func(tx *Tx) error) error {
	return s.view(func() error {
		tx := &Tx{s: s}
		if err := fn(tx); err != nil {
			return err
		}
		return s.append(tx.change)
	})
}

// view takes its turn, reads on, and calls fn.
func (s *Store) view(fn func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := lock(s.turn); err != nil {
		return fmt.Errorf("till: %s: %w", s.folder, err)
	}
	defer func() { _ = unlock(s.turn) }()
	if err := s.catchUp(); err != nil {
		return fmt.Errorf("till: %s: %w", s.folder, err)
	}
	return fn()
}

// catchUp reads the lines that others wrote. A line without an end is that of a
// program that died: nobody was told that it was written, so it goes.
func (s *Store) catchUp() error {
	if _, err := s.file.Seek(s.read, io.SeekStart); err != nil {
		return err
	}
	lines := bufio.NewReader(s.file)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			if len(line) > 0 {
				return s.file.Truncate(s.read)
			}
			return nil
		} else if err != nil {
			return err
		}
		var c change
		if err := json.Unmarshal(line, &c); err != nil {
			return err
		}
		s.read += int64(len(line))
		s.add(c)
	}
}

// append writes a line and syncs it. A line that is not written whole is taken
// back.
func (s *Store) append(c change) error {
	if len(c.Rows) == 0 && len(c.Subjects) == 0 && len(c.Cursors) == 0 && len(c.Notes) == 0 {
		return nil
	}
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(c); err != nil {
		return err
	}
	_, err := s.file.WriteAt(b.Bytes(), s.read)
	if err == nil {
		err = s.file.Sync()
	}
	if err != nil {
		return errors.Join(err, s.file.Truncate(s.read))
	}
	s.read += int64(b.Len())
	s.add(c)
	return nil
}

func (s *Store) add(c change) {
	for _, r := range c.Rows {
		if _, known := s.rows[r.Key]; !known {
			name := r.Kind + " " + r.Order
			s.orders[name] = append(s.orders[name], r.Key)
		}
		s.rows[r.Key] = r
	}
	for _, x := range c.Subjects {
		s.subjects[x.ID] = x
	}
	for _, x := range c.Cursors {
		s.cursors[x.Name] = x
	}
	maps.Copy(s.notes, c.Notes)
}

func (s *Store) attempts(kind, order string) []till.Row {
	var out []till.Row
	for _, key := range s.orders[kind+" "+order] {
		out = append(out, s.rows[key])
	}
	return out
}

// Attempts implements till.Store.
func (s *Store) Attempts(_ context.Context, tx *Tx, kind, order string) ([]till.Row, error) {
	out := s.attempts(kind, order)
	for _, r := range tx.Rows {
		if r.Kind == kind && r.Order == order {
			out = append(out, r)
		}
	}
	return out, nil
}

// Put implements till.Store.
func (s *Store) Put(ctx context.Context, tx *Tx, row till.Row) (bool, error) {
	attempts, err := s.Attempts(ctx, tx, row.Kind, row.Order)
	if slices.ContainsFunc(attempts, func(r till.Row) bool { return r.Attempt == row.Attempt }) {
		return false, err
	}
	tx.Rows = append(tx.Rows, row)
	return true, err
}

// Newest implements till.Store.
func (s *Store) Newest(_ context.Context, kind, order string) (row *till.Row, err error) {
	err = s.view(func() error {
		if attempts := s.attempts(kind, order); len(attempts) > 0 {
			row = &attempts[len(attempts)-1]
		}
		return nil
	})
	return row, err
}

// some returns the first rows that match, in an order.
func (s *Store) some(limit int, match func(*till.Row) bool, order func(a, b till.Row) int) (out []till.Row, err error) {
	err = s.view(func() error {
		for _, r := range s.rows {
			if match(&r) {
				out = append(out, r)
			}
		}
		return nil
	})
	slices.SortFunc(out, order)
	return out[:min(limit, len(out))], err
}

func byNext(a, b till.Row) int { return cmp.Or(a.NextAt.Compare(b.NextAt), cmp.Compare(a.Key, b.Key)) }

// Due implements till.Store.
func (s *Store) Due(_ context.Context, now time.Time, limit int) ([]till.Row, error) {
	return s.some(limit, func(r *till.Row) bool {
		return (r.State == till.StateWritten || r.State == till.StateSending) && !r.NextAt.After(now)
	}, byNext)
}

// Open implements till.Store.
func (s *Store) Open(_ context.Context, now time.Time, limit int) ([]till.Row, error) {
	return s.some(limit, func(r *till.Row) bool { return r.State == till.StateTaken && !r.NextAt.After(now) }, byNext)
}

// Since implements till.Store.
func (s *Store) Since(_ context.Context, from time.Time, afterKey string, limit int) ([]till.Row, error) {
	return s.some(limit, func(r *till.Row) bool { return !r.CreatedAt.Before(from) && r.Key > afterKey },
		func(a, b till.Row) int { return cmp.Compare(a.Key, b.Key) })
}

// Attention implements till.Store.
func (s *Store) Attention(_ context.Context, from time.Time, limit int) ([]till.Row, error) {
	return s.some(limit, func(r *till.Row) bool {
		switch r.State {
		case till.StateRefused, till.StateLapsed, till.StateLost:
		case till.StateTaken:
			if r.Problem != till.ResolutionAttention {
				return false
			}
		default:
			return false
		}
		return !r.CreatedAt.Before(from)
	}, func(a, b till.Row) int { return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Key, b.Key)) })
}

// Count implements till.Store.
func (s *Store) Count(_ context.Context, row till.Row, lease, next time.Time) (counted bool, err error) {
	err = s.view(func() error {
		r, ok := s.rows[row.Key]
		if !ok || !r.Lease.Equal(row.Lease) || r.State != row.State {
			return nil
		}
		r.State, r.Lease, r.NextAt = till.StateSending, lease, next
		r.Tries++
		counted = true
		return s.append(change{Rows: []till.Row{r}})
	})
	return counted && err == nil, err
}

// Settle implements till.Store.
func (s *Store) Settle(_ context.Context, x till.Settlement) (settled bool, err error) {
	err = s.view(func() error {
		r, ok := s.settlement(x)
		if !ok {
			return nil
		}
		settled = true
		return s.append(change{Rows: []till.Row{r}})
	})
	return settled && err == nil, err
}

// settlement is the row as a settlement leaves it; false if it is not as
// expected.
func (s *Store) settlement(x till.Settlement) (till.Row, bool) {
	r, ok := s.rows[x.Key]
	if !ok || x.From != nil && !slices.Contains(x.From, r.State) || !x.Lease.IsZero() && !r.Lease.Equal(x.Lease) {
		return r, false
	}
	r.State = cmp.Or(x.State, r.State)
	if !x.NextAt.IsZero() {
		r.NextAt = x.NextAt
	}
	if !x.SendUntil.IsZero() {
		r.SendUntil = x.SendUntil
	}
	for _, f := range []struct{ from, to *string }{{x.RemoteID, &r.RemoteID}, {x.Status, &r.Status}, {x.Problem, &r.Problem}, {x.Details, &r.Details}} {
		if f.from != nil {
			*f.to = *f.from
		}
	}
	return r, true
}

// Apply implements till.Store.
func (s *Store) Apply(ctx context.Context, subject, kind, key string, fn func(context.Context, *Tx, till.Subject, []till.Row) (till.Decision, error)) error {
	return s.view(func() error {
		known, ok := s.subjects[subject]
		if !ok {
			known.ID = subject
		}
		known.Seen = slices.Clone(known.Seen)
		var attempts []till.Row
		if r, ok := s.rows[key]; ok && r.Kind == kind {
			attempts = s.attempts(kind, r.Order)
		}
		tx := &Tx{s: s}
		d, err := fn(ctx, tx, known, attempts)
		if err != nil {
			return err
		}
		if d.Subject != nil {
			tx.Subjects = append(tx.Subjects, *d.Subject)
		}
		if d.Settle != nil {
			if r, ok := s.settlement(*d.Settle); ok {
				tx.Rows = append(tx.Rows, r)
			}
		}
		if d.Cursor != nil && s.forward(*d.Cursor) {
			tx.Cursors = append(tx.Cursors, *d.Cursor)
		}
		return s.append(tx.change)
	})
}

// forward reports whether a cursor may move there.
func (s *Store) forward(c till.Cursor) bool {
	old, known := s.cursors[c.Name]
	return !known || old.Log == c.Log && old.After < c.After
}

// Cursor implements till.Store.
func (s *Store) Cursor(_ context.Context, name string) (c till.Cursor, err error) {
	err = s.view(func() error { c = s.cursors[name]; c.Name = name; return nil })
	return c, err
}

// MoveCursor implements till.Store.
func (s *Store) MoveCursor(_ context.Context, c till.Cursor, reset bool) error {
	return s.view(func() error {
		if !reset && !s.forward(c) {
			return nil
		}
		return s.append(change{Cursors: []till.Cursor{c}})
	})
}
