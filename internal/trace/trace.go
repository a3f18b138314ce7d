package trace

import (
	"crypto/sha256"
	"encoding/binary"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"till"
	"till/internal/loop"
)

// The limits of what is kept in memory.
const (
	ringSize      = 2048 // spans that wait to be sent
	maxFollowed   = 4096 // subjects with trouble, of each of two generations
	maxCallers    = 100  // requests per second that are traced because their caller asks for it
	maxAttributes = 12   // of one span; further ones are left out
)

// Kind is a span's kind, with OTLP's numbers.
type Kind int

// The kinds.
const (
	Internal Kind = 1
	Server   Kind = 2
	Client   Kind = 3
)

// SpanID is the id of a span.
type SpanID [8]byte

// Attribute is a key with a text or a number.
type Attribute struct {
	Key    string
	Text   string
	Number int64
	number bool
}

// Link points to a span of another trace.
type Link struct {
	Trace till.ID
	Span  SpanID
}

// Span is something that happened. Its times are the database's, so that those of all
// instances agree.
type Span struct {
	Trace      till.ID
	ID         SpanID // zero: Record draws one
	Parent     SpanID
	Name       string
	Kind       Kind // zero means Internal
	Start, End till.Time
	Failed     bool
	Link       Link // zero: none

	attributes [maxAttributes]Attribute
	n          int
}

// Text adds an attribute; an empty text is left out.
func (s *Span) Text(key, text string) {
	if text != "" && s.n < maxAttributes {
		s.attributes[s.n] = Attribute{Key: key, Text: text}
		s.n++
	}
}

// Int adds an attribute.
func (s *Span) Int(key string, n int64) {
	if s.n < maxAttributes {
		s.attributes[s.n] = Attribute{Key: key, Number: n, number: true}
		s.n++
	}
}

// Child returns a span below a subject's root span.
func Child(subject till.ID, name string, kind Kind) Span {
	return Span{Trace: subject, Parent: RootID(subject), Name: name, Kind: kind}
}

// RootID returns the id of a subject's root span: the last eight bytes of the SHA-256 of
// the subject's id.
func RootID(subject till.ID) (id SpanID) {
	sum := sha256.Sum256(subject[:])
	copy(id[:], sum[24:])
	return id
}

// Tracer collects spans and sends them. Nil does nothing. It is safe for concurrent use.
type Tracer struct {
	c         Config
	threshold uint64
	client    *http.Client
	waker     *loop.Waker

	mu    sync.Mutex
	ring  [ringSize]Span
	first int // the oldest span in the ring
	count int

	following     atomic.Bool // a subject is followed
	followMu      sync.Mutex
	followed, old map[till.ID]struct{}
	callersSecond time.Time
	callers       int

	sending // used by one goroutine at a time
}

// New returns a Tracer, nil if the configuration names no endpoint. Run sends what it
// collects.
func New(c Config) *Tracer {
	if c.Endpoint == "" {
		return nil
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Dropped == nil {
		c.Dropped = func(int) {}
	}
	return &Tracer{c: c, threshold: threshold(c.Ratio), client: newClient(c), waker: loop.NewWaker(), followed: make(map[till.ID]struct{})}
}

// random is the number of the last 56 bits of a trace id, which W3C Trace Context requires
// to be random.
const random = 1 << 56

// threshold returns from which random number on a subject is sampled.
func threshold(ratio float64) uint64 {
	switch {
	case ratio >= 1:
		return 0
	case ratio <= 0:
		return random
	}
	return random - uint64(ratio*random)
}

// sampled reports whether the ratio chooses a subject. All instances with the same ratio
// agree.
func (t *Tracer) sampled(subject till.ID) bool {
	return t != nil && binary.BigEndian.Uint64(subject[8:])&(random-1) >= t.threshold
}

// Wants reports whether spans of a subject are sent: it is sampled, or it had trouble.
func (t *Tracer) Wants(subject till.ID) bool {
	return t.sampled(subject) || t != nil && t.following.Load() && t.follows(subject)
}

func (t *Tracer) follows(subject till.ID) bool {
	t.followMu.Lock()
	defer t.followMu.Unlock()
	if _, found := t.followed[subject]; found {
		return true
	}
	_, found := t.old[subject]
	return found
}

// Follow notes that a subject had trouble: all its further spans are sent. The memory is
// bounded, so after very much trouble the oldest is forgotten.
func (t *Tracer) Follow(subject till.ID) {
	if t == nil || t.sampled(subject) {
		return
	}
	t.following.Store(true)
	t.followMu.Lock()
	defer t.followMu.Unlock()
	if len(t.followed) == maxFollowed {
		t.old, t.followed = t.followed, make(map[till.ID]struct{}, maxFollowed)
	}
	t.followed[subject] = struct{}{}
}

// Record sends a copy of a span soon, or drops it if too many wait.
func (t *Tracer) Record(s *Span) {
	if t == nil {
		return
	}
	t.mu.Lock()
	if t.count == ringSize {
		t.mu.Unlock()
		t.c.Dropped(1)
		t.waker.Wake()
		return
	}
	slot := &t.ring[(t.first+t.count)%ringSize]
	*slot = *s
	if slot.ID == (SpanID{}) {
		slot.ID = newSpanID()
	}
	t.count++
	full := t.count == ringSize/2
	t.mu.Unlock()
	if full {
		t.waker.Wake()
	}
}

func newSpanID() (id SpanID) {
	binary.BigEndian.PutUint64(id[:], rand.Uint64()|1) // zero is no id
	return id
}

// take moves up to limit of the oldest spans out of the ring.
func (t *Tracer) take(limit int) []Span {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]Span, min(limit, t.count))
	for i := range out {
		out[i] = t.ring[(t.first+i)%ringSize]
	}
	t.first, t.count = (t.first+len(out))%ringSize, t.count-len(out)
	return out
}
