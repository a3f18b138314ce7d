package secret

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"till/internal/loop"
	"till/internal/seal"
	"till/store"
	"till/store/admin"
)

// keyringInterval is how soon a running instance notices that a generation of the
// installation's secret was added, put into use or retired.
const keyringInterval = 2 * time.Second

// How often an instance checks for what another generation sealed: often while a generation
// is new in use, because other instances may seal with the one before for a moment; later
// seldom, for what a stalled instance has written.
const (
	resealSoon  = 10 * time.Second
	resealYoung = 2 * time.Minute
	resealLater = time.Hour

	maxReseal = 30 * time.Second // in a row; the next check goes on where this one ended
)

// Watch follows the generations of the installation's secret.
type Watch struct {
	Store   *store.Store
	Ring    *seal.Ring
	File    string
	Reseals bool                  // seal values anew, too
	Used    func(before, now int) // another generation is in use
	Held    func()                // the ring has changed
	Log     *slog.Logger

	warned bool // a generation is missing, and that was logged

	resealAt time.Time // on the monotonic clock; zero: at once
	newUntil time.Time // the generation in use is new until then
}

// Run keeps the ring as the database says, until ctx ends, and seals values anew
// that another generation sealed. An instance that lacks the generation in use reports it
// and stops: it cannot open what others seal.
func (w *Watch) Run(ctx context.Context, lacking chan<- error) {
	loop.Run(ctx, loop.Options{Interval: keyringInterval, Jitter: 0.1, MaxStep: 2 * maxReseal, Step: func(ctx context.Context) time.Duration {
		all, err := readGenerations(ctx, w.Store)
		if err != nil { // an unavailable database says nothing
			return -1
		}
		if err := w.follow(all); err != nil {
			select {
			case lacking <- err:
			default: // it is reported already
			}
			return -1
		}
		if len(all) > 1 && w.Reseals {
			w.resealDue(ctx)
		}
		return -1
	}})
}

// follow sets the ring to what the database says. It reads the file if a generation is not
// here yet.
func (w *Watch) follow(all []admin.Generation) error {
	ring := w.Ring
	keys := ring.Keys()
	missing := func() bool {
		return slices.ContainsFunc(all, func(g admin.Generation) bool { return g.RetiredAt.IsZero() && keys[g.Number] == nil })
	}
	if missing() {
		// What is in memory was compared with the database, and the file may be half copied.
		more, err := ReadKeys(w.File)
		if err != nil && !w.warned {
			w.Log.Warn("secret not read again", "error", err)
		}
		for g, key := range more {
			if keys[g] == nil {
				keys[g] = key
			}
		}
	}
	use, retired, err := matchKeys(keys, all)
	if err != nil {
		return fmt.Errorf("the secret in %s: %w", w.File, err)
	}
	lacking := missing()
	if lacking && !w.warned {
		w.Log.Warn("generation of the secret missing", "file", w.File, "holds", GenerationsText(slices.Sorted(maps.Keys(keys))))
	}
	w.warned = lacking
	before, held := ring.Used(), ring.Generations()
	if err := ring.Set(keys, use, retired); err != nil {
		return err
	}
	if before != use {
		w.Used(before, use)
		w.resealAt, w.newUntil = time.Time{}, time.Now().Add(resealYoung)
	}
	if before != use || !slices.Equal(held, ring.Generations()) {
		w.Held()
	}
	return nil
}

// resealDue seals values anew, if it is time to check.
func (w *Watch) resealDue(ctx context.Context) {
	if time.Now().Before(w.resealAt) {
		return
	}
	limited, cancel := context.WithTimeout(ctx, maxReseal)
	defer cancel()
	done, err := Reseal(limited, w.Store, w.Ring)
	if limited.Err() != nil {
		err = nil // there is more
	}
	if err != nil && ctx.Err() == nil {
		w.Log.Warn("values not sealed anew", "error", err)
	}
	if done.Sealed > 0 {
		w.Log.Info("values sealed anew", "generation", w.Ring.Used(), "values", done.Sealed)
	}
	if done.Unreadable > 0 {
		w.Log.Error("sealed values not opened", "values", done.Unreadable)
	}
	next := resealLater
	if err != nil || limited.Err() != nil || done.Sealed > 0 || time.Now().Before(w.newUntil) {
		next = resealSoon
	}
	w.resealAt = time.Now().Add(next)
}

// GenerationsText lists generations, as instances record those that they hold.
func GenerationsText(all []int) string {
	var out []string
	for _, g := range all {
		out = append(out, strconv.Itoa(g))
	}
	return strings.Join(out, ",")
}
