package engine

import (
	"slices"
	"sync"

	"till/store"
)

// maxUnsure is how many rows with an unknown commit are remembered. Beyond it, an end that
// turns out to have happened is in the books and the events, and not in the log.
const maxUnsure = 10_000

// unsure remembers the changes of commits that may have happened, until a later commit of
// the same rows shows whether they did. So an end is logged once: by the commit that made it,
// or by the first that finds it.
type unsure struct {
	mu    sync.Mutex
	moves map[store.Ref][]move
}

// remember keeps the changes of a commit that may have happened.
func (u *unsure) remember(moves []move) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.moves == nil {
		u.moves = make(map[store.Ref][]move)
	}
	for _, m := range moves {
		if _, known := u.moves[m.ref]; known || len(u.moves) < maxUnsure {
			u.moves[m.ref] = append(u.moves[m.ref], m)
		}
	}
}

// forget returns a row's changes and forgets them.
func (u *unsure) forget(ref store.Ref) []move {
	u.mu.Lock()
	defer u.mu.Unlock()
	moves := u.moves[ref]
	delete(u.moves, ref)
	return moves
}

// happened returns those of a row's changes that the row, as it was read, shows.
func (u *unsure) happened(p store.Subject) (out []move) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, m := range u.moves[p.Ref] {
		// Another instance may have given the same number to its own change, but not the same time.
		if *m.eventOf(p) == m.event && *p.UpdatedAt == m.at {
			out = append(out, m)
		}
	}
	return out
}

// eventOf returns where a row has the number of the change's event.
func (m *move) eventOf(p store.Subject) *int64 {
	switch {
	case m.status == moveLate:
		return p.LateEvent
	case m.final:
		return p.FinalEvent
	}
	return p.ProcessingEvent
}

// foundMoves returns the changes of earlier commits that this one has found in its rows,
// unless another has returned them meanwhile.
func (b *Recording[R]) foundMoves() (found []move) {
	for ref := range b.Rows {
		for _, m := range b.worker.unsure.forget(ref) {
			if slices.Contains(b.found, m) {
				found = append(found, m)
			}
		}
	}
	return found
}
