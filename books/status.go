package books

import (
	"context"
	"time"

	"till"
	"till/store"
	"till/store/admin"
	"till/store/webhooks"
)

// maxStatusCounted is how many cases and retries are counted.
const maxStatusCounted = 100_000

// Status is whether everything is well, over all clients. Test money is apart: it is no
// trouble, whatever becomes of it.
type Status struct {
	At         till.Time
	Live, Test Part
	Verified   *admin.Verification // nil: never
	Unfilled   bool                // sums are still being filled in

	Holds     []store.Hold // of payouts, those of all clients first
	Waiting   int          // payouts that wait for their end
	Restores  []*admin.Restore
	Instances []*admin.Instance // of the last hour

	Markets []admin.ConnectionMarkets // when operators last said what our accounts may do

	Made                    till.Time                                // when the installation was; zero: not yet
	Backups                 map[admin.BackupKind]*admin.BackupResult // of SQLite
	Shared                  bool                                     // PostgreSQL
	Archived, ArchiveFailed till.Time

	DiskSize, DiskFree int64 // where the SQLite file is; 0: not known. What runs beside it sets them
}

// Part is what clients of one mode have with us.
type Part struct {
	Clients   int64
	Operators []*OperatorStatus
	Open      []store.OpenByAge
	Cases     []store.OpenKind
	Suspense  []store.Aside
	Strays    []admin.StraySum
	Webhooks  webhooks.Backlog

	UnknownSince till.Time // when what has waited for an operator's word the longest was sent; read by ReadStatus only
}

// OpenStrays returns how many strays are open.
func (p *Part) OpenStrays() (n int64) {
	for _, s := range p.Strays {
		n += s.Count
	}
	return n
}

// Of returns the part of a mode.
func (s *Status) Of(mode till.Mode) *Part {
	if mode == till.Test {
		return &s.Test
	}
	return &s.Live
}

// instanceSeenIn is how recent an instance's pulse must be for it to count as running.
const instanceSeenIn = time.Minute

// Versions returns how many instances of each release run.
func (s *Status) Versions() map[string]int {
	versions := map[string]int{}
	for _, i := range s.Instances {
		if s.At.Sub(i.SeenAt) < instanceSeenIn {
			versions[i.Version]++
		}
	}
	return versions
}

// ReadStatus reads it from one snapshot.
func ReadStatus(ctx context.Context, s *store.Store) (*Status, error) {
	st := &Status{}
	err := s.View(ctx, func(tx *store.Tx) (err error) {
		if st, err = StatusOf(ctx, tx); err != nil {
			return err
		}
		return st.readUnknown(ctx, tx)
	})
	return st, err
}

// StatusOf is ReadStatus within a snapshot.
func StatusOf(ctx context.Context, tx *store.Tx) (*Status, error) {
	s := &Status{At: tx.Now()}
	for _, read := range []func(context.Context, *store.Tx) error{s.readOperators, s.readMarkets, s.readOpen, s.readCases, s.readWebhooks, s.readHolds, s.readBackups} {
		if err := read(ctx, tx); err != nil {
			return nil, err
		}
	}
	var err error
	if s.Verified, err = admin.LastVerification(ctx, tx); err != nil {
		return nil, err
	}
	if s.Live.Clients, s.Test.Clients, err = tx.CountClients(ctx); err != nil {
		return nil, err
	}
	filled, err := tx.SumsFilled(ctx, till.House)
	s.Unfilled = !filled
	return s, err
}

func (s *Status) readOperators(ctx context.Context, tx *store.Tx) error {
	all, err := ReadOperators(ctx, tx)
	for _, o := range all {
		p := s.Of(till.ModeOf(o.Connection))
		p.Operators = append(p.Operators, o)
	}
	return err
}

func (s *Status) readMarkets(ctx context.Context, tx *store.Tx) (err error) {
	s.Markets, err = admin.MarketReads(ctx, tx)
	return err
}

func (s *Status) readOpen(ctx context.Context, tx *store.Tx) error {
	open, err := tx.OpenByAge(ctx)
	if err != nil {
		return err
	}
	for _, o := range open {
		p := s.Of(o.Mode)
		p.Open = append(p.Open, o)
	}
	aside, err := tx.PutAside(ctx)
	for _, a := range aside {
		p := s.Of(a.Mode)
		p.Suspense = append(p.Suspense, a)
	}
	return err
}

func (s *Status) readUnknown(ctx context.Context, tx *store.Tx) error {
	for _, kind := range []till.SubjectKind{till.SubjectPayment, till.SubjectPayout} {
		sums, err := admin.OpenSums(ctx, tx, kind)
		if err != nil {
			return err
		}
		for _, o := range sums {
			p := s.Of(till.ModeOf(o.Connection))
			if !o.OldestSent.IsZero() && (p.UnknownSince.IsZero() || o.OldestSent < p.UnknownSince) {
				p.UnknownSince = o.OldestSent
			}
		}
	}
	return nil
}

func (s *Status) readCases(ctx context.Context, tx *store.Tx) error {
	cases, err := tx.OpenKinds(ctx, maxStatusCounted)
	for _, c := range cases {
		p := s.Of(c.Mode)
		p.Cases = append(p.Cases, c)
	}
	if err != nil {
		return err
	}
	strays, err := admin.StraySums(ctx, tx)
	for _, sum := range strays {
		p := s.Of(till.ModeOf(sum.Connection))
		p.Strays = append(p.Strays, sum)
	}
	return err
}

func (s *Status) readHolds(ctx context.Context, tx *store.Tx) (err error) {
	if s.Holds, err = tx.Holds(ctx, maxHolds); err != nil {
		return err
	}
	if s.Waiting, err = tx.CountHeldPayouts(ctx, store.EveryClient); err != nil {
		return err
	}
	if s.Restores, err = admin.OpenRestores(ctx, tx); err != nil {
		return err
	}
	if s.Instances, err = admin.Instances(ctx, tx); err != nil {
		return err
	}
	return admin.ReadInstanceStates(ctx, tx, s.Instances)
}

func (s *Status) readBackups(ctx context.Context, tx *store.Tx) (err error) {
	if s.Shared = tx.Shared(); s.Shared {
		s.Archived, s.ArchiveFailed, err = admin.Archived(ctx, tx)
		return err
	}
	made, err := admin.ReadInstallation(ctx, tx)
	if err != nil {
		return err
	}
	if made != nil {
		s.Made = made.CreatedAt
	}
	s.Backups = map[admin.BackupKind]*admin.BackupResult{}
	for _, kind := range []admin.BackupKind{admin.KindBackup, admin.KindDrill} {
		r, err := admin.ReadBackup(ctx, tx, kind)
		if err != nil {
			return err
		}
		if r == nil {
			r = &admin.BackupResult{}
		}
		s.Backups[kind] = r
	}
	return nil
}

func (s *Status) readWebhooks(ctx context.Context, tx *store.Tx) (err error) {
	for _, mode := range []till.Mode{till.Live, till.Test} {
		if s.Of(mode).Webhooks, err = webhooks.ReadBacklog(ctx, tx, mode, maxStatusCounted); err != nil {
			return err
		}
	}
	return nil
}
