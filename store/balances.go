package store

import (
	"bytes"
	"context"

	"till"
	"till/internal/db"
	"till/ledger"
)

// lastLineOf finds the last line of a type by one probe of the index of types.
var lastLineOf = db.DefineByClient(3, db.SQL{Name: "balances.lastLine",
	SQLite: `SELECT id, balance_after FROM transactions WHERE type = $1 AND currency = $2 AND client_id = $3 AND id < $4 ORDER BY id DESC LIMIT 1`,
	Postgres: `SELECT u.nth, found.* FROM (SELECT unnest($1::text[]) AS a1, unnest($2::text[]) AS a2, unnest($3::bytea[]) AS a3, unnest($4::bytea[]) AS a4,
			unnest($5::bigint[]) AS nth LIMIT $6::bigint) AS u,
		LATERAL (SELECT id, balance_after FROM transactions WHERE type = u.a1 AND currency = u.a2 AND client_id = u.a3 AND id < u.a4 ORDER BY id DESC LIMIT 1) AS found`,
	Arrays: true})

// lineTypes are the types that lines of wallets can have.
var lineTypes = []ledger.EntryKind{ledger.Collection, ledger.LateCollection, ledger.CollectionReversal, ledger.Fee, ledger.Payout, ledger.LatePayout, ledger.Adjustment}

// BalancesBefore returns what a client's wallet held before each of some moments, which
// ascend; nothing if the wallet has no line. Each costs a probe of an index for each type
// of lines that the wallet has, in two statements in all.
func (tx *Tx) BalancesBefore(ctx context.Context, client till.ID, currency string, moments []till.Time) ([]int64, error) {
	if len(moments) == 0 {
		return nil, nil
	}
	var used []ledger.EntryKind
	err := tx.lastLines(ctx, client, currency, lineTypes, moments[len(moments)-1:], func(_ int, kind ledger.EntryKind, _ lastLine) {
		used = append(used, kind)
	})
	if err != nil || len(used) == 0 {
		return nil, err
	}
	before := make([]lastLine, len(moments))
	err = tx.lastLines(ctx, client, currency, used, moments, func(i int, _ ledger.EntryKind, l lastLine) { before[i].take(l) })
	out := make([]int64, len(moments))
	for i, l := range before {
		out[i] = l.balance
	}
	return out, err
}

// lastLine is the last line before a moment, as far as types were looked at.
type lastLine struct {
	id      till.ID
	balance int64
}

func (l *lastLine) take(other lastLine) {
	if bytes.Compare(other.id[:], l.id[:]) > 0 {
		*l = other
	}
}

func (tx *Tx) lastLines(ctx context.Context, client till.ID, currency string, kinds []ledger.EntryKind, moments []till.Time, take func(moment int, kind ledger.EntryKind, l lastLine)) error {
	var args [][]any
	for _, at := range moments {
		below := till.FirstID(at)
		for _, kind := range kinds {
			args = append(args, []any{string(kind), currency, client[:], below[:]})
		}
	}
	return tx.db.QueryEach(ctx, lastLineOf, args, func(i int, r db.Row) error {
		var l lastLine
		err := r.Scan(db.ID(&l.id), &l.balance)
		take(i/len(kinds), kinds[i%len(kinds)], l)
		return err
	})
}
