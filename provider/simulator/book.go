package simulator

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// State is how far a request got at the operator.
type State string

// The states.
const (
	Open    State = "open"    // the customer has not decided, or the operator has not paid
	Success State = "success" // the money moved
	Failed  State = "failed"
	Expired State = "expired"
)

// Plan is what will become of a request, decided when it comes in.
type Plan struct {
	After  time.Duration // when it is decided, from when it came in
	State  State         // Open: never
	Code   string        // the operator's code of a failure
	Late   time.Duration // if not zero: so long after its end it succeeds after all
	Silent bool          // no callback
}

// Entry is one request in the operator's book. Kind is "payment", "payout" or "refund".
type Entry struct {
	Kind      string    `json:"kind"`
	Reference string    `json:"reference"` // the caller's, unique per kind; "" if the operator accepts none
	Handle    string    `json:"handle"`    // the operator's own, unique
	External  string    `json:"external,omitempty"`
	Phone     string    `json:"phone"`
	Amount    string    `json:"amount"` // as it was sent
	Currency  string    `json:"currency"`
	Callback  string    `json:"callback,omitempty"`
	Data      string    `json:"data,omitempty"` // what else the operator must repeat
	Receipt   string    `json:"receipt"`        // shown once it has succeeded
	Plan      Plan      `json:"plan"`
	At        time.Time `json:"at"`
}

// StateAt returns the state at a moment, and the operator's code for it.
func (e *Entry) StateAt(now time.Time) (State, string) {
	end := e.At.Add(e.Plan.After)
	switch {
	case e.Plan.State == Open || now.Before(end):
		return Open, ""
	case e.Plan.Late > 0 && !now.Before(end.Add(e.Plan.Late)):
		return Success, ""
	}
	return e.Plan.State, e.Plan.Code
}

// MaxEntries is how many requests a book holds. Add rejects more.
const MaxEntries = 1_000_000

// Book is an operator's book of requests. With a file it survives a restart: each request
// is a line, written before it is answered. It is safe for concurrent use.
type Book struct {
	now         func() time.Time
	mu          sync.Mutex
	byReference map[string]*Entry // kind and reference
	byHandle    map[string]*Entry // handle
	all         []*Entry
	file        *os.File
}

// OpenBook opens a book in a file, or in memory if path is "". now is the operator's clock;
// nil means the machine's.
func OpenBook(path string, now func() time.Time) (*Book, error) {
	if now == nil {
		now = time.Now
	}
	b := &Book{now: now, byReference: map[string]*Entry{}, byHandle: map[string]*Entry{}}
	if path == "" {
		return b, nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	if err := b.load(f); err != nil {
		f.Close()
		return nil, err
	}
	b.file = f
	return b, nil
}

// load reads the book's lines. A process that was killed while it wrote leaves half a line.
// That request was never answered, so the half line is cut off.
func (b *Book) load(f *os.File) error {
	lines := bufio.NewReader(f)
	var good int64
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			if len(line) == 0 {
				return nil
			}
			return f.Truncate(good)
		}
		if err != nil {
			return err
		}
		e := &Entry{}
		if err := json.Unmarshal(line, e); err != nil {
			return fmt.Errorf("the book cannot be read after byte %d: %w", good, err)
		}
		b.keep(e)
		good += int64(len(line))
	}
}

// Close closes the book's file.
func (b *Book) Close() error {
	if b.file == nil {
		return nil
	}
	return b.file.Close()
}

// Now returns the operator's time.
func (b *Book) Now() time.Time { return b.now() }

func (b *Book) keep(e *Entry) {
	if e.Reference != "" {
		b.byReference[e.Kind+" "+e.Reference] = e
	}
	b.byHandle[e.Handle] = e
	b.all = append(b.all, e)
}

// Add records a request. It returns the entry in the book, and false if the reference was
// there already.
func (b *Book) Add(e Entry) (Entry, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if old := b.byReference[e.Kind+" "+e.Reference]; old != nil && e.Reference != "" {
		return *old, false, nil
	}
	if len(b.all) >= MaxEntries {
		return Entry{}, false, fmt.Errorf("the book is full: %d requests", MaxEntries)
	}
	e.At = b.now()
	if e.Handle == "" {
		e.Handle = rand.Text()
	}
	if e.Receipt == "" {
		e.Receipt = rand.Text()[:12]
	}
	if b.file != nil {
		line, err := json.Marshal(e)
		if err != nil {
			return Entry{}, false, err
		}
		if _, err := b.file.Write(append(line, '\n')); err != nil {
			return Entry{}, false, err
		}
	}
	b.keep(&e)
	return e, true, nil
}

// Digits returns n random digits, the first of them not zero, as in many operators'
// receipts.
func Digits(n int) string {
	b := make([]byte, n)
	rand.Read(b)
	for i := range b {
		b[i] = '0' + b[i]%10
	}
	if n > 0 && b[0] == '0' {
		b[0] = '1'
	}
	return string(b)
}

// Find returns the request with the caller's reference.
func (b *Book) Find(kind, reference string) (Entry, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.byReference[kind+" "+reference]; e != nil {
		return *e, true
	}
	return Entry{}, false
}

// FindHandle returns the request with the operator's own id.
func (b *Book) FindHandle(handle string) (Entry, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.byHandle[handle]; e != nil {
		return *e, true
	}
	return Entry{}, false
}

// Entries returns all requests, oldest first, for tests to compare.
func (b *Book) Entries() []Entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]Entry, len(b.all))
	for i, e := range b.all {
		out[i] = *e
	}
	return out
}

// Moved counts how often money has moved under a reference.
func (b *Book) Moved(kind, reference string) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	for _, e := range b.all {
		if s, _ := e.StateAt(now); s == Success && e.Kind == kind && e.Reference == reference {
			n++
		}
	}
	return n
}
