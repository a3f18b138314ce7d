package server

import (
	"context"
	"fmt"
	"time"

	"till/books"
	"till/operators"
	"till/store/admin"
	"till/upkeep"
)

// verifyEvery is how often the service verifies its books, verifyLease how long that may
// take. It reads in small slices, beside everything else.
const (
	verifyEvery = 24 * time.Hour
	verifyLease = 6 * time.Hour
	verifyAfter = 10 * time.Minute // after a start, which has other work
)

// verifyTurn is the name of the turn that verifies the books, marketsTurn of that which asks
// operators what our accounts may do.
const (
	verifyTurn  = "verify"
	marketsTurn = "markets"
)

// takeTurns does the work that one instance at a time does, and shows what it found,
// whichever instance did it.
func (s *Server) takeTurns(ctx context.Context) {
	ts := &upkeep.Turns{Store: s.store, Self: s.id, Log: s.log, Seen: s.showTurn,
		Changed: func(turn, from, to, why string) { s.logChanged("turn", turn, from, to, why) }}
	ts.All = append(ts.All, upkeep.NewGaugesTurn(s.store))
	ts.All = append(ts.All, (&levelWatch{store: s.store, level: admin.Level}).turn())
	if s.c.Role.works() {
		ts.All = append(ts.All, upkeep.NewRetentionTurn(s.store))
		if s.markets.Any() {
			ts.All = append(ts.All, upkeep.Turn{Name: marketsTurn, Every: operators.MarketsEvery, Lease: operators.MarketsLease, Run: s.markets.Read})
		}
		ts.All = append(ts.All, upkeep.Turn{Name: verifyTurn, Every: verifyEvery, Lease: verifyLease, NotBefore: time.Now().Add(verifyAfter), Run: s.verify})
	}
	ts.Run(ctx)
}

// verify proves the invariants, writes down that it did, and logs each that is broken.
func (s *Server) verify(ctx context.Context) (string, error) {
	began, at := time.Now(), s.store.Now()
	report, err := books.Verify(ctx, s.store, books.Options{Key: s.sealKey})
	if err == nil {
		err = books.NoteVerification(ctx, s.store, &report, at, s.sealKey != nil)
	}
	if err != nil {
		return "", fmt.Errorf("verify the books: %w", err)
	}
	for _, p := range report.Problems[:min(len(report.Problems), maxProblemLines)] {
		s.log.Error("books broken", "problem", fmt.Sprint(p))
	}
	s.logBooks(booksLine{what: verifyTurn, read: report.Payments + report.Payouts, problems: int64(len(report.Problems)) + report.Omitted, seconds: int64(time.Since(began).Seconds())})
	return "", nil
}

// maxProblemLines is how many problems of one verify are logged.
const maxProblemLines = 20

// showTurn shows what a turn found as metrics.
func (s *Server) showTurn(t *admin.Turn) {
	if t.Name == upkeep.GaugesTurn {
		s.showGauges(t)
	}
}
