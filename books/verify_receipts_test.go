package books_test

import (
	"path/filepath"
	"strings"
	"testing"

	"till"
	"till/books"
	"till/engine"
	"till/provider"
	"till/provider/pawapay"
	"till/store"
	"till/store/admin"
	"till/store/storetest"
	"till/upkeep"
)

// newReceipts fills a store with payments and a payout of two clients that have
// receipts: told with the money, after it, and after it was taken back.
func newReceipts(t *testing.T, path string) *store.Store {
	t.Helper()
	s := storetest.Open(t, store.Config{Path: path})
	c, m := storetest.NewCollector(t, s), storetest.NewDisburser(t, s)
	for range 2 {
		client := storetest.NewClient(t, s, till.Live)
		under := func(receipt string) provider.Result {
			return provider.Result{Outcome: provider.Success, Receipt: receipt + client.ID.String()}
		}
		for reference, words := range map[string][]provider.Result{
			"with":   {storetest.Opened, under("A")},
			"after":  {storetest.Opened, storetest.Succeeded, under("B")},
			"late":   {storetest.TimedOut, storetest.Succeeded, under("C")},
			"back":   {storetest.Succeeded, under("D"), storetest.Reversed},
			"behind": {storetest.Succeeded, storetest.Reversed, under("E")},
		} {
			p := storetest.NewPayment(t, c, client, storetest.Body{Reference: reference})
			for _, w := range words {
				storetest.Apply(t, c, s, p, w)
			}
		}
		storetest.ApplyPayout(t, m, s, storetest.NewPayout(t, m, client, storetest.Body{}, 0), under("F"))
	}
	if _, err := books.ExtendChains(t.Context(), s, storetest.ChainKey); err != nil {
		t.Fatal(err)
	}
	storetest.RollUp(t, s)
	return s
}

// TestVerifyProvesReceiptsOfIssuers: at an aggregator a receipt has one owner for each
// operator in each country, whether it was recorded before or since.
func TestVerifyProvesReceiptsOfIssuers(t *testing.T) {
	t.Parallel()
	template := filepath.Join(t.TempDir(), "template.db")
	s := storetest.Open(t, store.Config{Path: template})
	operator, err := pawapay.New(pawapay.Config{BaseURL: "https://api.sandbox.pawapay.io", APIToken: "token"}, provider.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Update(t.Context(), func(tx *store.Tx) error {
		return admin.InsertInstallation(t.Context(), tx, &admin.Installation{LogID: till.NewID(tx.Now()), SecretCheck: []byte("check"), CreatedAt: tx.Now()})
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := upkeep.RaiseLevel(t.Context(), s, admin.Level, "Awa"); err != nil {
		t.Fatal(err)
	}
	c := storetest.NewCollector(t, s, func(c *engine.Config) {
		c.Connections = map[string]provider.Provider{storetest.Connection: operator.Payments()}
	})
	for i, b := range []storetest.Body{{Reference: "here"}, {Reference: "there", Country: "CM", Phone: "237670123456"}, {Reference: "other"}} {
		p := storetest.NewPayment(t, c, storetest.NewClient(t, s, till.Live), b)
		storetest.Apply(t, c, s, p, provider.Result{Outcome: provider.Success, Receipt: []string{"R1", "R1", "R2"}[i]})
	}
	if _, err := books.ExtendChains(t.Context(), s, storetest.ChainKey); err != nil {
		t.Fatal(err)
	}
	storetest.RollUp(t, s)

	for _, p := range verify(t, s, books.Options{Slice: 2}).Problems {
		t.Errorf("nothing is broken: %+v", p)
	}
	named := func(reference string) string {
		return `(SELECT id FROM payments WHERE reference = '` + reference + `')`
	}
	before := `UPDATE operator_receipts SET connection = 'silent' WHERE subject_id = ` + named("here")
	twice := `DELETE FROM operator_receipts WHERE subject_id = ` + named("other") +
		`; UPDATE events SET provider_reference = 'R1' WHERE kind = 'payment.success' AND subject_id = ` + named("other") +
		`; UPDATE payments SET provider_reference = 'R1' WHERE reference = 'other'`
	for name, d := range map[string]struct {
		sql  string
		want string
	}{
		"one was recorded before":                  {sql: before},
		"a receipt of two payments":                {twice, "belongs to payment"},
		"a receipt of two, recorded before":        {before + `;` + twice, "belongs to payment"},
		"a receipt of an issuer that it is not of": {`UPDATE operator_receipts SET connection = 'silent/mtn_momo/GA' WHERE subject_id = ` + named("there"), "the record of receipts says"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := broken(t, template, d.sql)
			found := false
			for _, p := range verify(t, s, books.Options{Slice: 2}).Problems {
				if d.want == "" {
					t.Errorf("nothing is broken: %+v", p)
				}
				found = found || p.Invariant == "I2" && strings.Contains(p.Detail, d.want)
			}
			if d.want != "" && !found {
				t.Error("it is not found")
			}
		})
	}
}

// TestVerifyProvesReceipts: a receipt has one owner, over all clients, and
// what was told of it is what is there.
func TestVerifyProvesReceipts(t *testing.T) {
	t.Parallel()
	template := filepath.Join(t.TempDir(), "template.db")
	for _, p := range verify(t, newReceipts(t, template), books.Options{Slice: 2}).Problems {
		t.Errorf("nothing is broken: %+v", p)
	}
	const ofTheOther = `(SELECT provider_reference FROM payments WHERE reference = 'with' AND client_id = (SELECT max(client_id) FROM clients))`
	updated := ` WHERE kind = 'payment.updated' AND subject_id = `
	for _, c := range []struct{ invariant, name, sql string }{
		{"I2", "a receipt of another client's payment", `UPDATE payments SET provider_reference = ` + ofTheOther + ` WHERE id = ` + of("with") +
			`; UPDATE events SET provider_reference = ` + ofTheOther + ` WHERE kind = 'payment.success' AND subject_id = ` + of("with") +
			`; DELETE FROM operator_receipts WHERE subject_id = ` + of("with")},
		{"I2", "a receipt that is not on record", `DELETE FROM operator_receipts WHERE subject_id = ` + of("with")},
		{"I2", "a payout's receipt that is not on record", `DELETE FROM operator_receipts WHERE kind = 'payout' AND client_id = ` + firstClient},
		{"I2", "a receipt on record that nobody has", `UPDATE operator_receipts SET receipt = 'X' WHERE subject_id = ` + of("with")},
		{"I2", "a receipt on record of no payment", `INSERT INTO operator_receipts (connection, receipt, kind, client_id, subject_id) VALUES ('silent', 'X', 'payment', ` + firstClient + `, x'01')`},
		{"I6", "a late receipt that nobody was told of", `UPDATE payments SET updated_event = NULL WHERE id = ` + of("after")},
		{"I6", "a late receipt told as something else", `UPDATE events SET kind = 'payment.success'` + updated + of("after")},
		{"I6", "a late receipt with another status", `UPDATE events SET status = 'failed'` + updated + of("after")},
		{"I6", "a late receipt told as another", `UPDATE events SET provider_reference = 'X'` + updated + of("after")},
		{"I6", "a success that knew the receipt before", `UPDATE events SET provider_reference = (SELECT provider_reference FROM payments WHERE id = ` + of("after") +
			`) WHERE kind = 'payment.success' AND subject_id = ` + of("after")},
		{"I6", "a reversal that knew the receipt before", `UPDATE events SET provider_reference = 'X' WHERE kind = 'payment.reversed' AND subject_id = ` + of("behind")},
		{"I6", "a reversal that has forgotten the receipt", `UPDATE events SET provider_reference = NULL WHERE kind = 'payment.reversed' AND subject_id = ` + of("back")},
		{"I6", "a late receipt before the money", `UPDATE events SET created_at = created_at - 3600000000` + updated + of("late")},
	} {
		t.Run(c.invariant+" "+c.name, func(t *testing.T) {
			t.Parallel()
			s, client := broken(t, template, c.sql)
			found := false
			for _, p := range verify(t, s, books.Options{Slice: 4}).Problems {
				found = found || p.Invariant == c.invariant && p.Client == client
			}
			if !found {
				t.Errorf("it is not found")
			}
		})
	}
	// Where it is known that two have one receipt, the books can be right again.
	s, _ := broken(t, template, `UPDATE operator_receipts SET client_id = (SELECT max(client_id) FROM clients), subject_id = (SELECT id FROM payments WHERE reference = 'after' AND client_id = (SELECT max(client_id) FROM clients)) WHERE subject_id = `+of("with")+
		`; INSERT INTO cases (client_id, id, subject_id, kind, detail, opened_at, closed_at) SELECT client_id, id, id, 'receipt_reused', 'x', 1, 2 FROM payments WHERE id = `+of("with"))
	for _, p := range verify(t, s, books.Options{}).Problems {
		if !strings.Contains(p.Detail, "the record of receipts says") {
			t.Errorf("a person knows of it: %+v", p)
		}
	}
}
