package doctor

import (
	"context"
	"errors"
	"strings"
	"time"

	"till"
	"till/config"
	"till/internal/logs"
	"till/internal/seal"
	"till/operators"
	"till/provider"
	"till/store"
)

// examineOperators tests each configured connection without moving money.
func (d *doctor) examineOperators(ctx context.Context, s *Setup) error {
	db, err := store.Open(ctx, store.Config{Path: s.Database, Readers: 1})
	if err != nil {
		return err
	}
	defer db.Close()
	if err := db.CheckSchema(ctx); err != nil {
		return err
	}
	ops, ring, err := s.Open(ctx, db)
	var wrong *config.Error
	switch {
	case errors.As(err, &wrong):
		for _, p := range wrong.Problems {
			d.add("config", Wrong, "line %d: %s", p.Line, p.Text)
		}
		return nil
	case err != nil:
		d.add("config", Wrong, "%v", err)
		return nil
	}
	d.add("config", Fine, "%s and %s", till.Count(len(ops.File.Connections), "connection", "connections"), till.Count(len(ops.File.Routes), "route", "routes"))
	d.examineProxies(s, ops.File.TrustedProxies)
	for _, c := range ops.File.Connections {
		d.examineConnection(ctx, db, ops, c.Name)
		d.reportCallback(ops, c, s.BaseURL, ring)
		if err := d.examineRefunds(ctx, db, ops, c.Name); err != nil {
			return err
		}
	}
	if err := d.examineMarkets(ctx, db, ops); err != nil {
		return err
	}
	if err := d.examineCases(ctx, db); err != nil {
		return err
	}
	return d.examineRoutes(ctx, db, ops)
}

// examineConnection tests whether an operator accepts our credentials, for
// payments and for payouts.
func (d *doctor) examineConnection(ctx context.Context, db *store.Store, ops *operators.Operators, name string) {
	for _, side := range []struct {
		what string
		kind till.SubjectKind
		p    provider.Provider
	}{{"payments", till.SubjectPayment, ops.Payments[name]}, {"payouts", till.SubjectPayout, ops.Payouts[name]}} {
		if side.p == nil {
			continue
		}
		what := name + " " + side.what
		tester, ok := side.p.(provider.Tester)
		if !ok {
			d.add(what, Fine, "it has no test that moves no money")
			continue
		}
		began := time.Now()
		ctx, cancel := context.WithTimeout(ctx, operators.TestTimeout)
		err := tester.Test(ctx)
		if err == nil {
			err = operators.CheckCompany(ctx, db, name, side.kind, side.p)
		}
		cancel()
		unproven, unknown := errors.AsType[provider.Unproven](err)
		switch {
		case unknown:
			d.add(what, Risky, "%s", logs.Redact(string(unproven)))
		case errors.Is(err, context.DeadlineExceeded):
			d.add(what, Wrong, "the operator did not answer in %s: is its address right, and may this machine reach it?", operators.TestTimeout)
		case err != nil:
			d.add(what, Wrong, "%s", logs.Redact(err.Error()))
		default:
			d.add(what, Fine, "the operator lets us in (%s)", time.Since(began).Round(time.Millisecond))
		}
	}
}

// reportCallback reports the callback address to register at an operator, and
// why callbacks cannot come.
func (d *doctor) reportCallback(ops *operators.Operators, c *config.Connection, baseURL string, ring *seal.Ring) {
	address := ""
	if baseURL != "" {
		address = operators.CallbackURL(baseURL, c.Name, ring)
	}
	told := ""
	for _, p := range []provider.Provider{ops.Payments[c.Name], ops.Payouts[c.Name]} {
		checker, ok := p.(provider.CallbackChecker)
		if !ok {
			continue
		}
		if err := checker.CheckCallback(address); err != nil && err.Error() != told {
			told = err.Error()
			d.add(c.Name+" callbacks", Risky, "%s", told)
		}
	}
	switch {
	case !ops.Called(c.Name):
		return
	case baseURL == "":
		d.add(c.Name+" callbacks", Risky, "name the service's address with --base-url to see the one that the operator calls")
	case strings.HasPrefix(baseURL, "http://"):
		d.add(c.Name+" callbacks", Risky, "operators call HTTPS only; the address would be %s", operators.CallbackURL(baseURL, c.Name, ring))
	default:
		d.add(c.Name+" callbacks", Fine, "tell the operator to call %s", operators.CallbackURL(baseURL, c.Name, ring))
	}
}

func (d *doctor) examineCases(ctx context.Context, s *store.Store) error {
	return s.View(ctx, func(tx *store.Tx) error {
		cases, err := tx.OperatorCases(ctx, false)
		for _, c := range cases {
			d.add(c.Connection+" case", Wrong, "since %s: %s", c.OpenedAt, c.Detail)
		}
		return err
	})
}
