package operators

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"till"
	"till/provider"
	"till/store"
	"till/store/admin"
)

// companyPause is how long an operator is not asked again whose account it is after the
// answer helped nobody.
const companyPause = 10 * time.Second

// company makes sure that the credentials of a connection are those of the company that it
// was used with. A fingerprint comes from the configuration, where the credentials of two
// companies look the same: "not found" in the account of another one would count as proof
// that nothing arrived, and the request would be sent again.
type company struct {
	db         *store.Store
	log        *slog.Logger
	of         provider.CompanyReader
	connection string
	kind       till.SubjectKind
	account    string // its fingerprint

	known atomic.Bool
	turn  chan struct{} // who has put something into it asks
	asked time.Time     // when the answer was err
	err   error
}

// newCompany returns nil for a provider whose operator does not say whose account it is.
func newCompany(db *store.Store, log *slog.Logger, connection string, kind till.SubjectKind, p provider.Provider) *company {
	of, ok := p.(provider.CompanyReader)
	if !ok {
		return nil
	}
	return &company{db: db, log: log, of: of, connection: connection, kind: kind, account: p.Fingerprint(), turn: make(chan struct{}, 1)}
}

// confirm asks the operator whose account it is, until it has once answered that it is the
// connection's.
func (c *company) confirm(ctx context.Context) error {
	if c == nil || c.known.Load() {
		return nil
	}
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if c.known.Load() {
		return nil
	}
	if c.err != nil && time.Since(c.asked) < companyPause {
		return c.err
	}
	err := c.ask(ctx)
	if err != nil && ctx.Err() == nil {
		c.asked, c.err = time.Now(), err
		c.log.Warn("account not confirmed", "connection", c.connection, "kind", string(c.kind), "error", err)
	}
	return err
}

// ask asks the operator once. The first answer is kept, and so is one that the configuration
// agrees to.
func (c *company) ask(ctx context.Context) error {
	if c == nil {
		return nil
	}
	told, agreed, err := c.of.Company(ctx)
	if err != nil {
		return fmt.Errorf("it cannot be seen whose account it is: %w", err)
	}
	err = c.db.Update(ctx, func(tx *store.Tx) error {
		// Two instances that ask for the first time must not both keep an answer.
		if err := admin.LockInstallation(ctx, tx); err != nil {
			return err
		}
		fresh, err := compareCompany(ctx, tx, registeredAs(c.connection, c.kind), c.account, told, agreed)
		if err != nil || !fresh {
			return err
		}
		return admin.SetConnectionCompany(ctx, tx, registeredAs(c.connection, c.kind), c.account, told)
	})
	if err == nil {
		c.known.Store(true)
	}
	return err
}

// compareCompany compares the company that the operator reports with that of the connection,
// which stays as long as the account's fingerprint does. fresh says that it is to be kept.
func compareCompany(ctx context.Context, tx *store.Tx, name, account, told string, agreed bool) (fresh bool, err error) {
	of, before, err := admin.ConnectionCompany(ctx, tx, name)
	switch {
	case err != nil:
		return false, err
	case of != account || agreed:
		return told != "" && (of != account || before != told), nil
	case told != before:
		return false, provider.OtherCompany{Told: told, Want: before}
	}
	return false, nil
}

// CheckCompany reports whether the account is of the company that the connection was used
// with.
func CheckCompany(ctx context.Context, db *store.Store, connection string, kind till.SubjectKind, p provider.Provider) error {
	of, ok := p.(provider.CompanyReader)
	if !ok {
		return nil
	}
	told, agreed, err := of.Company(ctx)
	if err != nil {
		return err
	}
	return db.View(ctx, func(tx *store.Tx) error {
		_, err := compareCompany(ctx, tx, registeredAs(connection, kind), p.Fingerprint(), told, agreed)
		return err
	})
}
