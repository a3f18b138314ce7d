package collect_test

import (
	"strings"
	"testing"
	"time"

	"till"
	"till/collect"
	"till/engine"
	body "till/internal/request"
	"till/provider"
	"till/store"
	"till/store/auditlog"
	"till/store/lookup"
	"till/store/storetest"
)

func requestOf(key string, minor string) *collect.Request {
	text := func(s string) *string { return &s }
	return &collect.Request{Body: body.Body{Method: text("mtn_momo"), Country: text("CG"), IdempotencyKey: &key,
		Amount: &body.Amount{Value: &minor, Currency: text("XAF")}}, Customer: &collect.Customer{Phone: text("242061234567")}}
}

// Who asks at the counter is kept, once per key, with an audit row.
func TestAPaymentAtTheCounterHasItsPerson(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		client, c := storetest.NewClient(t, s, till.Test), storetest.NewCollector(t, s)
		brice, carine := till.NewID(s.Now()), till.NewID(s.Now())
		who := engine.Client{Client: client, Enabled: func(string) bool { return true }, Actor: "person:" + brice.String() + " Brice"}
		ask := func(person till.ID, key, minor string) (till.ID, bool, till.Code) {
			created, err := c.CreateAtCounter(t.Context(), who, person, requestOf(key, minor))
			if err != nil {
				return till.ID{}, false, till.ErrorCode(err)
			}
			return created.Payment.ID, created.Replayed, ""
		}
		key := till.NewID(s.Now()).String()
		first, replayed, code := ask(brice, key, "5000")
		if code != "" || replayed {
			t.Fatalf("the first: %v %q", replayed, code)
		}
		if again, replayed, code := ask(brice, key, "5000"); again != first || !replayed || code != "" {
			t.Errorf("the same form once more: %v %v %q", again, replayed, code)
		}
		if _, _, code := ask(brice, key, "6000"); code != till.CodeKeyReused {
			t.Errorf("the key with another amount: %q", code)
		}
		if _, _, code := ask(carine, key, "5000"); code != till.CodeKeyReused {
			t.Errorf("another person's key: %q", code)
		}
		if _, _, code := ask(brice, "no key", "5000"); code != till.CodeValidationFailed {
			t.Errorf("a key that is none: %q", code)
		}
		// A payment that a program made is nobody's at the counter.
		program := storetest.NewPayment(t, c, client, storetest.Body{})
		if _, _, code := ask(brice, program.IdempotencyKey, "5000"); code != till.CodeKeyReused {
			t.Errorf("the key of a program's payment: %q", code)
		}
		second, _, _ := ask(carine, till.NewID(s.Now()).String(), "700")
		third, _, _ := ask(brice, till.NewID(s.Now()).String(), "900")
		paid := func(id till.ID, r provider.Result) {
			storetest.Apply(t, c, s, &till.Payment{ClientID: client.ID, ID: id}, r)
		}
		paid(first, storetest.Succeeded)
		paid(second, storetest.Succeeded)
		err := s.View(t.Context(), func(tx *store.Tx) error {
			since := tx.Now().Add(-time.Hour)
			rows, err := lookup.CollectedBy(t.Context(), tx, client.ID, brice, since, 10)
			if err != nil {
				return err
			}
			if len(rows) != 2 || rows[0].ID != third || rows[1].ID != first || rows[1].Status != till.Success || rows[0].Status != till.Pending {
				t.Errorf("Brice's payments are %+v", rows)
			}
			if rows, err := lookup.CollectedBy(t.Context(), tx, client.ID, brice, tx.Now().Add(time.Hour), 10); len(rows) != 0 || err != nil {
				t.Errorf("later there are %d, %v", len(rows), err)
			}
			if rows, err := lookup.CollectedBy(t.Context(), tx, client.ID, brice, since, 1); len(rows) != 1 || err != nil {
				t.Errorf("one at most: %d, %v", len(rows), err)
			}
			sums, err := lookup.CollectedSums(t.Context(), tx, client.ID, brice, since)
			if len(sums) != 1 || sums[0] != (lookup.CollectedSum{Payments: 1, Amount: till.Money{Minor: 5000, Currency: "XAF"}}) {
				t.Errorf("Brice collected %+v, %v", sums, err)
			}
			acts, err := auditlog.ActsOn(t.Context(), tx, store.Ref{Client: client.ID, ID: first}, 10)
			if err != nil || len(acts) != 1 || acts[0].Action != "payment.create" || acts[0].Actor != who.Actor || strings.Contains(acts[0].Detail, "242061234567") || !strings.Contains(acts[0].Detail, "5000 XAF") {
				t.Errorf("the audit log has %+v, %v", acts, err)
			}
			acts, err = auditlog.ActsOn(t.Context(), tx, store.Ref{Client: client.ID, ID: program.ID}, 10)
			if len(acts) != 0 {
				t.Errorf("a program's payment has %+v", acts)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
