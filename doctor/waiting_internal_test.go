package doctor

import (
	"strings"
	"testing"

	"till"
	"till/books"
	"till/engine"
	"till/provider"
	"till/store"
	"till/store/storetest"
	"till/store/webhooks"
)

// The doctor tells what waits for a person, what money is put aside, and how
// far webhooks are behind.
func TestTheDoctorTellsWhatWaits(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		client := storetest.NewClient(t, s, till.Live)
		c := storetest.NewCollector(t, s)
		expect := func(want ...string) {
			t.Helper()
			d := &doctor{}
			st, err := books.ReadStatus(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			if err := d.examineWaiting(t.Context(), s, st); err != nil {
				t.Fatal(err)
			}
			all := findingsText(d)
			for _, line := range want {
				if !strings.Contains(all, line) {
					t.Errorf("the doctor does not tell %q:\n%s", line, all)
				}
			}
		}
		expect("ok cases: none is open", "ok suspense: no money is put aside", "ok webhooks: 0 endpoints, 0 events behind and 0 events to be sent again")

		other := provider.Result{Outcome: provider.Success, Amount: till.Money{Minor: 9, Currency: "XAF"}}
		p := storetest.NewPayment(t, c, client, storetest.Body{})
		other.Receipt = "R1"
		storetest.Apply(t, c, s, p, other)
		expect("warning cases: 1 is open (1 mismatch), the oldest since 20", "9 XAF of 1 payment (minor units) put aside")
		q := storetest.NewPayment(t, c, client, storetest.Body{})
		other.Receipt = "R2"
		storetest.Apply(t, c, s, q, other)
		expect("2 are open (2 mismatch)", "18 XAF of 2 payments (minor units) put aside")

		// What a person brings the operator's word for is no longer aside.
		word := engine.Resolution{Success: true, By: "person:Anne", Evidence: "a letter", Digest: []byte("digest of 32 bytes, or so it says")[:32]}
		if err := c.Resolve(t.Context(), store.Ref{Client: client.ID, ID: p.ID}, word); err != nil {
			t.Fatal(err)
		}
		expect("1 is open (1 mismatch)", "9 XAF of 1 payment (minor units) put aside")

		err := s.Update(t.Context(), func(tx *store.Tx) error {
			for _, e := range []till.Endpoint{
				{URL: "https://one.example.com/", Enabled: true},
				{URL: "https://two.example.com/", Enabled: true, FailingSince: tx.Now()},
				{URL: "https://three.example.com/", DisabledAt: tx.Now(), DisableReason: till.DisabledAsFailing},
				{URL: "https://four.example.com/", DisabledAt: tx.Now(), DisableReason: till.DisabledByClient},
			} {
				e.ID, e.ClientID, e.CreatedAt, e.UpdatedAt = till.NewID(tx.Now()), client.ID, tx.Now(), tx.Now()
				if err := webhooks.InsertEndpoint(t.Context(), tx, &webhooks.Endpoint{Endpoint: e, Secret: []byte("sealed")}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		expect("warning webhooks: 2 endpoints, ", " events behind and 0 events to be sent again; nothing reaches 1 of them, the longest since 20", "; 1 more was disabled because nothing reached them")

		// They were made past the rules, which are checked at the end.
		err = s.Update(t.Context(), func(tx *store.Tx) error {
			endpoints, err := webhooks.Endpoints(t.Context(), tx, client.ID, 10)
			for _, e := range endpoints {
				if err == nil {
					err = webhooks.DeleteEndpoint(t.Context(), tx, e.Ref())
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
