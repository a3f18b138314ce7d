package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"till"
	"till/provider"
	"till/store"
	"till/store/storetest"
)

// runSafe runs f on a vault that also has a payout in every state, each under
// "out " and its status as reference.
func runSafe(t *testing.T, f func(t *testing.T, try storetest.Intruder)) {
	t.Helper()
	receipt := storetest.Succeeded
	receipt.Receipt = "P1"
	runVault(t, func(t *testing.T, s *store.Store, client *till.Client, try storetest.Intruder) {
		c, m := storetest.NewCollector(t, s), storetest.NewDisburser(t, s)
		funds := storetest.NewPayment(t, c, client, storetest.Body{Reference: "funds", Value: "100000"})
		storetest.Apply(t, c, s, funds, storetest.Succeeded)
		for reference, words := range map[string][]provider.Result{
			"pending":    nil,
			"processing": {storetest.Opened},
			"success":    {receipt},
			"other":      {storetest.Succeeded},
			"failed":     {storetest.Opened, storetest.Declined},
			"cancelled":  nil,
		} {
			p := storetest.NewPayout(t, m, client, storetest.Body{Reference: "out " + reference}, 100)
			for _, w := range words {
				storetest.ApplyPayout(t, m, s, p, w)
			}
			if reference == "cancelled" {
				if _, err := m.Cancel(t.Context(), store.Ref{Client: client.ID, ID: p.ID}, "test"); err != nil {
					t.Fatal(err)
				}
			}
		}
		f(t, try)
	})
}

// outAgain returns an INSERT of a copy of a payout, some columns changed.
func outAgain(reference string, changes ...string) string {
	columns := strings.Fields(`client_id id idempotency_key body_hash body_version status previous_status method amount fee currency phone document
		provider_reference failure_reason created_at updated_at expires_at send_window connection fingerprint pending_event processing_event final_event`)
	selected := slices.Clone(columns)
	changes = append(changes, "id", "randomblob(16)")
	for i := len(changes) - 2; i >= 0; i -= 2 {
		selected[slices.Index(columns, changes[i])] = changes[i+1]
	}
	return `INSERT INTO payouts (` + strings.Join(columns, ", ") + `) SELECT ` + strings.Join(selected, ", ") + ` FROM payouts WHERE reference = 'out ` + reference + `'`
}

// D8, D10, D12, D24: whatever the program believes, a key makes one payout,
// and a payout's money leaves once.
func TestTheDatabaseRefusesToPayOutTwice(t *testing.T) {
	t.Parallel()
	const unique, check, foreign, fixed = "unique constraint", "check constraint", "foreign key constraint", "fixed column"
	payout := func(reference, set string) string {
		return `UPDATE payouts SET ` + set + ` WHERE reference = 'out ` + reference + `'`
	}
	fact := func(name string) string {
		return `INSERT INTO facts (client_id, subject_id, fact, entry_id) SELECT f.client_id, f.subject_id, f.fact, randomblob(16) FROM facts f
			JOIN payouts p ON p.client_id = f.client_id AND p.id = f.subject_id WHERE p.reference = 'out success' AND f.fact = '` + name + `'`
	}
	refused := []struct{ name, query, want string }{
		{"a second payout under one key", outAgain("pending"), unique},
		{"a second payout under one id", outAgain("pending", "idempotency_key", "randomblob(16)", "id", "id"), unique},
		{"a receipt that another payout has", payout("other", "provider_reference = 'P1'"), unique},
		{"money out twice", fact("money_out"), unique},
		{"a fee twice", fact("fee"), unique},
		{"a second step of a payout", `INSERT INTO steps (client_id, subject_id, kind, due_at)
			SELECT client_id, subject_id, kind, due_at FROM steps WHERE kind = 'payout' LIMIT 1`, unique},

		{"a payout of nothing", outAgain("pending", "idempotency_key", "randomblob(16)", "amount", "0", "fee", "0"), check},
		{"a fee of more than the amount", outAgain("pending", "idempotency_key", "randomblob(16)", "fee", "amount + 1"), check},
		{"a final without its event", payout("processing", "status = 'success', previous_status = 'processing'"), check},
		{"a failure without a reason", payout("processing", "status = 'failed', previous_status = 'processing', final_event = 99"), check},
		{"late money of a success", payout("success", "late_event = 99"), check},
		{"late money of what has not ended", payout("pending", "late_event = 99"), check},
		{"a payout that begins as a success", outAgain("success", "idempotency_key", "randomblob(16)", "provider_reference", "NULL", "previous_status", "''"), foreign},

		{"a changed amount", payout("pending", "amount = amount + 1"), fixed},
		{"a changed fee", payout("pending", "fee = fee + 1"), fixed},
		{"a changed recipient", payout("pending", "phone = '242069999999'"), fixed},
		{"a changed key", payout("pending", "idempotency_key = x'000102030405060708090a0b0c0d0e0f'"), fixed},
		{"a changed connection", payout("pending", "connection = 'other'"), fixed},
		{"an update that goes back", payout("success", "updated_at = updated_at - 1"), fixed},
		{"a deleted payout", `DELETE FROM payouts WHERE reference = 'out pending'`, "rows are kept"},
	}
	// The same statements without the fault pass: it is the fault that is refused.
	taken := []struct{ name, query string }{
		{"a payout with a key of its own", outAgain("pending", "idempotency_key", "randomblob(16)")},
		{"a receipt of its own", payout("other", "provider_reference = 'P2'")},
		{"late money of a failure", payout("failed", "late_event = 99")},
		{"late money of a cancellation", payout("cancelled", "late_event = 99")},
	}
	runSafe(t, func(t *testing.T, try storetest.Intruder) {
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

// D7, I4, in the database: every pair of statuses of payouts, with everything
// else about the move in order.
func TestTheDatabaseKnowsTheSameMovesOfPayouts(t *testing.T) {
	t.Parallel()
	runSafe(t, func(t *testing.T, try storetest.Intruder) {
		move := func(from, to, previous till.PayoutStatus) error {
			reason, final := "NULL", "NULL"
			if to == till.PayoutFailed {
				reason = "'unspecified'"
			}
			if to.Final() {
				final = "99"
			}
			_, err := try(fmt.Sprintf(`UPDATE payouts SET status = '%s', previous_status = '%s', processing_event = 98, final_event = %s, failure_reason = %s WHERE reference = 'out %s'`,
				to, previous, final, reason, from))
			return err
		}
		for _, from := range till.PayoutStatuses {
			for _, to := range slices.Concat(till.PayoutStatuses, []till.PayoutStatus{"", "reversed"}) {
				if from == to {
					continue
				}
				legal := from.CanBecome(to) == nil
				if err := move(from, to, from); (err == nil) != legal {
					t.Errorf("from %s to %s: %v, and the table says legal is %v", from, to, err, legal)
				}
				for _, lie := range slices.Concat(till.PayoutStatuses, []till.PayoutStatus{""}) {
					if lie != from {
						if err := move(from, to, lie); err == nil {
							t.Errorf("from %s to %s passed as a move from %q", from, to, lie)
						}
					}
				}
			}
		}
		moves := int64(1) // the creation
		for _, to := range till.PayoutTransitions {
			moves += int64(len(to))
		}
		if n, err := try(`UPDATE payout_moves SET to_status = to_status`); err != nil || n != moves {
			t.Errorf("the database knows %d moves, %v; till.PayoutMoves has %d with the creation", n, err, moves)
		}
	})
}
