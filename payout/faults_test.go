package payout_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"till"
	"till/engine"
	"till/provider"
	"till/provider/sandbox"
	"till/store"
	"till/store/matching"
	"till/store/storetest"
)

var errAway = errors.New("connection reset by peer")

// crash is where the process dies on its way through the first send.
var crashes = []struct {
	name    string
	arrives bool // the request reached the operator before
}{
	{"between the claim and the first byte", false},
	{"between the send and its answer", true},
}

// F3, D14, D19: a process that dies around its send. The instance that takes over asks,
// and sends only what is proven absent, so the recipient is paid once.
func TestACrashAroundTheSendPaysOnce(t *testing.T) {
	t.Parallel()
	for _, c := range crashes {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inWorldWith(t, sandbox.Config{Window: time.Minute}, func(t *testing.T, w *world) {
				w.way.set(func(ctx context.Context, r provider.Request, n int) (provider.Result, error) {
					if n > 1 {
						return w.operator.Payouts().Submit(ctx, r)
					}
					if c.arrives {
						w.operator.Payouts().Submit(ctx, r)
					}
					runtime.Goexit()              // the process dies here: the lease stays, nobody answers
					return provider.Result{}, nil // not reached
				}, nil)
				w.deaf = true
				id := w.create("4567").ID
				time.Sleep(engine.Lease - time.Second)
				if submits, checks := w.way.counts(); submits != 1 || checks != 0 {
					t.Fatalf("under the lease: %d sends, %d checks; want nobody else to act", submits, checks)
				}
				w.wantWallet(t, 0, 1000, 0)
				if _, err := w.master.Cancel(context.Background(), w.ref(id), "api:test"); till.ErrorCode(err) != till.CodeNotCancellable {
					t.Errorf("cancel what may have been sent: %v", err)
				}
				time.Sleep(10 * time.Second)
				want := 2 // proven absent, and sent again under the same reference
				if c.arrives {
					want = 1
				}
				submits, _ := w.way.counts()
				if p := w.payout(id); p.Status != till.PayoutSuccess || w.credits(id) != 1 || submits != want {
					t.Errorf("%s with %d credits after %d sends; want success, 1, %d", p.Status, w.credits(id), submits, want)
				}
				w.wantWallet(t, 1000, 0, 0)
			})
		})
	}
}

// F5: the same where the operator would not notice a repetition: it is never sent
// again, the reserve is kept for ever, and a person is notified.
func TestAnOperatorWithoutReferencesIsNeverPaidThroughTwice(t *testing.T) {
	t.Parallel()
	for _, c := range crashes {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inWorldWith(t, sandbox.Config{NoDedup: true}, func(t *testing.T, w *world) {
				w.way.set(func(ctx context.Context, r provider.Request, n int) (provider.Result, error) {
					if c.arrives {
						w.operator.Payouts().Submit(ctx, r)
					}
					runtime.Goexit()              // the process dies here
					return provider.Result{}, nil // not reached
				}, func(context.Context, provider.Query, int) (provider.Result, error) {
					return provider.Result{Outcome: provider.NotFound}, nil // it knows us by no name
				})
				w.deaf = true
				id := w.create("4567").ID
				time.Sleep(30 * 24 * time.Hour)
				submits, _ := w.way.counts()
				if p := w.payout(id); p.Status != till.PayoutPending || submits != 1 || w.cases(id) != "overdue" {
					t.Errorf("after a month: %s after %d sends, cases %q; want pending, 1, overdue", p.Status, submits, w.cases(id))
				}
				w.wantWallet(t, 0, 1000, 0)
				if err := w.master.Resolve(context.Background(), w.ref(id), engine.Resolution{Success: c.arrives, By: "Ada", Evidence: "their statement"}); err != nil {
					t.Fatal(err)
				}
				if c.arrives {
					w.wantWallet(t, 1000, 0, 0)
				} else {
					w.wantWallet(t, 0, 0, 0)
				}
				if w.cases(id) != "" {
					t.Errorf("the cases are %q", w.cases(id))
				}
			})
		})
	}
}

// A process that is stopped between its claim and its send, and wakes up when
// its lease is over, sends nothing: another has gone on.
func TestAPauseBetweenTheClaimAndTheSendSendsNothing(t *testing.T) {
	t.Parallel()
	inWorldWith(t, sandbox.Config{Window: time.Minute, PollInterval: time.Second}, func(t *testing.T, w *world) {
		w.deaf = true
		w.way.mu.Lock()
		w.way.pause = engine.Lease + 10*time.Second
		w.way.mu.Unlock()
		_, stop := w.start() // a second instance
		defer stop()
		id := w.create("4567").ID
		time.Sleep(engine.Lease - time.Second)
		if submits, checks := w.way.counts(); submits != 0 || checks != 0 {
			t.Fatalf("while it sleeps under its lease: %d sends, %d checks", submits, checks)
		}
		time.Sleep(time.Minute)
		submits, _ := w.way.counts()
		if p := w.payout(id); p.Status != till.PayoutSuccess || submits != 1 || w.credits(id) != 1 {
			t.Errorf("%s after %d sends with %d credits; want success, one, one", p.Status, submits, w.credits(id))
		}
		w.wantWallet(t, 1000, 0, 0)
	})
}

// F4, D4.
func TestUnknownForAWeekKeepsTheReserve(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.deaf = true
		w.way.set(func(ctx context.Context, r provider.Request, _ int) (provider.Result, error) {
			w.operator.Payouts().Submit(ctx, r)
			return provider.Result{}, errAway
		}, func(context.Context, provider.Query, int) (provider.Result, error) { return provider.Result{}, errAway })
		id := w.create("4567").ID
		for range 7 {
			time.Sleep(24 * time.Hour)
			if p := w.payout(id); p.Status != till.PayoutPending || p.Resolution.State != till.NeedsAttention {
				t.Fatalf("it is %s, %s", p.Status, p.Resolution.State)
			}
			w.wantWallet(t, 0, 1000, 0)
			if _, err := w.try("4567", w.funds-999); till.ErrorCode(err) != till.CodeInsufficientBalance {
				t.Fatalf("what is reserved could be spent: %v", err)
			}
			if _, err := w.master.Cancel(context.Background(), w.ref(id), "api:test"); till.ErrorCode(err) != till.CodeNotCancellable {
				t.Fatalf("it could be cancelled: %v", err)
			}
		}
		w.way.set(nil, nil)
		time.Sleep(2 * time.Hour)
		submits, checks := w.way.counts()
		if p := w.payout(id); p.Status != till.PayoutSuccess || w.credits(id) != 1 || submits != 1 || w.cases(id) != "" {
			t.Errorf("once it is back: %s, %d credits, %d sends, cases %q", p.Status, w.credits(id), submits, w.cases(id))
		}
		if checks > 500 {
			t.Errorf("asked %d times in a week; want ever more slowly", checks)
		}
		w.wantWallet(t, 1000, 0, 0)
	})
}

func TestARejectionOfALaterSendMeansAsk(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.way.set(func(ctx context.Context, r provider.Request, n int) (provider.Result, error) {
			if n == 1 {
				return provider.Result{}, errAway
			}
			// The first one did arrive after all, and the second is refused.
			w.operator.Payouts().Submit(ctx, r)
			return provider.Result{Outcome: provider.Rejected, Reason: till.ProviderRejected}, nil
		}, nil)
		id := w.create("4567").ID
		time.Sleep(8 * time.Second)
		if p := w.payout(id); p.Status != till.PayoutSuccess || w.credits(id) != 1 {
			t.Errorf("%s with %d credits; want success with one", p.Status, w.credits(id))
		}
		w.wantWallet(t, 1000, 0, 0)
	})
}

// failsThenPays is an operator that says "failed", and finds out later that it
// has paid.
func (w *world) failsThenPays() {
	w.way.set(nil, func(ctx context.Context, q provider.Query, _ int) (provider.Result, error) {
		r, err := w.operator.Payouts().Check(ctx, q)
		if till.TimeOf(time.Now()) < w.client.CreatedAt.Add(time.Minute) && r.Outcome == provider.Success {
			return provider.Result{Outcome: provider.Failed, Reason: till.ProviderError, Code: "ERR"}, nil
		}
		return r, err
	})
}

// F14, D15.
func TestALatePayoutIsPostedWhateverTheWalletHolds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		spend int64 // before the late word comes
		spent int64 // of the wallet, in the end
		owed  int64
		lines string
	}{
		{"nothing was spent", 0, 1000, 0, "late_payout debit"},
		{"some was spent", 99_400, 100_000, 400, "late_payout debit"},
		{"all was spent", 100_000, 100_000, 1000, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.failsThenPays()
				id := w.create("0017").ID
				time.Sleep(3 * time.Second)
				if p := w.payout(id); p.Status != till.PayoutFailed || p.FailureReason != till.ProviderError {
					t.Fatalf("it is %s %s", p.Status, p.FailureReason)
				}
				w.wantWallet(t, 0, 0, 0)
				if c.spend > 0 {
					time.Sleep(time.Minute) // so that this one is not called failed
					if _, err := w.try("4567", c.spend); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(4 * 24 * time.Hour)
				p := w.payout(id)
				if p.Status != till.PayoutFailed || p.LateEvent == 0 || w.kinds(id) != "pending processing failed late_success" ||
					w.cases(id) != "late_money" || w.lines(id) != c.lines || w.credits(id) != 1 {
					t.Errorf("%s, %s, cases %q, lines %q, %d credits", p.Status, w.kinds(id), w.cases(id), w.lines(id), w.credits(id))
				}
				w.wantWallet(t, c.spent, 0, c.owed)
				// Told once more, nothing happens.
				if err := w.master.RecordCallback(context.Background(), "", w.ref(id), nil); err != nil || w.step(id) != nil {
					t.Fatalf("a callback: %v, step %+v", err, w.step(id))
				}
				a := w.say(id, provider.Result{Outcome: provider.Success, Receipt: p.ProviderReference})
				if a.RecordErr != nil {
					t.Error(a.RecordErr)
				}
				w.wantWallet(t, c.spent, 0, c.owed)
			})
		})
	}
}

// say brings an operator's word, as a read that has just ended would.
func (w *world) say(id till.ID, r provider.Result) *engine.Answer {
	now := w.store.Now()
	a := &engine.Answer{Ref: w.ref(id), Action: engine.Check, Connection: "sandbox",
		Reference: w.master.ReferenceOf(&w.payout(id).Payout), Started: now, Ended: now, Result: r}
	if s := w.step(id); s != nil {
		a.LeaseVersion, a.WakeSeq = s.LeaseVersion, s.WakeSeq
	}
	w.master.Apply(context.Background(), []*engine.Answer{a})
	return a
}

func TestASuccessThatIsNotOursPostsNothing(t *testing.T) {
	t.Parallel()
	other := till.NewID(7).String()
	for _, c := range []struct {
		name string
		says provider.Result
	}{
		{"another amount", provider.Result{Outcome: provider.Success, Receipt: "R", Amount: till.Money{Minor: 2000, Currency: "XAF"}}},
		{"another currency", provider.Result{Outcome: provider.Success, Receipt: "R", Amount: till.Money{Minor: 1000, Currency: "UGX"}}},
		{"another reference", provider.Result{Outcome: provider.Success, Receipt: "R", Reference: other}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				id := w.create("0014").ID
				time.Sleep(time.Second)
				w.say(id, c.says)
				p := w.payout(id)
				if p.Status != till.PayoutProcessing || p.Resolution.State != till.NeedsAttention || w.cases(id) != "mismatch" || w.lines(id) != "" {
					t.Errorf("%s, %s, cases %q, lines %q", p.Status, p.Resolution.State, w.cases(id), w.lines(id))
				}
				w.wantWallet(t, 0, 1000, 0)
				// That it failed is not believed any more: money went out.
				w.say(id, provider.Result{Outcome: provider.Failed, Reason: till.ProviderError})
				if p := w.payout(id); p.Status != till.PayoutProcessing {
					t.Errorf("it is %s", p.Status)
				}
				w.wantWallet(t, 0, 1000, 0)
				// A person is.
				if err := w.master.Resolve(context.Background(), w.ref(id), engine.Resolution{By: "Ada", Evidence: "their letter"}); err != nil {
					t.Fatal(err)
				}
				if p := w.payout(id); p.Status != till.PayoutFailed || w.cases(id) != "" {
					t.Errorf("it is %s, cases %q", p.Status, w.cases(id))
				}
				w.wantWallet(t, 0, 0, 0)
			})
		})
	}
}

func TestOneReceiptPaysOne(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.create("0014").ID, w.create("0014").ID
		time.Sleep(time.Second)
		receipt := provider.Result{Outcome: provider.Success, Receipt: "ONE"}
		w.say(a, receipt)
		w.say(b, receipt)
		if w.payout(a).Status != till.PayoutSuccess || w.payout(b).Status != till.PayoutProcessing || w.cases(b) != "receipt_reused" {
			t.Errorf("%s and %s, cases %q", w.payout(a).Status, w.payout(b).Status, w.cases(b))
		}
		w.wantWallet(t, 1000, 1000, 0)
	})
}

// Five words about one payout in one batch are five decisions, the last four
// of them no-ops.
func TestABatchIsDecidedElementByElement(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		id := w.create("0014").ID
		time.Sleep(time.Second)
		now := w.store.Now()
		var answers []*engine.Answer
		for _, o := range []provider.Outcome{provider.Open, provider.Success, provider.Success, provider.Failed, provider.Open} {
			answers = append(answers, &engine.Answer{Ref: w.ref(id), Action: engine.Check, Connection: "sandbox", LeaseVersion: w.step(id).LeaseVersion,
				Started: now, Ended: now, Result: provider.Result{Outcome: o}})
		}
		w.master.Apply(context.Background(), answers)
		if p := w.payout(id); p.Status != till.PayoutSuccess || w.kinds(id) != "pending processing success" || w.lines(id) != "payout debit" || w.cases(id) != "contradiction" {
			t.Errorf("%s, %s, lines %q, cases %q", p.Status, w.kinds(id), w.lines(id), w.cases(id))
		}
		w.wantWallet(t, 1000, 0, 0)
	})
}

func TestMoneyThatCameBackFailsAnOpenPayout(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		open, paid := w.create("0014").ID, w.create("4567").ID
		time.Sleep(3 * time.Second)
		w.say(open, provider.Result{Outcome: provider.Reversed})
		w.say(paid, provider.Result{Outcome: provider.Reversed})
		if w.payout(open).Status != till.PayoutFailed || w.payout(paid).Status != till.PayoutSuccess || w.cases(paid) != "contradiction" {
			t.Errorf("%s and %s, cases %q", w.payout(open).Status, w.payout(paid).Status, w.cases(paid))
		}
		w.wantWallet(t, 1000, 0, 0)
	})
}

// What a person brought can be contradicted by late money.
func TestAResolutionIsContradictedByLateMoney(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		id := w.create("0014").ID
		time.Sleep(time.Second)
		ctx := context.Background()
		if err := w.master.Resolve(ctx, w.ref(id), engine.Resolution{By: "Ada", Evidence: "a call"}); err != nil {
			t.Fatal(err)
		}
		w.wantWallet(t, 0, 0, 0)
		w.say(id, provider.Result{Outcome: provider.Success, Receipt: "LATE"})
		if p := w.payout(id); p.Status != till.PayoutFailed || w.lines(id) != "late_payout debit" || w.cases(id) != "late_money" {
			t.Errorf("%s, lines %q, cases %q", p.Status, w.lines(id), w.cases(id))
		}
		w.wantWallet(t, 1000, 0, 0)
		if err := w.master.Resolve(ctx, w.ref(id), engine.Resolution{Success: true, By: "Ada", Evidence: "seen"}); err != nil {
			t.Fatal(err)
		}
		if w.cases(id) != "" {
			t.Errorf("the cases are %q", w.cases(id))
		}
		w.wantWallet(t, 1000, 0, 0)
	})
}

// An operator's receipt is the name of one movement of money, of any client that pays it
// out; a payment may have the same.
func TestOneReceiptAtTwoClientsPaysOne(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		m := storetest.NewDisburser(t, s)
		paid := provider.Result{Outcome: provider.Success, Receipt: "ONE"}
		var all [2]*till.Payout
		for i := range all {
			client := storetest.NewClient(t, s, till.Live)
			c := storetest.NewCollector(t, s)
			if i == 0 {
				storetest.Apply(t, c, s, storetest.NewPayment(t, c, client, storetest.Body{Value: "9000"}), paid)
			} else {
				fund(t, s, client, 9000)
			}
			all[i] = storetest.NewPayout(t, m, client, storetest.Body{}, 0)
			storetest.ApplyPayout(t, m, s, all[i], paid)
		}
		err := s.View(t.Context(), func(tx *store.Tx) error {
			second := store.Ref{Client: all[1].ClientID, ID: all[1].ID}
			first, err := tx.Payout(t.Context(), store.Ref{Client: all[0].ClientID, ID: all[0].ID})
			if err != nil {
				return err
			}
			other, err := tx.Payout(t.Context(), second)
			if err != nil {
				return err
			}
			cases, err := matching.CasesOf(t.Context(), tx, engine.CaseReceiptReused, []store.Ref{second})
			if first.Status != till.PayoutSuccess || other.Status.Final() || other.ProviderReference != "" || cases[second] == nil {
				t.Errorf("the first is %s, the second %s with receipt %q and case %+v", first.Status, other.Status, other.ProviderReference, cases[second])
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
