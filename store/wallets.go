package store

import (
	"context"
	"slices"

	"till"
	"till/ledger"
)

const walletColumns = `client_id, id, currency, balance, reserved, owed, last_sequence, updated_at`

func scanWallet(r row) (*ledger.Wallet, error) {
	w := &ledger.Wallet{}
	err := r.Scan(idDest(&w.ClientID), idDest(&w.ID), &w.Currency, &w.Balance, &w.Reserved, &w.Owed, &w.LastSequence, &w.UpdatedAt)
	return w, err
}

// EnsureWallet makes a client's wallet in a currency if it has none yet.
// Wallets are made when a method is enabled, before money can come: a lock on
// a row that is not there holds nobody off.
func (tx *Tx) EnsureWallet(ctx context.Context, client till.ID, currency string, at till.Time) error {
	id := till.NewID(at)
	_, err := tx.exec(ctx, `INSERT INTO wallets (client_id, id, currency, updated_at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		client[:], id[:], currency, int64(at))
	return err
}

// Wallets returns a client's wallets by currency. There is one per currency,
// so the list is short.
func (tx *Tx) Wallets(ctx context.Context, client till.ID) ([]*ledger.Wallet, error) {
	var out []*ledger.Wallet
	err := tx.rows(ctx, `SELECT `+walletColumns+` FROM wallets WHERE client_id = ? ORDER BY currency`, []any{client[:]},
		func(r row) error {
			w, err := scanWallet(r)
			out = append(out, w)
			return err
		})
	return out, err
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
	for _, noun := range []string{"payments", "payouts"} {
		err := tx.rows(ctx, `SELECT DISTINCT currency FROM (SELECT currency FROM `+noun+` WHERE client_id = ? ORDER BY id DESC LIMIT ?) AS newest`,
			[]any{client[:], int64(usedBy)}, func(r row) error {
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
	err := tx.rows(ctx, `SELECT `+walletColumns+` FROM wallets WHERE client_id = ? AND currency = ?`, []any{client[:], currency},
		func(r row) (err error) { w, err = scanWallet(r); return err })
	return w, err
}

// WalletsOf returns all wallets of some clients.
func (tx *Tx) WalletsOf(ctx context.Context, clients []till.ID) ([]*ledger.Wallet, error) {
	var out []*ledger.Wallet
	err := tx.rowsOf(ctx, `SELECT `+walletColumns+` FROM wallets WHERE client_id = ?`, idArgs(sortedIDs(clients)), func(_ int, r row) error {
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
	return tx.setAll(ctx, `UPDATE wallets SET balance = ?, reserved = ?, owed = ?, last_sequence = ?, updated_at = ? WHERE client_id = ? AND id = ?`, args)
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
			if e.Kind == ledger.Suspense && p.Account.Kind == ledger.SuspenseAccount {
				suspended = 1
			}
			args = append(args, []any{e.ClientID[:], e.ID[:], string(p.Account.Kind), p.Account.Connection, e.Currency, p.Amount,
				string(e.Kind), orNull(e.PaymentID), orNull(e.PayoutID), int64(e.CreatedAt), suspended})
		}
	}
	return tx.set(ctx, `INSERT INTO postings (client_id, entry_id, account, connection, currency, amount, kind, payment_id, payout_id, created_at, suspended)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, args)
}

// Suspended returns what Suspend entries put aside for which of the payments.
func (tx *Tx) Suspended(ctx context.Context, refs []Ref) (map[Ref]till.Money, error) {
	args := make([][]any, len(refs))
	for i := range refs {
		args[i] = []any{refs[i].Client[:], refs[i].ID[:]}
	}
	out := make(map[Ref]till.Money)
	err := tx.rowsOf(ctx, `SELECT amount, currency FROM postings WHERE client_id = ? AND payment_id = ? AND suspended = 1`, args,
		func(i int, r row) error {
			var m till.Money
			err := r.Scan(&m.Minor, &m.Currency)
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

// OwedFor returns what a client came to owe for a payment that was taken back
// or a payout that was paid late: each is a fact, of which there is one at most.
func (tx *Tx) OwedFor(ctx context.Context, ref Ref) ([]Owing, error) {
	var out []Owing
	err := tx.rows(ctx, `SELECT p.kind, -p.amount, p.currency, p.created_at FROM facts f JOIN postings p ON p.client_id = f.client_id AND p.entry_id = f.entry_id
		WHERE f.client_id = ? AND f.subject_id = ? AND p.account = 'receivable' ORDER BY p.created_at`, []any{ref.Client[:], ref.ID[:]}, func(r row) error {
		var o Owing
		err := r.Scan(textDest(&o.Kind), &o.Amount.Minor, &o.Amount.Currency, &o.CreatedAt)
		out = append(out, o)
		return err
	})
	return out, err
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
			t.BalanceAfter, orNull(t.PaymentID), orNull(t.PayoutID), orNull(t.Reference), orNull(t.ProviderReference),
			int64(t.CreatedAt), moneyIn}
	}
	return tx.set(ctx, `INSERT INTO transactions (client_id, id, wallet_id, sequence, type, direction, amount, currency,
		balance_after, payment_id, payout_id, reference, provider_reference, created_at, money_in)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, args)
}

// Posted returns the sum of an account's postings in a currency, wallets
// apart: what an operator owes us is negative.
func (tx *Tx) Posted(ctx context.Context, client till.ID, account ledger.AccountKind, currency string) (sum int64, err error) {
	_, err = tx.one(ctx, `SELECT CAST(coalesce(sum(amount), 0) AS BIGINT) FROM postings WHERE client_id = ? AND account = ? AND currency = ?`,
		[]any{client[:], string(account), currency}, &sum)
	return sum, err
}
