package payout_test

import (
	"context"
	"testing"
	"time"

	"till"
	"till/engine"
	"till/payout"
	"till/provider/sandbox"
	"till/store"
	"till/store/storetest"
)

// story is what the contract says of one ending of a phone number.
type story struct {
	digits  string
	status  till.PayoutStatus
	reason  till.FailureReason
	state   till.ResolutionState
	credits int
	lines   string
	kinds   string
	cases   string
}

var stories = []story{
	{"4567", "success", "", "confirmed", 1, "payout debit", "pending processing success", ""},
	{"0005", "failed", "recipient_not_found", "confirmed", 0, "", "pending failed", ""},
	{"0006", "failed", "recipient_limit_reached", "confirmed", 0, "", "pending processing failed", ""},
	{"0011", "success", "", "confirmed", 1, "payout debit", "pending success", ""},
	{"0012", "success", "", "confirmed", 1, "payout debit", "pending processing success", ""},
	{"0014", "processing", "", "needs_attention", 0, "", "pending processing needs_attention", "overdue"},
	{"0015", "success", "", "confirmed", 1, "payout debit", "pending processing success", ""},
	{"0017", "success", "", "confirmed", 1, "payout debit", "pending processing success", ""},
	{"0020", "success", "", "confirmed", 1, "payout debit", "pending processing success", ""},
}

func (s story) check(t *testing.T, w *world, id till.ID) {
	t.Helper()
	p := w.payout(id)
	got := story{s.digits, p.Status, p.FailureReason, p.Resolution.State, w.credits(id), w.lines(id), w.kinds(id), w.cases(id)}
	if got != s {
		t.Errorf("story %s\n got  %+v\n want %+v", s.digits, got, s)
	}
}

func TestEveryStoryEndsAsTheContractSays(t *testing.T) {
	t.Parallel()
	for _, deaf := range []bool{false, true} {
		name := "with callbacks"
		if deaf {
			name = "without any callback"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.deaf = deaf
				ids := make([]till.ID, len(stories))
				for i, s := range stories {
					ids[i] = w.create(s.digits).ID
				}
				time.Sleep(window + 5*time.Second)
				for i, s := range stories {
					s.check(t, w, ids[i])
				}
				// Six were paid, one is stuck and keeps its reserve.
				w.wantWallet(t, 6000, 1000, 0)
			})
		})
	}
}

func TestAFeeIsReservedAndPostedWithThePayout(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.fee = 25
		paid, failed := w.create("4567"), w.create("0006")
		if paid.Fee != 25 {
			t.Errorf("the fee is %d", paid.Fee)
		}
		w.wantWallet(t, 0, 2050, 0)
		if _, err := w.try("4567", w.funds-2050); till.ErrorCode(err) != till.CodeInsufficientBalance {
			t.Errorf("a payout that leaves nothing for its fee: %v", err)
		}
		time.Sleep(3 * time.Second)
		if got := w.lines(paid.ID); got != "fee debit, payout debit" {
			t.Errorf("the lines are %q", got)
		}
		if got := w.lines(failed.ID); got != "" {
			t.Errorf("the lines of one that failed are %q", got)
		}
		w.wantWallet(t, 1025, 0, 0)
	})
}

func TestMoreThanIsThereIsRefusedAndTakesNothing(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		key := till.NewID(w.store.Now()).String()
		ask := func(value string) (payout.Created, error) {
			return w.master.Create(ctx, w.who(), request(t, key, "0014", value))
		}
		if _, err := ask("100001"); till.ErrorCode(err) != till.CodeInsufficientBalance {
			t.Fatalf("100 001 of 100 000: %v", err)
		}
		w.wantWallet(t, 0, 0, 0)
		// A refused request does not use its key up.
		first, err := ask("100000")
		if err != nil {
			t.Fatal(err)
		}
		w.wantWallet(t, 0, 100_000, 0)
		// Nothing is left, and the retry is answered all the same.
		again, err := ask("100000")
		if err != nil || !again.Replayed || again.Payout.ID != first.Payout.ID || again.Payout.Status != till.PayoutPending {
			t.Errorf("the retry: %+v, %v", again, err)
		}
		if _, err := ask("100"); till.ErrorCode(err) != till.CodeKeyReused {
			t.Errorf("the key with another body: %v", err)
		}
		if _, err := w.try("4567", 100); till.ErrorCode(err) != till.CodeInsufficientBalance {
			t.Errorf("one more: %v", err)
		}
		// In a currency without a wallet there is nothing.
		body := request(t, till.NewID(1).String(), "4567", "500")
		currency, country, phone := "UGX", "UG", "256772123456"
		body.Amount.Currency, body.Country, body.Recipient.Phone = &currency, &country, &phone
		if _, err := w.master.Create(ctx, w.who(), body); till.ErrorCode(err) != till.CodeInsufficientBalance {
			t.Errorf("without a wallet: %v", err)
		}
		w.wantWallet(t, 0, 100_000, 0)
	})
}

func TestTheSameKeyMakesAPaymentAndAPayoutApart(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		key := till.NewID(w.store.Now()).String()
		c := storetest.NewCollector(t, w.store)
		in := storetest.NewPayment(t, c, w.client, storetest.Body{Key: key})
		out, err := w.master.Create(context.Background(), w.who(), request(t, key, "4567", "1000"))
		if err != nil || out.Replayed {
			t.Fatal(out, err)
		}
		if c.ReferenceOf(in) == w.master.ReferenceOf(out.Payout) {
			t.Error("the operator knows both by one reference")
		}
		// Nor does a callback for one pass for one of the other.
		for _, kind := range []till.SubjectKind{till.SubjectPayment, till.SubjectPayout} {
			token := engine.NewKeys(kind, []byte("a secret for tests")).CallbackToken("sandbox", w.ref(out.Payout.ID))
			_, asPayment := c.ParseCallbackToken("sandbox", token)
			_, asPayout := w.master.ParseCallbackToken("sandbox", token)
			if asPayment != (kind == till.SubjectPayment) || asPayout != (kind == till.SubjectPayout) {
				t.Errorf("a callback for a %s is opened as a payment %v, as a payout %v", kind, asPayment, asPayout)
			}
		}
	})
}

func TestAPayoutIsCancelledOnlyWhileNothingWasSent(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		held, sent := w.create("0020"), w.create("4567")
		time.Sleep(4 * time.Second) // the other has ended, this one waits still
		if submits, _ := w.way.counts(); submits != 1 {
			t.Fatalf("%d were sent, want one", submits)
		}
		first, err := w.master.Cancel(ctx, w.ref(held.ID), "api:test")
		if err != nil || first.Status != till.PayoutCancelled {
			t.Fatal(first, err)
		}
		again, err := w.master.Cancel(ctx, w.ref(held.ID), "api:test")
		if err != nil || string(again.AppendJSON(nil)) != string(first.AppendJSON(nil)) {
			t.Errorf("cancelled again: %v\n%s\n%s", err, again.AppendJSON(nil), first.AppendJSON(nil))
		}
		if _, err := w.master.Cancel(ctx, w.ref(sent.ID), "api:test"); till.ErrorCode(err) != till.CodeNotCancellable {
			t.Errorf("a payout that was sent: %v", err)
		}
		if _, err := w.master.Cancel(ctx, w.ref(till.NewID(1)), "api:test"); till.ErrorCode(err) != till.CodePayoutNotFound {
			t.Errorf("no payout: %v", err)
		}
		time.Sleep(time.Hour)
		if w.credits(held.ID) != 0 || w.kinds(held.ID) != "pending cancelled" || w.step(held.ID) != nil {
			t.Errorf("a cancelled payout: %d credits, %s, step %v", w.credits(held.ID), w.kinds(held.ID), w.step(held.ID))
		}
		w.wantWallet(t, 1000, 0, 0)
		// Nobody can undo it.
		for _, success := range []bool{true, false} {
			if err := w.master.Resolve(ctx, w.ref(held.ID), engine.Resolution{Success: success, By: "Ada"}); till.ErrorCode(err) != till.CodeValidationFailed {
				t.Errorf("resolve a cancelled payout: %v", err)
			}
		}
		if err := w.master.RecordCallback(ctx, "", w.ref(held.ID), nil); err != nil || w.step(held.ID) != nil {
			t.Errorf("a callback for it: %v, step %v", err, w.step(held.ID))
		}
	})
}

func TestAPayoutThatWasNeverSentEndsWithItsWindow(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.stop()
		accepts, stopAccepting := w.start(onlyAccepts)
		w.master = accepts
		id := w.create("4567").ID
		time.Sleep(window + time.Second) // nobody works
		w.wantWallet(t, 0, 1000, 0)
		stopAccepting()
		w.restart()
		time.Sleep(time.Second)
		if submits, _ := w.way.counts(); submits != 0 {
			t.Errorf("%d sends after the window", submits)
		}
		if p := w.payout(id); p.Status != till.PayoutFailed || p.FailureReason != till.ProviderUnavailable || !p.FailureDetail.Retryable {
			t.Errorf("it is %s %s", p.Status, p.FailureReason)
		}
		w.wantWallet(t, 0, 0, 0)
	})
}

// Lists count and filter payouts as they do payments.
func TestPayoutsAreListedAndCounted(t *testing.T) {
	t.Parallel()
	inWorldWith(t, sandbox.Config{}, func(t *testing.T, w *world) {
		for _, s := range []string{"4567", "0006", "0014", "4567"} {
			w.create(s)
		}
		time.Sleep(3 * time.Second)
		for _, c := range []struct {
			f    store.PaymentFilter
			want int64
		}{
			{store.PaymentFilter{}, 4}, {store.PaymentFilter{Status: "success"}, 2}, {store.PaymentFilter{Status: "failed", Method: "mtn_momo"}, 1},
			{store.PaymentFilter{Method: "mpesa"}, 0}, {store.PaymentFilter{Status: "cancelled"}, 0},
			{store.PaymentFilter{From: w.store.Now()}, 0}, {store.PaymentFilter{To: w.store.Now()}, 4},
		} {
			w.view(func(ctx context.Context, tx *store.Tx) error {
				rows, total, err := tx.ListPayouts(ctx, w.client.ID, c.f, store.Page{Limit: 50})
				if total != c.want || int64(len(rows)) != c.want {
					t.Errorf("%+v: %d rows, total %d, want %d", c.f, len(rows), total, c.want)
				}
				return err
			})
		}
		// Pages partition the set, whatever they are filtered by.
		for _, f := range []store.PaymentFilter{{}, {Status: "success"}, {Method: "mtn_momo"}} {
			seen := map[till.ID]bool{}
			w.view(func(ctx context.Context, tx *store.Tx) error {
				for offset := 0; ; offset++ {
					rows, total, err := tx.ListPayouts(ctx, w.client.ID, f, store.Page{Limit: 1, Offset: offset, Ascending: true})
					if err != nil || len(rows) == 0 {
						if int64(len(seen)) != total {
							t.Errorf("%+v: %d seen of %d", f, len(seen), total)
						}
						return err
					}
					seen[rows[0].ID] = true
				}
			})
		}
	})
}
