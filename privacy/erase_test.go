package privacy_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"till"
	"till/engine"
	"till/privacy"
	"till/provider"
	"till/store"
	"till/store/auditlog"
	"till/store/lookup"
	"till/store/storetest"
	"till/store/webhooks"
	"till/upkeep"
)

var testSecret = []byte("a secret for tests") // of storetest

// What has ended and still has work keeps its person's data: the operator is asked with the
// phone, and who works on a case needs it.
func TestWhatHasOpenWorkIsNotErased(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		ctx, client, c := t.Context(), storetest.NewClient(t, s, till.Test), storetest.NewCollector(t, s)
		const phone = "242061230001"
		failed := storetest.NewPayment(t, c, client, storetest.Body{Phone: phone})
		storetest.Apply(t, c, s, failed, provider.Result{Outcome: provider.Failed, Reason: till.InsufficientFunds}) // late reads follow
		paid := storetest.NewPayment(t, c, client, storetest.Body{Phone: phone})
		storetest.Apply(t, c, s, paid, storetest.Succeeded)
		storetest.Apply(t, c, s, paid, provider.Result{Outcome: provider.Failed, Reason: till.InsufficientFunds}) // a case
		key, err := lookup.NewPhoneKey(testSecret)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := upkeep.IndexPhones(ctx, s, key, s.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		got, err := privacy.Erase(ctx, s, privacy.EraseRequest{Secret: testSecret, Erasures: []privacy.Erasure{{Phone: phone}}, By: "Awa", Reason: "a letter"})
		if err != nil || *got != (privacy.EraseResult{Left: 2}) {
			t.Errorf("erased %+v, %v; want none, and two left", got, err)
		}
		storetest.View(t, s, func(ctx context.Context, tx *store.Tx) error {
			for _, p := range []*till.Payment{failed, paid} {
				ref := store.Ref{Client: client.ID, ID: p.ID}
				row, err := tx.Payment(ctx, ref)
				if err != nil {
					return err
				}
				if busy, err := lookup.HasOpenWork(ctx, tx, ref); err != nil || !busy || !row.Status.Final() || row.Phone != phone {
					t.Errorf("it is %s with the phone %s, open work %t, %v; want one that has ended, with work and its phone", row.Status, row.Phone, busy, err)
				}
			}
			return nil
		})
	})
}

// What the index of words knows of a person goes with the person: the end of the phone and, with the texts, the words
// of the description. The reference and the amount are found as before.
func TestTheIndexOfWordsForgets(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		ctx, client, c := t.Context(), storetest.NewClient(t, s, till.Test), storetest.NewCollector(t, s)
		paid := storetest.NewPayment(t, c, client, storetest.Body{Phone: "242061230567", Reference: "ORDER-1042", Rest: `"description": "Pain pour Loemba"`})
		storetest.Apply(t, c, s, paid, storetest.Succeeded)
		key, err := lookup.NewPhoneKey(testSecret)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := upkeep.IndexWords(ctx, s, key, s.Now().Add(time.Second)); err != nil || n != 1 {
			t.Fatalf("%d rows, %v", n, err)
		}
		has := func(text string) (n int) {
			storetest.View(t, s, func(ctx context.Context, tx *store.Tx) error {
				refs, err := lookup.RefsByText(ctx, tx, key, client.ID, false, lookup.NewText(text), 10)
				n = len(refs)
				return err
			})
			return n
		}
		kept, gone := []string{"1042", "order"}, []string{"567", "0567", "loemba", "pain"}
		for _, text := range append(gone, kept...) {
			if has(text) == 0 {
				t.Errorf("the index does not have %q", text)
			}
		}
		got, err := privacy.Erase(ctx, s, privacy.EraseRequest{Secret: testSecret, Erasures: []privacy.Erasure{{Before: s.Now().Add(time.Hour), Texts: true}}, By: "Awa", Reason: "a letter"})
		if err != nil || got.Payments != 1 {
			t.Fatalf("erased %+v, %v", got, err)
		}
		if _, err := upkeep.IndexWords(ctx, s, key, s.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		for _, text := range gone {
			if has(text) > 0 {
				t.Errorf("the index still has %q", text)
			}
		}
		for _, text := range kept {
			if has(text) == 0 {
				t.Errorf("the index has lost %q", text)
			}
		}
	})
}

// A number is kept while money is on its way back to it, and erased with the refund after that,
// whose key still works.
func TestAPaymentWithAnOpenRefundIsNotErased(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		storetest.AllowRefunds(t, s)
		ctx, client, c, m := t.Context(), storetest.NewClient(t, s, till.Live), storetest.NewCollector(t, s), storetest.NewDisburser(t, s)
		const phone = "242061230001"
		paid := storetest.Apply(t, c, s, storetest.NewPayment(t, c, client, storetest.Body{Phone: phone}), storetest.Succeeded)
		body := storetest.RefundBody{PaymentID: paid.ID.String(), Key: till.NewID(s.Now()).String(), Value: "2000", Rest: `"description":"for Mado"`}
		given := storetest.NewRefund(t, m, s, client, body)
		key, err := lookup.NewPhoneKey(testSecret)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := upkeep.IndexPhones(ctx, s, key, s.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		erase := func(want privacy.EraseResult) {
			t.Helper()
			got, err := privacy.Erase(ctx, s, privacy.EraseRequest{Secret: testSecret, Erasures: []privacy.Erasure{{Phone: phone}}, By: "Awa", Reason: "a letter"})
			if err != nil || *got != want {
				t.Errorf("erased %+v, %v; want %+v", got, err, want)
			}
		}
		erase(privacy.EraseResult{Left: 2})
		storetest.ApplyPayout(t, m, s, given, storetest.Succeeded)
		erase(privacy.EraseResult{Payments: 1, Payouts: 1})
		_, err = storetest.CreateRefund(t, m, s, client, storetest.RefundBody{PaymentID: paid.ID.String(), Value: "1000"})
		var e *till.Error
		if !errors.As(err, &e) || e.Code != till.CodeNotRefundable || !strings.Contains(e.Detail, "erased") {
			t.Errorf("refunded to an erased number: %v", err)
		}
		// A retry is recognised, and another body is not.
		again, err := storetest.CreateRefund(t, m, s, client, body)
		if err != nil || !again.Replayed || again.Payout.ID != given.ID || strings.Contains(string(again.Payout.AppendJSON(nil)), phone) {
			t.Errorf("asked again: %+v, %v", again.Payout, err)
		}
		body.Value = "1999"
		if _, err = storetest.CreateRefund(t, m, s, client, body); !errors.As(err, &e) || e.Code != till.CodeKeyReused || e.RefundID != given.ID {
			t.Errorf("another amount: %v", err)
		}
	})
}

// A person's data is out of all rows that have ended, of all clients, and nothing else has
// changed: the books verify, a retry is recognised, another body is not, others' rows stay.
func TestErase(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			s := storetest.Open(t, e.Config(t))
			c, m := storetest.NewCollector(t, s), storetest.NewDisburser(t, s)
			a, b := storetest.NewClient(t, s, till.Test), storetest.NewClient(t, s, till.Test)
			const mine, others = "242061230001", "242061230002"
			body := storetest.Body{Phone: mine, Key: till.NewID(s.Now()).String(),
				Rest: `"description":"for Mado","metadata":{"who":"Mado"},"tax":{"inclusive":true,"amount":"1000","rate":"18.00"}`}
			paid := storetest.NewPayment(t, c, a, body)
			storetest.Apply(t, c, s, paid, storetest.Succeeded)
			theirs := storetest.NewPayment(t, c, a, storetest.Body{Phone: others, Rest: `"description":"for Mado"`})
			storetest.Apply(t, c, s, theirs, storetest.Succeeded)
			open := storetest.NewPayment(t, c, a, storetest.Body{Phone: mine})
			elsewhere := storetest.NewPayment(t, c, b, storetest.Body{Phone: mine})
			storetest.Apply(t, c, s, elsewhere, storetest.Succeeded)
			out := storetest.Body{Phone: mine, Value: "700", Key: till.NewID(s.Now()).String()}
			payout := storetest.NewPayout(t, m, a, out, 0)
			storetest.ApplyPayout(t, m, s, payout, storetest.Succeeded)
			answerOf(t, s, a, paid.ID)
			key, err := lookup.NewPhoneKey(testSecret)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := upkeep.IndexPhones(ctx, s, key, s.Now().Add(time.Second)); err != nil {
				t.Fatal(err)
			}

			r := privacy.EraseRequest{Secret: testSecret, Erasures: []privacy.Erasure{{Phone: mine}}, By: "Awa", Reason: "a letter"}
			erase := func(payments, payouts, left int) {
				t.Helper()
				got, err := privacy.Erase(ctx, s, r)
				if err != nil || *got != (privacy.EraseResult{Payments: payments, Payouts: payouts, Left: left}) {
					t.Fatalf("erased %+v, %v; want %d payments, %d payouts, %d left", got, err, payments, payouts, left)
				}
			}
			r.DryRun = true
			erase(2, 1, 1)
			r.DryRun = false
			erase(2, 1, 1)
			erase(0, 0, 1)
			token := privacy.ErasedToken(testSecret, mine)
			if strings.Contains(token, "123") || !strings.HasPrefix(token, engine.ErasedMark) || token == privacy.ErasedToken(testSecret, others) {
				t.Errorf("the token is %q", token)
			}
			err = s.View(ctx, func(tx *store.Tx) error {
				p, err := tx.Payment(ctx, store.Ref{Client: a.ID, ID: paid.ID})
				if err != nil {
					return err
				}
				want := bytes.Replace(paid.Document, []byte(mine), []byte(token), 1)
				if p.Phone != token || !bytes.Equal(p.Document, want) || p.Status != till.Success || p.Amount != paid.Amount {
					t.Errorf("it is %+v %s", p.Payment, p.Document)
				}
				events, err := tx.PaymentEvents(ctx, store.Ref{Client: a.ID, ID: paid.ID})
				if err != nil {
					return err
				}
				for _, e := range events {
					if text := e.AppendJSON(nil); bytes.Contains(text, []byte(mine)) || !bytes.Contains(text, []byte(token)) {
						t.Errorf("an event still says %s", text)
					}
				}
				if q, err := tx.Payment(ctx, store.Ref{Client: a.ID, ID: theirs.ID}); err != nil || q.Phone != others || !bytes.Equal(q.Document, theirs.Document) {
					t.Errorf("another's payment is %+v, %v", q, err)
				}
				if q, err := tx.Payment(ctx, store.Ref{Client: a.ID, ID: open.ID}); err != nil || q.Phone != mine {
					t.Errorf("an open payment is %+v, %v", q, err)
				}
				refs, err := lookup.RefsByPhone(ctx, tx, a.ID, key.Mark(mine), false, 10)
				if err != nil || len(refs) != 1 || refs[0].ID != open.ID {
					t.Errorf("the index of phones has %v, %v; want the open one", refs, err)
				}
				acts, err := auditlog.Read(ctx, tx, a.ID, 0, 100)
				if n := countActs(acts, token); n != 2 {
					t.Errorf("%d acts are in the audit log, want one for payments and one for payouts", n)
				}
				house, err2 := auditlog.Read(ctx, tx, till.House, 0, 100)
				if n := countActs(house, token); n != 2 {
					t.Errorf("%d acts are in the house's log, want one for each run", n)
				}
				if text := answerText(t, tx, a.ID); text != "" {
					t.Errorf("a receiver's answer is kept: %q", text)
				}
				if err == nil {
					err = err2
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if again, err := storetest.CreatePayment(t, c, a, body); err != nil || !again.Replayed || again.Payment.ID != paid.ID || bytes.Contains(again.Payment.Document, []byte(mine)) {
				t.Errorf("a retry: %+v, %v", again, err)
			}
			other := body
			other.Phone = others
			if _, err := storetest.CreatePayment(t, c, a, other); till.ErrorCode(err) != till.CodeKeyReused {
				t.Errorf("the key with another phone: %v", err)
			}
			if again, err := storetest.CreatePayout(t, m, a, out, 0); err != nil || !again.Replayed || again.Payout.ID != payout.ID {
				t.Errorf("a retry of a payout: %+v, %v", again, err)
			}

			// By token, as after a restore; and by age, with the client's texts.
			storetest.Apply(t, c, s, open, storetest.Succeeded)
			r.Erasures = []privacy.Erasure{{Token: token}, {Token: privacy.ErasedToken(testSecret, "242069999999")}}
			erase(1, 0, 0)
			r.Erasures = []privacy.Erasure{{Before: paid.CreatedAt}}
			erase(0, 0, 0)
			r.Erasures = []privacy.Erasure{{Before: s.Now().Add(time.Hour), Texts: true}}
			erase(1, 0, 0)
			err = s.View(ctx, func(tx *store.Tx) error {
				p, err := tx.Payment(ctx, store.Ref{Client: a.ID, ID: theirs.ID})
				if err == nil && (bytes.Contains(p.Document, []byte("Mado")) || p.Phone == others) {
					t.Errorf("it still says %s", p.Document)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			storetest.CheckInvariants(t, s)
		})
	}
}

func countActs(rows []*store.AuditRow, token string) (n int) {
	for _, a := range rows {
		if a.Action == "person.erase" && a.Actor == "Awa" && strings.Contains(a.Detail, token) && strings.Contains(a.Detail, "a letter") {
			n++
		}
	}
	return n
}

// answerOf keeps a receiver's answer to an event of a payment.
func answerOf(t *testing.T, s *store.Store, c *till.Client, subject till.ID) {
	t.Helper()
	ctx, now := t.Context(), s.Now()
	e := &webhooks.Endpoint{Endpoint: till.Endpoint{ID: till.NewID(now), ClientID: c.ID, URL: "https://shop.example.com/h", Enabled: true, CreatedAt: now, UpdatedAt: now}, Secret: []byte("sealed")}
	err := s.Update(ctx, func(tx *store.Tx) error {
		if err := webhooks.InsertEndpoint(ctx, tx, e); err != nil {
			return err
		}
		return webhooks.SaveDeliveries(ctx, tx, []*webhooks.Delivery{{ClientID: c.ID, EndpointID: e.ID, Sequence: 1, Kind: webhooks.DeliverTest, ID: till.NewID(now), SubjectID: subject, Status: webhooks.DeliveryDelivered,
			Attempts: 1, DueAt: now, CreatedAt: now, UpdatedAt: now, Last: webhooks.DeliveryAttempt{SentAt: now, URL: e.URL, Code: 200, Text: "thank you, Mado"}}})
	})
	if err != nil {
		t.Fatal(err)
	}
}

func answerText(t *testing.T, tx *store.Tx, client till.ID) (text string) {
	t.Helper()
	endpoints, err := webhooks.Endpoints(t.Context(), tx, client, 10)
	if err != nil || len(endpoints) != 1 {
		t.Fatal(endpoints, err)
	}
	rows, err := webhooks.DeliveriesBetween(t.Context(), tx, endpoints[0].Ref(), 0, 10)
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}
	return rows[0].Last.Text
}
