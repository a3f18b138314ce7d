package operators

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"till"
	"till/books"
	"till/provider"
	"till/provider/sandbox"
	"till/store"
	"till/store/admin"
)

// Connections returns every connection by name.
func Connections(o *sandbox.Operator) map[string]provider.Provider {
	return map[string]provider.Provider{till.SandboxConnection: o}
}

// PayoutConnections returns every connection that pays out, by name.
func PayoutConnections(o *sandbox.Operator) map[string]provider.Provider {
	return map[string]provider.Provider{till.SandboxConnection: o.Payouts()}
}

// SandboxPath returns the default path of the sandbox's book.
func SandboxPath(database string) string {
	if store.IsPostgres(database) {
		return database
	}
	return filepath.Join(filepath.Dir(database), "sandbox.db")
}

// Route chooses the connection of a new payment or payout without a configuration: the
// sandbox for a test client, none for a live one.
func Route(mode till.Mode, _, _, _ string) string {
	if mode == till.Test {
		return till.SandboxConnection
	}
	return ""
}

// Register records which account each connection's name stands for. It rejects a
// name that now stands for another account while payments or payouts on the old one are
// open: they would be checked where nobody knows them.
func Register(ctx context.Context, s *store.Store, payments, payouts map[string]provider.Provider) error {
	var errs []error
	for name, p := range payments {
		errs = append(errs, register(ctx, s, name, till.SubjectPayment, p.Fingerprint()))
	}
	for name, p := range payouts {
		errs = append(errs, register(ctx, s, name, till.SubjectPayout, p.Fingerprint()))
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
			n, err := admin.OpenOnConnection(ctx, tx, kind, name, fingerprint)
			if err != nil {
				return err
			}
			if n > 0 {
				return fmt.Errorf("the connection %s stands for another account now, and %d %ss on the old one are still open: "+
					"configure the old account under this name until they have ended, and the new one under another name", name, n, kind)
			}
		}
		return admin.SetConnectionFingerprint(ctx, tx, account, fingerprint)
	})
}
