package server

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"till"
	"till/books"
	"till/provider"
	"till/provider/sandbox"
	"till/store"
)

// Connections returns every connection by name.
func Connections(o *sandbox.Operator) map[string]provider.Provider {
	return map[string]provider.Provider{till.SandboxConnection: o}
}

// connections returns this server's connections for payments.
func (s *Server) connections() map[string]provider.Provider {
	c := Connections(s.sandbox)
	if s.c.Operator != nil {
		c[till.SandboxConnection] = s.c.Operator
	}
	maps.Copy(c, s.operators.Payments)
	return c
}

// PayoutConnections returns every connection that pays out, by name.
func PayoutConnections(o *sandbox.Operator) map[string]provider.Provider {
	return map[string]provider.Provider{till.SandboxConnection: o.Payouts()}
}

// payoutConnections returns this server's connections for payouts.
func (s *Server) payoutConnections() map[string]provider.Provider {
	c := PayoutConnections(s.sandbox)
	maps.Copy(c, s.operators.Payouts)
	return c
}

// Route chooses the connection of a new payment or payout without a configuration: the
// sandbox for a test client, none for a live one.
func Route(mode till.Mode, _, _, _ string) string {
	if mode == till.Test {
		return till.SandboxConnection
	}
	return ""
}

// registerConnections records which account each connection's name stands for. It rejects a
// name that now stands for another account while payments or payouts on the old one are
// open: they would be checked where nobody knows them.
func (s *Server) registerConnections(ctx context.Context) error {
	var errs []error
	for name, p := range s.connections() {
		errs = append(errs, register(ctx, s.store, name, till.SubjectPayment, p.Fingerprint()))
	}
	for name, p := range s.payoutConnections() {
		errs = append(errs, register(ctx, s.store, name, till.SubjectPayout, p.Fingerprint()))
	}
	return errors.Join(errs...)
}

// registeredAs is the name under which a connection's account is kept: an operator may have
// a separate account for payouts.
func registeredAs(name string, kind till.SubjectKind) string {
	if kind == till.SubjectPayout {
		return name + books.PayoutSuffix
	}
	return name
}

func register(ctx context.Context, s *store.Store, name string, kind till.SubjectKind, fingerprint string) error {
	account := registeredAs(name, kind)
	var known string
	err := s.View(ctx, func(tx *store.Tx) (err error) {
		known, err = tx.ConnectionFingerprint(ctx, account)
		return err
	})
	if err != nil || known == fingerprint {
		return err
	}
	return s.Update(ctx, func(tx *store.Tx) error {
		if known != "" { // count only if the account changed
			n, err := tx.OpenOnConnection(ctx, kind, name, fingerprint)
			if err != nil {
				return err
			}
			if n > 0 {
				return fmt.Errorf("the connection %s stands for another account now, and %d %ss on the old one are still open: "+
					"configure the old account under this name until they have ended, and the new one under another name", name, n, kind)
			}
		}
		return tx.SetConnectionFingerprint(ctx, account, fingerprint)
	})
}
