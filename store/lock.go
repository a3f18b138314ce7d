package store

import (
	"context"

	"till"
	"till/ledger"
)

// Locked is what a change of payments is decided on. Heads and steps are
// locked; payments and wallets change only under the lock of their client's
// head.
type Locked struct {
	Heads    map[till.ID]*Head
	Steps    map[Ref]*Step
	Payments map[Ref]*PaymentRow
	Attempts map[Ref]*Attempt // the newest of each
	Wallets  []*ledger.Wallet // of the clients
}

// Lock locks and reads everything that a change of payments needs, in one
// round trip and in the fixed order of locks. The steps come before the
// payments: a claim that sends again changes the payment's window under the
// lock of its step.
func (tx *Tx) Lock(ctx context.Context, refs []Ref) (l *Locked, err error) {
	refs = sortedRefs(refs)
	clients := make([]till.ID, len(refs))
	for i, ref := range refs {
		clients[i] = ref.Client
	}
	clients = sortedIDs(clients)
	l = &Locked{
		Steps: make(map[Ref]*Step, len(refs)), Payments: make(map[Ref]*PaymentRow, len(refs)), Attempts: make(map[Ref]*Attempt, len(refs)),
	}
	l.Heads, err = tx.lockHeads(ctx, clients, tx.lockSteps(refs, l.Steps), tx.readPayments(refs, l.Payments), readLastAttempts(refs, l.Attempts),
		read{query: `SELECT ` + walletColumns + ` FROM wallets WHERE client_id = ?`, args: idArgs(clients), scan: func(_ int, r row) error {
			w, err := scanWallet(r)
			l.Wallets = append(l.Wallets, w)
			return err
		}})
	return l, err
}
