package engine_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"till"
	"till/collect"
	"till/engine"
	"till/provider"
	"till/store"
	"till/store/storetest"
)

// lostClaim is a claim of several payments whose commit is unknown, at an operator that
// cannot be asked about what it has not answered. So a send that counts as begun and did
// not leave ends in nothing but a case.
type lostClaim struct {
	t      *testing.T
	store  *store.Store
	config engine.Config
	clock  atomic.Int64 // how far it is ahead of the machine's, in microseconds
	sends  atomic.Int64
	refs   []store.Ref
}

const lostClaims = 5

// inLostClaim makes the payments on each engine. Nobody has claimed them yet.
func inLostClaim(t *testing.T, f func(t *testing.T, l *lostClaim)) {
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			l := &lostClaim{t: t}
			c := e.Config(t)
			c.Now = func() till.Time { return till.TimeOf(time.Now()) + till.Time(l.clock.Load()) }
			l.store = storetest.Open(t, c)
			t.Cleanup(func() { storetest.CheckInvariants(t, l.store) })
			operator := &byHandle{name: storetest.Connection, answer: func(provider.Request) { l.sends.Add(1) }}
			l.config = engine.Config{Store: l.store, Secret: []byte("a secret for tests"), PollInterval: 20 * time.Millisecond,
				Connections: map[string]provider.Provider{storetest.Connection: operator},
				Routes:      engine.ByMode(func(till.Mode, string, string, string) string { return storetest.Connection })}
			client := storetest.NewClient(t, l.store, till.Test)
			for makes := storetest.NewCollector(t, l.store); len(l.refs) < lostClaims; {
				p := storetest.NewPayment(t, makes, client, storetest.Body{})
				l.refs = append(l.refs, store.Ref{Client: client.ID, ID: p.ID})
			}
			f(t, l)
		})
	}
}

// work starts an instance. around, if it is not nil, runs the commits of its claims.
func (l *lostClaim) work(around func(commit func() error) error) {
	c := collect.New(l.config)
	if around != nil {
		c.AroundClaims(around)
	}
	l.t.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil {
			l.t.Error(err)
		}
	})
	run(l.t, c.Run)
}

// pastLease moves the clock to where a lease has ended.
func (l *lostClaim) pastLease() {
	l.clock.Add((engine.Lease + time.Second).Microseconds())
}

// awaitOneSendEach waits until each payment has succeeded, and counts the sends.
func (l *lostClaim) awaitOneSendEach() {
	l.t.Helper()
	for _, ref := range l.refs {
		awaitSuccess(l.t, l.store, ref, subjectKinds[0].find)
	}
	if n := l.sends.Load(); n != lostClaims {
		l.t.Errorf("the operator was sent %d requests, want one for each of %d payments", n, lostClaims)
	}
}

// awaitSteps waits until all steps are as they should be.
func (l *lostClaim) awaitSteps(what string, is func(s *store.Step) bool) {
	l.t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		n := 0
		storetest.View(l.t, l.store, func(ctx context.Context, tx *store.Tx) error {
			for _, ref := range l.refs {
				s, err := tx.Step(ctx, ref)
				if err != nil {
					return err
				}
				if s != nil && is(s) {
					n++
				}
			}
			return nil
		})
		if n == len(l.refs) {
			return
		}
		if time.Now().After(end) {
			l.t.Fatalf("%d of %d steps %s", n, len(l.refs), what)
		}
	}
}

var errUnknown = fmt.Errorf("%w: %w: the connection broke", store.ErrUnknownCommit, store.ErrUnavailable)

// The claim was committed, and only its answer was lost: the instance finds its claims and
// goes on with them, under the lease that it has.
func TestAClaimFindsItselfAfterAnUnknownCommit(t *testing.T) {
	t.Parallel()
	inLostClaim(t, func(t *testing.T, l *lostClaim) {
		began := time.Now()
		var lost atomic.Bool
		l.work(func(commit func() error) error {
			if err := commit(); err != nil || lost.Swap(true) {
				return err
			}
			return errUnknown
		})
		l.awaitOneSendEach()
		if took := time.Since(began); took >= engine.Lease {
			t.Errorf("it took %s, longer than the lease", took)
		}
	})
}

// The claim never came to its commit: the steps are nobody's, and are claimed again.
func TestAClaimThatWasNotCommittedIsMadeAgain(t *testing.T) {
	t.Parallel()
	inLostClaim(t, func(t *testing.T, l *lostClaim) {
		began := time.Now()
		var lost atomic.Bool
		l.work(func(commit func() error) error {
			if !lost.Swap(true) {
				return errUnknown
			}
			return commit()
		})
		l.awaitOneSendEach()
		if took := time.Since(began); took >= engine.Lease {
			t.Errorf("it took %s, longer than a lease", took)
		}
	})
}

// The database is unreachable until the leases have ended, and another instance has taken the
// steps meanwhile, or nobody has. Nothing left, so that is what is recorded, and it is sent.
func TestAClaimThatIsFoundAfterItsLeaseIsUnsent(t *testing.T) {
	t.Parallel()
	for name, another := range map[string]bool{"nobody else is there": false, "another instance asks meanwhile": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inLostClaim(t, func(t *testing.T, l *lostClaim) {
				var away atomic.Bool
				var lost atomic.Bool
				l.work(func(commit func() error) error {
					if away.Load() {
						return store.ErrUnavailable
					}
					if err := commit(); err != nil || lost.Swap(true) {
						return err
					}
					away.Store(true)
					return errUnknown
				})
				l.awaitSteps("are claimed", func(s *store.Step) bool { return s.LeaseVersion == 1 && s.Sends == 1 })
				l.pastLease()
				if another {
					l.work(nil)
					l.awaitSteps("are taken by the other instance", func(s *store.Step) bool { return s.LeaseVersion > 1 && s.Calls > 0 })
				}
				if n := l.sends.Load(); n != 0 {
					t.Fatalf("%d requests were sent under a lease that has ended", n)
				}
				away.Store(false)
				l.awaitOneSendEach()
			})
		})
	}
}
