package store

import (
	"context"
	"slices"

	"till"
	"till/internal/db"
	"till/ledger"
)

// walletColumns end with whether the wallet differs from its last line, or has another one
// beyond it: two entries of an index are read for each wallet. They are scalar subqueries,
// because of a join or EXISTS PostgreSQL may read all lines.
const walletColumns = `client_id, id, currency, balance, reserved, owed, last_sequence, updated_at,
		balance <> coalesce((SELECT t.balance_after FROM transactions t
			WHERE t.client_id = wallets.client_id AND t.wallet_id = wallets.id AND t.sequence = wallets.last_sequence),
			CASE last_sequence WHEN 0 THEN 0 ELSE -1 END)
		OR (SELECT t.sequence FROM transactions t
			WHERE t.client_id = wallets.client_id AND t.wallet_id = wallets.id AND t.sequence = wallets.last_sequence + 1) IS NOT NULL`

var ensureWallet = db.Define(db.SQL{Name: "wallets.ensure",
	SQLite: `INSERT INTO wallets (client_id, id, currency, updated_at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`})

var selectWallets = db.Define(db.SQL{Name: "wallets.selectWallets",
	SQLite: `SELECT ` + walletColumns + ` FROM wallets WHERE client_id = $1 ORDER BY currency`})

var selectWallet = db.Define(db.SQL{Name: "wallets.selectWallet",
	SQLite: `SELECT ` + walletColumns + ` FROM wallets WHERE client_id = $1 AND currency = $2`})

var selectWalletsOf = db.Define(db.SQL{Name: "wallets.selectOf",
	SQLite: `SELECT ` + walletColumns + ` FROM wallets WHERE client_id = $1`,
	Postgres: `SELECT u.nth, ` + walletColumns + ` FROM wallets,
		(SELECT unnest($1::bytea[]) AS a1, unnest($2::bigint[]) AS nth LIMIT $3::bigint) AS u
		WHERE client_id = ANY(ARRAY[u.a1])`,
	Arrays: true})

var selectPaymentCurrencies = db.Define(db.SQL{Name: "wallets.selectPaymentCurrencies",
	SQLite: `SELECT DISTINCT currency FROM (SELECT currency FROM payments WHERE client_id = $1 ORDER BY id DESC LIMIT $2) AS newest`})

var selectPayoutCurrencies = db.Define(db.SQL{Name: "wallets.selectPayoutCurrencies",
	SQLite: `SELECT DISTINCT currency FROM (SELECT currency FROM payouts WHERE client_id = $1 ORDER BY id DESC LIMIT $2) AS newest`})

var saveWallets = db.Define(db.SQL{Name: "wallets.save",
	SQLite: `UPDATE wallets SET balance = $1, reserved = $2, owed = $3, last_sequence = $4, updated_at = $5 WHERE client_id = $6 AND id = $7`,
	Postgres: `WITH changed AS (UPDATE wallets SET balance = u.a1, reserved = u.a2, owed = u.a3, last_sequence = u.a4, updated_at = u.a5
		FROM (SELECT unnest($1::bigint[]) AS a1, unnest($2::bigint[]) AS a2, unnest($3::bigint[]) AS a3, unnest($4::bigint[]) AS a4,
			unnest($5::bigint[]) AS a5, unnest($6::bytea[]) AS a6, unnest($7::bytea[]) AS a7 LIMIT $8::bigint) AS u
		WHERE client_id = ANY(ARRAY[u.a6]) AND id = u.a7
		RETURNING 1)
		SELECT till_expect_rows(count(*), $8) FROM changed`,
	Arrays: true})

var insertEntries = db.DefineByClient(1, db.SQL{Name: "wallets.insertEntries",
	SQLite: `INSERT INTO postings (client_id, entry_id, account, connection, currency, amount, kind, payment_id, payout_id, created_at, suspended)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
	Postgres: `INSERT INTO postings (client_id, entry_id, account, connection, currency, amount, kind, payment_id, payout_id, created_at, suspended)
		SELECT u.a1, u.a2, u.a3, u.a4, u.a5, u.a6, u.a7, u.a8, u.a9, u.a10, u.a11
		FROM (SELECT unnest($1::bytea[]) AS a1, unnest($2::bytea[]) AS a2, unnest($3::text[]) AS a3, unnest($4::text[]) AS a4, unnest($5::text[]) AS a5,
			unnest($6::bigint[]) AS a6, unnest($7::text[]) AS a7, unnest($8::bytea[]) AS a8, unnest($9::bytea[]) AS a9,
			unnest($10::bigint[]) AS a10, unnest($11::bigint[]) AS a11 LIMIT $12::bigint) AS u`,
	Arrays: true})

var selectSuspended = db.DefineByClient(1, db.SQL{Name: "wallets.selectSuspended",
	SQLite: `SELECT amount, currency, ` + leftAside + ` FROM postings s WHERE client_id = $1 AND payment_id = $2 AND suspended = 1`,
	Postgres: `SELECT u.nth, found.* FROM (SELECT unnest($1::bytea[]) AS a1, unnest($2::bytea[]) AS a2, unnest($3::bigint[]) AS nth LIMIT $4::bigint) AS u,
		LATERAL (SELECT amount, currency, ` + leftAside + ` FROM postings s WHERE client_id = u.a1 AND payment_id = u.a2 AND suspended = 1 OFFSET 0) AS found`,
	Arrays: true})

// leftAside is what is still in suspense of the money that a posting s put aside.
const leftAside = `(SELECT CAST(coalesce(sum(o.amount), 0) AS BIGINT) FROM postings o
		WHERE o.account = 'suspense' AND o.currency = s.currency AND o.client_id = s.client_id AND o.payment_id = s.payment_id)`

var selectOwedFor = db.Define(db.SQL{Name: "wallets.selectOwedFor",
	SQLite: `SELECT p.kind, -p.amount, p.currency, p.created_at FROM facts f JOIN postings p ON p.client_id = f.client_id AND p.entry_id = f.entry_id
		WHERE f.client_id = $1 AND f.subject_id = $2 AND p.account = 'receivable' ORDER BY p.created_at`})

var insertTransactions = db.DefineByClient(1, db.SQL{Name: "wallets.insertTransactions",
	SQLite: `INSERT INTO transactions (client_id, id, wallet_id, sequence, type, direction, amount, currency,
		balance_after, payment_id, payout_id, reference, provider_reference, created_at, money_in)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`,
	Postgres: `INSERT INTO transactions (client_id, id, wallet_id, sequence, type, direction, amount, currency,
			balance_after, payment_id, payout_id, reference, provider_reference, created_at, money_in)
		SELECT u.a1, u.a2, u.a3, u.a4, u.a5, u.a6, u.a7, u.a8, u.a9, u.a10, u.a11, u.a12, u.a13, u.a14, u.a15
		FROM (SELECT unnest($1::bytea[]) AS a1, unnest($2::bytea[]) AS a2, unnest($3::bytea[]) AS a3, unnest($4::bigint[]) AS a4,
			unnest($5::text[]) AS a5, unnest($6::text[]) AS a6, unnest($7::bigint[]) AS a7, unnest($8::text[]) AS a8,
			unnest($9::bigint[]) AS a9, unnest($10::bytea[]) AS a10, unnest($11::bytea[]) AS a11, unnest($12::text[]) AS a12,
			unnest($13::text[]) AS a13, unnest($14::bigint[]) AS a14, unnest($15::bigint[]) AS a15 LIMIT $16::bigint) AS u`,
	Arrays: true})

var sumPosted = db.Define(db.SQL{Name: "wallets.sumPosted",
	SQLite: `SELECT CAST(coalesce(sum(amount), 0) AS BIGINT) FROM postings WHERE client_id = $1 AND account = $2 AND currency = $3`})

var selectAdjustment = db.Define(db.SQL{Name: "adjustments.select",
	SQLite: `SELECT entry_id, currency, amount, reason, actor, created_at FROM adjustments WHERE client_id = $1 AND id = $2`})

var insertAdjustment = db.Define(db.SQL{Name: "adjustments.insert",
	SQLite: `INSERT INTO adjustments (client_id, id, entry_id, currency, amount, reason, actor, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`})

var sumPutAside = db.Define(db.SQL{Name: "wallets.sumPutAside",
	SQLite: `SELECT c.mode, a.currency, CAST(sum(a.amount) AS BIGINT), count(*) FROM (SELECT client_id, currency, sum(amount) AS amount FROM postings
			WHERE account = 'suspense' GROUP BY currency, client_id, payment_id HAVING sum(amount) <> 0) AS a JOIN clients c ON c.client_id = a.client_id
		GROUP BY c.mode, a.currency ORDER BY c.mode, a.currency`})

func scanWallet(r db.Row) (*ledger.Wallet, error) {
	w := &ledger.Wallet{}
	err := r.Scan(db.ID(&w.ClientID), db.ID(&w.ID), &w.Currency, &w.Balance, &w.Reserved, &w.Owed, &w.LastSequence, &w.UpdatedAt, db.Bool(&w.Broken))
	return w, err
}

// EnsureWallet makes a client's wallet in a currency if there is none. Wallets are
// made when a method is enabled, before money can come, because a missing row
// cannot be locked.
func (tx *Tx) EnsureWallet(ctx context.Context, client till.ID, currency string, at till.Time) error {
	id := till.NewID(at)
	_, err := tx.db.Exec(ctx, ensureWallet,
		client[:], id[:], currency, int64(at))
	return err
}

// Wallets returns a client's wallets by currency. There is one per currency,
// so the list is short.
func (tx *Tx) Wallets(ctx context.Context, client till.ID) ([]*ledger.Wallet, error) {
	return db.ReadAll(ctx, tx.db, selectWallets, []any{client[:]}, scanWallet)
}

// usedBy is how many of the newest payments, and of the newest payouts, say
// which wallets are used. A wallet that ever had a line is, whatever they say.
const usedBy = 200

// UsedWallets is Wallets without those that nothing ever happened to: no line,
// no reserve, and no payment or payout in their currency lately.
func (tx *Tx) UsedWallets(ctx context.Context, client till.ID) ([]*ledger.Wallet, error) {
	wallets, err := tx.Wallets(ctx, client)
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	for _, q := range []*db.SQL{selectPaymentCurrencies, selectPayoutCurrencies} {
		err := tx.db.Query(ctx, q,
			[]any{client[:], int64(usedBy)}, func(r db.Row) error {
				var currency string
				err := r.Scan(&currency)
				used[currency] = true
				return err
			})
		if err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(wallets, func(w *ledger.Wallet) bool {
		return w.LastSequence == 0 && w.Balance == 0 && w.Reserved == 0 && w.Owed == 0 && !used[w.Currency]
	}), nil
}

// Wallet returns a client's wallet in a currency, nil if there is none.
func (tx *Tx) Wallet(ctx context.Context, client till.ID, currency string) (*ledger.Wallet, error) {
	var w *ledger.Wallet
	err := tx.db.Query(ctx, selectWallet, []any{client[:], currency},
		func(r db.Row) (err error) { w, err = scanWallet(r); return err })
	return w, err
}

// WalletsOf returns all wallets of some clients.
func (tx *Tx) WalletsOf(ctx context.Context, clients []till.ID) ([]*ledger.Wallet, error) {
	var out []*ledger.Wallet
	err := tx.db.QueryEach(ctx, selectWalletsOf, IDArgs(SortedIDs(clients)), func(_ int, r db.Row) error {
		w, err := scanWallet(r)
		out = append(out, w)
		return err
	})
	return out, err
}

// SaveWallets writes the balances and debts back.
func (tx *Tx) SaveWallets(ctx context.Context, wallets []*ledger.Wallet) error {
	args := make([][]any, len(wallets))
	for i, w := range wallets {
		args[i] = []any{w.Balance, w.Reserved, w.Owed, w.LastSequence, int64(w.UpdatedAt), w.ClientID[:], w.ID[:]}
	}
	return tx.db.DeferExactly(saveWallets, args)
}

// InsertEntries writes the postings of entries that are not wallets' lines.
func (tx *Tx) InsertEntries(ctx context.Context, entries []*ledger.Entry) error {
	var args [][]any
	for _, e := range entries {
		if err := e.Check(); err != nil {
			return err
		}
		for _, p := range e.Postings {
			if p.Account.Kind == ledger.WalletAccount {
				continue
			}
			var suspended any
			if e.Kind == ledger.Suspense && p.Account.Kind == ledger.SuspenseAccount && p.Amount > 0 {
				suspended = 1
			}
			args = append(args, []any{e.ClientID[:], e.ID[:], string(p.Account.Kind), p.Account.Connection, e.Currency, p.Amount,
				string(e.Kind), db.OrNull(e.PaymentID), db.OrNull(e.PayoutID), int64(e.CreatedAt), suspended})
		}
	}
	return tx.db.Defer(insertEntries, args)
}

// Suspended is money that came in for a payment and was not what it asked for.
type Suspended struct {
	Came till.Money
	Left int64 // what is still in suspense of it
}

// Held returns what is still in suspense, zero if nothing is.
func (s Suspended) Held() till.Money {
	if s.Left == 0 {
		return till.Money{}
	}
	return till.Money{Minor: s.Left, Currency: s.Came.Currency}
}

// Suspended returns what was ever put aside for which of the payments.
func (tx *Tx) Suspended(ctx context.Context, refs []Ref) (map[Ref]Suspended, error) {
	args := make([][]any, len(refs))
	for i := range refs {
		args[i] = []any{refs[i].Client[:], refs[i].ID[:]}
	}
	out := make(map[Ref]Suspended)
	err := tx.db.QueryEach(ctx, selectSuspended, args,
		func(i int, r db.Row) error {
			var m Suspended
			err := r.Scan(&m.Came.Minor, &m.Came.Currency, &m.Left)
			out[refs[i]] = m
			return err
		})
	return out, err
}

// Owing is what an entry made a client owe, because its wallet lacked it.
type Owing struct {
	Kind      ledger.EntryKind
	Amount    till.Money
	CreatedAt till.Time
}

// OwedFor returns what a client came to owe for a payment that was reversed or a
// payout that was paid late. Each is a fact, so there is one at most.
func (tx *Tx) OwedFor(ctx context.Context, ref Ref) ([]Owing, error) {
	return db.ReadAll(ctx, tx.db, selectOwedFor, []any{ref.Client[:], ref.ID[:]}, func(r db.Row) (Owing, error) {
		var o Owing
		err := r.Scan(db.Text(&o.Kind), &o.Amount.Minor, &o.Amount.Currency, &o.CreatedAt)
		return o, err
	})
}

// InsertTransactions appends to wallets' statements. The database refuses a
// second credit for a payment.
func (tx *Tx) InsertTransactions(ctx context.Context, ts []*ledger.Transaction) error {
	args := make([][]any, len(ts))
	for i, t := range ts {
		var moneyIn any
		if t.Type == string(ledger.Collection) || t.Type == string(ledger.LateCollection) {
			moneyIn = 1
		}
		args[i] = []any{t.ClientID[:], t.ID[:], t.WalletID[:], t.Sequence, t.Type, t.Direction, t.Amount.Minor, t.Amount.Currency,
			t.BalanceAfter, db.OrNull(t.PaymentID), db.OrNull(t.PayoutID), db.OrNull(t.Reference), db.OrNull(t.ProviderReference),
			int64(t.CreatedAt), moneyIn}
	}
	return tx.db.Defer(insertTransactions, args)
}

// Posted returns the sum of an account's postings in a currency, wallets
// apart: what an operator owes us is negative.
func (tx *Tx) Posted(ctx context.Context, client till.ID, account ledger.AccountKind, currency string) (sum int64, err error) {
	_, err = tx.db.QueryRow(ctx, sumPosted,
		[]any{client[:], string(account), currency}, &sum)
	return sum, err
}

// Adjustment is a person's correction of a wallet. It never changes.
type Adjustment struct {
	ClientID  till.ID
	ID        till.ID // the person's own, so that a repeated command adjusts once
	EntryID   till.ID
	Amount    till.Money // a credit if positive, a debit if negative
	Reason    string
	Actor     string
	CreatedAt till.Time
}

// Adjustment returns a client's adjustment, nil if there is none.
func (tx *Tx) Adjustment(ctx context.Context, ref Ref) (*Adjustment, error) {
	a := &Adjustment{ClientID: ref.Client, ID: ref.ID}
	found, err := tx.db.QueryRow(ctx, selectAdjustment,
		[]any{ref.Client[:], ref.ID[:]}, db.ID(&a.EntryID), &a.Amount.Currency, &a.Amount.Minor, &a.Reason, &a.Actor, &a.CreatedAt)
	if err != nil || !found {
		return nil, err
	}
	return a, nil
}

// InsertAdjustment records an adjustment. The database refuses a second one
// under its id.
func (tx *Tx) InsertAdjustment(ctx context.Context, a *Adjustment) error {
	_, err := tx.db.Exec(ctx, insertAdjustment,
		a.ClientID[:], a.ID[:], a.EntryID[:], a.Amount.Currency, a.Amount.Minor, a.Reason, a.Actor, int64(a.CreatedAt))
	return err
}

// Aside is money that came in, is not what was asked for, and was neither credited nor
// given back since.
type Aside struct {
	Mode     till.Mode
	Currency string
	Minor    int64
	Payments int64
}

// PutAside sums what is put aside, over all clients.
func (tx *Tx) PutAside(ctx context.Context) ([]Aside, error) {
	return db.ReadAll(ctx, tx.db, sumPutAside, nil, func(r db.Row) (Aside, error) {
		var a Aside
		err := r.Scan(&a.Mode, &a.Currency, &a.Minor, &a.Payments)
		return a, err
	})
}
