package checkout

import (
	"context"
	"time"

	"till"
	"till/internal/loop"
	"till/store"
	"till/store/checkouts"
)

const (
	// followEvery is how long a hint that was lost, or a time that is over, may wait to be noticed.
	followEvery = 2 * time.Second
	// followPause is the least time between two looks: hints come with every commit.
	followPause = 100 * time.Millisecond
	followPage  = 500 // events, clients or checkouts that are read at once
)

// follower moves checkouts behind the commits that settle payments. Every instance runs one: who
// comes second finds the cursor moved.
type follower struct {
	s    *Checkouts
	sub  interface{ Drain() ([]till.ID, bool) }
	seen map[till.ID]int64 // how far logs were read in which nothing was to be done

	next time.Time // of the next look at all clients
}

// Follow moves checkouts until ctx ends, woken by the hints that a client's log has grown.
func (s *Checkouts) Follow(ctx context.Context) {
	sub := s.c.Store.SubscribeAll()
	defer sub.Close()
	f := &follower{s: s, sub: sub, seen: map[till.ID]int64{}}
	every := s.c.FollowEvery
	if every <= 0 {
		every = followEvery
	}
	loop.Run(ctx, loop.Options{Interval: every, Jitter: 0.1, Wake: sub.C(), Step: func(ctx context.Context) time.Duration {
		if err := f.look(ctx, every); err != nil && ctx.Err() == nil {
			s.c.Log.Error("checkouts not followed", "error", err)
			return -1
		}
		select { // many commits are one look
		case <-time.After(followPause):
		case <-ctx.Done():
		}
		return -1
	}})
}

// look follows the logs that have grown. A hint of clients that never had a checkout costs
// nothing.
func (f *follower) look(ctx context.Context, every time.Duration) error {
	grown, all := f.sub.Drain()
	due := !time.Now().Before(f.next)
	if !due && !all {
		concerned := false
		for _, id := range grown {
			_, known := f.s.known.Load(id)
			concerned = concerned || known
		}
		if !concerned {
			return nil
		}
	}
	if due {
		f.next = time.Now().Add(every)
		if err := f.expire(ctx); err != nil {
			return err
		}
	}
	for after := (till.ID{}); ; {
		var page []checkouts.Cursor
		err := f.s.c.Store.View(ctx, func(tx *store.Tx) (err error) {
			page, err = checkouts.Behind(ctx, tx, after, followPage)
			return err
		})
		if err != nil {
			return err
		}
		for _, c := range page {
			after = c.Client
			f.s.known.Store(c.Client, true)
			if err := f.follow(ctx, c); err != nil {
				return err
			}
		}
		if len(page) < followPage {
			return nil
		}
	}
}

// follow reads one client's log from its cursor to its end.
func (f *follower) follow(ctx context.Context, c checkouts.Cursor) error {
	for at := max(c.Sequence, f.seen[c.Client]); at < c.LastEvent; {
		to := min(at+followPage, c.LastEvent)
		var ids []till.ID
		err := f.s.c.Store.View(ctx, func(tx *store.Tx) (err error) {
			ids, err = checkouts.Touched(ctx, tx, c.Client, at, to)
			return err
		})
		if err != nil {
			return err
		}
		// Where nothing is to be done, the cursor is written now and then, not each time.
		if len(ids) > 0 || to-c.Sequence >= followPage {
			first, err := f.advance(ctx, c.Client, to, ids)
			if err != nil {
				return err
			}
			if first {
				f.tellEnds(ctx, c.Client, ids)
			}
			c.Sequence = to
		}
		at, f.seen[c.Client] = to, to
	}
	return nil
}

// advance settles checkouts and moves the cursor, in one commit. It reports whether this
// instance was the first to do so.
func (f *follower) advance(ctx context.Context, client till.ID, to int64, ids []till.ID) (first bool, err error) {
	err = f.locked(ctx, client, func(tx *store.Tx, head *store.Head) error {
		first = false
		at, found, err := checkouts.ReadCursor(ctx, tx, client)
		if err != nil || !found || at >= to {
			return err
		}
		for _, id := range ids {
			if err := settleRef(ctx, tx, head, store.Ref{Client: client, ID: id}); err != nil {
				return err
			}
		}
		first = true
		return checkouts.SaveCursor(ctx, tx, client, to)
	})
	return first, err
}

// tellEnds tells what became of the asks of checkouts, whether or not their payers look at a page
// again: who declined is left alone, also if nobody reads that they did. One that is not told
// (a crash here) is told when its page is read.
func (f *follower) tellEnds(ctx context.Context, client till.ID, ids []till.ID) {
	if f.s.c.Ended == nil {
		return
	}
	for _, id := range ids {
		var ended []till.Ask
		var why []till.FailureReason
		err := f.s.c.Store.View(ctx, func(tx *store.Tx) error {
			ended, why = nil, nil
			asks, err := checkouts.Asks(ctx, tx, store.Ref{Client: client, ID: id})
			for _, a := range asks {
				if a.PaymentID.IsZero() || a.Stand() != till.AskEnded && a.Stand() != till.AskCredited {
					continue
				}
				p, err := tx.PaymentByKey(ctx, client, a.Key)
				if err != nil {
					return err
				}
				if p != nil && !p.Attention {
					ended, why = append(ended, a), append(why, p.FailureReason)
				}
			}
			return err
		})
		for i := range ended {
			if err == nil {
				err = f.s.c.Ended(ctx, &ended[i], why[i])
			}
		}
		if err != nil && ctx.Err() == nil {
			f.s.c.Log.Warn("ends of asks not counted", "error", err) // the limits know less than they could
		}
	}
}

// expire settles the checkouts whose time is over. One with a live ask waits for its end.
func (f *follower) expire(ctx context.Context) error {
	for after := (checkouts.Due{}); ; {
		var page []checkouts.Due
		ended := map[store.Ref]bool{}
		err := f.s.c.Store.View(ctx, func(tx *store.Tx) (err error) {
			if page, err = checkouts.EachDue(ctx, tx, after, followPage); err != nil {
				return err
			}
			refs := make([]store.Ref, len(page))
			for i, d := range page {
				refs[i] = d.Ref
			}
			asks, err := checkouts.AsksOf(ctx, tx, refs)
			for _, ref := range refs {
				n := len(asks[ref])
				ended[ref] = n == 0 || asks[ref][n-1].Stand() != till.AskLive
			}
			return err
		})
		if err != nil {
			return err
		}
		for _, d := range page {
			after = d
			if !ended[d.Ref] {
				continue
			}
			err := f.locked(ctx, d.Client, func(tx *store.Tx, head *store.Head) error { return settleRef(ctx, tx, head, d.Ref) })
			if err != nil {
				return err
			}
		}
		if len(page) < followPage {
			return nil
		}
	}
}

func settleRef(ctx context.Context, tx *store.Tx, head *store.Head, ref store.Ref) error {
	row, asks, err := Read(ctx, tx, ref)
	if err != nil {
		return err
	}
	return settle(ctx, tx, head, row, asks)
}

// locked runs a commit under the lock of a client's head. Where the outcome is unknown, the next
// look finds what was done.
func (f *follower) locked(ctx context.Context, client till.ID, do func(tx *store.Tx, head *store.Head) error) error {
	return f.s.c.Store.UpdateBackground(ctx, func(tx *store.Tx) error {
		heads, err := tx.LockHeads(ctx, []till.ID{client})
		if err != nil || heads[client] == nil {
			return err
		}
		if err := do(tx, heads[client]); err != nil {
			return err
		}
		return tx.SaveHeads(ctx, heads)
	})
}
