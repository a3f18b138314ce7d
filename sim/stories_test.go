package sim

import (
	"context"
	"time"

	"till"
	"till/books"
	"till/engine"
	"till/recovery"
	"till/store"
	"till/store/admin"
	"till/upkeep"
)

// Numbers by which simulated operators choose what happens.
const (
	mtnWell     = "242065155001"
	mtnDeclines = "242063123451"
	mtnLate     = "242063123473" // it fails, and the money moves after all
	mtnNever    = "242063123453" // it is never decided
	mtnSilent   = "242063123474" // no callback comes
	airtelWell  = "242055155001"
	mpesaWell   = "254711550015"
	pawaWell    = "237671550010"
)

// Places of the network.
const (
	mtnPay  = "mtnmomo POST /collection/v1_0/requesttopay"
	mtnSend = "mtnmomo POST /disbursement/v1_0/transfer"
	mpesaIn = "mpesa POST /mpesa/stkpush/v1/processrequest"
)

func funded(w *World) { w.Fund(100_000) }

// newest raises the level, for what older programs cannot read.
func newest(w *World) {
	_, err := upkeep.RaiseLevel(context.Background(), w.store, admin.Level, "test")
	w.must(err)
	funded(w)
}

var stories = []story{
	{name: "create to success", options: Options{Receiver: true}, tell: func(w *World) { w.Pay("mtnmomo", mtnWell, 1000) }},
	{name: "declined", tell: func(w *World) { w.Pay("mtnmomo", mtnDeclines, 1000) }},
	{name: "lost answer", tell: func(w *World) {
		w.net.Lose("answer "+mtnPay, 1)
		w.Pay("mtnmomo", mtnWell, 1000)
	}},
	{name: "lost request", tell: func(w *World) {
		w.net.Lose("request "+mtnPay, 1)
		w.Pay("mtnmomo", mtnWell, 1000)
	}},
	{name: "callback before the answer", tell: func(w *World) {
		w.net.Delay("answer "+mtnPay, 5*time.Second)
		w.Pay("mtnmomo", mtnWell, 1000)
	}},
	{name: "no callback", tell: func(w *World) { w.Pay("mtnmomo", mtnSilent, 1000) }},
	{name: "unknown until the window is over", options: Options{Poll: time.Minute}, settles: 3 * time.Hour, tell: func(w *World) {
		w.net.Lose("answer mtnmomo GET /collection/v1_0/requesttopay/*", 40)
		w.Pay("mtnmomo", mtnSilent, 1000)
	}},
	{name: "payout unknown until the window is over", options: Options{Poll: time.Minute}, settles: 3 * time.Hour, prepare: funded, tell: func(w *World) {
		w.net.Lose("answer mtnmomo GET /disbursement/v1_0/transfer/*", 60)
		w.Send("mtnmomo", mtnSilent, 1000)
	}},
	{name: "no reference known", options: Options{Poll: time.Minute}, settles: 40 * time.Minute, verdict: Verdict{Open: true}, tell: func(w *World) { w.Pay("mpesa", mpesaWell, 1000) }},
	{name: "late money", options: Options{Poll: time.Minute}, tell: func(w *World) {
		o := w.Pay("mtnmomo", mtnLate, 1000)
		w.AwaitPaid(o, 2*time.Hour) // by the second late read, should the first one fail
	}},
	{name: "airtel", tell: func(w *World) { w.Pay("airtel", airtelWell, 1000) }},
	{name: "pawapay", options: Options{Poll: time.Minute}, settles: 3 * time.Hour, tell: func(w *World) { w.Pay("pawapay", pawaWell, 1000) }},
	{name: "wave", options: Options{Poll: time.Minute, Receiver: true}, settles: 3 * time.Hour, prepare: newest, tell: func(w *World) {
		w.PayWith("wave", "221773456789", 1000, `"return_url":"https://shop.example/orders/1"`)
	}},
	{name: "wave, lost answer", options: Options{Poll: time.Minute}, settles: 3 * time.Hour, prepare: newest, tell: func(w *World) {
		w.net.Lose("answer pawapay POST /v2/deposits", 1)
		w.PayWith("wave", "221773456789", 1000, `"return_url":"https://shop.example/orders/1"`)
	}},
	{name: "one-time code", options: Options{Poll: time.Minute}, settles: 3 * time.Hour, prepare: newest, tell: func(w *World) {
		w.PayWith("orange", "22607345789", 1000, `"authorization_code":"367025"`)
	}},
	{name: "two instances", options: Options{Instances: 2, Receiver: true}, tell: func(w *World) {
		w.Pay("mtnmomo", mtnWell, 1000)
		w.Pay("mtnmomo", mtnWell, 2000)
	}},
	{name: "step of another account", options: Options{Instances: 2, Other: true, Poll: time.Minute}, settles: 30 * time.Minute, verdict: Verdict{Open: true}, runsOn: true, tell: func(w *World) {
		w.Pay("mtnmomo", mtnNever, 1000)
		time.Sleep(time.Minute)
		w.Remove(0) // nobody is left who has the account of the payment
	}},

	{name: "payout to success", options: Options{Receiver: true}, prepare: funded, tell: func(w *World) { w.Send("mtnmomo", mtnWell, 1000) }},
	{name: "payout unknown", prepare: funded, tell: func(w *World) {
		w.net.Lose("answer "+mtnSend, 1)
		w.Send("mtnmomo", mtnWell, 1000)
	}},
	{name: "payout lost", prepare: funded, tell: func(w *World) {
		w.net.Lose("request "+mtnSend, 1)
		w.Send("mtnmomo", mtnWell, 1000)
	}},
	{name: "payout late", options: Options{Poll: time.Minute}, prepare: funded, tell: func(w *World) {
		o := w.Send("mtnmomo", mtnLate, 1000)
		w.AwaitPaid(o, 2*time.Hour)
	}},
	{name: "payout held and released", options: Options{Poll: time.Minute}, prepare: funded, tell: func(w *World) {
		w.holdUnsent(func() *Order { return w.Send("mtnmomo", mtnWell, 1000) })
		time.Sleep(10 * time.Minute)
		w.notSent("payout")
		w.must(w.Command(func(ctx context.Context, s *store.Store) error {
			return books.ReleasePayouts(ctx, s, w.client.ID, "Awa", "why")
		}))
	}},
	{name: "payout cancelled", options: Options{Poll: time.Minute}, prepare: funded, tell: func(w *World) {
		o := w.holdUnsent(func() *Order { return w.Send("mtnmomo", mtnWell, 1000) })
		time.Sleep(5 * time.Minute) // until an instance has seen that it is held
		// Whether a send had begun when an instance crashed, nobody knows: then it cannot be
		// cancelled, and is not sent before it is released either.
		cancelled, _ := w.again("POST", "/payouts/"+o.ID+"/cancel", "")
		w.notSent("payout")
		w.must(w.Command(func(ctx context.Context, s *store.Store) error {
			return books.ReleasePayouts(ctx, s, w.client.ID, "Awa", "why")
		}))
		if cancelled == 200 {
			w.Await(o, "cancelled", time.Minute)
			time.Sleep(5 * time.Minute)
			w.notSent("payout")
		}
	}},

	{name: "refunds", options: Options{Receiver: true}, prepare: newest, tell: func(w *World) {
		p := w.Pay("mtnmomo", mtnWell, 1000)
		w.Await(p, "success", 20*time.Minute)
		w.Await(w.Refund(p, 400), "success", 30*time.Minute)
		w.Refund(p, 600)
	}},
	{name: "refund unknown", options: Options{Poll: time.Minute}, settles: 3 * time.Hour, prepare: newest, tell: func(w *World) {
		p := w.Pay("mtnmomo", mtnSilent, 1000)
		w.Await(p, "success", 20*time.Minute)
		w.net.Lose("answer "+mtnSend, 1)
		w.net.Lose("answer mtnmomo GET /disbursement/v1_0/transfer/*", 5)
		w.Refund(p, 1000)
	}},
	{name: "refund lost", options: Options{Instances: 2}, prepare: newest, tell: func(w *World) {
		p := w.Pay("mtnmomo", mtnWell, 1000)
		w.Await(p, "success", 20*time.Minute)
		w.net.Lose("request "+mtnSend, 1)
		w.Refund(p, 1000)
	}},
	{name: "refund late", options: Options{Poll: time.Minute}, prepare: newest, tell: func(w *World) {
		p := w.Pay("mtnmomo", mtnLate, 1000) // what came late can go back, too
		w.AwaitPaid(p, 2*time.Hour)
		w.AwaitPaid(w.Refund(p, 400), 2*time.Hour)
		w.AwaitPaid(w.Refund(p, 600), 2*time.Hour)
	}},
	{name: "refund held and released", options: Options{Poll: time.Minute}, prepare: newest, tell: func(w *World) {
		p := w.Pay("mtnmomo", mtnWell, 1000)
		w.Await(p, "success", 20*time.Minute)
		w.holdUnsent(func() *Order { return w.Refund(p, 700) })
		time.Sleep(10 * time.Minute)
		w.notSent("payout")
		w.must(w.Command(func(ctx context.Context, s *store.Store) error {
			return books.ReleasePayouts(ctx, s, w.client.ID, "Awa", "why")
		}))
	}},
	{name: "refund restored", options: Options{Poll: time.Minute}, settles: 3 * time.Hour, prepare: newest, tell: func(w *World) {
		p := w.Pay("mtnmomo", mtnWell, 1000)
		w.Await(p, "success", 20*time.Minute)
		from := w.store.Now()
		first := w.Refund(p, 400)
		w.must(w.Command(func(ctx context.Context, s *store.Store) error {
			_, err := recovery.MarkRestored(ctx, s, recovery.RestoreRequest{Secret: secretText, LostFrom: from, KeysReviewed: true, By: "Awa"})
			return err
		}))
		w.await(first, "over", 3*time.Hour, func(r *row) bool { return r.final })
		w.must(w.Command(func(ctx context.Context, s *store.Store) error { _, err := recovery.Release(ctx, s, "Awa"); return err }))
		w.Refund(p, 600)
	}},
	{name: "refunds by the operator's call", options: Options{Poll: time.Minute, Receiver: true}, settles: 3 * time.Hour, prepare: newest, tell: func(w *World) {
		p := w.Pay("pawapay", pawaWell, 1000)
		w.Await(p, "success", 3*time.Hour)
		w.Await(w.Refund(p, 400), "success", 3*time.Hour)
		w.net.Lose("answer pawapay POST /v2/refunds", 1)
		w.Refund(p, 600)
	}},
	{name: "refund cancelled", options: Options{Poll: time.Minute}, prepare: newest, tell: func(w *World) {
		p := w.Pay("mtnmomo", mtnWell, 1000)
		w.Await(p, "success", 20*time.Minute)
		o := w.holdUnsent(func() *Order { return w.Refund(p, 700) })
		time.Sleep(5 * time.Minute)
		w.notSent("payout")
		cancelled, _ := w.again("POST", "/refunds/"+o.ID+"/cancel", "")
		w.must(w.Command(func(ctx context.Context, s *store.Store) error {
			return books.ReleasePayouts(ctx, s, w.client.ID, "Awa", "why")
		}))
		if cancelled == 200 {
			w.Await(o, "cancelled", time.Minute)
			w.Refund(p, 1000)
		}
	}},
	{name: "refund and reversal", options: Options{Receiver: true}, prepare: newest, tell: func(w *World) {
		p := w.Pay("mtnmomo", mtnWell, 1000)
		w.Await(p, "success", 20*time.Minute)
		w.Await(w.Refund(p, 400), "success", 30*time.Minute)
		w.must(w.Resolve(p, engine.Resolution{Reversed: true}))
	}},

	{name: "webhook refused and retried", options: Options{Receiver: true, Poll: time.Minute}, settles: 2 * time.Hour, prepare: func(w *World) { w.shop.refuse = 3 }, tell: func(w *World) {
		w.Pay("mtnmomo", mtnWell, 1000)
	}},
	{name: "fee", prepare: func(w *World) {
		newest(w)
		for _, kind := range []till.FeeKind{till.PaymentFee, till.PayoutFee, till.RefundFee} {
			w.must(w.accounts.SetFee(context.Background(), w.client.ID, till.Fee{Kind: kind, Method: "mtn_momo", Currency: "XAF", Flat: 10, BasisPoints: 150}, "test"))
		}
	}, tell: func(w *World) {
		p := w.Pay("mtnmomo", mtnWell, 1000)
		w.Send("mtnmomo", mtnWell, 500)
		w.Await(p, "success", 20*time.Minute)
		w.Refund(p, 300)
	}},
	{name: "reversal with debt", options: Options{Receiver: true}, tell: func(w *World) {
		p := w.Pay("mtnmomo", mtnWell, 1000)
		w.Await(p, "success", 20*time.Minute)
		w.Await(w.Send("mtnmomo", mtnWell, 900), "success", 30*time.Minute)
		w.must(w.Resolve(p, engine.Resolution{Reversed: true}))
		w.Pay("mtnmomo", mtnWell, 5000)
	}},
	{name: "resolve", options: Options{Poll: time.Minute}, tell: func(w *World) {
		p := w.Pay("mtnmomo", mtnNever, 1000)
		time.Sleep(8 * time.Minute)
		w.must(w.Resolve(p, engine.Resolution{}))
	}},
	{name: "payout resolved", options: Options{Poll: time.Minute}, prepare: funded, tell: func(w *World) {
		p := w.Send("mtnmomo", mtnNever, 1000)
		time.Sleep(8 * time.Minute)
		w.must(w.Resolve(p, engine.Resolution{}))
	}},
	{name: "adjust", tell: func(w *World) {
		id := till.NewID(w.store.Now())
		for range 2 { // the same id adjusts once
			w.must(w.Command(func(ctx context.Context, s *store.Store) error {
				_, err := books.Adjust(ctx, s, books.Adjustment{Client: w.client.ID, ID: id, Amount: till.Money{Minor: 700, Currency: "XAF"}, Reason: "why", By: "Awa"})
				return err
			}))
		}
		w.wantBalance(700)
	}},
	{name: "secret rotated", options: Options{Receiver: true, Poll: time.Minute}, settles: time.Hour, tell: func(w *World) {
		w.Pay("mtnmomo", mtnWell, 1000)
		w.rotateSecret()
		w.Pay("mtnmomo", mtnWell, 2000)
	}},
	{name: "key rotated", tell: func(w *World) {
		w.Pay("mtnmomo", mtnWell, 1000)
		w.rotateKey()
		w.Pay("mtnmomo", mtnWell, 2000)
	}},
	{name: "chain and roll-up", options: Options{Poll: time.Minute}, tell: func(w *World) {
		w.Pay("mtnmomo", mtnWell, 1000)
		time.Sleep(time.Minute)
		w.must(w.Command(func(ctx context.Context, s *store.Store) error {
			key, err := books.ChainKey(secretText)
			if err == nil {
				_, err = books.ExtendChains(ctx, s, key)
			}
			if err == nil {
				err = upkeep.SplitHours(ctx, s)
			}
			if err == nil {
				_, err = upkeep.RollUp(ctx, s, s.Now().Add(2*time.Hour))
			}
			return err
		}))
		w.Pay("mtnmomo", mtnWell, 2000)
	}},
	{name: "level raised", tell: func(w *World) {
		w.must(w.Command(func(ctx context.Context, s *store.Store) error {
			_, err := upkeep.RaiseLevel(ctx, s, admin.Level, "Awa")
			return err
		}))
		w.Pay("mtnmomo", mtnWell, 1000)
	}},
	{name: "paid on a page", options: Options{Poll: time.Minute}, settles: time.Hour, prepare: newest, tell: payCheckout},
	{name: "restored and released", options: Options{Poll: time.Minute}, prepare: funded, tell: func(w *World) {
		w.Pay("mtnmomo", mtnNever, 1000)
		from := w.store.Now().Add(-time.Hour)
		w.must(w.Command(func(ctx context.Context, s *store.Store) error {
			_, err := recovery.MarkRestored(ctx, s, recovery.RestoreRequest{Secret: secretText, LostFrom: from, KeysReviewed: true, By: "Awa"})
			return err
		}))
		w.Pay("mtnmomo", mtnWell, 1000)
		time.Sleep(time.Minute)
		w.must(w.Command(func(ctx context.Context, s *store.Store) error { _, err := recovery.Release(ctx, s, "Awa"); return err }))
		w.Send("mtnmomo", mtnWell, 1000)
	}, verdict: Verdict{Open: true}},
}
