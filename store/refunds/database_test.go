package refunds_test

import (
	"strings"
	"testing"

	"till"
	"till/store"
	"till/store/storetest"
)

// newBack makes a payment of 10 000 with a refund of each state, each under "back " and its
// state as reference, on each engine. The open one is of 6 000.
func newBack(t *testing.T, f func(t *testing.T, s *store.Store, try storetest.Intruder)) {
	t.Helper()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			config := e.Config(t)
			s := storetest.Open(t, config)
			t.Cleanup(func() { storetest.CheckInvariants(t, s) })
			storetest.AllowRefunds(t, s)
			c, m, client := storetest.NewCollector(t, s), storetest.NewDisburser(t, s), storetest.NewClient(t, s, till.Live)
			paid := storetest.Apply(t, c, s, storetest.NewPayment(t, c, client, storetest.Body{Value: "10000", Reference: "paid"}), storetest.Succeeded)
			refund := func(state, value string) *till.Payout {
				return storetest.NewRefund(t, m, s, client, storetest.RefundBody{PaymentID: paid.ID.String(), Value: value, Rest: `"reason":"duplicate","reference":"back ` + state + `"`})
			}
			storetest.ApplyPayout(t, m, s, refund("failed", "500"), storetest.Declined)
			storetest.ApplyPayout(t, m, s, refund("success", "1000"), storetest.Succeeded)
			refund("open", "6000")
			f(t, s, storetest.NewIntruder(t, config.Path))
		})
	}
}

// Whatever the program believes, a payment has one open refund, and no more is on its way and
// back than was paid.
func TestTheDatabaseRefusesToGiveBackTwice(t *testing.T) {
	t.Parallel()
	const unique, check, fixed = "unique constraint", "check constraint", "fixed column"
	sums := func(set string) string { return `UPDATE refund_sums SET ` + set }
	row := func(state, set string) string {
		return `UPDATE payouts SET ` + set + ` WHERE reference = 'back ` + state + `'`
	}
	const columns = `client_id, id, idempotency_key, body_hash, body_version, status, method, amount, fee, currency, phone, document, created_at, updated_at,
		expires_at, send_window, connection, fingerprint, pending_event, road, payment_id`
	again := func(payment string) string {
		return `INSERT INTO payouts (` + columns + `) SELECT client_id, randomblob(16), randomblob(16), body_hash, body_version, 'pending', method, amount, fee, currency, phone, document,
			created_at, updated_at, expires_at, send_window, connection, fingerprint, pending_event, road, ` + payment + ` FROM payouts WHERE reference = 'back open'`
	}
	refused := []struct{ name, query, want string }{
		{"a second open refund of a payment", again("payment_id"), unique},
		{"sums of a payment twice", `INSERT INTO refund_sums SELECT * FROM refund_sums`, unique},
		{"more on its way than is left", sums("refunding = 9001"), check},
		{"more refunded than was paid", sums("refunding = 0, refunded = 10001"), check},
		{"less than nothing on its way", sums("refunding = -1"), check},
		{"less than nothing refunded", sums("refunded = -1"), check},
		{"less than nothing late", sums("late = -1"), check},
		{"sums of a payment of nothing", sums("refunding = 0, refunded = 0, amount = 0"), check},
		{"a refund of another payment", row("open", "payment_id = x'000102030405060708090a0b0c0d0e0f'"), fixed},
		{"a refund that becomes a payout", row("success", "payment_id = NULL"), fixed},
		{"a refund by another road", row("open", "road = 'refund'"), fixed},
		{"a refund for another reason", row("open", "reason = 'other'"), fixed},
		{"a refund without its reason", row("open", "reason = NULL"), fixed},
		{"a road that there is not", strings.Replace(again("randomblob(16)"), "fingerprint, pending_event, road, randomblob", "fingerprint, pending_event, 'cash', randomblob", 1), check},
	}
	// The same statements without the fault pass: it is the fault that is refused.
	taken := []struct{ name, query string }{
		{"a refund of another payment, which has none", again("randomblob(16)")},
		{"a payout beside an open refund", again("NULL")},
		{"all that is left on its way", sums("refunding = 9000")},
		{"late money, whatever the sum", sums("late = 20000")},
	}
	newBack(t, func(t *testing.T, _ *store.Store, try storetest.Intruder) {
		for _, c := range refused {
			t.Run(c.name, func(t *testing.T) {
				if _, err := try(c.query); err == nil || !strings.Contains(strings.ToLower(err.Error()), c.want) {
					t.Errorf("got %v, want %q", err, c.want)
				}
			})
		}
		for _, c := range taken {
			t.Run(c.name+" is taken", func(t *testing.T) {
				if n, err := try(c.query); err != nil || n == 0 {
					t.Errorf("%d rows, %v", n, err)
				}
			})
		}
	})
}
