package checkout

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"slices"
	"time"

	"till"
	"till/internal/seal"
	"till/store"
	"till/store/access"
	"till/store/checkouts"
)

// A page lets strangers make a telephone ring. What bounds that is counted by number, over all
// merchants and instances, in the commit that writes the ask down: before the prompt. A number
// that the shop itself named is not counted: nobody can keep its owner from paying by
// burning it elsewhere. The names of counts are MACs, so no number is stored.
const (
	soonPrompts, soon   = 3, 15 * time.Minute // prompts to a number that were not paid, each so soon after the one before
	dailyPrompts, daily = 8, 24 * time.Hour
	declinePause        = 10 * time.Minute // of a number, at a merchant whose prompt it declined
	manyDeclines        = 3                // from then on the pause is a day
	reports             = 3                // of one page, in a day
	// Of one link, in a while: checkouts that it opens, and asks of them after the first, of which
	// nothing was paid. Each that is paid makes room for more.
	linkAsks, linkWhile = 30, 10 * time.Minute
	linkRoom            = 3
)

// Slow says that a limit holds for a number.
type Slow struct {
	Until till.Time // when it may be asked again
	Live  bool      // another request may wait on the phone
	Link  bool      // it holds for the link, whatever the number
}

func (*Slow) Error() string { return "checkout: too many requests to this number" }

// Limits counts prompts. It is safe for concurrent use.
type Limits struct{ key []byte }

// NewLimits returns the limits of an installation, whose root secret names the counts.
func NewLimits(root []byte) (*Limits, error) {
	key, err := seal.Key(root, "counts of pages to pay on")
	return &Limits{key}, err
}

// name returns the name of a count.
func (l *Limits) name(kind, of string) (name [32]byte) {
	h := hmac.New(sha256.New, l.key)
	h.Write([]byte(kind + "\x00" + of))
	return [32]byte(h.Sum(nil))
}

// count is a number's count of one kind.
type count struct {
	name  [32]byte
	most  int64
	pause time.Duration
	live  bool
	while bool // the pause counts from the first, not from the last

	access.Guesses
}

// over reports whether what was counted is too old to count.
func (c *count) over(now till.Time) bool {
	from := c.LastAt
	if c.while {
		from = c.Since
	}
	return now >= from.Add(c.pause)
}

// until returns until when a count lets no prompt through; zero: it does. A count that nothing
// was added to for its pause begins anew.
func (c *count) until(now till.Time) till.Time {
	if c.live {
		if c.Count > 0 && c.Since > now { // Since is when its window is over
			return c.Since
		}
		return 0
	}
	switch {
	case c.Count < c.most || c.over(now):
		return 0
	case c.while:
		return c.Since.Add(c.pause)
	}
	return c.LastAt.Add(c.pause)
}

// add counts a prompt whose window is over at end.
func (c *count) add(now, end till.Time) {
	switch {
	case c.live:
		c.Count, c.Since = 1, end
	case c.over(now):
		c.Count, c.Since = 1, now
	default:
		c.Count++
	}
	c.LastAt = now
}

// Admit counts the prompt of an ask, or returns Slow. It is Config.Limit.
func (l *Limits) Admit(ctx context.Context, tx *store.Tx, scope string, c *till.Checkout, a *till.Ask, window time.Duration) error {
	declined := &count{name: l.name("declined", scope+c.ClientID.String()+a.Phone), most: 1, pause: declinePause}
	counts := []*count{declined}
	if c.Phone != a.Phone {
		counts = append(counts,
			&count{name: l.name("soon", scope+a.Phone), most: soonPrompts, pause: soon},
			&count{name: l.name("daily", scope+a.Phone), most: dailyPrompts, pause: daily},
			&count{name: l.name("live", scope+a.Phone), live: true})
	}
	ofLink := l.ofLink(c.LinkID)
	if !c.LinkID.IsZero() && a.N > 1 { // Opening counts the first
		counts = append(counts, ofLink)
		if err := l.slowLink(ctx, tx, c.ClientID, c.LinkID); err != nil {
			return err
		}
	}
	// In one order, whichever call locks them.
	slices.SortFunc(counts, func(a, b *count) int { return slices.Compare(a.name[:], b.name[:]) })
	now := tx.Now()
	var slow *Slow
	for _, one := range counts {
		var err error
		if one.Guesses, err = access.LockGuesses(ctx, tx, one.name, now); err != nil {
			return err
		}
		if one == declined && one.Count >= manyDeclines {
			one.pause = daily
		}
		if until := one.until(now); until > 0 && (slow == nil || until > slow.Until) {
			slow = &Slow{Until: until, Live: one.live, Link: one == ofLink}
		}
	}
	if slow != nil {
		return slow
	}
	for _, one := range counts {
		if one == declined {
			continue // Ended counts those
		}
		one.add(now, now.Add(window))
		if err := access.SaveGuesses(ctx, tx, one.name, one.Guesses); err != nil {
			return err
		}
	}
	return nil
}

// ofLink returns the count of a link.
func (l *Limits) ofLink(id till.ID) *count {
	return &count{name: l.name("link", id.String()), most: linkAsks, pause: linkWhile, while: true}
}

// Opening counts that a link opens a checkout, or returns Slow. It is Config.Opening. So the rows
// that strangers make us keep are bounded, too.
func (l *Limits) Opening(ctx context.Context, tx *store.Tx, link *till.Link) error {
	if err := l.slowLink(ctx, tx, link.ClientID, link.ID); err != nil {
		return err
	}
	one := l.ofLink(link.ID)
	var err error
	if one.Guesses, err = access.LockGuesses(ctx, tx, one.name, tx.Now()); err != nil {
		return err
	}
	if until := one.until(tx.Now()); until > 0 {
		return &Slow{Until: until, Link: true}
	}
	one.add(tx.Now(), 0)
	return access.SaveGuesses(ctx, tx, one.name, one.Guesses)
}

// Ended notes what became of an ask: one that was paid forgives its number, one that was
// declined makes it rest at that merchant.
func (l *Limits) Ended(ctx context.Context, tx *store.Tx, scope string, c *till.Checkout, a *till.Ask, reason till.FailureReason) error {
	names, ofLink := [][32]byte{l.name("live", scope+a.Phone)}, l.ofLink(c.LinkID)
	if a.Stand() == till.AskCredited {
		names = append(names, l.name("soon", scope+a.Phone), l.name("daily", scope+a.Phone), l.name("declined", scope+a.ClientID.String()+a.Phone))
		if !c.LinkID.IsZero() {
			names = append(names, ofLink.name)
		}
	}
	slices.SortFunc(names, func(a, b [32]byte) int { return slices.Compare(a[:], b[:]) })
	for _, name := range names {
		end := access.ForgetGuesses
		if name == ofLink.name {
			end = ofLink.makeRoom
		}
		if err := end(ctx, tx, name); err != nil {
			return err
		}
	}
	if reason != till.CustomerDeclined {
		return nil
	}
	now := tx.Now()
	declined := count{name: l.name("declined", scope+a.ClientID.String()+a.Phone), pause: daily}
	var err error
	if declined.Guesses, err = access.LockGuesses(ctx, tx, declined.name, now); err != nil {
		return err
	}
	declined.add(now, 0)
	return access.SaveGuesses(ctx, tx, declined.name, declined.Guesses)
}

// makeRoom lets a link of which an ask was paid have more.
func (c *count) makeRoom(ctx context.Context, tx *store.Tx, name [32]byte) (err error) {
	if c.Guesses, err = access.LockGuesses(ctx, tx, name, tx.Now()); err != nil || c.over(tx.Now()) {
		return err
	}
	c.Count -= 1 + linkRoom
	return access.SaveGuesses(ctx, tx, name, c.Guesses)
}

// Report opens a case about a page, a checkout's or a link's, that somebody reports. It returns
// false for those beyond the limit of a day, which open none.
func (s *Checkouts) Report(ctx context.Context, l *Limits, ref store.Ref) (counted bool, err error) {
	err = s.c.Store.Update(ctx, func(tx *store.Tx) error {
		one := count{name: l.name("report", ref.ID.String()), most: reports, pause: daily, while: true}
		var err error
		if one.Guesses, err = access.LockGuesses(ctx, tx, one.name, tx.Now()); err != nil {
			return err
		}
		if counted = one.until(tx.Now()) == 0; !counted {
			return nil
		}
		one.add(tx.Now(), 0)
		if err := access.SaveGuesses(ctx, tx, one.name, one.Guesses); err != nil {
			return err
		}
		return openCase(ctx, tx, ref.Client, ref.ID, CasePageReported, till.ReasonPageReported)
	})
	return counted, s.unavailable("report not counted", err)
}

// liveFor is how long a prompt counts as live whose end is not told.
const liveFor = 5 * time.Minute

// Limit is Config.Limit. A test client's numbers are its own: no telephone rings, and what it
// plays must not hinder another's.
func (l *Limits) Limit(ctx context.Context, tx *store.Tx, c *till.Checkout, a *till.Ask) error {
	scope, err := scopeOf(ctx, tx, c.ClientID)
	if err != nil {
		return err
	}
	return l.Admit(ctx, tx, scope, c, a, liveFor)
}

func scopeOf(ctx context.Context, tx *store.Tx, client till.ID) (string, error) {
	who, err := tx.Client(ctx, client)
	if err != nil || who.Mode != till.Test {
		return "", err
	}
	return "test " + client.String(), nil
}

// Note tells the limits what became of an ask, once, by the first call. It is Ended
// in a commit of its own, and does nothing for an ask that is not known to have ended.
func (l *Limits) Note(ctx context.Context, s *store.Store, a *till.Ask, reason till.FailureReason) error {
	if stand := a.Stand(); stand != till.AskEnded && stand != till.AskCredited {
		return nil
	}
	once := l.name("ended", a.Key.String()+string(rune('0'+a.Stand())))
	known := false
	err := s.View(ctx, func(tx *store.Tx) (err error) {
		known, err = access.Used(ctx, tx, once)
		if tx.Now() >= a.AskedAt.Add(2*daily) {
			known = true // its counts are gone
		}
		return err
	})
	if err != nil || known {
		return err
	}
	return s.Update(ctx, func(tx *store.Tx) error {
		first, err := access.UseOnce(ctx, tx, once, tx.Now().Add(2*daily))
		if err != nil || !first {
			return err
		}
		scope, err := scopeOf(ctx, tx, a.ClientID)
		if err != nil {
			return err
		}
		row, err := checkouts.Get(ctx, tx, store.Ref{Client: a.ClientID, ID: a.CheckoutID})
		if err != nil {
			return err
		}
		return l.Ended(ctx, tx, scope, &row.Checkout, a, reason)
	})
}
