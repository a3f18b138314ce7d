package collect_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"till"
	"till/engine"
	"till/provider"
	"till/provider/sandbox"
	"till/store"
	"till/store/storetest"
)

var errAway = errors.New("connection reset by peer")

func TestAnOperatorThatIsAwayChangesNothing(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		away := func(context.Context, provider.Query, int) (provider.Result, error) { return provider.Result{}, errAway }
		w.way.set(func(context.Context, provider.Request, int) (provider.Result, error) {
			return provider.Result{}, errAway
		}, away)
		id := w.create("4567").ID

		time.Sleep(window + 5*time.Second)
		p := w.payment(id)
		if p.Status != till.Pending || p.Resolution.State != till.NeedsAttention || w.cases(id) != "overdue" {
			t.Fatalf("after the window: %s, %s, cases %q; want pending, needs_attention, overdue", p.Status, p.Resolution.State, w.cases(id))
		}
		time.Sleep(30 * 24 * time.Hour)
		if s := w.step(id); s == nil || s.DueAt > w.store.Now().Add(time.Hour) {
			t.Fatalf("after 30 days the next check is %+v; want one within the hour", s)
		}
		if _, checks := w.way.counts(); checks > 1000 {
			t.Errorf("asked %d times in 30 days; want ever more slowly", checks)
		}

		// It never arrived, as the operator says once it is back; the window
		// is over, so it ends without having been sent again.
		w.way.set(nil, nil)
		time.Sleep(3 * time.Hour)
		p = w.payment(id)
		if p.Status != till.Failed || p.FailureReason != till.ProviderUnavailable || w.debits(id) != 0 || w.cases(id) != "" {
			t.Errorf("once it is back: %s %s, %d debits, cases %q", p.Status, p.FailureReason, w.debits(id), w.cases(id))
		}
	})
}

func TestAnAnswerLostOnTheWayBackIsFoundByAsking(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.way.set(func(ctx context.Context, r provider.Request, _ int) (provider.Result, error) {
			w.operator.Submit(ctx, r)
			return provider.Result{}, errAway
		}, nil)
		id := w.create("4567").ID
		time.Sleep(3 * time.Second)
		if p := w.payment(id); p.Status != till.Success || w.debits(id) != 1 {
			t.Errorf("%s with %d debits; want success with one", p.Status, w.debits(id))
		}
		if submits, _ := w.way.counts(); submits != 1 {
			t.Errorf("sent %d times, want once", submits)
		}
	})
}

func TestACrashBetweenTheCommitAndTheSendIsSentOnce(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.way.set(func(ctx context.Context, r provider.Request, n int) (provider.Result, error) {
			if n == 1 {
				runtime.Goexit() // the process dies here: the lease stays, nobody answers
			}
			return w.operator.Submit(ctx, r)
		}, nil)
		id := w.create("4567").ID
		time.Sleep(engine.Lease - time.Second)
		if submits, checks := w.way.counts(); submits != 1 || checks != 0 {
			t.Fatalf("under the lease: %d sends, %d checks; want nobody else to act", submits, checks)
		}
		// The window (10 s) is over when the lease ends (20 s): it must not be
		// sent any more, and is proven absent.
		time.Sleep(5 * time.Second)
		p := w.payment(id)
		if p.Status != till.Failed || p.FailureReason != till.ProviderUnavailable || w.debits(id) != 0 {
			t.Errorf("%s %s with %d debits; want failed provider_unavailable", p.Status, p.FailureReason, w.debits(id))
		}
	})
}

func TestWhatNeverArrivedIsSentAgainUnderTheSameReference(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		var refs []till.ID
		w.way.set(func(ctx context.Context, r provider.Request, n int) (provider.Result, error) {
			refs = append(refs, r.Reference)
			if n < 3 {
				return provider.Result{}, errAway
			}
			return w.operator.Submit(ctx, r)
		}, nil)
		created := w.create("4567")
		time.Sleep(8 * time.Second)
		p := w.payment(created.ID)
		if p.Status != till.Success || w.debits(p.ID) != 1 {
			t.Fatalf("%s with %d debits; want success with one", p.Status, w.debits(p.ID))
		}
		if len(refs) != 3 || refs[0] != refs[1] || refs[1] != refs[2] {
			t.Errorf("references %v; want one, three times", refs)
		}
		if p.ExpiresAt <= created.ExpiresAt {
			t.Error("a re-send must move the end of the window")
		}
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
			w.operator.Submit(ctx, r)
			return provider.Result{Outcome: provider.Rejected, Reason: till.ProviderRejected}, nil
		}, nil)
		id := w.create("4567").ID
		time.Sleep(8 * time.Second)
		if p := w.payment(id); p.Status != till.Success || w.debits(id) != 1 || w.credits(id) != "collection" {
			t.Errorf("%s, %d debits, credits %q; want success, 1, collection", p.Status, w.debits(id), w.credits(id))
		}
	})
}

func TestAnOperatorThatRefusesEverySendEndsThePayment(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		// The answer to the first send is lost; every further one is refused,
		// and the operator knows of nothing.
		w.way.set(func(_ context.Context, _ provider.Request, n int) (provider.Result, error) {
			if n == 1 {
				return provider.Result{}, errAway
			}
			return provider.Result{Outcome: provider.Rejected, Reason: till.PayerNotFound}, nil
		}, nil)
		id := w.create("0005").ID
		time.Sleep(3*window + 10*time.Second)
		submits, _ := w.way.counts()
		if p := w.payment(id); p.Status != till.Failed || p.FailureReason != till.ProviderUnavailable || submits != 3 {
			t.Errorf("%s %s after %d sends; want failed provider_unavailable after 3", p.Status, p.FailureReason, submits)
		}
	})
}

func TestNotFoundProvesNothingBeforeTheSettleTime(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		// The operator's reads lag behind its writes.
		w.way.set(func(ctx context.Context, r provider.Request, _ int) (provider.Result, error) {
			w.operator.Submit(ctx, r)
			return provider.Result{}, errAway
		}, func(ctx context.Context, q provider.Query, n int) (provider.Result, error) {
			if n == 1 {
				return provider.Result{Outcome: provider.NotFound}, nil
			}
			return w.operator.Check(ctx, q)
		})
		id := w.create("0017").ID
		time.Sleep(5 * time.Second)
		if submits, _ := w.way.counts(); submits != 1 || w.debits(id) != 1 {
			t.Errorf("sent %d times with %d debits; one early \"not found\" is no proof", submits, w.debits(id))
		}
	})
}

func TestAnOperatorWithoutReferencesIsNeverSentToTwice(t *testing.T) {
	t.Parallel()
	inWorldWith(t, sandbox.Config{NoDedup: true}, func(t *testing.T, w *world) {
		var ids []till.ID
		for _, s := range []string{"4567", "0011", "0012", "0017"} {
			ids = append(ids, w.create(s).ID)
		}
		time.Sleep(window + 8*time.Second)
		for _, id := range ids {
			if n := w.debits(id); n > 1 {
				t.Errorf("payment %s was debited %d times", id, n)
			}
		}
		if submits, _ := w.way.counts(); submits != len(ids) {
			t.Errorf("%d sends for %d payments", submits, len(ids))
		}
	})
}

func TestLateMoneyIsCreditedOnceWheneverItComes(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{time.Second, 30 * time.Minute, 2 * 24 * time.Hour} {
		inWorld(t, func(t *testing.T, w *world) {
			id := w.create("0003").ID
			time.Sleep(window + 2*time.Second)
			if p := w.payment(id); p.Status != till.Expired {
				t.Fatalf("%s, want expired", p.Status)
			}
			time.Sleep(after)
			w.way.set(nil, w.succeed)
			time.Sleep(4 * 24 * time.Hour)
			p := w.payment(id)
			if p.Status != till.Expired || w.credits(id) != "late_collection" || w.kinds(id) != "pending processing expired late_success" || w.cases(id) != "late_money" {
				t.Errorf("after %s: %s, credits %q, events %q, cases %q", after, p.Status, w.credits(id), w.kinds(id), w.cases(id))
			}
			if w.step(id) != nil {
				t.Error("nothing is owed any more, but a step is left")
			}
		})
	}
}

// succeed is an operator that calls everything a success.
func (w *world) succeed(_ context.Context, q provider.Query, _ int) (provider.Result, error) {
	return provider.Result{Outcome: provider.Success, Receipt: "R" + q.Reference.String(), Amount: till.Money{Minor: 5000, Currency: "XAF"}, Reference: q.Reference.String()}, nil
}

func TestACallbackWakesAPaymentThatIsReadNoMore(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		id := w.create("0002").ID
		time.Sleep(30 * 24 * time.Hour)
		if w.step(id) != nil {
			t.Fatal("the late reads are over after three days, but a step is left")
		}
		ref := store.Ref{Client: w.client.ID, ID: id}
		if err := w.collector.RecordCallback(t.Context(), "", ref, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if w.credits(id) != "" || w.step(id) != nil {
			t.Errorf("a callback without money: credits %q, step %+v", w.credits(id), w.step(id))
		}
		w.way.set(nil, w.succeed)
		if err := w.collector.RecordCallback(t.Context(), "", ref, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if w.credits(id) != "late_collection" {
			t.Errorf("credits %q, want the money that came late", w.credits(id))
		}
	})
}

func TestALateReadWithoutAnAnswerIsStillOwed(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		id := w.create("0002").ID
		time.Sleep(2 * time.Second)
		w.way.set(nil, func(context.Context, provider.Query, int) (provider.Result, error) { return provider.Result{}, errAway })
		time.Sleep(10 * 24 * time.Hour)
		if w.step(id) == nil {
			t.Fatal("no read was answered, yet none is scheduled")
		}
		w.way.set(nil, w.succeed)
		time.Sleep(2 * time.Hour)
		if w.credits(id) != "late_collection" {
			t.Errorf("credits %q", w.credits(id))
		}
	})
}

func TestAnAnswerIsRecordedWhoeverHoldsTheLease(t *testing.T) {
	t.Parallel()
	inWorldWith(t, sandbox.Config{PollInterval: time.Second}, func(t *testing.T, w *world) {
		// The first holder pauses past its lease with the answer in hand.
		w.way.set(func(ctx context.Context, r provider.Request, n int) (provider.Result, error) {
			res, err := w.operator.Submit(ctx, r)
			time.Sleep(25 * time.Second)
			return res, err
		}, nil)
		id := w.create("0014").ID
		time.Sleep(22 * time.Second)
		if p := w.payment(id); p.Status != till.Processing {
			t.Fatalf("%s after the takeover, want processing by asking", p.Status)
		}
		time.Sleep(10 * time.Second)
		submits, _ := w.way.counts()
		if s := w.step(id); submits != 1 || s == nil || !s.Acked {
			t.Errorf("%d sends, step %+v", submits, s)
		}
	})
}

func TestAStepThatWasWokenMeanwhileIsDueAtOnce(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		id := w.create("0014").ID
		time.Sleep(1500 * time.Millisecond) // no poll is under way: it would be the read that the wake asks for
		_, before := w.way.counts()
		for range 50 {
			if err := w.collector.RecordCallback(t.Context(), "", store.Ref{Client: w.client.ID, ID: id}, nil); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Millisecond)
		if _, after := w.way.counts(); after == before {
			t.Error("a wake did not make the engine ask")
		}
	})
}

func answers(w *world, id till.ID, results ...provider.Result) []*engine.Answer {
	var out []*engine.Answer
	for _, r := range results {
		out = append(out, &engine.Answer{
			Ref: store.Ref{Client: w.client.ID, ID: id}, Action: engine.Check,
			Started: w.store.Now(), Ended: w.store.Now(), Result: r, LeaseVersion: -1,
		})
	}
	return out
}

func TestABatchIsDecidedElementByElement(t *testing.T) {
	t.Parallel()
	money := till.Money{Minor: 5000, Currency: "XAF"}
	success := provider.Result{Outcome: provider.Success, Receipt: "R1", Amount: money}
	declined := provider.Result{Outcome: provider.Failed, Reason: till.CustomerDeclined}
	open := provider.Result{Outcome: provider.Open}
	cases := []struct {
		name    string
		results []provider.Result
		want    outcome
	}{
		{"five successes are one credit", []provider.Result{success, success, success, success, success},
			outcome{"", "success", "", "confirmed", 0, "collection", "pending processing success", ""}},
		{"success after failed is late money", []provider.Result{declined, success},
			outcome{"", "failed", "customer_declined", "confirmed", 0, "late_collection", "pending processing failed late_success", "late_money"}},
		{"failed after success is a contradiction and takes nothing back", []provider.Result{success, declined},
			outcome{"", "success", "", "confirmed", 0, "collection", "pending processing success", "contradiction"}},
		{"a second success with another receipt is a contradiction", []provider.Result{success, {Outcome: provider.Success, Receipt: "R2", Amount: money}},
			outcome{"", "success", "", "confirmed", 0, "collection", "pending processing success", "contradiction"}},
		{"two late successes are one credit", []provider.Result{declined, success, success},
			outcome{"", "failed", "customer_declined", "confirmed", 0, "late_collection", "pending processing failed late_success", "late_money"}},
		{"open after a final changes nothing", []provider.Result{declined, open},
			outcome{"", "failed", "customer_declined", "confirmed", 0, "", "pending processing failed", ""}},
		{"another currency is not credited", []provider.Result{{Outcome: provider.Success, Receipt: "R", Amount: till.Money{Minor: 5000, Currency: "XOF"}}},
			outcome{"", "processing", "", "needs_attention", 0, "", "pending processing needs_attention", "mismatch"}},
		{"another reference is not credited", []provider.Result{{Outcome: provider.Success, Receipt: "R", Amount: money, Reference: "other"}},
			outcome{"", "processing", "", "needs_attention", 0, "", "pending processing needs_attention", "mismatch"}},
		{"another amount twice is put aside once", []provider.Result{{Outcome: provider.Success, Amount: till.Money{Minor: 1, Currency: "XAF"}}, {Outcome: provider.Success, Amount: till.Money{Minor: 1, Currency: "XAF"}}},
			outcome{"", "processing", "", "needs_attention", 0, "", "pending processing needs_attention", "mismatch"}},
		{"the right amount after another one is credited from what was put aside", []provider.Result{{Outcome: provider.Success, Amount: till.Money{Minor: 1, Currency: "XAF"}}, success},
			outcome{"", "success", "", "confirmed", 0, "collection", "pending processing needs_attention success", "mismatch"}},
		{"failed after money was put aside waits for a person", []provider.Result{{Outcome: provider.Success, Amount: till.Money{Minor: 1, Currency: "XAF"}}, declined},
			outcome{"", "processing", "", "needs_attention", 0, "", "pending processing needs_attention", "contradiction mismatch"}},
		{"a word we do not know is never final", []provider.Result{{Outcome: provider.Unrecognised, Code: "ON_HOLD"}},
			outcome{"", "processing", "", "waiting", 0, "", "pending processing", "unknown_status"}},
		{"a failure without a reason is unspecified", []provider.Result{{Outcome: provider.Failed}},
			outcome{"", "failed", "unspecified", "confirmed", 0, "", "pending processing failed", ""}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, together := range []bool{true, false} {
				inWorld(t, func(t *testing.T, w *world) {
					id := w.create("0014").ID
					time.Sleep(100 * time.Millisecond)
					batch := answers(w, id, c.results...)
					if together {
						w.collector.Apply(t.Context(), batch)
					} else {
						for i := range batch {
							w.collector.Apply(t.Context(), batch[i:i+1])
						}
					}
					for _, a := range batch {
						if a.RecordErr != nil {
							t.Errorf("refused: %v", a.RecordErr)
						}
					}
					if n := w.posted("operator"); n != 0 && n != -5000 && n != -1 {
						t.Errorf("together %v: the operator's account is at %d; what it holds was counted twice", together, n)
					}
					p := w.payment(id)
					got := outcome{"", p.Status, p.FailureReason, p.Resolution.State, w.debits(id), w.credits(id), w.kinds(id), sorted(w.cases(id))}
					if got != c.want {
						t.Errorf("together %v\n got  %+v\n want %+v", together, got, c.want)
					}
				})
			}
		})
	}
}

func sorted(words string) string {
	f := strings.Fields(words)
	for i := range f {
		for j := i + 1; j < len(f); j++ {
			if f[j] < f[i] {
				f[i], f[j] = f[j], f[i]
			}
		}
	}
	return strings.Join(f, " ")
}

func TestOneReceiptForTwoPaymentsCreditsOne(t *testing.T) {
	t.Parallel()
	for _, together := range []bool{true, false} {
		inWorld(t, func(t *testing.T, w *world) {
			a, b := w.create("0014").ID, w.create("0014").ID
			time.Sleep(100 * time.Millisecond)
			r := provider.Result{Outcome: provider.Success, Receipt: "SAME"}
			batch := append(answers(w, a, r), answers(w, b, r)...)
			if together {
				w.collector.Apply(t.Context(), batch)
			} else {
				w.collector.Apply(t.Context(), batch[:1])
				w.collector.Apply(t.Context(), batch[1:])
			}
			if w.payment(a).Status != till.Success || w.payment(b).Status != till.Processing || w.cases(b) != "receipt_reused" {
				t.Errorf("together %v: %s, %s with cases %q", together, w.payment(a).Status, w.payment(b).Status, w.cases(b))
			}
		})
	}
}

func TestAPersonBringsTheOperatorsWord(t *testing.T) {
	t.Parallel()
	resolve := func(w *world, id till.ID, success bool) error {
		return w.collector.Resolve(context.Background(), store.Ref{Client: w.client.ID, ID: id},
			engine.Resolution{Success: success, Receipt: "", By: "Awa", Evidence: "statement of 15 November"})
	}
	inWorld(t, func(t *testing.T, w *world) {
		stuck, wrong, lost, paid := w.create("0014").ID, w.create("0019").ID, w.create("0003").ID, w.create("4567").ID
		time.Sleep(window + 5*time.Second)
		for _, id := range []till.ID{stuck, wrong, lost} {
			if err := resolve(w, id, true); err != nil {
				t.Fatal(err)
			}
		}
		for id, want := range map[till.ID]outcome{
			stuck: {"", "success", "", "confirmed", 0, "collection", "pending processing needs_attention success", ""},
			wrong: {"", "success", "", "confirmed", 1, "collection", "pending processing needs_attention success", ""},
			lost:  {"", "expired", "customer_timeout", "confirmed", 0, "late_collection", "pending processing expired late_success", ""},
		} {
			p := w.payment(id)
			got := outcome{"", p.Status, p.FailureReason, p.Resolution.State, w.debits(id), w.credits(id), w.kinds(id), ""}
			if got != want {
				t.Errorf("\n got  %+v\n want %+v", got, want)
			}
		}
		if w.cases(stuck)+w.cases(wrong)+w.cases(lost) != "" {
			t.Error("resolved payments are still on the attention list")
		}
		if err := resolve(w, paid, false); till.ErrorCode(err) != till.CodeValidationFailed {
			t.Errorf("a success was resolved as failed: %v", err)
		}
		if err := resolve(w, paid, true); till.ErrorCode(err) != till.CodeValidationFailed {
			t.Errorf("a success was credited again: %v", err)
		}
		if err := resolve(w, till.NewID(1), true); till.ErrorCode(err) != till.CodePaymentNotFound {
			t.Errorf("an unknown payment: %v", err)
		}
	})
	inWorld(t, func(t *testing.T, w *world) {
		id := w.create("0019").ID
		time.Sleep(window + 5*time.Second)
		if err := resolve(w, id, false); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * 24 * time.Hour)
		if p := w.payment(id); p.Status != till.Failed || w.credits(id) != "" || w.cases(id) != "" {
			t.Errorf("%s, credits %q, cases %q; want failed and left alone", p.Status, w.credits(id), w.cases(id))
		}
	})
}

func TestARefusedResolutionLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		paid := w.create("4567").ID
		time.Sleep(3 * time.Second)
		receipt := w.payment(paid).ProviderReference
		// A payment that nobody has sent yet.
		w.stop()
		w.start(func(c *engine.Config) { c.AcceptOnly = true })
		id := w.create("4567").ID
		err := w.collector.Resolve(t.Context(), store.Ref{Client: w.client.ID, ID: id}, engine.Resolution{Success: true, Receipt: receipt, By: "Awa", Evidence: "x"})
		if till.ErrorCode(err) != till.CodeValidationFailed {
			t.Fatalf("a receipt was taken twice: %v", err)
		}
		w.view(func(ctx context.Context, tx *store.Tx) error {
			as, err := tx.Attempts(ctx, store.Ref{Client: w.client.ID, ID: id})
			if len(as) != 0 {
				t.Errorf("a refused resolution is on the list of attempts: %+v", as[0])
			}
			return err
		})
		// And it does not keep the engine from its work.
		w.stop()
		w.start()
		other := w.create("0017").ID
		time.Sleep(5 * time.Second)
		if w.payment(id).Status != till.Success || w.payment(other).Status != till.Success {
			t.Errorf("%s and %s; want both to succeed", w.payment(id).Status, w.payment(other).Status)
		}
	})
}

func TestOneStepThatCannotBeTakenDoesNotKeepTheOthers(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.stop()
		w.start(func(c *engine.Config) { c.AcceptOnly = true })
		bad, good := w.create("0017").ID, w.create("0017").ID
		// Another payment has the reference that the first would be sent under.
		ctx := context.Background()
		reference := w.collector.ReferenceOf(&w.payment(bad).Payment)
		if err := w.store.Update(ctx, func(tx *store.Tx) error {
			return tx.InsertSends(ctx, []*store.Attempt{{ClientID: w.client.ID, SubjectID: till.NewID(1), N: 1, First: true, Connection: "sandbox", Reference: reference, StartedAt: 1}})
		}); err != nil {
			t.Fatal(err)
		}
		w.stop()
		w.start()
		time.Sleep(window + 30*time.Second)
		if p := w.payment(good); p.Status != till.Success {
			t.Errorf("the good one is %s", p.Status)
		}
		if p := w.payment(bad); p.Status != till.Failed && p.Resolution.State != till.NeedsAttention {
			t.Errorf("the bad one is %s, %s", p.Status, p.Resolution.State)
		}
	})
}

func TestAnAnswerRecordedTwiceIsOneProof(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.way.set(func(context.Context, provider.Request, int) (provider.Result, error) {
			return provider.Result{}, errAway
		},
			func(context.Context, provider.Query, int) (provider.Result, error) { return provider.Result{}, errAway })
		id := w.create("4567").ID
		time.Sleep(5 * time.Second)
		a := answers(w, id, provider.Result{Outcome: provider.NotFound})
		w.collector.Apply(t.Context(), a)
		w.collector.Apply(t.Context(), a) // nobody knew whether it was committed
		if s := w.step(id); s.NotFoundReads > 1 {
			t.Errorf("one read counts %d times", s.NotFoundReads)
		}
	})
}

func TestClientsThatHangUpLeaveNoSlotBehind(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		for range 200 {
			w.collector.Create(gone, w.who(), request(t, till.NewID(w.store.Now()).String(), "0005"))
		}
		time.Sleep(time.Second)
		id := w.create("0014").ID
		if s := w.step(id); s.Sends != 1 {
			t.Error("there is no slot for a send any more")
		}
	})
}

func TestAClockThatGoesBackDoesNotHoldPaymentsUp(t *testing.T) {
	t.Parallel()
	noon := till.TimeOf(time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC))
	storetest.RunAt(t, &noon, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		c, client := storetest.NewCollector(t, s), storetest.NewClient(t, s, till.Test)
		storetest.NewPayment(t, c, client, storetest.Body{})
		clock.Advance(-time.Hour)
		p := storetest.NewPayment(t, c, client, storetest.Body{})
		var st *store.Step
		err := s.View(t.Context(), func(tx *store.Tx) (err error) {
			st, err = tx.Step(t.Context(), store.Ref{Client: p.ClientID, ID: p.ID})
			return err
		})
		if err != nil || st.DueAt > clock.Now() || st.LeaseUntil > clock.Now().Add(engine.Lease) {
			t.Errorf("due %s, leased until %s at %s, %v", st.DueAt, st.LeaseUntil, clock.Now(), err)
		}
	})
}

func TestAHundredCreatesWithOneKeyMakeOnePayment(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		key := till.NewID(w.store.Now()).String()
		var mu sync.Mutex
		ids := map[till.ID]int{}
		replayed := 0
		var wg sync.WaitGroup
		for i := range 100 {
			k := key
			if i%2 == 1 {
				k = strings.ToUpper(key)
			}
			wg.Go(func() {
				c, err := w.collector.Create(context.Background(), w.who(), request(t, k, "4567"))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				ids[c.Payment.ID]++
				if c.Replayed {
					replayed++
				}
				if c.Payment.Status != till.Pending || c.Payment.ProviderReference != "" {
					t.Errorf("an answer of the create call says %s", c.Payment.Status)
				}
			})
		}
		wg.Wait()
		if len(ids) != 1 || replayed != 99 {
			t.Errorf("%d payments, %d replays; want 1 and 99", len(ids), replayed)
		}
		time.Sleep(5 * time.Second)
		for id := range ids {
			if w.debits(id) != 1 {
				t.Errorf("%d debits", w.debits(id))
			}
		}
	})
}

func TestARestartGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		ids := make([]till.ID, len(stories))
		for i, s := range stories {
			ids[i] = w.create(s.digits).ID
			if i%3 == 0 {
				w.stop()
				w.start()
			}
		}
		for range 8 {
			time.Sleep(700 * time.Millisecond)
			w.stop()
			w.start()
		}
		time.Sleep(window + 8*time.Second)
		for i, s := range stories {
			p := w.payment(ids[i])
			if p.Status != s.status || w.debits(ids[i]) != s.debits || w.credits(ids[i]) != s.credits {
				t.Errorf("story %s: %s, %d debits, credits %q", s.digits, p.Status, w.debits(ids[i]), w.credits(ids[i]))
			}
		}
	})
}

// A case that a person closes while its cause lasts is opened again by the
// next check of the operator; the payment is not touched.
func TestACaseWhoseCauseStandsIsOpenedAgain(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		stuck, wrong := w.create("0014").ID, w.create("0019").ID
		time.Sleep(window + 5*time.Second)
		for id, kind := range map[till.ID]string{stuck: engine.CaseOverdue, wrong: engine.CaseMismatch} {
			if got := w.cases(id); got != kind {
				t.Fatalf("cases %q, want %q", got, kind)
			}
			// Read in the same commit: the next check may come right behind it.
			var left string
			err := w.store.Update(context.Background(), func(tx *store.Tx) (err error) {
				ref := store.Ref{Client: w.client.ID, ID: id}
				if err := tx.CloseCases(context.Background(), []store.CaseClosure{{Ref: ref, By: "Awa", At: tx.Now(), Reason: "seen"}}); err != nil {
					return err
				}
				left, err = openCases(context.Background(), tx, id)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if left != "" {
				t.Fatalf("cases %q after they were closed", left)
			}
		}
		time.Sleep(4 * time.Hour) // it is asked about ever more slowly
		for id, kind := range map[till.ID]string{stuck: engine.CaseOverdue, wrong: engine.CaseMismatch} {
			if got := w.cases(id); got != kind {
				t.Errorf("cases %q, want %q again and nothing else", got, kind)
			}
			if p := w.payment(id); p.Status != till.Processing || p.Resolution.State != till.NeedsAttention {
				t.Errorf("the payment is %s, %s", p.Status, p.Resolution.State)
			}
		}
	})
}

// A payment that somebody had to check for another reason goes overdue like
// any other. If that person closes the case and the operator says nothing more,
// it is on the list for being overdue: never open for ever and on none.
func TestAnOverduePaymentIsAlwaysOnTheList(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		id := w.create("0019").ID
		time.Sleep(window / 2)
		if got := w.cases(id); got != engine.CaseMismatch {
			t.Fatalf("cases %q, want %q", got, engine.CaseMismatch)
		}
		w.way.set(nil, func(context.Context, provider.Query, int) (provider.Result, error) {
			return provider.Result{}, errors.New("away")
		})
		synctest.Wait() // a question that was on its way would open the case again
		err := w.store.Update(context.Background(), func(tx *store.Tx) error {
			return tx.CloseCases(context.Background(), []store.CaseClosure{{Ref: store.Ref{Client: w.client.ID, ID: id}, By: "Awa", At: tx.Now(), Reason: "seen"}})
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(24 * time.Hour)
		if p := w.payment(id); p.Status != till.Processing {
			t.Fatalf("the payment is %s", p.Status)
		}
		if got := w.cases(id); got != engine.CaseOverdue {
			t.Errorf("cases %q a day later, want %q", got, engine.CaseOverdue)
		}
	})
}
