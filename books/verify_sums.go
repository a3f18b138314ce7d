package books

import (
	"context"

	"till"
	"till/store"
)

// verifySums proves I10 for the sums: it compares each day with the wallets'
// lines, or each hour if a day has too many, and wider sums with narrower ones.
// Sums that are still being filled in are not compared.
func (v *verifier) verifySums(ctx context.Context) error {
	if filled, err := v.sumsFilled(ctx); err != nil || !filled {
		return err
	}
	for day, found := int64(-1), true; ; {
		step := int64(24)
		err := v.view(ctx, func(tx *store.Tx) (err error) {
			if day, found, err = tx.NextSumDay(ctx, v.client, day); err != nil || !found {
				return err
			}
			n, err := tx.DayLines(ctx, v.client, day)
			if n > countedAtOnce*int64(v.o.Slice) {
				step = 1
			}
			return err
		})
		if err != nil {
			return err
		}
		if !found {
			break
		}
		for hour := day * 24; hour < day*24+24; hour += step {
			err := v.view(ctx, func(tx *store.Tx) error {
				have, want, err := tx.ClientSums(ctx, v.client, hour, hour+step-1)
				v.compareSums(have, want)
				return err
			})
			if err != nil {
				return err
			}
		}
		if err := v.verifySumsOf(ctx, func(tx *store.Tx) (have, want sums, err error) { return tx.DaySums(ctx, v.client, day) }); err != nil {
			return err
		}
	}
	return v.verifySumsOf(ctx, func(tx *store.Tx) (have, want sums, err error) { return tx.WideSums(ctx, v.client) })
}

// verifyHouseSums proves that the installation's counters are the sums of the clients'.
func (v *verifier) verifyHouseSums(ctx context.Context) error {
	if filled, err := v.sumsFilled(ctx); err != nil || !filled {
		return err
	}
	var days []int64
	err := v.view(ctx, func(tx *store.Tx) (err error) {
		days, err = tx.HouseDays(ctx)
		return err
	})
	if err != nil {
		return err
	}
	for _, day := range days {
		for _, read := range []sumsRead{
			func(tx *store.Tx) (have, want sums, err error) {
				return tx.HouseSumsOf(ctx, day*24, day*24+23)
			},
			func(tx *store.Tx) (have, want sums, err error) {
				return tx.DaySums(ctx, till.House, day)
			},
		} {
			if err := v.verifySumsOf(ctx, read); err != nil {
				return err
			}
		}
	}
	return v.verifySumsOf(ctx, func(tx *store.Tx) (have, want sums, err error) { return tx.WideSums(ctx, till.House) })
}

// sumsFilled reports whether the client's sums are all there.
func (v *verifier) sumsFilled(ctx context.Context) (filled bool, err error) {
	err = v.view(ctx, func(tx *store.Tx) error {
		filled, err = tx.SumsFilled(ctx, v.client)
		return err
	})
	if err == nil && !filled {
		v.SumsUnfilled++
	}
	return filled, err
}

// sums are sums by name; sumsRead reads some, and what they should be.
type sums = map[store.SumKey]store.Sum

type sumsRead func(tx *store.Tx) (have, want sums, err error)

func (v *verifier) verifySumsOf(ctx context.Context, read sumsRead) error {
	return v.view(ctx, func(tx *store.Tx) error {
		have, want, err := read(tx)
		v.compareSums(have, want)
		return err
	})
}

func (v *verifier) compareSums(have, want sums) {
	v.Sums += int64(len(have))
	for k, s := range have {
		v.check(s == want[k], "I10", till.ID{}, "the sum of %s %s %s, width %d, bucket %d, is %d of %d and should be %d of %d",
			k.Noun, k.A, k.B, k.Width, k.Bucket, s.Sum, s.N, want[k].Sum, want[k].N)
	}
	for k, s := range want {
		if _, ok := have[k]; !ok && s != (store.Sum{}) {
			v.problem("I10", till.ID{}, "the sum of %s %s %s, width %d, bucket %d, is missing and should be %d of %d", k.Noun, k.A, k.B, k.Width, k.Bucket, s.Sum, s.N)
		}
	}
}
