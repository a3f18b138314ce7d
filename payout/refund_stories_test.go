package payout_test

import (
	"bytes"
	"context"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"till"
	"till/collect"
	"till/engine"
	"till/payout"
	"till/provider"
	"till/provider/sandbox"
	"till/store/storetest"
)

// refundsOf lets instances of a world give back payments of the sandbox, by its refund call
// where it has one.
func refundsOf(c *engine.Config) {
	c.Refunds = engine.Refunds{Origins: map[string]engine.Origin{"sandbox": {Fingerprint: "sandbox", Refunds: engine.RefundByOperator}}}
}

// collector returns what makes payments on the sandbox. It calls nobody.
func (w *world) collector() *collect.Collector {
	return storetest.NewCollector(w.t, w.store, func(c *engine.Config) {
		c.Connections = map[string]provider.Provider{"sandbox": w.operator}
		c.Routes = engine.ByMode(func(till.Mode, string, string, string) string { return "sandbox" })
	})
}

// pay makes a payment on a number.
func (w *world) pay(story string, amount int64) *till.Payment {
	w.t.Helper()
	c := w.collector()
	paid := storetest.Apply(w.t, c, w.store, storetest.NewPayment(w.t, c, w.client, storetest.Body{Value: till.Money{Minor: amount}.Value(), Phone: "24206123" + story}),
		provider.Result{Outcome: provider.Success, Receipt: "R" + till.NewID(w.store.Now()).String()})
	w.funds += amount
	return &paid.Payment
}

// refund makes a payment on a number, and a refund of it.
func (w *world) refund(story string, amount int64) *till.Payout {
	w.t.Helper()
	paid := w.pay(story, amount)
	r := storetest.RefundBody{PaymentID: paid.ID.String()}.Request(w.t, w.store)
	made, err := w.master.Refund(context.Background(), w.who(), r)
	if err != nil {
		w.t.Fatal(err)
	}
	return made.Payout
}

// inRefundWorld is inWorld with refunds.
func inRefundWorld(t *testing.T, c sandbox.Config, tell func(t *testing.T, w *world)) {
	t.Helper()
	inWorldWith(t, c, func(t *testing.T, w *world) {
		storetest.AllowRefunds(t, w.store)
		w.stop()
		w.restart(refundsOf)
		tell(t, w)
	})
}

func TestEveryStoryOfARefundEnds(t *testing.T) {
	t.Parallel()
	stories := []story{
		{"4567", "success", "", "confirmed", 1, "refund debit", "pending processing success", ""},
		{"0005", "success", "", "confirmed", 1, "refund debit", "pending processing success", ""},
		{"0031", "failed", "recipient_limit_reached", "confirmed", 0, "", "pending processing failed", ""},
		{"0032", "processing", "", "needs_attention", 0, "", "pending processing needs_attention", "overdue"},
		{"0033", "failed", "provider_error", "confirmed", 1, "late_refund debit", "pending processing failed late_success", "late_money"},
		{"0034", "success", "", "confirmed", 1, "refund debit", "pending success", ""},
		{"0035", "success", "", "confirmed", 1, "refund debit", "pending processing success", ""},
		{"0036", "success", "", "confirmed", 1, "refund debit", "pending processing success", ""},
	}
	for _, deaf := range []bool{false, true} {
		name := "with callbacks"
		if deaf {
			name = "without any callback"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inRefundWorld(t, sandbox.Config{}, func(t *testing.T, w *world) {
				w.deaf = deaf
				ids := make([]till.ID, len(stories))
				for i, s := range stories {
					ids[i] = w.refund(s.digits, 1000).ID
				}
				time.Sleep(window + 8*time.Second)
				for i, s := range stories {
					s.check(t, w, ids[i])
					road := till.RoadRefund
					if s.digits == "0036" {
						road = till.RoadTransfer
					}
					if p := w.payout(ids[i]); p.Road != road || p.Connection != "sandbox" {
						t.Errorf("%s takes the road %s on %s", s.digits, p.Road, p.Connection)
					}
				}
				w.wantWallet(t, 6000, 1000, 0)
			})
		})
	}
}

// The log's lines about a refund say that it is one.
func TestTheLogTellsRefundsFromPayouts(t *testing.T) {
	t.Parallel()
	inRefundWorld(t, sandbox.Config{}, func(t *testing.T, w *world) {
		log := new(bytes.Buffer)
		w.stop()
		w.restart(refundsOf, func(c *engine.Config) {
			c.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		})
		id := w.refund("4567", 1000).ID.String()
		time.Sleep(window)
		w.stop()
		for _, line := range []string{"call", "ended"} {
			if want := "msg=" + line + " kind=refund id=" + id; !strings.Contains(log.String(), want) {
				t.Errorf("the log lacks %q:\n%s", want, log)
			}
		}
		w.restart(refundsOf)
	})
}

// A refund that is held back can be cancelled, and its payment given back again.
func TestAHeldBackRefundIsCancelled(t *testing.T) {
	t.Parallel()
	inRefundWorld(t, sandbox.Config{}, func(t *testing.T, w *world) {
		p := w.refund("0035", 1000)
		if _, err := w.master.CancelRefund(context.Background(), w.ref(p.ID), "api:test"); err != nil {
			t.Fatal(err)
		}
		again, err := w.master.Refund(context.Background(), w.who(), storetest.RefundBody{PaymentID: p.PaymentID.String()}.Request(t, w.store))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(window)
		if w.credits(p.ID) != 0 || w.credits(again.Payout.ID) != 1 {
			t.Errorf("paid %d and %d times", w.credits(p.ID), w.credits(again.Payout.ID))
		}
		w.wantWallet(t, 1000, 0, 0)
	})
}

// A process that dies around the send of a refund. The instance that takes over asks, and
// sends only what is proven absent: the customer is paid once, by the same road and to the same
// number, and no other refund of the payment is made meanwhile.
func TestACrashAroundTheSendRefundsOnce(t *testing.T) {
	t.Parallel()
	for _, c := range crashes {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inRefundWorld(t, sandbox.Config{Window: time.Minute}, func(t *testing.T, w *world) {
				var references []till.ID
				w.way.set(func(ctx context.Context, r provider.Request, n int) (provider.Result, error) {
					references = append(references, r.Reference)
					if r.Phone != "242061234567" || r.PaymentID.IsZero() || r.Refund == nil || r.Refund.Reference.IsZero() {
						t.Errorf("it is sent to %s for %s, by naming %v", r.Phone, r.PaymentID, r.Refund)
					}
					if n > 1 {
						return w.operator.Payouts().Submit(ctx, r)
					}
					if c.arrives {
						w.operator.Payouts().Submit(ctx, r)
					}
					runtime.Goexit() // the process dies here
					return provider.Result{}, nil
				}, nil)
				w.deaf = true
				p := w.refund("4567", 1000)
				for range 6 {
					time.Sleep(engine.Lease / 4)
					_, err := w.master.Refund(context.Background(), w.who(), storetest.RefundBody{PaymentID: p.PaymentID.String()}.Request(t, w.store))
					row := w.payout(p.ID) // not final afterwards: it was open
					if code := till.ErrorCode(err); !row.Status.Final() && code != till.CodeRefundInProgress {
						t.Errorf("another refund while it is %s: %v", row.Status, err)
					}
				}
				time.Sleep(20 * time.Second)
				if n := w.credits(p.ID); n != 1 || w.payout(p.ID).Status != till.PayoutSuccess {
					t.Errorf("it was paid %d times and is %s", n, w.payout(p.ID).Status)
				}
				for _, r := range references {
					if r != references[0] {
						t.Errorf("sent under %s and %s", references[0], r)
					}
				}
				w.wantWallet(t, 1000, 0, 0)
			})
		})
	}
}

// Unknown is not failed: a week without an answer keeps the reserve and lets no other refund
// be made.
func TestAnUnknownRefundStaysForAWeek(t *testing.T) {
	t.Parallel()
	inRefundWorld(t, sandbox.Config{}, func(t *testing.T, w *world) {
		w.way.set(
			func(ctx context.Context, r provider.Request, n int) (provider.Result, error) {
				return provider.Result{}, errAway
			},
			func(ctx context.Context, q provider.Query, n int) (provider.Result, error) {
				return provider.Result{}, errAway
			})
		p := w.refund("4567", 1000)
		time.Sleep(7 * 24 * time.Hour)
		row := w.payout(p.ID)
		if row.Status.Final() || row.Resolution.State != till.NeedsAttention {
			t.Errorf("it is %s, %s", row.Status, row.Resolution.State)
		}
		w.wantWallet(t, 0, 1000, 0)
		_, err := w.master.Refund(context.Background(), w.who(), storetest.RefundBody{PaymentID: p.PaymentID.String()}.Request(t, w.store))
		if till.ErrorCode(err) != till.CodeRefundInProgress {
			t.Errorf("another refund: %v", err)
		}
	})
}

// While payouts are held, an unsent refund waits, and a new one is refused.
func TestRefundsAreHeldWithPayouts(t *testing.T) {
	t.Parallel()
	inRefundWorld(t, sandbox.Config{}, func(t *testing.T, w *world) {
		p := w.refund("0035", 1000)
		other := w.refund("0035", 1000)
		if _, err := w.master.CancelRefund(context.Background(), w.ref(other.ID), "api:test"); err != nil {
			t.Fatal(err)
		}
		w.hold(w.client.ID)
		ask := func() (payout.Created, error) {
			return w.master.Refund(context.Background(), w.who(), storetest.RefundBody{PaymentID: other.PaymentID.String()}.Request(t, w.store))
		}
		if _, err := ask(); till.ErrorCode(err) != till.CodePayoutsHeld {
			t.Errorf("held: %v", err)
		}
		time.Sleep(window + 5*time.Second)
		if got := w.cases(p.ID); got != "held" || w.credits(p.ID) != 0 || !strings.HasPrefix(w.kinds(p.ID), "pending needs_attention") {
			t.Errorf("its cases are %q, its events %q, and it was paid %d times", got, w.kinds(p.ID), w.credits(p.ID))
		}
		w.release(w.client.ID)
		if _, err := ask(); err != nil {
			t.Error(err)
		}
		time.Sleep(window + 5*time.Second)
		if w.credits(p.ID) != 1 {
			t.Errorf("after the release it was paid %d times", w.credits(p.ID))
		}
		w.wantWallet(t, 2000, 0, 0)
	})
}

// A refund names its payment to the operator as the payment was sent, at each send and at each
// question; whatever the configuration says by then, the road is the one it was made with.
func TestARefundNamesItsPayment(t *testing.T) {
	t.Parallel()
	inRefundWorld(t, sandbox.Config{}, func(t *testing.T, w *world) {
		c := w.collector()
		paid := storetest.Apply(w.t, c, w.store, storetest.NewPayment(w.t, c, w.client, storetest.Body{Value: "1000", Phone: "242061234567", Key: "6F1C1A52-0D0C-4D5A-9A62-51F9A6F0A3C1"}), storetest.Succeeded)
		w.funds += 1000
		want := provider.Original{Reference: c.ReferenceOf(&paid.Payment), Method: "mtn_momo", Country: "CG", Phone: "242061234567", Amount: till.Money{Minor: 1000, Currency: "XAF"}}
		var mu sync.Mutex
		sends, asks := 0, 0
		w.way.set(func(ctx context.Context, r provider.Request, n int) (provider.Result, error) {
			mu.Lock()
			defer mu.Unlock()
			if sends++; r.Refund == nil || *r.Refund != want {
				t.Errorf("sent by naming %+v, want %+v", r.Refund, want)
			}
			if n == 1 {
				return provider.Result{}, errAway // it does not arrive
			}
			return w.operator.Payouts().Submit(ctx, r)
		}, func(ctx context.Context, q provider.Query, n int) (provider.Result, error) {
			mu.Lock()
			defer mu.Unlock()
			if asks++; q.Refund == nil || *q.Refund != want {
				t.Errorf("asked about by naming %+v, want %+v", q.Refund, want)
			}
			return w.operator.Payouts().Check(ctx, q)
		})
		p, err := w.master.Refund(context.Background(), w.who(), storetest.RefundBody{PaymentID: paid.ID.String(), Value: "600"}.Request(t, w.store))
		if err != nil {
			t.Fatal(err)
		}
		w.stop()
		w.restart() // without a way back for new refunds
		time.Sleep(window + 5*time.Second)
		if row := w.payout(p.Payout.ID); row.Status != till.PayoutSuccess || row.Road != till.RoadRefund || sends != 2 || asks == 0 {
			t.Errorf("it is %s by %s after %d sends and %d questions", row.Status, row.Road, sends, asks)
		}
		w.wantWallet(t, 600, 0, 0)
	})
}

// A refund that was lost with a database, and that its client asks for again, names the same
// payment under the same reference: the operator knows it, and pays once.
func TestALostRefundIsAskedForAgain(t *testing.T) {
	t.Parallel()
	inRefundWorld(t, sandbox.Config{}, func(t *testing.T, w *world) {
		c := w.collector()
		paid := storetest.Apply(w.t, c, w.store, storetest.NewPayment(w.t, c, w.client, storetest.Body{Value: "1000", Phone: "242061234567"}), storetest.Succeeded)
		w.funds += 1000
		lost := &till.Payout{ClientID: w.client.ID, IdempotencyKey: "6f1c1a52-0d0c-4d5a-9a62-51f9a6f0a3c2"}
		_, err := w.operator.Payouts().Submit(context.Background(), provider.Request{Client: lost.ClientID, ID: till.NewID(w.store.Now()), Reference: w.master.ReferenceOf(lost),
			Method: "mtn_momo", Country: "CG", Phone: paid.Phone, Amount: paid.Amount, PaymentID: paid.ID,
			Refund: &provider.Original{Reference: c.ReferenceOf(&paid.Payment), Phone: paid.Phone, Amount: paid.Amount}})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		again, err := w.master.Refund(context.Background(), w.who(), storetest.RefundBody{PaymentID: paid.ID.String(), Key: lost.IdempotencyKey}.Request(t, w.store))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(window)
		all, err := w.operator.Credits(context.Background())
		if row := w.payout(again.Payout.ID); err != nil || len(all) != 1 || row.Status != till.PayoutSuccess || row.Road != till.RoadRefund {
			t.Errorf("it is %s by %s, and the operator paid %d times, %v", row.Status, row.Road, len(all), err)
		}
		w.wantWallet(t, 1000, 0, 0)
	})
}

// plain is a connection of payouts whose operator gives back no payment by naming it.
type plain struct{ provider.Provider }

// Sent like a payout, a refund that names its payment could be paid twice. Where that is not
// possible, it waits, and is not sent at all.
func TestARefundIsNeverSentAsAPayout(t *testing.T) {
	t.Parallel()
	inRefundWorld(t, sandbox.Config{}, func(t *testing.T, w *world) {
		w.stop()
		w.restart(refundsOf, onlyAccepts)
		p := w.refund("4567", 1000)
		w.stop()
		w.restart(func(c *engine.Config) { c.Connections = map[string]provider.Provider{"sandbox": plain{w.way}} })
		time.Sleep(window / 2)
		if submits, checks := w.way.counts(); submits != 0 || checks != 0 {
			t.Errorf("sent %d times, asked about %d times", submits, checks)
		}
		w.stop()
		w.restart()
		time.Sleep(window)
		if row := w.payout(p.ID); row.Status != till.PayoutSuccess || w.credits(p.ID) != 1 {
			t.Errorf("it is %s, paid %d times", row.Status, w.credits(p.ID))
		}
		w.wantWallet(t, 1000, 0, 0)
	})
}

// What the operator refuses about the payment is a case, and the refund has failed.
func TestTheOperatorRefusesARefund(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		outcome provider.Outcome
		shows   provider.OriginalState
		cases   string
	}{
		{provider.Rejected, provider.RefundedElsewhere, "refunded_elsewhere"},
		{provider.Failed, provider.RefundedElsewhere, "refunded_elsewhere"},
		{provider.Rejected, provider.NotPaidThere, "contradiction"},
		{provider.Failed, provider.NotPaidThere, "contradiction"},
		{provider.Rejected, "", ""},
	} {
		t.Run(string(c.outcome)+" "+string(c.shows), func(t *testing.T) {
			t.Parallel()
			inRefundWorld(t, sandbox.Config{}, func(t *testing.T, w *world) {
				answer := provider.Result{Outcome: c.outcome, Reason: till.ProviderRejected, Code: "NO", Original: c.shows}
				w.way.set(func(context.Context, provider.Request, int) (provider.Result, error) { return answer, nil },
					func(context.Context, provider.Query, int) (provider.Result, error) {
						return provider.Result{Outcome: provider.NotFound}, nil
					})
				p := w.refund("4567", 1000)
				time.Sleep(time.Second)
				if row := w.payout(p.ID); row.Status != till.PayoutFailed || row.FailureReason != till.ProviderRejected || w.cases(p.ID) != c.cases {
					t.Errorf("it is %s, %s, with the cases %q", row.Status, row.FailureReason, w.cases(p.ID))
				}
				w.wantWallet(t, 0, 0, 0)
			})
		})
	}
}

// What a suspended client had not sent waits, with its reserve and its payment, and goes out when
// the client is resumed; meanwhile it makes no refund.
func TestASuspendedClientsRefundsAreHeldAndResumed(t *testing.T) {
	t.Parallel()
	inRefundWorld(t, sandbox.Config{Window: time.Minute}, func(t *testing.T, w *world) {
		p, other := w.unsentRefund("4567"), w.pay("4568", 1000)
		ask := func(payment till.ID) error {
			_, err := w.master.Refund(context.Background(), w.who(), storetest.RefundBody{PaymentID: payment.String()}.Request(t, w.store))
			return err
		}
		w.suspend()
		w.stop()
		w.restart(refundsOf)
		time.Sleep(10 * time.Minute) // far beyond its window
		w.isHeld(t, "while its client is suspended", p.ID)
		if err := ask(other.ID); till.ErrorCode(err) != till.CodeClientSuspended {
			t.Errorf("a refund of a suspended client: %v", err)
		}
		w.resume()
		if err := ask(p.PaymentID); till.ErrorCode(err) != till.CodeRefundInProgress {
			t.Errorf("another refund of the payment: %v", err)
		}
		time.Sleep(2 * time.Minute)
		w.isPaid(t, "when its client is resumed", p.ID)
	})
}

// While the operator that a refund would go by does not answer, none is made, and no other
// operator is taken for it; the caller is told when to try again.
func TestARefundTakesNoOtherRoadForAnOperatorThatIsAway(t *testing.T) {
	t.Parallel()
	inRefundWorld(t, sandbox.Config{Window: time.Minute, PollInterval: 5 * time.Second}, func(t *testing.T, w *world) {
		w.stop()
		w.deaf = true
		w.way.set(func(context.Context, provider.Request, int) (provider.Result, error) {
			return provider.Result{}, errAway
		}, nil)
		other := &way{Payouts: w.operator.Payouts()}
		w.restart(refundsOf, func(c *engine.Config) {
			c.Connections = map[string]provider.Provider{"sandbox": minded{w.way}, "other": other}
			c.Routes = func(*till.Client, string, string, string) []string { return []string{"sandbox", "other"} }
		})
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() { w.master.Watch(ctx) })
		defer func() {
			cancel()
			running.Wait()
		}()
		ask := func() error {
			_, err := w.master.Refund(context.Background(), w.who(), storetest.RefundBody{PaymentID: w.pay("4567", 100).ID.String()}.Request(t, w.store))
			return err
		}
		for range 12 {
			if err := ask(); err != nil && till.ErrorCode(err) != till.CodeMethodUnavailable {
				t.Fatal(err)
			}
		}
		time.Sleep(3 * time.Second)
		if e := want(t, ask(), till.CodeMethodUnavailable); e.RetryAfter <= 0 {
			t.Errorf("it does not say when to try again: %+v", e)
		}
		if submits, _ := other.counts(); submits != 0 {
			t.Errorf("%d were sent to another operator", submits)
		}
		w.way.set(nil, nil)
		time.Sleep(10 * time.Minute)
	})
}
