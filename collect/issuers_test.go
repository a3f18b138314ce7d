package collect_test

import (
	"context"
	"sync"
	"testing"

	"till"
	"till/books"
	"till/collect"
	"till/engine"
	"till/provider"
	"till/provider/pawapay"
	"till/store"
	"till/store/admin"
	"till/store/matching"
	"till/store/storetest"
	"till/upkeep"
)

// issuers is two clients whose one connection is an account at an aggregator.
type issuers struct {
	*receipts
	operator *pawapay.Operator
}

func inIssuers(t *testing.T, level int, tell func(w *issuers)) {
	t.Helper()
	operator, err := pawapay.New(pawapay.Config{BaseURL: "https://api.sandbox.pawapay.io", APIToken: "token", Operations: []string{"payments", "payouts"}}, provider.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		install(t, s, level)
		w := &issuers{&receipts{t: t, store: s}, operator}
		w.collector = w.instance()
		w.clients = [2]*till.Client{storetest.NewClient(t, s, till.Live), storetest.NewClient(t, s, till.Live)}
		tell(w)
		storetest.CheckInvariants(t, s)
	})
}

// install makes the installation, at a level.
func install(t *testing.T, s *store.Store, level int) {
	t.Helper()
	err := s.Update(t.Context(), func(tx *store.Tx) error {
		return admin.InsertInstallation(t.Context(), tx, &admin.Installation{LogID: till.NewID(tx.Now()), SecretCheck: []byte("check"), CreatedAt: tx.Now()})
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := upkeep.RaiseLevel(t.Context(), s, level, "Awa"); err != nil {
		t.Fatal(err)
	}
}

func (w *issuers) instance() *collect.Collector {
	return storetest.NewCollector(w.t, w.store, func(c *engine.Config) {
		c.Connections = map[string]provider.Provider{storetest.Connection: w.operator.Payments()}
	})
}

var numbers = map[string]string{"CG": "242061234567", "CM": "237670123456"}

// payIn makes a payment by MTN in a country.
func (w *issuers) payIn(client int, country string) *till.Payment {
	w.t.Helper()
	return storetest.NewPayment(w.t, w.collector, w.clients[client], storetest.Body{Country: country, Phone: numbers[country]})
}

func (w *issuers) credited(how string, p *till.Payment, receipt string) {
	w.t.Helper()
	if row := w.row(p); !row.Credited() || row.ProviderReference != receipt {
		w.t.Errorf("%s: it is %s, credited %v, with receipt %q and case %q", how, row.Status, row.Credited(), row.ProviderReference, w.reused(p))
	}
}

// register has the connection written down as the aggregator's.
func (w *issuers) register() {
	w.t.Helper()
	err := w.store.Update(w.t.Context(), func(tx *store.Tx) error {
		return admin.SetConnectionFingerprint(w.t.Context(), tx, storetest.Connection, w.operator.Payments().Fingerprint())
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *issuers) checked(p *till.Payment, r provider.Result) *engine.Answer {
	return &engine.Answer{Ref: store.Ref{Client: p.ClientID, ID: p.ID}, Action: engine.Check, Connection: p.Connection,
		Started: w.store.Now(), Ended: w.store.Now(), Result: r}
}

// An aggregator passes on the receipts of several operators, and each counts its own.
func TestOneReceiptOfTwoCountriesCreditsBoth(t *testing.T) {
	t.Parallel()
	inIssuers(t, admin.Level, func(w *issuers) {
		congo, cameroon := w.payIn(0, "CG"), w.payIn(0, "CM")
		for _, p := range []*till.Payment{congo, cameroon} {
			w.say(p, paidUnder("R1"))
			w.credited("in "+p.Country, p, "R1")
		}
		for _, country := range []string{"CG", "CM"} {
			for client := range w.clients {
				p := w.payIn(client, country)
				w.say(p, paidUnder("R1"))
				w.notCredited("once more in "+country, p)
				w.say(p, paidUnder("R1"))
				w.notCredited("asked again in "+country, p)
			}
		}
		both := []*till.Payment{w.payIn(0, "CG"), w.payIn(1, "CM"), w.payIn(1, "CG")}
		var answers []*engine.Answer
		for _, p := range both {
			answers = append(answers, w.checked(p, paidUnder("R2")))
		}
		w.collector.Apply(w.t.Context(), answers)
		w.credited("together, in CG", both[0], "R2")
		w.credited("together, in CM", both[1], "R2")
		w.notCredited("together, once more in CG", both[2])

		if n, err := w.store.FillReceipts(w.t.Context()); err != nil || n != 0 {
			w.t.Errorf("%d receipts were missing, %v", n, err)
		}
		w.view(func(ctx context.Context, tx *store.Tx) error {
			have, err := tx.OwnersOfReceipt(ctx, till.SubjectPayment, storetest.Connection, "R1")
			if len(have) != 0 {
				w.t.Errorf("%v have it on a connection that is no aggregator's", have)
			}
			return err
		})
		w.register()
		w.view(func(ctx context.Context, tx *store.Tx) error {
			have, err := tx.OwnersOfReceipt(ctx, till.SubjectPayment, storetest.Connection, "R1")
			if len(have) != 0 { // it does not say whose it is
				w.t.Errorf("%v have the receipt", have)
			}
			return err
		})
	})
}

// What was recorded before the level names the connection alone. It stands for the issuer of
// the payment that has it.
func TestReceiptsThatWereRecordedByConnection(t *testing.T) {
	t.Parallel()
	inIssuers(t, 2, func(w *issuers) {
		w.say(w.payIn(0, "CG"), paidUnder("R1"))
		cameroon, later := w.payIn(0, "CM"), w.payIn(1, "CM")
		for _, p := range []*till.Payment{cameroon, later} {
			w.say(p, paidUnder("R1"))
			w.notCredited("before the level", p)
		}
		if _, err := upkeep.RaiseLevel(w.t.Context(), w.store, admin.Level, "Awa"); err != nil {
			w.t.Fatal(err)
		}
		w.register()
		w.view(func(ctx context.Context, tx *store.Tx) error {
			have, err := tx.OwnersOfReceipt(ctx, till.SubjectPayment, storetest.Connection, "R1")
			if len(have) != 0 { // it may be another issuer's, too
				w.t.Errorf("%v have what was recorded by connection", have)
			}
			return err
		})
		again := w.payIn(1, "CG")
		w.say(again, paidUnder("R1"))
		w.notCredited("the issuer's own", again)
		w.say(cameroon, paidUnder("R1"))
		w.credited("another issuer's", cameroon, "R1")
		w.say(later, paidUnder("R1"))
		w.notCredited("the other issuer's, once more", later)
	})
}

// A command knows no operator, and records as an instance does.
func TestAPersonCreditsTheSecondOfTwoCountries(t *testing.T) {
	t.Parallel()
	inIssuers(t, admin.Level, func(w *issuers) {
		command := storetest.NewCollector(w.t, w.store, func(c *engine.Config) { c.Connections = nil })
		r := engine.Resolution{Success: true, Receipt: "R1", By: "Awa", Evidence: "a statement"}
		for _, country := range []string{"CG", "CM"} {
			p := w.payIn(0, country)
			if err := command.Resolve(w.t.Context(), store.Ref{Client: p.ClientID, ID: p.ID}, r); err != nil {
				w.t.Fatal(err)
			}
			w.credited("in "+country, p, "R1")
			p = w.payIn(1, country)
			if err := command.Resolve(w.t.Context(), store.Ref{Client: p.ClientID, ID: p.ID}, r); till.ErrorCode(err) != till.CodeValidationFailed {
				w.t.Errorf("once more in %s: %v", country, err)
			}
			w.say(p, paidUnder("R1"))
			w.notCredited("after a command, in "+country, p)
		}
	})
}

func TestOneReceiptOfAnIssuerAtTwoInstancesCreditsOne(t *testing.T) {
	t.Parallel()
	inIssuers(t, admin.Level, func(w *issuers) {
		other := w.instance()
		for _, receipt := range []string{"R1", "R2", "R3", "R4"} {
			pair := []*till.Payment{w.payIn(0, "CM"), w.payIn(1, "CM")}
			begin := make(chan struct{})
			var telling sync.WaitGroup
			for i, c := range []*collect.Collector{w.collector, other} {
				a := w.checked(pair[i], paidUnder(receipt))
				telling.Go(func() {
					<-begin
					c.Apply(context.Background(), []*engine.Answer{a})
				})
			}
			close(begin)
			telling.Wait()
			if a, b := w.row(pair[0]).Credited(), w.row(pair[1]).Credited(); a == b {
				w.t.Errorf("credited: %v and %v", a, b)
			}
		}
	})
}

func TestOneReceiptOfTwoCountriesPostsBothPayouts(t *testing.T) {
	t.Parallel()
	inIssuers(t, admin.Level, func(w *issuers) {
		m := storetest.NewDisburser(w.t, w.store, func(c *engine.Config) {
			c.Connections = map[string]provider.Provider{storetest.Connection: w.operator.Payouts()}
		})
		for _, receipt := range []string{"R1", "R2", "R3"} {
			w.say(w.payIn(0, "CG"), paidUnder(receipt))
		}
		for i, want := range []till.PayoutStatus{till.PayoutSuccess, till.PayoutSuccess, till.PayoutPending} {
			country := []string{"CG", "CM", "CM"}[i]
			p := storetest.NewPayout(w.t, m, w.clients[0], storetest.Body{Key: till.NewID(w.store.Now()).String(), Country: country, Phone: numbers[country]}, 0)
			storetest.ApplyPayout(w.t, m, w.store, p, paidUnder("P1"))
			w.view(func(ctx context.Context, tx *store.Tx) error {
				row, err := tx.Payout(ctx, store.Ref{Client: p.ClientID, ID: p.ID})
				if err == nil && row.Status != want {
					w.t.Errorf("payout %d, in %s, is %s, want %s", i, country, row.Status, want)
				}
				return err
			})
		}
	})
}

// A stray of which an aggregator reports only the receipt may be any country's. No payment that
// is credited under the receipt closes it, and none takes back what a person gave for it.
func TestAnAggregatorsReceiptClosesNoStray(t *testing.T) {
	t.Parallel()
	inIssuers(t, admin.Level, func(w *issuers) {
		w.register()
		stray := &matching.Stray{Connection: storetest.Connection, Client: w.clients[0].ID, ID: till.NewID(w.store.Now()), Receipt: "R1", Source: matching.StrayStatement, SeenAt: w.store.Now(),
			Direction: matching.StrayIn, Amount: xaf(700), Claimed: "success", ConfirmedAt: w.store.Now(), Confirmed: "line 7"}
		if err := w.store.Update(w.t.Context(), func(tx *store.Tx) error { _, err := matching.InsertStray(w.t.Context(), tx, stray); return err }); err != nil {
			w.t.Fatal(err)
		}
		is := func(when, why string) {
			w.t.Helper()
			if s, err := books.ShowStray(w.t.Context(), w.store, stray.ID); err != nil || s.Why != why || s.TakenBack || !s.Settled.IsZero() {
				w.t.Errorf("%s it is %+v, %v; want %q", when, s, err, why)
			}
		}
		cameroon := w.payIn(0, "CM")
		w.say(cameroon, paidUnder("R1"))
		w.credited("in CM", cameroon, "R1")
		is("after the credit in CM", "")
		given, err := books.AttributeStray(w.t.Context(), w.store, books.Attribution{Stray: stray.ID, Client: w.clients[1].ID, By: "Awa", Evidence: []byte("a letter"), Named: "letter.txt"})
		if err != nil || given.Wallet.Balance != 700 {
			w.t.Errorf("given to a client: its wallet has %d, %v", given.Wallet.Balance, err)
		}
		is("given to a client", matching.StrayAttributed)
		congo := w.payIn(0, "CG")
		w.say(congo, paidUnder("R1"))
		w.credited("in CG", congo, "R1")
		is("after the credit in CG", matching.StrayAttributed)
	})
}
