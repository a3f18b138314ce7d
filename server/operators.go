package server

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"till/operators"
	"till/store"
	"till/tokens"
)

// openOperators opens the configured connections.
func (s *Server) openOperators(ctx context.Context) error {
	k, err := tokens.New(s.store, s.ring, s.log)
	if err != nil {
		return err
	}
	deps := operators.DepsOf(k, s.baseURL, s.ring, s.log)
	if s.operators, err = operators.Open(s.c.Operators, s.c.Adapters, deps); err != nil {
		return err
	}
	s.credentials = s.operators.Renew(s.store, s.c.Adapters, deps, s.log)
	s.markets = operators.NewMarkets(s.store, s.operators.Payments, s.operators.Payouts, s.log)
	if err := s.markets.Load(ctx); err != nil {
		s.log.Warn("operators' markets not read", "error", err) // they are read again soon
	}
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
	known := s.opened().connections()
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

// registerConnections records which account each connection's name stands for, and by which way
// its payments are given back.
func (s *Server) registerConnections(ctx context.Context) error {
	o := s.opened()
	in, out := o.connections(), o.payoutConnections()
	if err := operators.Register(ctx, s.store, in, out); err != nil {
		return err
	}
	return operators.RegisterRefunds(ctx, s.store, o.Operators.Refunds(in, out).Origins)
}

// CallbackURL returns the callback address of a connection of this server.
func (s *Server) CallbackURL(connection string) string {
	return operators.CallbackURL(s.baseURL, connection, s.ring)
}
