package server

import (
	"context"
	"fmt"

	"till"
	"till/provider"
	"till/provider/sandbox"
	"till/store"
)

// sandboxConnection is the name of the connection to the sandbox.
const sandboxConnection = "sandbox"

// Connections returns every connection by name.
func Connections(o *sandbox.Operator) map[string]provider.Provider {
	return map[string]provider.Provider{sandboxConnection: o}
}

// connections are those of this server.
func (s *Server) connections() map[string]provider.Provider {
	c := Connections(s.sandbox)
	if s.c.Operator != nil {
		c[sandboxConnection] = s.c.Operator
	}
	return c
}

// PayoutConnections returns every connection that pays out, by name.
func PayoutConnections(o *sandbox.Operator) map[string]provider.Provider {
	return map[string]provider.Provider{sandboxConnection: o.Payouts()}
}

// payoutConnections are those of this server.
func (s *Server) payoutConnections() map[string]provider.Provider {
	return PayoutConnections(s.sandbox)
}

// Route chooses the connection of a new payment or payout. A test client is served by
// the sandbox only, a live one never; no operator is connected yet that a
// live one could be served by.
func Route(mode till.Mode, _, _, _ string) string {
	if mode == till.Test {
		return sandboxConnection
	}
	return ""
}

// registerConnections writes down which account each connection's name stands
// for. A name that stands for another account than before is refused while
// payments on the old one are open: they would be asked about where nobody
// knows them.
func (s *Server) registerConnections(ctx context.Context) error {
	for name, p := range s.connections() {
		if err := register(ctx, s.store, name, p.Fingerprint()); err != nil {
			return err
		}
	}
	return nil
}

func register(ctx context.Context, s *store.Store, name, fingerprint string) error {
	var known string
	err := s.View(ctx, func(tx *store.Tx) (err error) {
		known, err = tx.ConnectionFingerprint(ctx, name)
		return err
	})
	if err != nil || known == fingerprint {
		return err
	}
	return s.Update(ctx, func(tx *store.Tx) error {
		if known != "" { // counting is for the rare day on which it changes
			n, err := tx.OpenOnConnection(ctx, name, fingerprint)
			if err != nil {
				return err
			}
			if n > 0 {
				return fmt.Errorf("the connection %s stands for another account now, and %d payments on the old one are still open: "+
					"configure the old account under this name until they have ended, and the new one under another name", name, n)
			}
		}
		return tx.SetConnectionFingerprint(ctx, name, fingerprint)
	})
}
