package store

import (
	"context"

	"till"
	"till/internal/db"
	"till/ledger"
)

// Locked is what a change of payments or payouts is decided on. Heads and
// steps are locked; rows and wallets change only under the lock of their client's
// head.
type Locked struct {
	Heads    map[till.ID]*Head
	Steps    map[Ref]*Step
	Payments map[Ref]*PaymentRow // where they are what is locked; without their documents
	Payouts  map[Ref]*PayoutRow  // likewise
	Attempts map[Ref]*Attempt    // the newest of each
	Wallets  []*ledger.Wallet    // of the clients
	Strays   bool                // there are strays that a credit may explain; see Cached
}

// Cached is what its caller knows of some rows.
type Cached struct {
	FirstSendOnly map[Ref]bool // it was sent once, and nothing has been recorded since: so much for its attempts
	Rows          map[Ref]bool // the row itself

	// Credits says that money may turn out to have moved: then it is asked, under
	// the locks, whether there are strays.
	Credits bool
}

// LockSubjects locks and reads everything that a change of payments, or of
// payouts, needs, in one round trip. Lock order: steps, then heads. The head is
// locked last, because all writers of a client wait for it. Answers to sends, and
// to the first call after a send, are written before it is locked. Steps are
// locked before rows are read: a claim that sends again changes a row's window
// under the lock of its step. Cached rows are not read.
func (tx *Tx) LockSubjects(ctx context.Context, kind till.SubjectKind, refs []Ref, known Cached, calls []*Attempt) (l *Locked, err error) {
	refs = SortedRefs(refs)
	clients := make([]till.ID, len(refs))
	for i, ref := range refs {
		clients[i] = ref.Client
	}
	clients = SortedIDs(clients)
	l = &Locked{Steps: make(map[Ref]*Step, len(refs)), Attempts: make(map[Ref]*Attempt, len(refs))}
	var tried, unknown []Ref
	for _, ref := range refs {
		if known.FirstSendOnly[ref] {
			l.Attempts[ref] = &Attempt{ClientID: ref.Client, SubjectID: ref.ID, N: 1, Kind: AttemptSubmit}
		} else {
			tried = append(tried, ref)
		}
		if !known.Rows[ref] {
			unknown = append(unknown, ref)
		}
	}
	var rows db.Statement
	if kind == till.SubjectPayout {
		l.Payouts = make(map[Ref]*PayoutRow, len(refs))
		rows = tx.readPayouts(unknown, l.Payouts)
	} else {
		l.Payments = make(map[Ref]*PaymentRow, len(refs))
		rows = tx.readPayments(selectLeanPayments, unknown, l.Payments)
	}
	sends, seconds := recordKnownCalls(calls)
	for _, a := range calls {
		if ref := (Ref{a.ClientID, a.SubjectID}); a.Kind != AttemptSubmit {
			l.Attempts[ref] = a
		}
	}
	after := []db.Statement{rows, readLastAttempts(tried, l.Attempts),
		{SQL: selectWalletsOf, Rows: IDArgs(clients), Scan: func(_ int, r db.Row) error {
			w, err := scanWallet(r)
			l.Wallets = append(l.Wallets, w)
			return err
		}}}
	if known.Credits {
		after = append(after, anyStray(&l.Strays))
	}
	l.Heads, err = tx.lockHeads(ctx, []db.Statement{tx.lockSteps(refs, l.Steps), sends, seconds}, clients, after...)
	return l, err
}

var selectAnyStray = db.Define(db.SQL{Name: "strays.selectAnyStray",
	SQLite: `SELECT 1 FROM strays WHERE standing = 1 ORDER BY connection, name LIMIT 1`})

// anyStray reads whether there is any stray that a credit may explain. Mostly
// there is none, and nothing more is read.
func anyStray(found *bool) db.Statement {
	return db.Statement{SQL: selectAnyStray, Rows: [][]any{{}}, Scan: func(int, db.Row) error {
		*found = true
		return nil
	}}
}
