package collect_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"till"
	"till/collect"
	"till/engine"
	"till/privacy"
	"till/provider"
	"till/provider/mpesa"
	"till/provider/providertest"
	"till/store"
	"till/store/matching"
	"till/store/storetest"
)

// daraja is the service with M-Pesa's simulator, over HTTP and in real time,
// for two clients. What the simulator posts waits until a test delivers it.
type daraja struct {
	t         *testing.T
	store     *store.Store
	sim       *mpesa.Simulator
	server    *httptest.Server // the simulator behind a line that a test can break
	collector *collect.Collector
	first     *till.Client
	second    *till.Client
	posted    chan letter
	stop      func() // ends the work, when what was begun is recorded

	mu      sync.Mutex
	lose    int             // so many answers to pushes are lost
	waiting *sync.WaitGroup // questions wait here for each other
}

// letter is a callback on its way.
type letter struct {
	url  string
	body []byte
}

const darajaName = "daraja"

// inDaraja plays a story on each engine and checks the books at its end.
func inDaraja(t *testing.T, tell func(t *testing.T, d *daraja)) {
	t.Helper()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		d := &daraja{t: t, store: s, posted: make(chan letter, 16), first: storetest.NewClient(t, s, till.Live), second: storetest.NewClient(t, s, till.Live)}
		box := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			d.posted <- letter{r.URL.Path, body}
		}))
		t.Cleanup(box.Close)
		var err error
		if d.sim, err = mpesa.NewSimulator(mpesa.SimConfig{Decide: 20 * time.Millisecond, Repeats: true}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.sim.Close() })
		d.server = httptest.NewServer(http.HandlerFunc(d.serve))
		t.Cleanup(d.server.Close)
		o, err := mpesa.New(mpesa.Config{BaseURL: d.server.URL, ConsumerKey: "simulated", ConsumerSecret: "simulated", ShortCode: "174379", Passkey: "simulated"},
			provider.Deps{Connection: darajaName, Tokens: providertest.NewTokens(time.Now)})
		if err != nil {
			t.Fatal(err)
		}
		d.collector = collect.New(engine.Config{
			Store: s, Secret: []byte("a secret for tests"), CallbackBase: box.URL, PollInterval: 10 * time.Millisecond,
			Connections: map[string]provider.Provider{darajaName: o.Payments()},
			Routes:      engine.ByMode(func(till.Mode, string, string, string) string { return darajaName }),
		})
		ctx, cancel := context.WithCancel(context.Background())
		var work sync.WaitGroup
		work.Go(func() { d.collector.Run(ctx) })
		d.stop = sync.OnceFunc(func() {
			cancel()
			work.Wait()
			if err := d.collector.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		t.Cleanup(d.stop)
		tell(t, d)
		d.stop()
	})
}

// serve is the line to the simulator.
func (d *daraja) serve(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	lost, waiting := false, d.waiting
	if strings.Contains(r.URL.Path, "/stkpush/") && d.lose > 0 {
		lost = true
		d.lose--
	}
	d.mu.Unlock()
	answer := httptest.NewRecorder()
	d.sim.ServeHTTP(answer, r)
	if lost {
		panic(http.ErrAbortHandler)
	}
	if waiting != nil && strings.Contains(r.URL.Path, "/stkpushquery/") {
		waiting.Done()
		waiting.Wait()
	}
	for k, v := range answer.Header() {
		w.Header()[k] = v
	}
	w.WriteHeader(answer.Code)
	w.Write(answer.Body.Bytes())
}

func (d *daraja) set(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

const payer = "254708374149"

// pay makes a payment of a client, with a customer who pays.
func (d *daraja) pay(client *till.Client) *till.Payment {
	d.t.Helper()
	return storetest.NewPayment(d.t, d.collector, client, storetest.Body{Method: "mpesa", Country: "KE", Phone: payer, Currency: "KES", Value: "150000"})
}

// payLost is pay for a push whose answer is lost: it is known to nobody here
// under which id M-Pesa has it.
func (d *daraja) payLost(client *till.Client) *till.Payment {
	d.t.Helper()
	d.set(func() { d.lose++ })
	p := d.pay(client)
	d.await("the push is made and its answer lost", func() bool { s := d.step(p); return s != nil && s.Calls > 0 })
	return p
}

// letter returns the next callback that M-Pesa posts.
func (d *daraja) letter() letter {
	d.t.Helper()
	select {
	case l := <-d.posted:
		return l
	case <-time.After(10 * time.Second):
		d.t.Fatal("M-Pesa posts nothing")
		return letter{}
	}
}

// deliver gives a callback to the payment's own address.
func (d *daraja) deliver(p *till.Payment, body []byte) {
	d.t.Helper()
	if err := d.collector.RecordCallback(context.Background(), darajaName, store.Ref{Client: p.ClientID, ID: p.ID}, body); err != nil {
		d.t.Fatal(err)
	}
}

// genuine delivers a callback where M-Pesa posted it.
func (d *daraja) genuine(l letter) {
	d.t.Helper()
	parts := strings.Split(l.url, "/")
	ref, ours := d.collector.ParseCallbackToken(parts[len(parts)-2], parts[len(parts)-1])
	if !ours {
		d.t.Fatalf("a callback URL that is not ours: %s", l.url)
	}
	d.deliver(&till.Payment{ClientID: ref.Client, ID: ref.ID}, l.body)
}

func (d *daraja) await(what string, holds func() bool) {
	d.t.Helper()
	for deadline := time.Now().Add(15 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			d.t.Fatal("it does not come that " + what)
		}
	}
}

func (d *daraja) view(f func(ctx context.Context, tx *store.Tx) error) {
	d.t.Helper()
	storetest.View(d.t, d.store, f)
}

func (d *daraja) step(p *till.Payment) *store.Step {
	d.t.Helper()
	return readStep(d.t, d.store, store.Ref{Client: p.ClientID, ID: p.ID})
}

func (d *daraja) row(p *till.Payment) *store.PaymentRow {
	d.t.Helper()
	return readPayment(d.t, d.store, store.Ref{Client: p.ClientID, ID: p.ID})
}

func (d *daraja) status(p *till.Payment) till.Status { return d.row(p).Status }

// kinds lists the events of a payment, in order.
func (d *daraja) kinds(p *till.Payment) string {
	var kinds []string
	d.view(func(ctx context.Context, tx *store.Tx) error {
		es, err := tx.PaymentEvents(ctx, store.Ref{Client: p.ClientID, ID: p.ID})
		for _, e := range es {
			kinds = append(kinds, strings.TrimPrefix(string(e.Kind), "payment."))
		}
		return err
	})
	return strings.Join(kinds, " ")
}

// balance is what a client's wallet holds.
func (d *daraja) balance(client *till.Client) (balance int64) {
	d.view(func(ctx context.Context, tx *store.Tx) error {
		w, err := tx.Wallet(ctx, client.ID, "KES")
		if err == nil {
			balance = w.Balance
		}
		return err
	})
	return balance
}

func (d *daraja) cases(p *till.Payment) string {
	var kinds []string
	d.view(func(ctx context.Context, tx *store.Tx) error {
		for _, kind := range []string{"handle_reused", "receipt_reused", "mismatch"} {
			found, err := matching.CasesOf(ctx, tx, kind, []store.Ref{{Client: p.ClientID, ID: p.ID}})
			if err != nil {
				return err
			}
			if len(found) > 0 {
				kinds = append(kinds, kind)
			}
		}
		return nil
	})
	return strings.Join(kinds, " ")
}

// A genuine callback of one client's payment is replayed at the secret address
// of another client's, of the same amount and customer, whose push was lost: M-Pesa
// is never asked about the one on behalf of the other.
func TestACallbackReplayedAtAnotherClientsAddressCreditsNobody(t *testing.T) {
	t.Parallel()
	inDaraja(t, func(t *testing.T, d *daraja) {
		paid := d.pay(d.first)
		genuine := d.letter()
		d.genuine(genuine)
		d.await("the first is paid", func() bool { return d.status(paid) == till.Success })

		victim := d.payLost(d.second)
		d.letter() // its own callback is lost too
		d.deliver(victim, genuine.body)

		// What comes after it has been looked at, too.
		another := d.pay(d.first)
		d.genuine(d.letter())
		d.await("a third is paid", func() bool { return d.status(another) == till.Success })
		d.stop()
		if p := d.row(victim); p.Credited() || p.ProviderReference != "" || d.balance(d.second) != 0 {
			t.Errorf("the second client's is %s with receipt %q, and its wallet holds %d", p.Status, p.ProviderReference, d.balance(d.second))
		}
		if s := d.step(victim); s == nil || s.Handle != "" || s.CallbackBody != nil || d.cases(victim) != "" {
			t.Errorf("its step is %+v, its cases are %q: it was asked about", s, d.cases(victim))
		}
	})
}

// Both pushes' answers were lost: nobody can know whose a callback is but by
// its address. Wherever it comes first, it credits one payment only.
func TestACallbackOfTwoLostPushesCreditsOne(t *testing.T) {
	t.Parallel()
	inDaraja(t, func(t *testing.T, d *daraja) {
		lost := d.payLost(d.first)
		genuine := d.letter()
		victim := d.payLost(d.second)
		d.letter()
		d.deliver(victim, genuine.body)
		d.await("the replayed callback is taken", func() bool { return d.status(victim) == till.Success })
		d.genuine(genuine)
		d.genuine(genuine)

		another := d.pay(d.first)
		d.genuine(d.letter())
		d.await("a third is paid", func() bool { return d.status(another) == till.Success })
		d.stop()
		if p := d.row(lost); p.Credited() || d.balance(d.first) != another.Amount.Minor {
			t.Errorf("the first client's is %s, and its wallet holds %d", p.Status, d.balance(d.first))
		}
	})
}

// The same, with both asked about at the same moment, and another receipt forged
// into the one that is replayed: who records it second finds out then, by the id.
func TestACallbackOfTwoLostPushesAtTheSameMomentCreditsOne(t *testing.T) {
	t.Parallel()
	inDaraja(t, func(t *testing.T, d *daraja) {
		lost := d.payLost(d.first)
		genuine := d.letter()
		victim := d.payLost(d.second)
		d.letter()
		var both sync.WaitGroup
		both.Add(2)
		d.set(func() { d.waiting = &both })
		d.deliver(lost, genuine.body)
		forged := regexp.MustCompile(`("MpesaReceiptNumber","Value":")[^"]*`).ReplaceAll(genuine.body, []byte("${1}FORGED"))
		if bytes.Equal(forged, genuine.body) {
			t.Fatalf("nothing was forged: %s", forged)
		}
		d.deliver(victim, forged)
		both.Wait()
		d.set(func() { d.waiting = nil })
		d.await("one is credited", func() bool { return d.row(lost).Credited() || d.row(victim).Credited() })
		d.await("there is a case for the other", func() bool { return d.cases(lost)+d.cases(victim) == "handle_reused" })
		d.stop()
		if sum := d.balance(d.first) + d.balance(d.second); sum != lost.Amount.Minor {
			t.Errorf("one payment of %d was made, and %d were credited", lost.Amount.Minor, sum)
		}
	})
}

// The query reports no receipt, and the callback comes after it has reported the
// success: the receipt is stored then, and the client is notified.
func TestAReceiptThatComesAfterTheSuccessIsStoredAndTold(t *testing.T) {
	t.Parallel()
	inDaraja(t, func(t *testing.T, d *daraja) {
		p := d.pay(d.first)
		late := d.letter()
		d.deliver(p, nil) // somebody wakes it, without the callback
		d.await("it is paid", func() bool { return d.status(p) == till.Success })
		before := d.row(p)
		if before.ProviderReference != "" {
			t.Fatalf("the query told a receipt: %q", before.ProviderReference)
		}
		d.genuine(late) // within a second of the read
		d.await("the receipt is stored", func() bool { return d.row(p).ProviderReference != "" })
		after := d.row(p)
		if after.UpdatedAt <= before.UpdatedAt || after.Status != till.Success {
			t.Errorf("it is %s, updated at %s and before at %s", after.Status, after.UpdatedAt, before.UpdatedAt)
		}
		d.genuine(late)
		d.await("nothing is scheduled", func() bool { return d.step(p) == nil })
		d.stop()
		if got := d.kinds(p); got != "pending processing success updated" {
			t.Errorf("its events are %q", got)
		}
		if d.balance(d.first) != p.Amount.Minor || !strings.Contains(string(late.body), after.ProviderReference) {
			t.Errorf("the wallet holds %d, the receipt is %q", d.balance(d.first), after.ProviderReference)
		}
	})
}

// The callback comes while M-Pesa is asked, and the answer ends the payment.
func TestAReceiptThatComesWhileTheSuccessIsReadIsStored(t *testing.T) {
	t.Parallel()
	inDaraja(t, func(t *testing.T, d *daraja) {
		p := d.pay(d.first)
		late := d.letter()
		var both sync.WaitGroup
		both.Add(2)
		d.set(func() { d.waiting = &both })
		d.deliver(p, nil)
		d.await("it is being asked about", func() bool { s := d.step(p); return s != nil && s.LeaseUntil > d.store.Now() && s.Calls > 0 })
		d.genuine(late)
		both.Done()
		d.set(func() { d.waiting = nil })
		d.await("the receipt is stored", func() bool { return d.row(p).ProviderReference != "" })
		d.stop()
		if got := d.kinds(p); got != "pending processing success updated" {
			t.Errorf("its events are %q", got)
		}
	})
}

// A payment whose push was lost is ended by hand, and its person's data is erased. Then the
// callback comes, which names the number: the money is found and credited.
func TestTheCallbackOfAnErasedPaymentIsNotAnothers(t *testing.T) {
	t.Parallel()
	inDaraja(t, func(t *testing.T, d *daraja) {
		lost := d.payLost(d.first)
		genuine := d.letter()
		ctx := context.Background()
		letter := engine.Resolution{By: "Awa", Evidence: "a letter"}
		if err := d.collector.Resolve(ctx, store.Ref{Client: lost.ClientID, ID: lost.ID}, letter); err != nil {
			t.Fatal(err)
		}
		// Nothing is asked about it any more, or it could not be erased.
		over := func(tx *store.Tx) error {
			return tx.DeleteSteps(ctx, []store.Ref{{Client: lost.ClientID, ID: lost.ID}})
		}
		if err := d.store.Update(ctx, over); err != nil {
			t.Fatal(err)
		}
		erase := privacy.EraseRequest{Secret: []byte("a secret for tests"), Erasures: []privacy.Erasure{{Phone: payer}}, By: "Awa", Reason: "a letter"}
		if got, err := privacy.Erase(ctx, d.store, erase); err != nil || got.Payments != 1 {
			t.Fatalf("erased %+v, %v", got, err)
		}
		d.genuine(genuine)
		d.await("its money is credited", func() bool { return d.balance(d.first) == lost.Amount.Minor })
		if p := d.row(lost); !p.Credited() || !strings.Contains(string(genuine.body), p.ProviderReference) || p.ProviderReference == "" {
			t.Errorf("it is %s with receipt %q", p.Status, p.ProviderReference)
		}
	})
}
