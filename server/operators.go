package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"till"
	"till/api"
	"till/engine"
	"till/operators"
	"till/provider"
	"till/store"
	"till/tokens"
)

// openOperators opens the configured connections.
func (s *Server) openOperators(context.Context) error {
	k, err := tokens.New(s.store, s.ring, s.log)
	if err != nil {
		return err
	}
	deps := operators.DepsOf(k, s.baseURL, s.ring, s.log)
	if s.operators, err = operators.Open(s.c.Operators, s.c.Adapters, deps); err != nil {
		return err
	}
	s.credentials = s.operators.Renew(s.store, s.c.Adapters, deps, s.log)
	if s.c.Operators != nil {
		for _, c := range s.c.Operators.Connections {
			s.meter.Gauge("operator_token_expiry_timestamp_seconds", func() float64 {
				if end := k.Expiry(c.Name); !end.IsZero() {
					return float64(end.Unix())
				}
				return 0
			}, c.Name)
		}
	}
	return nil
}

// routes returns the connections of a payment or payout: the sandbox for a test client; the
// configured routes for a live one, and never the sandbox.
func (s *Server) routes(kind till.SubjectKind) engine.Routes {
	return func(client *till.Client, method, country, currency string) []string {
		if client.Mode == till.Test {
			return []string{till.SandboxConnection}
		}
		return s.operators.Router.Find(client.ID, kind, method, country, currency)
	}
}

// warnOrphans logs connections that are not configured but have open payments: nobody can
// check them.
func (s *Server) warnOrphans(ctx context.Context) error {
	var lanes []string
	err := s.store.ViewAll(ctx, func(tx *store.Tx) (err error) { // a node that is silent holds up the start for seconds only
		lanes, err = tx.Lanes(ctx)
		return err
	})
	if err != nil && !errors.Is(err, store.ErrUnavailable) {
		return fmt.Errorf("look for what waits: %w", err)
	}
	known := s.connections()
	told := map[string]bool{}
	for _, lane := range lanes {
		name, _, _ := strings.Cut(lane, " ")
		if known[name] == nil && s.operators.Payouts[name] == nil && !told[name] {
			told[name] = true
			s.log.Warn("connection not configured", "connection", name)
		}
	}
	return nil
}

// connections returns this server's connections for payments.
func (s *Server) connections() map[string]provider.Provider {
	c := operators.Connections(s.sandbox)
	if s.c.Operator != nil {
		c[till.SandboxConnection] = s.c.Operator
	}
	maps.Copy(c, s.operators.Payments)
	return c
}

// payoutConnections returns this server's connections for payouts.
func (s *Server) payoutConnections() map[string]provider.Provider {
	c := operators.PayoutConnections(s.sandbox)
	maps.Copy(c, s.operators.Payouts)
	return c
}

// registerConnections records which account each connection's name stands for.
func (s *Server) registerConnections(ctx context.Context) error {
	return operators.Register(ctx, s.store, s.connections(), s.payoutConnections())
}

// callbackPolicies says how operators may call.
func (s *Server) callbackPolicies() map[string]*api.CallbackPolicy {
	out := map[string]*api.CallbackPolicy{}
	for _, c := range s.operators.File.Connections {
		d := &api.CallbackPolicy{Secrets: func() []string { return operators.CallbackSecrets(s.ring, c.Name) }, Networks: c.CallbackNetworks, Claims: claimReaders(s.operators.Payments[c.Name], s.operators.Payouts[c.Name])}
		for _, p := range []provider.Provider{s.operators.Payments[c.Name], s.operators.Payouts[c.Name]} {
			if called, ok := p.(provider.CallbackReader); ok {
				d.Readers = append(d.Readers, called)
			}
		}
		out[c.Name] = d
	}
	return out
}

// claimReaders returns the readers of a connection's callbacks.
func claimReaders(payments, payouts provider.Provider) map[till.SubjectKind]provider.ClaimReader {
	out := map[till.SubjectKind]provider.ClaimReader{}
	for kind, p := range map[till.SubjectKind]provider.Provider{till.SubjectPayment: payments, till.SubjectPayout: payouts} {
		if c, ok := p.(provider.ClaimReader); ok {
			out[kind] = c
		}
	}
	return out
}

// CallbackURL returns the callback address of a connection of this server.
func (s *Server) CallbackURL(connection string) string {
	return operators.CallbackURL(s.baseURL, connection, s.ring)
}
