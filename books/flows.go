package books

import (
	"cmp"
	"context"
	"slices"
	"time"

	"till"
	"till/store"
)

// Flow is what moved in a time, by method and currency.
type Flow struct {
	Method, Currency string
	In               store.Sum // collected, in time and late
	Back             store.Sum // taken back out of wallets by operators
	Out              store.Sum // paid out
	Refunded         store.Sum // given back to customers, in time and late
	Fee              store.Sum
}

// flowNouns are the sums that a Flow is made of.
var flowNouns = []string{store.SumIn, store.SumBack, store.SumOut, store.SumRefunded, store.SumFee}

// Flows puts sums together, ordered by currency and method.
func Flows(sums []store.HourSum) []Flow {
	var out []Flow
	for _, s := range sums {
		if !slices.Contains(flowNouns, s.Noun) {
			continue
		}
		i := slices.IndexFunc(out, func(f Flow) bool { return f.Method == s.A && f.Currency == s.B })
		if i < 0 {
			i, out = len(out), append(out, Flow{Method: s.A, Currency: s.B})
		}
		f := &out[i]
		to := map[string]*store.Sum{store.SumIn: &f.In, store.SumBack: &f.Back, store.SumOut: &f.Out, store.SumRefunded: &f.Refunded, store.SumFee: &f.Fee}[s.Noun]
		to.N += s.N
		to.Sum += s.Sum.Sum
	}
	slices.SortFunc(out, func(a, b Flow) int {
		return cmp.Or(cmp.Compare(a.Currency, b.Currency), cmp.Compare(a.Method, b.Method))
	})
	return out
}

// DayReport is what moved in a time, and what the books hold now.
type DayReport struct {
	From, To till.Time // To is not included
	Flows    []Flow

	At       till.Time // when the balances were read
	Wallets  []store.Balance
	Suspense []till.Money
	Fees     []till.Money // taken since the beginning
	Unfilled bool         // sums are still being filled in
}

// ReadDayReport reads what moved between two moments, of one client or of all
// clients of a mode. Sums are of whole hours: those in which the moments fall
// decide.
func ReadDayReport(ctx context.Context, s *store.Store, scope store.Scope, from, to till.Time) (*DayReport, error) {
	r := &DayReport{From: from, To: to}
	err := s.View(ctx, func(tx *store.Tx) error {
		sums, err := tx.ScopeSums(ctx, scope, flowNouns, store.HourOf(from), store.HourOf(to-1))
		if err != nil {
			return err
		}
		r.At, r.Flows = tx.Now(), Flows(sums)
		if r.Wallets, err = tx.Balances(ctx, scope); err != nil {
			return err
		}
		if r.Suspense, err = tx.Suspense(ctx, scope); err != nil {
			return err
		}
		if r.Fees, err = tx.FeesTaken(ctx, scope); err != nil {
			return err
		}
		filled, err := tx.SumsFilled(ctx, scope.Client)
		r.Unfilled = !filled
		return err
	})
	return r, err
}

// ApprovalTime returns the time within which so many hundredths of the
// approvals came, by sums of store.SumApproval, evenly within a bucket; false if
// there were none. Beyond the last bound it is that bound, and more is true.
func ApprovalTime(sums []store.HourSum, hundredths int64) (d time.Duration, more, ok bool) {
	by, all := map[string]int64{}, int64(0)
	for _, s := range sums {
		if s.Noun == store.SumApproval {
			by[s.B] += s.N
			all += s.N
		}
	}
	if all <= 0 {
		return 0, false, false
	}
	want, before, low := max(1, (all*hundredths+99)/100), int64(0), int64(0)
	for _, b := range store.ApprovalBuckets {
		n := by[b.Name]
		if before+n >= want && b.Seconds > 0 {
			return time.Duration(low)*time.Second + time.Duration((b.Seconds-low)*(want-before)*int64(time.Second)/n), false, true
		}
		if b.Seconds == 0 {
			break
		}
		before, low = before+n, b.Seconds
	}
	return time.Duration(low) * time.Second, true, true
}
