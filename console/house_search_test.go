package console

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"till"
	"till/console/shell"
	"till/store"
	"till/store/admin"
	"till/store/auditlog"
	"till/store/storetest"
)

// payFor is pay of any client.
func (w *world) payFor(c *till.Client, phone string, amount int64, reference string) till.ID {
	w.t.Helper()
	was := w.client
	defer func() { w.client = was }()
	w.client = c
	return w.pay(phone, amount, reference, "")
}

// The house finds what any merchant has, by each way, on each engine, and sees whose it
// is; who is not of the house does not see the page. E6
func TestTheHouseSearchesAllMerchants(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, e)
			mine := w.payFor(w.client, "242061230001", 7350, "ORDER-1042")
			others := w.payFor(w.other, "242061230002", 7351, "ORDER-2042")
			w.until(mine, till.Success)
			receipt, event := w.receiptAndEvent(w.client.ID, mine)
			w.be(till.RoleSupport, "en")
			find := func(typed string) (at, page string) {
				t.Helper()
				a := w.do(request(http.MethodPost, shell.Prefix+"/house/search", url.Values{"q": {typed}}))
				if a.Code != http.StatusSeeOther {
					t.Fatalf("%q: %d", typed, a.Code)
				}
				at = a.Header().Get("Location")
				return at, w.get(at)
			}
			for typed, want := range map[string]till.ID{
				"+242 06 123 00 01": mine, "242061230002": others, "ORDER-1042": mine, "ORDER-2042": others, "ORDER-2": others, receipt: mine, "7351": others, "7 350 XAF": mine,
				mine.String(): mine, others.String(): others, event.String(): mine,
			} {
				at, page := find(typed)
				name := map[till.ID]string{mine: "Boulangerie Mapassa", others: "Pharmacie K."}[want]
				for _, id := range []till.ID{mine, others} {
					if strings.Contains(page, `/payments/`+id.String()+`"`) != (id == want) {
						t.Errorf("%q: the page has the wrong payment, or lacks one: %s", typed, at)
					}
				}
				if !strings.Contains(page, `role="cell">`+name+` <span class="tag">`) || strings.Contains(at, "061230") || strings.Contains(page, "0612300") {
					t.Errorf("%q leads to %s: the merchant is not named, or a phone is shown", typed, at)
				}
				checkPage(t, typed, page)
			}
			if _, page := find("ORDER-"); !strings.Contains(page, mine.String()) || !strings.Contains(page, others.String()) {
				t.Error("a beginning that two merchants share finds one of them only")
			}
			if _, page := find("nobody's"); !strings.Contains(page, "Nothing found") {
				t.Error("nothing is found, and the page does not say so")
			}
			w.checkWhoFinds(t)
		})
	}
}

// checkWhoFinds goes through the roles, and through an address that was sealed for a
// merchant.
func (w *world) checkWhoFinds(t *testing.T) {
	t.Helper()
	for role, want := range map[till.Role]int{till.RoleAdmin: 200, till.RoleFinance: 200, till.RoleAuditor: 200, till.RoleEngineer: 403, till.RoleOwner: 403} {
		w.be(role, "fr")
		if a := w.do(request(http.MethodGet, shell.Prefix+"/house/search?q=ORDER-1042", nil)); a.Code != want {
			t.Errorf("%s: %d, want %d", role, a.Code, want)
		}
	}
	w.be(till.RoleOwner, "fr")
	a := w.do(request(http.MethodPost, w.path("/search"), url.Values{"q": {"242061230001"}}))
	_, sealed, _ := strings.Cut(a.Header().Get("Location"), "?")
	w.be(till.RoleSupport, "en")
	if a := w.do(request(http.MethodGet, shell.Prefix+"/house/search?"+sealed, nil)); a.Code != http.StatusNotFound {
		t.Errorf("what was sealed for a merchant is opened for the house: %d", a.Code)
	}
}

func (w *world) receiptAndEvent(client, id till.ID) (receipt string, event till.ID) {
	w.t.Helper()
	ctx := context.Background()
	err := w.store.View(ctx, func(tx *store.Tx) error {
		p, err := tx.Payment(ctx, store.Ref{Client: client, ID: id})
		if err != nil {
			return err
		}
		receipt = p.ProviderReference
		events, err := tx.PaymentEvents(ctx, store.Ref{Client: client, ID: id})
		if err == nil {
			event = events[len(events)-1].ID()
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return receipt, event
}

// People of the house filter by connection; a merchant's people are not shown that there
// are any.
func TestConnectionsAreForTheHouse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	id := w.pay("242061230001", 7350, "ORDER-1042", "")
	ctx := t.Context()
	err := w.store.Update(ctx, func(tx *store.Tx) error { return admin.SetConnectionFingerprint(ctx, tx, "sandbox", "print") })
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		role      till.Role
		query     string
		has, link bool
	}{
		{till.RoleSupport, "?connection=sandbox", true, true}, {till.RoleSupport, "?connection=another", false, true}, {till.RoleSupport, "", true, true},
		{till.RoleOwner, "?connection=another", true, false},
	} {
		w.be(c.role, "en")
		page := w.get(w.path("/payments" + c.query))
		if strings.Contains(page, id.String()) != c.has || strings.Contains(page, "connection=sandbox") != c.link {
			t.Errorf("%s %s: shows the payment %t, the filter %t", c.role, c.query, !c.has, !c.link)
		}
		checkPage(t, c.query, page)
	}
	w.be(till.RoleSupport, "en")
	table := w.get(w.path("/payments.csv?connection=another"))
	if strings.Contains(table, id.String()) {
		t.Error("the table has what the list has not")
	}
}

// A search over all merchants is in the house's log: how, and how much was found, not
// what for. That of a merchant's own people is their work.
func TestASearchOverAllMerchantsIsNoted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	w.payFor(w.client, "242061230001", 7350, "ORDER-1042")
	w.payFor(w.other, "242061230001", 7351, "ORDER-2042")
	noted := func(log till.ID) (out []*store.AuditRow) {
		err := w.store.View(context.Background(), func(tx *store.Tx) error {
			rows, err := auditlog.Read(context.Background(), tx, log, 0, 100)
			out = nil
			for _, a := range rows {
				if a.Action == "client.search" {
					out = append(out, a)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	search := func(path string) {
		a := w.do(request(http.MethodPost, path, url.Values{"q": {"+242 06 123 00 01"}}))
		w.get(a.Header().Get("Location"))
	}
	search(w.path("/search"))
	w.be(till.RoleSupport, "en")
	search(shell.Prefix + "/house/search")
	if got := noted(till.House); len(got) != 1 || got[0].Actor != w.visitor.Actor() || got[0].Detail != "by phone: 2 hits, 2 merchants" {
		t.Errorf("the house's log has %+v", got)
	}
	if got := noted(w.client.ID); len(got) != 0 {
		t.Errorf("the merchant's log has %+v", got)
	}
}
