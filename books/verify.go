package books

import (
	"context"
	"fmt"
	"sync"
	"time"

	"till"
	"till/store"
	"till/store/admin"
	"till/store/auditlog"
	"till/store/proof"
)

// Options configure Verify. The zero value works.
type Options struct {
	// Slice is how many rows one snapshot covers at most; 0 means 10 000.
	Slice int

	// MaxProblems bounds the report; 0 means 1 000.
	MaxProblems int

	// LateUntil returns when the last read for late money is due on a
	// connection, counted from the end of a payment without success. Nil means
	// three days on all connections.
	LateUntil func(connection string) time.Duration

	// Key is the key of the audit chains. Nil means that it is not known; then
	// the hashes of their links are not checked.
	Key auditlog.ChainKey

	// Heads are heads of audit chains that were kept outside of the database.
	// Each must still be part of its chain. They need the Key.
	Heads []AuditHead

	// Progress, if not nil, is called from time to time with the number of
	// rows that were read and an estimate of all rows. Calls do not overlap.
	Progress func(rows, all int64)
}

const (
	defaultSlice       = 10_000
	defaultMaxProblems = 1_000
	defaultLateUntil   = 72 * time.Hour
)

// Problem is one violation of an invariant.
type Problem struct {
	Invariant string // "I3"
	Client    till.ID
	Subject   till.ID // a payment, a wallet, an entry; zero where it is none
	Detail    string
}

// damagedPages takes the place of an invariant in a Problem: nothing can be
// proved on damaged pages.
const damagedPages = "pages"

// Report has what Verify read and what it found.
type Report struct {
	Clients, Payments, Payouts, Refunds, Events, Endpoints, Wallets, Transactions, Entries, Counters, Sums, Audit, ChainLinks, Heads, Strays int64

	// SumsUnfilled is how many clients, the installation among them, have sums that are
	// still being filled in. Those are not compared.
	SumsUnfilled int64

	Problems []Problem
	Omitted  int64 // problems beyond the bound
}

// Clean reports whether nothing was found.
func (r *Report) Clean() bool { return len(r.Problems) == 0 }

// NoteVerification writes down that a verification has come to its end.
func NoteVerification(ctx context.Context, s *store.Store, r *Report, began till.Time, keyChecked bool) error {
	return s.UpdateBackground(ctx, func(tx *store.Tx) error {
		return admin.InsertVerification(ctx, tx, admin.Verification{BeganAt: began, Problems: int64(len(r.Problems)) + r.Omitted, KeyChecked: keyChecked})
	})
}

// Verify proves the invariants that a database can show: I1 to I7, I9, I10,
// I14 to I16 and I20 to I25 of ARCHITECTURE.md. An error means that the database could not be
// read to the end; the report has what was found until then.
func Verify(ctx context.Context, s *store.Store, o Options) (Report, error) {
	if o.Slice <= 0 {
		o.Slice = defaultSlice
	}
	if o.MaxProblems <= 0 {
		o.MaxProblems = defaultMaxProblems
	}
	if o.LateUntil == nil {
		o.LateUntil = func(string) time.Duration { return defaultLateUntil }
	}
	if len(o.Heads) > 0 && o.Key == nil {
		return Report{}, errHeadsNeedKey
	}
	v := &verifier{s: s, o: o, heads: byClient(o.Heads)}
	if err := v.estimateRows(ctx); err != nil {
		return v.Report, err
	}
	// Reading every page takes as long as a third of the rest, so it goes on beside it.
	var (
		damage    []string
		damageErr error
		reading   sync.WaitGroup
	)
	reading.Go(func() { damage, damageErr = s.Damage(ctx) })
	err := v.verifyRows(ctx)
	reading.Wait()
	v.reportDamage(damage)
	if err == nil && damageErr != nil {
		err = fmt.Errorf("look for damaged pages: %w", damageErr)
	}
	return v.Report, err
}

// reportDamage puts damaged pages before all other problems: they may be their cause.
func (v *verifier) reportDamage(damage []string) {
	found := v.Problems
	v.Problems, v.client = nil, till.ID{}
	for _, text := range damage {
		v.problem(damagedPages, till.ID{}, "%s", text)
	}
	kept := min(len(found), v.o.MaxProblems-len(v.Problems))
	v.Problems, v.Omitted = append(v.Problems, found[:kept]...), v.Omitted+int64(len(found)-kept)
}

// verifyRows verifies the installation and each client, one after the other.
func (v *verifier) verifyRows(ctx context.Context) error {
	if err := v.verifyReceipts(ctx); err != nil {
		return err
	}
	if err := v.verifySuspense(ctx); err != nil {
		return err
	}
	v.client, v.keptHeads = till.House, v.heads[till.House]
	delete(v.heads, till.House)
	if err := v.verifyAudit(ctx); err != nil {
		return fmt.Errorf("verify the house's audit log: %w", err)
	}
	for {
		var found bool
		after := v.client
		err := v.view(ctx, func(tx *store.Tx) (err error) {
			v.client, found, err = proof.NextOwner(ctx, tx, after)
			return err
		})
		if err == nil && !found {
			v.client = till.ID{}
			v.reportMissingHeads()
			if err := v.verifyHouseSums(ctx); err != nil {
				return err
			}
			return v.verifyStrays(ctx)
		}
		if err != nil {
			return err
		}
		v.keptHeads = v.heads[v.client]
		delete(v.heads, v.client)
		if err := v.verifyClient(ctx); err != nil {
			return fmt.Errorf("verify client %s: %w", v.client, err)
		}
	}
}

// verifier is the state of one Verify. The passes over one client run in
// parallel; each has its own counts in the report.
type verifier struct {
	Report
	s      *store.Store
	o      Options
	client till.ID

	heads     map[till.ID][]AuditHead // kept heads of clients that were not verified yet
	keptHeads []AuditHead             // of this one

	logEnd        int64 // the client's last event when its passes began
	named, logged int64 // events of payments up to there: as the payments number them, and as the log has them
	asked         []askedPayment

	mu   sync.Mutex // guards what follows, and Problems and Omitted
	rows int64      // read so far
	all  int64
}

// estimateRows estimates the number of rows: each event is read twice, in the
// log and with its payment.
func (v *verifier) estimateRows(ctx context.Context) error {
	return v.view(ctx, func(tx *store.Tx) error {
		events, audit, err := proof.LogLengths(ctx, tx)
		v.all = 2*events + audit
		return err
	})
}

// addProgress adds rows to the progress and reports it.
func (v *verifier) addProgress(rows int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.rows += rows
	if v.o.Progress != nil {
		v.o.Progress(v.rows, max(v.rows, v.all))
	}
}

// runParallel runs passes in parallel. If one fails, the others stop.
func (v *verifier) runParallel(ctx context.Context, passes ...func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for _, pass := range passes {
		all.Go(func() {
			if err := pass(ctx); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// view runs f on a snapshot, unless ctx has ended.
func (v *verifier) view(ctx context.Context, f func(tx *store.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return v.s.View(ctx, func(tx *store.Tx) error {
		if err := proof.PreferIndexes(ctx, tx); err != nil {
			return err
		}
		return f(tx)
	})
}

func (v *verifier) problem(invariant string, subject till.ID, format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.Problems) >= v.o.MaxProblems {
		v.Omitted++
		return
	}
	v.Problems = append(v.Problems, Problem{invariant, v.client, subject, fmt.Sprintf(format, args...)})
}

// check adds a problem unless a condition holds.
func (v *verifier) check(holds bool, invariant string, subject till.ID, format string, args ...any) {
	if !holds {
		v.problem(invariant, subject, format, args...)
	}
}

func (v *verifier) verifyClient(ctx context.Context) error {
	v.Clients++
	var head *store.Head
	known := false
	err := v.view(ctx, func(tx *store.Tx) (err error) {
		if head, err = proof.Head(ctx, tx, v.client); err != nil {
			return err
		}
		switch _, err = tx.Client(ctx, v.client); till.ErrorCode(err) {
		case "":
			known = true
		case till.CodeClientNotFound:
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	if !known || head == nil {
		v.problem("I11", till.ID{}, "there are rows of a client that does not exist")
		return nil
	}
	v.logEnd, v.named, v.logged, v.asked = head.LastEvent, 0, 0, nil
	err = v.runParallel(ctx,
		v.verifyPayments, v.verifyKeys, v.verifyPayouts, v.verifyPayoutKeys, v.verifyRefundSums, v.verifyRefunds, v.verifySteps, v.verifyEventsFast, v.verifyEndpoints,
		v.verifyWallets, v.verifyStray, v.verifyEntries, v.verifyFacts, v.verifyAdjustments, v.verifyCounters, v.verifySums, v.verifyAudit,
	)
	if err == nil && v.named != v.logged {
		v.Events = 0
		err = v.verifyEvents(ctx) // the counts differ: look up each event
	}
	if err == nil {
		err = v.verifyCheckouts(ctx)
	}
	return err
}

// verifySteps finds steps without a payment or payout.
func (v *verifier) verifySteps(ctx context.Context) error {
	return v.view(ctx, func(tx *store.Tx) error {
		ids, err := proof.StraySteps(ctx, tx, v.client, v.o.MaxProblems)
		for _, id := range ids {
			v.problem("I9", id, "a step is scheduled for a payment or payout that is not there")
		}
		return err
	})
}

// countedAtOnce is how many rows per row of a slice are counted in one
// snapshot at most: counting a row costs much less than checking it.
const countedAtOnce = 20

// verifyCounters proves I10: it compares each day with its rows, or each hour
// if a day has too many, and wider counters with narrower ones. So no snapshot
// covers more than an hour or a small day.
func (v *verifier) verifyCounters(ctx context.Context) error {
	for _, table := range store.CountedTables {
		day := int64(-1)
		for found := true; found; {
			large := false
			err := v.view(ctx, func(tx *store.Tx) (err error) {
				if day, found, err = tx.NextCountedDay(ctx, v.client, table, day); err != nil || !found {
					return err
				}
				n, err := tx.DaySize(ctx, v.client, table, day)
				if large = n > countedAtOnce*int64(v.o.Slice); err != nil || large {
					return err
				}
				have, want, err := tx.CountedDay(ctx, v.client, table, day)
				v.compareCounts(table, have, want)
				return err
			})
			if err == nil && large {
				err = v.verifyHours(ctx, table, day)
			}
			if err != nil {
				return err
			}
		}
		err := v.view(ctx, func(tx *store.Tx) error {
			have, want, err := tx.CountedMonths(ctx, v.client, table)
			v.compareCounts(table, have, want)
			return err
		})
		if err == nil {
			err = v.verifyParts(ctx, table)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// partsAtOnce is how many parts of a busy hour are counted in one snapshot.
const partsAtOnce = 50

// verifyParts is verifyCounters for the parts of busy hours.
func (v *verifier) verifyParts(ctx context.Context, table string) error {
	hour, after := int64(-1), till.Time(0)
	for found := true; found; {
		err := v.view(ctx, func(tx *store.Tx) (err error) {
			if after == 0 {
				if hour, found, err = tx.NextSplitHour(ctx, v.client, table, hour); err != nil || !found {
					return err
				}
			}
			have, want, next, err := tx.CountedParts(ctx, v.client, table, hour, after, partsAtOnce)
			v.compareCounts(table, have, want)
			after = next
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// verifyHours is verifyCounters for the hours of one day.
func (v *verifier) verifyHours(ctx context.Context, table string, day int64) error {
	const hours = 24
	for i := range int64(hours + 1) {
		err := v.view(ctx, func(tx *store.Tx) error {
			if i == hours {
				have, want, err := tx.CountedHours(ctx, v.client, table, day)
				v.compareCounts(table, have, want)
				return err
			}
			have, want, err := tx.CountedHour(ctx, v.client, table, day*hours+i)
			v.compareCounts(table, have, want)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (v *verifier) compareCounts(table string, have, want map[store.CountKey]int64) {
	v.Counters += int64(len(have))
	for k, n := range have {
		v.check(n == want[k], "I10", till.ID{}, "the counter of %ss %s %s, width %d, bucket %d, is %d and should be %d",
			table, k.A, k.B, k.Width, k.Bucket, n, want[k])
	}
	for k, n := range want {
		if _, ok := have[k]; !ok && n != 0 {
			v.problem("I10", till.ID{}, "the counter of %ss %s %s, width %d, bucket %d, is missing and should be %d",
				table, k.A, k.B, k.Width, k.Bucket, n)
		}
	}
}
