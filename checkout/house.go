package checkout

import (
	"context"

	"till"
	"till/store"
	"till/store/checkouts"
)

// MaxListed is how many blocks and switches are listed at most.
const MaxListed = 1000

// What acts of the house are called in the audit log.
const (
	ActPagesOff     = "pages.off"
	ActPagesOn      = "pages.on"
	ActPagesBlock   = "pages.block"
	ActPagesUnblock = "pages.unblock"
)

// SwitchPages switches the pages of a client, or of store.EveryClient, off or on. What was asked
// before goes on: nobody is asked anew. It is in force when it returns. It returns
// CodeClientNotFound. It may be run twice; who switched off first stays noted.
func SwitchPages(ctx context.Context, s *store.Store, client till.ID, off bool, by, reason string) error {
	_, err := store.RetryUnknown(ctx, s.Update, func(tx *store.Tx, _ bool) error {
		if client != store.EveryClient {
			if _, err := tx.Client(ctx, client); err != nil {
				return err
			}
		}
		var changed bool
		var err error
		act := ActPagesOn
		if off {
			act = ActPagesOff
			changed, err = checkouts.SwitchOff(ctx, tx, checkouts.Switch{Client: client, Block: checkouts.Block{At: tx.Now(), By: by, Reason: reason}})
		} else {
			changed, err = checkouts.SwitchOn(ctx, tx, client)
		}
		if err != nil || !changed {
			return err
		}
		// What is done to all clients is in the log of the house.
		return store.AuditClients(ctx, tx, []till.ID{client}, by, act, reason)
	})
	return err
}

// Block makes all pages leave a number alone, or ask it again. It reports false if that was so
// before. The act is in the audit log of the house, without the number.
func (l *Limits) Block(ctx context.Context, s *store.Store, phone string, block bool, by, reason string) (changed bool, err error) {
	name := l.blockOf(phone)
	_, err = store.RetryUnknown(ctx, s.Update, func(tx *store.Tx, again bool) error {
		act, did := ActPagesUnblock, false
		var err error
		if block {
			act = ActPagesBlock
			did, err = checkouts.AddBlock(ctx, tx, name, checkouts.Block{At: tx.Now(), By: by, Reason: reason})
		} else {
			did, err = checkouts.RemoveBlock(ctx, tx, name)
		}
		changed = did || again && changed
		if err != nil || !did {
			return err
		}
		return store.AuditClients(ctx, tx, []till.ID{till.House}, by, act, reason)
	})
	return changed, err
}

// Blocked is Config.Blocked.
func (l *Limits) Blocked(ctx context.Context, tx *store.Tx, phone string) (bool, error) {
	_, blocked, err := l.BlockOf(ctx, tx, phone)
	return blocked, err
}

// BlockOf returns when and why the house has blocked a number; false: it has not.
func (l *Limits) BlockOf(ctx context.Context, tx *store.Tx, phone string) (b checkouts.Block, blocked bool, err error) {
	return checkouts.BlockOf(ctx, tx, l.blockOf(phone))
}

func (l *Limits) blockOf(phone string) [32]byte { return l.name("blocked", phone) }

// mayAsk refuses an ask that the house does not let pages make: its number is blocked, or the
// client's pages are switched off.
func (s *Checkouts) mayAsk(ctx context.Context, tx *store.Tx, a *till.Ask) error {
	if err := mayOpen(ctx, tx, a.ClientID); err != nil || s.c.Blocked == nil {
		return err
	}
	blocked, err := s.c.Blocked(ctx, tx, a.Phone)
	if err == nil && blocked {
		err = ErrBlocked
	}
	return err
}

// mayOpen refuses if the client's pages are switched off.
func mayOpen(ctx context.Context, tx *store.Tx, client till.ID) error {
	off, err := checkouts.Off(ctx, tx, client)
	if err == nil && off {
		err = &till.Error{Code: till.CodePagesNotAvailable, Told: true, Detail: "The house that runs this service has switched your pages off. Ask it why."}
	}
	return err
}

// mayShow refuses what is paid on pages that would show nothing but that they are off: they are
// switched off, or may not show the client's name.
func mayShow(ctx context.Context, tx *store.Tx, who Client) error {
	if err := mayOpen(ctx, tx, who.ID); err != nil {
		return err
	}
	rule := CheckName(who.Name)
	if rule == "" {
		return nil
	}
	p, err := tx.Profile(ctx, who.ID)
	if err != nil || NameOnPages(who.Name, p.PayName) != "" {
		return err
	}
	return &till.Error{Code: till.CodePagesNotAvailable, Told: true,
		Detail: "No page can show your name: it " + rule.Words() + ". Ask for another name on pages in the console's settings, or the house that runs this service."}
}
