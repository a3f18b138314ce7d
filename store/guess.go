package store

import (
	"context"
	"errors"
	"sync"
	"time"

	"till"
)

// A transaction that begins by asking how a head stands costs two round trips.
// For a lone create the way there and back, and waking up at each end, cost as
// much as the work. This process knows how it left the head, and mostly nobody
// else has touched it since. So it may guess: everything goes out in one piece,
// which the server takes for one transaction, and the first statement of it
// fails if the head was moved. Then nothing of it has happened.

const (
	maxGuesses = 1024 // clients whose heads are remembered

	// freshClock is how long ago the server's clock may have been seen by one
	// who guesses the time too.
	freshClock = time.Second
)

// sight is what the server's clock showed, and when that was by the clock that
// nobody sets.
type sight struct {
	at  time.Time
	now till.Time
}

// clock returns the server's time by what it showed a moment ago, or false if
// that is too long ago. A machine whose clock is set in between does not matter.
func (s *Store) clock() (till.Time, bool) {
	if s.now != nil {
		return s.now(), true
	}
	last := s.seen.Load()
	if last == nil {
		return 0, false
	}
	since := time.Since(last.at)
	return last.now + till.Time(since.Microseconds()), since < freshClock
}

// errHead says that a head was not as it had been left, or that one who guessed
// had to ask something after all.
var errHead = errors.New("store: a head has moved")

// guesses is how this process left the heads of clients.
type guesses struct {
	mu    sync.Mutex
	heads map[till.ID]guess
}

type guess struct {
	time         till.Time
	event, audit int64
	wary         time.Time // until then others use this head too
}

// learn takes note of how a commit has left heads. Word of two commits may
// come in any order; what a head gives out only grows.
func (g *guesses) learn(heads []Head) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.heads == nil || len(g.heads) >= maxGuesses {
		g.heads = make(map[till.ID]guess)
	}
	for i := range heads {
		h, old := &heads[i], g.heads[heads[i].ClientID]
		g.heads[h.ClientID] = guess{max(h.LastTime, old.time), max(h.LastEvent, old.event), max(h.LastAudit, old.audit), old.wary}
	}
}

// doubt takes note that a guess was wrong: another instance writes for one of
// these clients too, and will go on for a while.
func (g *guesses) doubt(clients []till.ID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, id := range clients {
		g.heads[id] = guess{wary: time.Now().Add(distrust)}
	}
}

// all returns the heads of all of the clients, nil if one is not known.
func (g *guesses) all(clients []till.ID, now till.Time) map[till.ID]*Head {
	g.mu.Lock()
	defer g.mu.Unlock()
	heads := make(map[till.ID]*Head, len(clients))
	for _, id := range clients {
		s, ok := g.heads[id]
		if !ok || s.time == 0 || !s.wary.IsZero() && time.Now().Before(s.wary) {
			return nil
		}
		h := &Head{ClientID: id, LastTime: s.time, LastEvent: s.event, LastAudit: s.audit, now: now, seen: s.event}
		h.was = [3]int64{int64(s.time), s.event, s.audit}
		heads[id] = h
	}
	return heads
}

// GuessHeads is LockHeads for one who only gives out times and sequences and
// reads nothing: it does not wait for an answer where this process knows how it
// left the heads. If that is wrong, or something is read after all, the
// transaction fails and runs again, and then it asks. The time is a guess too,
// so nothing may be leased by it.
func (tx *Tx) GuessHeads(ctx context.Context, clients []till.ID) (map[till.ID]*Head, error) {
	ids := sortedIDs(clients)
	s := tx.s
	now, fresh := s.clock()
	if !fresh || !s.trusts() {
		return tx.LockHeads(ctx, ids)
	}
	heads := s.guesses.all(ids, now)
	if heads == nil {
		return tx.LockHeads(ctx, ids)
	}
	tx.guessed = ids
	tx.ses.assume(now)
	return heads, nil
}

// saveGuessed is SaveHeads for heads that were guessed: it locks them and
// writes them back before anything else happens. A head that was moved divides
// by zero.
func (tx *Tx) saveGuessed(heads map[till.ID]*Head) {
	rows := make([][]any, len(tx.guessed))
	for i, id := range tx.guessed {
		h := heads[id]
		rows[i] = []any{int64(h.LastTime), h.LastAudit, h.was[0], h.was[1], h.was[2], h.LastEvent, id.Bytes()}
	}
	tx.ses.first(`UPDATE client_heads SET last_time = ?, last_audit = ?,
		last_event = CASE WHEN last_time = ? AND last_event = ? AND last_audit = ? THEN CAST(? AS BIGINT) ELSE 1 / (last_event - last_event) END
		WHERE client_id = ?`, rows)
}
