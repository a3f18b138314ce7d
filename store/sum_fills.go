package store

import (
	"context"
	"database/sql"
	"maps"

	"till"
	"till/internal/db"
)

var selectMode = db.Define(db.SQL{Name: "sums.selectMode",
	SQLite: `SELECT mode FROM clients WHERE client_id = $1`})

var selectSumFills = db.Define(db.SQL{Name: "sums.selectFills",
	SQLite: `SELECT client_id, before, since FROM sum_fills ORDER BY client_id DESC LIMIT $1`})

var selectSumFill = db.Define(db.SQL{Name: "sums.selectFill",
	SQLite: `SELECT before FROM sum_fills WHERE client_id = $1`})

var moveSumFill = db.Define(db.SQL{Name: "sums.moveFill",
	SQLite: `UPDATE sum_fills SET before = $1 WHERE client_id = $2 AND before = $3`})

var endSumFill = db.Define(db.SQL{Name: "sums.endFill",
	SQLite: `DELETE FROM sum_fills WHERE client_id = $1 AND before = $2`})

// A fill that is under way keeps how far back it goes.
var armSumFills = db.Define(db.SQL{Name: "sums.armFills",
	SQLite: `INSERT INTO sum_fills (client_id, before, since) SELECT client_id, $1, $2 FROM client_heads WHERE true
		ON CONFLICT (client_id) DO UPDATE SET before = excluded.before`})

var selectAppliedAt = db.Define(db.SQL{Name: "sums.selectAppliedAt",
	SQLite: `SELECT applied_at FROM schema_migrations WHERE version = '0039_sums'`})

var selectLastLine = db.Define(db.SQL{Name: "sums.selectLastLine",
	SQLite: `SELECT id FROM transactions WHERE client_id = $1 AND id < $2 ORDER BY id DESC LIMIT 1`})

var selectFirstMonth = db.Define(db.SQL{Name: "sums.selectFirstMonth",
	SQLite: `SELECT min(k.bucket) FROM clients c JOIN counters k ON k.client_id = c.client_id AND k.noun IN ` + houseNouns + ` AND k.width = 1`})

var sumLines = db.Define(db.SQL{Name: "sums.sumLines",
	SQLite: `SELECT t.created_at / $1, t.type, coalesce(p.method, o.method, ''), t.currency, count(*), CAST(sum(t.amount) AS BIGINT) FROM transactions t
		LEFT JOIN payments p ON p.client_id = t.client_id AND p.id = t.payment_id
		LEFT JOIN payouts o ON o.client_id = t.client_id AND o.id = t.payout_id
		WHERE t.client_id = $2 AND t.id BETWEEN $3 AND $4 GROUP BY 1, 2, 3, 4`})

var sumApprovals = db.Define(db.SQL{Name: "sums.sumApprovals",
	SQLite: `SELECT t.created_at / $1, p.method, ` + approvalText(`t.created_at - p.created_at`) + `, count(*), CAST(sum((t.created_at - p.created_at) / 1000) AS BIGINT)
		FROM transactions t JOIN payments p ON p.client_id = t.client_id AND p.id = t.payment_id
		WHERE t.client_id = $2 AND t.id BETWEEN $3 AND $4 AND t.type = 'collection' GROUP BY 1, 2, 3`})

var selectSumRows = db.Define(db.SQL{Name: "sums.selectRows",
	SQLite: `SELECT 0, noun, bucket, a, b, n, sum FROM counters WHERE client_id = $1 AND noun IN ` + sumNouns + ` AND width = $2 AND bucket BETWEEN $3 AND $4
		UNION ALL SELECT 1, noun, hour, a, b, n, sum FROM tallies WHERE client_id = $1 AND noun IN ` + sumNouns + ` AND hour BETWEEN $5 AND $6`})

var selectHouseRows = db.Define(db.SQL{Name: "sums.selectHouseRows",
	SQLite: `SELECT noun, bucket, a, b, n, sum FROM counters WHERE client_id = $1 AND width = $2 AND bucket BETWEEN $3 AND $4`})

var sumClients = db.Define(db.SQL{Name: "sums.sumClients",
	SQLite: `SELECT c.mode, k.noun, k.bucket, k.a, k.b, CAST(sum(k.n) AS BIGINT), CAST(sum(k.sum) AS BIGINT) FROM clients c
		JOIN counters k ON k.client_id = c.client_id AND k.noun IN ` + houseNouns + ` AND k.width = $1 AND k.bucket BETWEEN $2 AND $3
		GROUP BY c.mode, k.noun, k.bucket, k.a, k.b`})

// SumFill is a client whose sums are not all there yet. The installation is one too.
type SumFill struct {
	Client        till.ID
	Before, Since int64 // the hours that are left
}

// allHours is beyond every hour.
const allHours = 1 << 40

func (tx *Tx) modeOf(ctx context.Context, client till.ID) (mode till.Mode, err error) {
	var text string
	_, err = tx.db.QueryRow(ctx, selectMode, []any{client[:]}, &text)
	return till.Mode(text), err
}

// SumFills returns up to limit clients whose sums are not all there yet, the
// installation last: it adds up what the others have.
func (tx *Tx) SumFills(ctx context.Context, limit int) ([]SumFill, error) {
	return db.ReadAll(ctx, tx.db, selectSumFills, []any{limit}, func(r db.Row) (f SumFill, err error) {
		err = r.Scan(db.ID(&f.Client), &f.Before, &f.Since)
		return f, err
	})
}

// SumsFilled reports whether the sums of a client, or of the installation, are all there.
func (tx *Tx) SumsFilled(ctx context.Context, client till.ID) (bool, error) {
	var before int64
	found, err := tx.db.QueryRow(ctx, selectSumFill, []any{client[:]}, &before)
	return !found && err == nil, err
}

// SumsSince returns when this database began to have sums.
func (tx *Tx) SumsSince(ctx context.Context) (at till.Time, err error) {
	_, err = tx.db.QueryRow(ctx, selectAppliedAt, nil, &at)
	return at, err
}

// FillSumsAgain lets the sums of all hours since a moment be compared with the
// rows again.
func (tx *Tx) FillSumsAgain(ctx context.Context, since till.Time) error {
	_, err := tx.db.Exec(ctx, armSumFills, int64(allHours), bucketOf(widthHour, since))
	return err
}

// SumKey names one sum.
type SumKey struct {
	Noun   string
	Width  int
	Bucket int64
	A, B   string
}

// NextSumGap returns the newest hour, or for the installation the newest day, that a
// fill has left, with what its sums lack; false: none is left. Every commit moves
// rows and sums together, so the difference is the same in every snapshot, and
// FillSums may add it later.
func (tx *Tx) NextSumGap(ctx context.Context, f SumFill) (first int64, gap map[SumKey]Sum, found bool, err error) {
	var have, want map[SumKey]Sum
	if f.Client.IsZero() {
		if first, found, err = tx.nextHouseDay(ctx, f); err != nil || !found {
			return 0, nil, false, err
		}
		have, want, err = tx.HouseSumsOf(ctx, first, first+23)
	} else {
		var id till.ID
		before := till.FirstID(bucketStart(widthHour, min(f.Before, maxHour)))
		if found, err = tx.db.QueryRow(ctx, selectLastLine, []any{f.Client[:], before[:]}, db.ID(&id)); err != nil || !found {
			return 0, nil, false, err
		}
		if first = bucketOf(widthHour, id.Time()); first < f.Since {
			return 0, nil, false, nil
		}
		have, want, err = tx.ClientSums(ctx, f.Client, first, first)
	}
	gap = map[SumKey]Sum{}
	for k, s := range want {
		gap[k] = s
	}
	for k, s := range have {
		gap[k] = gap[k].plus(Sum{-s.N, -s.Sum})
	}
	maps.DeleteFunc(gap, func(k SumKey, s Sum) bool { return k.Width != widthHour || s == Sum{} })
	return first, gap, true, err
}

// maxHour is the last hour that an id can name.
const maxHour = (1<<47*1000 - 1) / hourMicros

// nextHouseDay returns the first hour of the next day that the installation's fill
// reads.
func (tx *Tx) nextHouseDay(ctx context.Context, f SumFill) (int64, bool, error) {
	var month sql.NullInt64
	if _, err := tx.db.QueryRow(ctx, selectFirstMonth, nil, &month); err != nil || !month.Valid {
		return 0, false, err
	}
	least := max(f.Since, bucketOf(widthHour, bucketStart(widthMonth, month.Int64)))
	day := bucketOf(widthDay, bucketStart(widthHour, min(f.Before, bucketOf(widthHour, tx.Now())+24)-1))
	return day * 24, day*24+23 >= least, nil
}

// FillSums adds what NextSumGap found and moves the fill on. It does nothing if
// somebody else was there first.
func (tx *Tx) FillSums(ctx context.Context, f SumFill, first int64, gap map[SumKey]Sum) error {
	changed, err := tx.db.Exec(ctx, moveSumFill, first, f.Client[:], f.Before)
	if err != nil || changed == 0 {
		return err
	}
	var c CounterDelta
	for k, s := range gap {
		c.addSum(f.Client, k.Noun, bucketStart(widthHour, k.Bucket), k.A, k.B, s.N, s.Sum)
	}
	if f.Client.IsZero() {
		return tx.addToCounters(ctx, &c)
	}
	return tx.AddCounts(ctx, &c)
}

// EndSumFill says that a client's sums are all there.
func (tx *Tx) EndSumFill(ctx context.Context, f SumFill) error {
	_, err := tx.db.Exec(ctx, endSumFill, f.Client[:], f.Before)
	return err
}

// ClientSums returns the sums of the hours from..to of a client, and what they
// should be by the wallets' lines.
func (tx *Tx) ClientSums(ctx context.Context, client till.ID, from, to int64) (have, want map[SumKey]Sum, err error) {
	have, want = map[SumKey]Sum{}, map[SumKey]Sum{}
	if err := tx.readSums(ctx, client, widthHour, from, to, have); err != nil {
		return nil, nil, err
	}
	lo, hi := till.FirstID(bucketStart(widthHour, from)), till.LastID(bucketStart(widthHour, to+1)-1)
	args := []any{hourMicros, client[:], lo[:], hi[:]}
	err = tx.db.Query(ctx, sumLines, args, func(r db.Row) error {
		k, s, typ := SumKey{Width: widthHour}, Sum{}, ""
		err := r.Scan(&k.Bucket, &typ, &k.A, &k.B, &s.N, &s.Sum)
		if k.Noun = sumOf(typ); k.Noun != "" {
			want[k] = want[k].plus(s)
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	err = tx.db.Query(ctx, sumApprovals, args, func(r db.Row) error {
		k, s := SumKey{Noun: SumApproval, Width: widthHour}, Sum{}
		err := r.Scan(&k.Bucket, &k.A, &k.B, &s.N, &s.Sum)
		want[k] = want[k].plus(s)
		return err
	})
	return have, want, err
}

// readSums reads the sums of one width, with the tallies that belong to them.
func (tx *Tx) readSums(ctx context.Context, client till.ID, width int, from, to int64, into map[SumKey]Sum) error {
	first, last := int64(0), int64(allHours)
	if width == widthHour {
		first, last = from, to
	}
	return tx.db.Query(ctx, selectSumRows, []any{client[:], width, from, to, first, last}, func(r db.Row) error {
		var tally int
		k, s := SumKey{Width: width}, Sum{}
		err := r.Scan(&tally, &k.Noun, &k.Bucket, &k.A, &k.B, &s.N, &s.Sum)
		if tally == 1 {
			k.Bucket = bucketOf(width, bucketStart(widthHour, k.Bucket))
		}
		if k.Bucket >= from && k.Bucket <= to {
			into[k] = into[k].plus(s)
		}
		return err
	})
}

// readHouse is readSums for the installation, which has counters only, and of more nouns.
func (tx *Tx) readHouse(ctx context.Context, width int, from, to int64, into map[SumKey]Sum) error {
	return tx.db.Query(ctx, selectHouseRows, []any{till.House[:], width, from, to}, func(r db.Row) error {
		k, s := SumKey{Width: width}, Sum{}
		err := r.Scan(&k.Noun, &k.Bucket, &k.A, &k.B, &s.N, &s.Sum)
		into[k] = into[k].plus(s)
		return err
	})
}

// HouseSumsOf returns the installation's counters of the hours from..to, and what they
// should be by the clients' counters.
func (tx *Tx) HouseSumsOf(ctx context.Context, from, to int64) (have, want map[SumKey]Sum, err error) {
	have, want = map[SumKey]Sum{}, map[SumKey]Sum{}
	if err := tx.readHouse(ctx, widthHour, from, to, have); err != nil {
		return nil, nil, err
	}
	err = tx.db.Query(ctx, sumClients, []any{widthHour, from, to}, func(r db.Row) error {
		var mode, noun string
		k, s := SumKey{Width: widthHour}, Sum{}
		err := r.Scan(&mode, &noun, &k.Bucket, &k.A, &k.B, &s.N, &s.Sum)
		k.Noun, _ = houseNoun(noun, till.Mode(mode))
		want[k] = want[k].plus(s)
		return err
	})
	return have, want, err
}
