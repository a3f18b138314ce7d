package store

import (
	"context"
	"slices"
	"strings"
	"time"

	"till"
	"till/internal/db"
	"till/ledger"
)

// A total that is not split into days is read from counters of whole UTC days, and from hours
// only before the first and after the last of them: a month is up to 1 100 rows instead of 28 000.
// The ends of a range are hours, so a zone that is off by half an hour sees days that begin on the
// hour.

// What is added up, as the column noun says it. A sum is of the hour in which the
// wallet's line was written, and an hour that is over never changes again.
const (
	SumIn       = "money_in"   // a method, b currency: collections, in time and late
	SumBack     = "money_back" // a method, b currency: what operators took back out of wallets
	SumOut      = "money_out"  // a method, b currency: payouts, in time and late
	SumRefunded = "refunded"   // a method, b currency: refunds, in time and late
	SumFee      = "fee"        // a method, b currency: fees of payments, payouts and refunds
	SumApproval = "approval"   // a method, b the slowest seconds of ApprovalBuckets; the sum is in milliseconds
)

// SumNouns lists what is added up.
var SumNouns = []string{SumIn, SumBack, SumOut, SumRefunded, SumFee, SumApproval}

const sumNouns = `('money_in', 'money_back', 'money_out', 'refunded', 'fee', 'approval')`

// The installation's counters of test clients have nouns of their own: pretend money is
// never added to real money.
const testPrefix = "test "

const houseNouns = `('payment', 'payout', 'refund', 'money_in', 'money_back', 'money_out', 'refunded', 'fee', 'approval')`

// houseNoun returns the noun under which the installation counts what clients of a mode
// have.
func houseNoun(noun string, mode till.Mode) (string, bool) {
	if noun == countTransactions || noun == countStored {
		return "", false
	}
	if mode == till.Test {
		noun = testPrefix + noun
	}
	return noun, true
}

// ApprovalBuckets are the ends of the buckets of SumApproval, in seconds. The last
// bucket, "more", has no end.
var ApprovalBuckets = []struct {
	Name    string
	Seconds int64
}{{"5", 5}, {"10", 10}, {"20", 20}, {"30", 30}, {"60", 60}, {"120", 120}, {"300", 300}, {"more", 0}}

// approvalBucket returns the bucket of a time from the request to the credit.
func approvalBucket(took time.Duration) string {
	for _, b := range ApprovalBuckets {
		if b.Seconds > 0 && took <= time.Duration(b.Seconds)*time.Second {
			return b.Name
		}
	}
	return "more"
}

// approvalText is approvalBucket in SQL.
func approvalText(took string) string {
	var t strings.Builder
	t.WriteString(`CASE`)
	for _, b := range ApprovalBuckets {
		if b.Seconds > 0 {
			t.WriteString(` WHEN ` + took + ` <= ` + b.Name + `000000 THEN '` + b.Name + `'`)
		}
	}
	return t.String() + ` ELSE 'more' END`
}

// Sum is how many there are, and what they add up to.
type Sum struct{ N, Sum int64 }

func (s Sum) plus(o Sum) Sum { return Sum{s.N + o.N, s.Sum + o.Sum} }

func (c *CounterDelta) addSum(client till.ID, table string, at till.Time, a, b string, n, sum int64) {
	c.add(client, table, at, a, b, n)
	if sum == 0 {
		return
	}
	if c.sums == nil {
		c.sums = make(map[tallyKey]int64)
	}
	c.sums[tallyKey{client, table, bucketOf(widthHour, at), a, b}] += sum
}

// AddMoney adds the line of a wallet, written at a time, that belongs to a payment
// or payout of a method, made at another.
func (c *CounterDelta) AddMoney(client till.ID, at till.Time, typ string, amount till.Money, method string, made till.Time) {
	noun := sumOf(typ)
	if noun == "" {
		return
	}
	c.addSum(client, noun, at, method, amount.Currency, 1, amount.Minor)
	if typ == string(ledger.Collection) {
		took := at.Sub(made)
		c.addSum(client, SumApproval, at, method, approvalBucket(took), 1, took.Milliseconds())
	}
}

// sumOf returns the noun that a type of transaction is added to; "" for none.
func sumOf(typ string) string {
	switch ledger.EntryKind(typ) {
	case ledger.Collection, ledger.LateCollection:
		return SumIn
	case ledger.CollectionReversal:
		return SumBack
	case ledger.Payout, ledger.LatePayout:
		return SumOut
	case ledger.Refund, ledger.LateRefund:
		return SumRefunded
	case ledger.Fee:
		return SumFee
	}
	return ""
}

var selectSums = db.Define(db.SQL{Name: "sums.select",
	SQLite: `SELECT noun, bucket, a, b, n, sum FROM counters WHERE client_id = $1 AND noun = $2 AND width = $3 AND bucket BETWEEN $4 AND $5
		UNION ALL SELECT noun, hour, a, b, n, sum FROM tallies WHERE client_id = $1 AND noun = $2 AND hour BETWEEN $4 AND $5`})

var selectHouseCounters = db.Define(db.SQL{Name: "sums.selectHouseCounters",
	SQLite: `SELECT bucket, a, b, n, sum FROM counters WHERE client_id = $1 AND noun = $2 AND width = $3 AND bucket BETWEEN $4 AND $5`})

// The tallies of all clients are those of two hours or so.
var selectHouseTallies = db.Define(db.SQL{Name: "sums.selectHouseTallies",
	SQLite: `SELECT t.noun, t.hour, t.a, t.b, CAST(sum(t.n) AS BIGINT), CAST(sum(t.sum) AS BIGINT) FROM tallies t JOIN clients c ON c.client_id = t.client_id
		WHERE c.mode = $1 AND t.noun IN ` + houseNouns + ` AND t.hour BETWEEN $2 AND $3 GROUP BY t.noun, t.hour, t.a, t.b`})

// HourSum is what one hour adds to a sum. Hours are counted since 1970.
type HourSum struct {
	Noun string
	Hour int64
	A, B string
	Sum
}

// HourOf returns the number of the hour that a moment falls into.
func HourOf(t till.Time) int64 { return bucketOf(widthHour, t) }

// Sums returns the hours from..to of one noun of a client. The same hour and
// pair may come twice.
func (tx *Tx) Sums(ctx context.Context, client till.ID, noun string, from, to int64) ([]HourSum, error) {
	return db.ReadAll(ctx, tx.db, selectSums, []any{client[:], noun, widthHour, from, to}, scanHourSum)
}

func scanHourSum(r db.Row) (s HourSum, err error) {
	err = r.Scan(&s.Noun, &s.Hour, &s.A, &s.B, &s.N, &s.Sum.Sum)
	return s, err
}

// ScopeSums is Sums of some nouns, of one client or of all of a mode.
func (tx *Tx) ScopeSums(ctx context.Context, s Scope, nouns []string, from, to int64) (all []HourSum, err error) {
	if s.Client.IsZero() {
		return tx.houseSums(ctx, s.Mode, nouns, from, to)
	}
	for _, noun := range nouns {
		some, err := tx.Sums(ctx, s.Client, noun, from, to)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// houseSums returns the hours from..to of some nouns over all clients of a mode.
// The same hour and pair may come twice.
func (tx *Tx) houseSums(ctx context.Context, mode till.Mode, nouns []string, from, to int64) ([]HourSum, error) {
	all, err := db.ReadAll(ctx, tx.db, selectHouseTallies, []any{string(mode), from, to}, scanHourSum)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(s HourSum) bool { return !slices.Contains(nouns, s.Noun) })
	for _, noun := range nouns {
		counted, ok := houseNoun(noun, mode)
		if !ok {
			continue
		}
		err := tx.db.Query(ctx, selectHouseCounters, []any{till.House[:], counted, widthHour, from, to}, func(r db.Row) error {
			s := HourSum{Noun: noun}
			err := r.Scan(&s.Hour, &s.A, &s.B, &s.N, &s.Sum.Sum)
			all = append(all, s)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}
