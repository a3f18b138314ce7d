package store_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"till"
	"till/provider"
	"till/store"
	"till/store/storetest"
)

// runVault runs f on a store of each engine with one client and a payment in
// every state, each under its status as reference, and a door that goes past
// the store.
func runVault(t *testing.T, f func(t *testing.T, s *store.Store, client *till.Client, try storetest.Intruder)) {
	t.Helper()
	receipt := storetest.Succeeded
	receipt.Receipt = "R1"
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			config := e.Config(t)
			s := storetest.Open(t, config)
			t.Cleanup(func() { storetest.CheckInvariants(t, s) })
			c, client := storetest.NewCollector(t, s), storetest.NewClient(t, s, till.Test)
			for reference, words := range map[string][]provider.Result{
				"pending":    nil,
				"processing": {storetest.Opened},
				"success":    {storetest.Opened, receipt},
				"other":      {storetest.Succeeded},
				"failed":     {storetest.Opened, storetest.Declined},
				"expired":    {storetest.TimedOut},
				"late":       {storetest.Declined, storetest.Succeeded},
				"aside":      {{Outcome: provider.Success, Amount: till.Money{Minor: 1, Currency: "XAF"}}},
			} {
				p := storetest.NewPayment(t, c, client, storetest.Body{Reference: reference})
				err := s.Update(t.Context(), func(tx *store.Tx) error {
					return tx.InsertSends(t.Context(), []*store.Attempt{{ClientID: p.ClientID, SubjectID: p.ID, N: 1, First: true,
						Connection: p.Connection, Reference: c.ReferenceOf(p), StartedAt: p.CreatedAt}})
				})
				if err != nil {
					t.Fatal(err)
				}
				for _, w := range words {
					storetest.Apply(t, c, s, p, w)
				}
			}
			storetest.RollUp(t, s)
			try := storetest.NewIntruder(t, config.Path)
			f(t, s, client, func(query string) (int64, error) {
				n, err := try(query)
				if err == nil && n == 0 {
					t.Fatalf("%s: touches no row, so it proves nothing", query)
				}
				return n, err
			})
		})
	}
}

// transaction returns an INSERT of a further line for a payment.
func transaction(typ, reference string, amount, balance int64, more ...string) string {
	values := map[string]string{
		"client_id": "p.client_id", "id": "randomblob(16)", "wallet_id": "w.id", "sequence": "w.last_sequence + 1",
		"type": "'" + typ + "'", "direction": "'credit'", "amount": text(amount), "currency": "'XAF'", "balance_after": text(balance),
		"payment_id": "p.id", "created_at": "1", "money_in": "1",
	}
	for i := 0; i < len(more); i += 2 {
		values[more[i]] = more[i+1]
	}
	var columns, selected []string
	for c, v := range values {
		columns, selected = append(columns, c), append(selected, v)
	}
	return `INSERT INTO transactions (` + strings.Join(columns, ", ") + `) SELECT ` + strings.Join(selected, ", ") +
		` FROM payments p JOIN wallets w ON w.client_id = p.client_id AND w.currency = 'XAF' WHERE p.reference = '` + reference + `'`
}

func text(n int64) string { return till.Money{Minor: n}.Value() }

// again returns an INSERT of a copy of a payment, some columns changed.
func again(reference string, changes ...string) string {
	columns := strings.Fields(`client_id id idempotency_key body_hash body_version status previous_status method amount fee currency phone document
		provider_reference failure_reason created_at updated_at expires_at approval_window connection fingerprint pending_event processing_event final_event`)
	selected := slices.Clone(columns)
	changes = append(changes, "id", "randomblob(16)")
	for i := len(changes) - 2; i >= 0; i -= 2 {
		selected[slices.Index(columns, changes[i])] = changes[i+1]
	}
	return `INSERT INTO payments (` + strings.Join(columns, ", ") + `) SELECT ` + strings.Join(selected, ", ") + ` FROM payments WHERE reference = '` + reference + `'`
}

// payment returns an UPDATE of a payment.
func payment(reference, set string) string {
	return `UPDATE payments SET ` + set + ` WHERE reference = '` + reference + `'`
}

func TestTheDatabaseRefuses(t *testing.T) {
	t.Parallel()
	const unique, check, foreign, only = "unique constraint", "check constraint", "foreign key constraint", "append only"
	wallet := func(set string) string { return `UPDATE wallets SET ` + set + ` WHERE currency = 'XAF'` }

	refused := []struct{ name, query, want string }{
		// Money comes in once.
		{"a second collection of a payment", transaction("collection", "success", 5000, 20000), unique},
		{"a late collection after a collection", transaction("late_collection", "success", 5000, 20000), unique},
		{"a collection after a late collection", transaction("collection", "late", 5000, 20000), unique},
		{"a second late collection", transaction("late_collection", "late", 5000, 20000), unique},
		{"a collection that does not say that money came in", transaction("collection", "success", 5000, 20000, "money_in", "NULL"), check},
		{"money in twice under another number", transaction("collection", "success", 5000, 20000, "money_in", "2"), check},
		{"money in of a fee", transaction("fee", "failed", 5000, 20000), check},
		{"a collection for no payment", transaction("collection", "failed", 5000, 20000, "payment_id", "NULL"), check},
		{"a collection for a payment that is not there", transaction("collection", "failed", 5000, 20000, "payment_id", "randomblob(16)"), foreign},
		{"a collection that takes money", transaction("collection", "failed", 5000, 20000, "direction", "'debit'"), check},
		{"a line of nothing", transaction("collection", "failed", 0, 20000), check},
		{"a line of less than nothing", transaction("collection", "failed", -5000, 20000), check},
		{"a line that leaves less than nothing", transaction("collection", "failed", 5000, -1), check},
		{"a line in no wallet", transaction("collection", "failed", 5000, 20000, "wallet_id", "randomblob(16)"), foreign},
		{"a line under a number that is taken", transaction("collection", "failed", 5000, 20000, "sequence", "1"), unique},
		{"a line under number zero", transaction("collection", "failed", 5000, 20000, "sequence", "0"), check},
		{"money put aside twice for one payment", `INSERT INTO postings (client_id, entry_id, account, connection, currency, amount, kind, payment_id, created_at, suspended)
			SELECT client_id, randomblob(16), account, connection, currency, amount, kind, payment_id, created_at, suspended FROM postings WHERE suspended = 1`, unique},
		{"a posting of nothing", `INSERT INTO postings (client_id, entry_id, account, connection, currency, amount, kind, created_at) VALUES (x'01', x'01', 'operator', 'c', 'XAF', 0, 'collection', 1)`, check},
		{"a posting to no account", `INSERT INTO postings (client_id, entry_id, account, connection, currency, amount, kind, created_at) VALUES (x'01', x'01', 'pocket', 'c', 'XAF', 1, 'collection', 1)`, check},

		// Balances stay within bounds.
		{"a balance below zero", wallet("balance = -1"), check},
		{"a balance below what is reserved", wallet("reserved = balance + 1"), check},
		{"less than nothing reserved", wallet("reserved = -1"), check},
		{"a balance above the bound", wallet("balance = 1000000000000000001"), check},
		{"two wallets in one currency", `INSERT INTO wallets (client_id, id, currency, updated_at) SELECT client_id, randomblob(16), currency, 1 FROM wallets WHERE currency = 'XAF'`, unique},

		// What was written stays.
		{"a changed transaction", `UPDATE transactions SET amount = amount + 1`, only},
		{"a deleted transaction", `DELETE FROM transactions`, only},
		{"a changed posting", `UPDATE postings SET amount = amount + 1`, only},
		{"a deleted posting", `DELETE FROM postings`, only},
		{"a changed event", `UPDATE events SET status = 'success'`, only},
		{"a deleted event", `DELETE FROM events`, only},
		{"a changed audit row", `UPDATE audit SET detail = 'nothing'`, only},
		{"a deleted audit row", `DELETE FROM audit`, only},
		{"a deleted payment", `DELETE FROM payments WHERE reference = 'pending'`, "rows are kept"},
		{"a deleted wallet", `DELETE FROM wallets`, foreign},
		{"a wallet under another id", wallet("id = x'000102030405060708090a0b0c0d0e0f'"), foreign},
		{"an event under a number that is taken", `INSERT INTO events SELECT * FROM events WHERE sequence = 1`, unique},
		{"an event under number zero", `INSERT INTO events (client_id, sequence, kind, subject_id, created_at, status, expires_at, resolution) VALUES (x'01', 0, 'k', x'01', 1, 's', 1, 'r')`, check},
		{"an audit row under a number that is taken", `INSERT INTO audit SELECT * FROM audit WHERE sequence = 1`, unique},

		// A payment keeps what it was asked for.
		{"a changed amount", payment("pending", "amount = amount + 1"), "fixed column"},
		{"a changed currency", payment("pending", "currency = 'XOF'"), "fixed column"},
		{"a changed phone", payment("pending", "phone = '242069999999'"), "fixed column"},
		{"a changed document", payment("pending", "document = x'00'"), "fixed column"},
		{"a changed key", payment("pending", "idempotency_key = x'000102030405060708090a0b0c0d0e0f'"), "fixed column"},
		{"a changed connection", payment("pending", "connection = 'other'"), "fixed column"},
		{"a changed fingerprint", payment("pending", "fingerprint = 'other'"), "fixed column"},
		{"a changed creation time", payment("pending", "created_at = created_at - 1"), "fixed column"},
		{"a phone that is erased before the end", payment("pending", "phone = '~a', body_version = 1001, erased_at = 1"), "fixed column"},
		{"a phone that is erased without saying so", payment("success", "phone = '~a', body_version = 1001"), "fixed column"},
		{"a phone that is another's under the name of erasing", payment("success", "phone = '242069999999', body_version = 1001, erased_at = 1"), "fixed column"},
		{"an erasure under an old body version", payment("success", "phone = '~a', erased_at = 1"), "fixed column"},
		{"an amount that changes with an erasure", payment("success", "phone = '~a', body_version = 1001, erased_at = 1, amount = amount + 1"), "fixed column"},
		{"an update that goes back", payment("success", "updated_at = updated_at - 1"), "fixed column"},
		{"a payment of nothing", again("pending", "idempotency_key", "randomblob(16)", "amount", "0"), check},
		{"a key of another length", again("pending", "idempotency_key", "body_hash"), check},
		{"a hash of another length", again("pending", "idempotency_key", "randomblob(16)", "body_hash", "client_id"), check},
		{"an attention that is neither", payment("pending", "attention = 2"), check},
		{"a payment that begins in the middle", again("processing", "idempotency_key", "randomblob(16)", "previous_status", "NULL"), "constraint"},
		{"a fee above the amount", again("pending", "idempotency_key", "randomblob(16)", "fee", "amount + 1"), check},
		{"an update before the creation", again("pending", "idempotency_key", "randomblob(16)", "updated_at", "created_at - 1"), check},

		// One payment per key, one receipt per payment.
		{"a second payment under one key", again("pending"), unique},
		{"a second payment under one id", again("pending", "idempotency_key", "randomblob(16)", "id", "id"), unique},
		{"a receipt that another payment has", payment("other", "provider_reference = 'R1'"), unique},
		{"a receipt that another client's payment has", `INSERT INTO operator_receipts (connection, receipt, kind, client_id, subject_id)
			SELECT connection, receipt, kind, randomblob(16), randomblob(16) FROM operator_receipts WHERE receipt = 'R1'`, unique},
		{"a receipt of neither a payment nor a payout", `INSERT INTO operator_receipts (connection, receipt, kind, client_id, subject_id) VALUES ('c', 'r', 'loan', x'01', x'01')`, check},
		{"a receipt that changes", payment("success", "provider_reference = 'R2'"), "fixed column"},
		{"a receipt that is taken away", payment("success", "provider_reference = NULL"), "fixed column"},
		{"a reference that another payment was sent under", `INSERT INTO attempts (client_id, subject_id, n, kind, connection, reference, started_at, first_send)
			SELECT client_id, randomblob(16), 1, kind, connection, reference, started_at, 1 FROM attempts WHERE first_send = 1 LIMIT 1`, unique},
		{"an attempt under number zero", `INSERT INTO attempts (client_id, subject_id, n, kind, connection, reference, started_at) VALUES (x'01', x'01', 0, 'check', 'c', randomblob(16), 1)`, check},

		// A state comes with its event and its reason.
		{"a final without its event", payment("processing", "status = 'success', previous_status = 'processing'"), check},
		{"a final event without a final", payment("processing", "final_event = 99"), check},
		{"a processing without its event", payment("pending", "status = 'processing', previous_status = 'pending'"), check},
		{"a failure without a reason", payment("processing", "status = 'failed', previous_status = 'processing', final_event = 99"), check},
		{"a success with a reason", payment("processing", "status = 'success', previous_status = 'processing', final_event = 99, failure_reason = 'wrong_pin'"), check},
		{"late money of a success", payment("success", "late_event = 99"), check},
		{"late money of an open payment", payment("processing", "late_event = 99"), check},
		// On PostgreSQL a check says so, on SQLite a foreign key.
		{"a payment that begins as a success", again("success", "idempotency_key", "randomblob(16)", "provider_reference", "NULL", "previous_status", "''"), "constraint"},

		{"a counter below zero", `UPDATE counters SET n = -1`, check},
		{"a second step of a payment", `INSERT INTO steps (client_id, subject_id, kind, due_at) SELECT client_id, subject_id, kind, due_at FROM steps LIMIT 1`, unique},
		{"a second case of a kind", `INSERT INTO cases (client_id, id, subject_id, kind, detail, opened_at) SELECT client_id, randomblob(16), subject_id, kind, detail, 1 FROM cases LIMIT 1`, unique},
	}
	// The same statements without the fault pass: it is the fault that is refused.
	taken := []struct{ name, query string }{
		{"a first collection", transaction("collection", "failed", 5000, 20000)},
		{"a payment with a key of its own", again("pending", "idempotency_key", "randomblob(16)")},
		{"a receipt of its own", payment("other", "provider_reference = 'R2'")},
		{"a payment's receipt for a payout", `INSERT INTO operator_receipts (connection, receipt, kind, client_id, subject_id)
			SELECT connection, receipt, 'payout', client_id, subject_id FROM operator_receipts WHERE receipt = 'R1'`},
		{"the same receipt on another connection", `INSERT INTO operator_receipts (connection, receipt, kind, client_id, subject_id)
			SELECT 'another', receipt, kind, client_id, subject_id FROM operator_receipts WHERE receipt = 'R1'`},
		{"a balance at the bound", wallet("balance = 1000000000000000000")},
		{"all of the balance reserved", wallet("reserved = balance")},
	}
	runVault(t, func(t *testing.T, _ *store.Store, _ *till.Client, try storetest.Intruder) {
		for _, c := range refused {
			t.Run(c.name, func(t *testing.T) {
				if _, err := try(c.query); err == nil || !strings.Contains(strings.ToLower(err.Error()), c.want) {
					t.Errorf("got %v, want %q", err, c.want)
				}
			})
		}
		for _, c := range taken {
			t.Run(c.name+" is taken", func(t *testing.T) {
				if _, err := try(c.query); err != nil {
					t.Error(err)
				}
			})
		}
	})
}

// On PostgreSQL the index of kinds goes by how a payment ended, a column that the
// database writes itself, whatever a statement says.
func TestHowAPaymentEndedIsTheDatabasesOwnWord(t *testing.T) {
	t.Parallel()
	runVault(t, func(t *testing.T, _ *store.Store, _ *till.Client, try storetest.Intruder) {
		if !strings.HasSuffix(t.Name(), "/postgres") {
			return // SQLite's index goes by the status
		}
		for name, write := range map[string]string{
			"an end of an open payment":         payment("pending", "ended = 'success'"),
			"another end":                       payment("success", "ended = 'failed'"),
			"no end":                            payment("expired", "ended = ''"),
			"a move that does not speak of it":  payment("processing", "status = 'success', previous_status = 'processing', final_event = 99"),
			"a payment that was over elsewhere": again("failed", "idempotency_key", "randomblob(16)"),
			"a payment that begins":             again("pending", "idempotency_key", "randomblob(16)"),
		} {
			if _, err := try(`WITH written AS (` + write + ` RETURNING status, final_event, ended)
				SELECT FROM written WHERE ended = CASE WHEN final_event IS NULL THEN '' ELSE status END`); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// I4, in the database: every pair of statuses, with everything else about the
// move in order.
func TestTheDatabaseKnowsTheSameMoves(t *testing.T) {
	t.Parallel()
	runVault(t, func(t *testing.T, _ *store.Store, _ *till.Client, try storetest.Intruder) {
		const nobody = till.Status("NULL")
		move := func(from, to, previous till.Status) error {
			reason, final := "NULL", "NULL"
			if to == till.Failed || to == till.Expired {
				reason = "'unspecified'"
			}
			if to.Final() {
				final = "99"
			}
			before := "'" + string(previous) + "'"
			if previous == nobody {
				before = "NULL"
			}
			_, err := try(fmt.Sprintf(`UPDATE payments SET status = '%s', previous_status = %s, processing_event = 98, final_event = %s, failure_reason = %s WHERE reference = '%s'`,
				to, before, final, reason, from))
			return err
		}
		for _, from := range till.Statuses {
			for _, to := range slices.Concat(till.Statuses, []till.Status{"", "refunded"}) {
				if from == to {
					continue
				}
				legal := from.CanBecome(to) == nil
				if err := move(from, to, from); (err == nil) != legal {
					t.Errorf("from %s to %s: %v, and the table says legal is %v", from, to, err, legal)
				}
				for _, lie := range slices.Concat(till.Statuses, []till.Status{"", nobody}) {
					if lie != from {
						if err := move(from, to, lie); err == nil {
							t.Errorf("from %s to %s passed as a move from %q", from, to, lie)
						}
					}
				}
			}
		}
		moves := int64(1) // the creation
		for _, to := range till.Transitions {
			moves += int64(len(to))
		}
		if n, err := try(`UPDATE payment_moves SET to_status = to_status`); err != nil || n != moves {
			t.Errorf("the database knows %d moves, %v; till.Transitions has %d with the creation", n, err, moves)
		}
	})
}

// The store says which errors are a constraint's, so that callers can branch.
func TestARefusalIsErrConstraint(t *testing.T) {
	t.Parallel()
	runVault(t, func(t *testing.T, s *store.Store, client *till.Client, _ storetest.Intruder) {
		err := s.Update(t.Context(), func(tx *store.Tx) error {
			ws, err := tx.Wallets(t.Context(), client.ID)
			if err != nil {
				return err
			}
			ws[0].Balance = -1
			return tx.SaveWallets(t.Context(), ws)
		})
		if !errors.Is(err, store.ErrConstraint) {
			t.Errorf("got %v, want ErrConstraint", err)
		}
	})
}
