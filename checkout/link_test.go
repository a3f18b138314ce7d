package checkout_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"till"
	"till/checkout"
	"till/internal/jsonx"
	"till/store"
	"till/store/checkouts"
	"till/store/storetest"
)

func linkRequest(t *testing.T, body string) *checkout.LinkRequest {
	t.Helper()
	r := &checkout.LinkRequest{}
	if err := jsonx.Decode([]byte(body), r); err != nil {
		t.Fatal(err)
	}
	return r
}

const openAmount = `"open_amount":{"currency":"XAF","min":"500","max":"50000","suggested":["1000","2000"]}`

// linkBody is that of a link with an open amount, with some members more.
func linkBody(key, more string) string {
	return `{"title":"Alms","idempotency_key":"` + key + `",` + openAmount + more + `}`
}

// link makes a link.
func (w *world) link(body string) *till.Link {
	w.t.Helper()
	c, err := w.checkouts.CreateLink(context.Background(), w.who(), linkRequest(w.t, body))
	if err != nil {
		w.t.Fatal(err)
	}
	return c.Link
}

func refOf(l *till.Link) store.Ref { return store.Ref{Client: l.ClientID, ID: l.ID} }

// A link is made once by its key, is read, listed, changed and audited; what is paid for stays.
func TestLinks(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		body := linkBody(key1, `,"description":"For the roof","ask_reference":{"label":"Your name","required":true},"methods":["mtn_momo"],"country":"CG","language":"fr","metadata":{"a":1}`)
		l := w.link(body)
		if !l.Active || !l.Open() || l.Min != 500 || l.Max != 50_000 || !slices.Equal(l.Suggested, []int64{1000, 2000}) || l.AskLabel != "Your name" || !l.AskRequired ||
			!l.ExpiresAt.IsZero() || checkout.LinkText(l) != "Alms – For the roof" || w.checkouts.LinkURL(l) != "https://pay.till.test/p/"+l.Token {
			t.Errorf("%+v", l)
		}
		again, err := w.checkouts.CreateLink(ctx, w.who(), linkRequest(t, body))
		if err != nil || !again.Replayed || again.Link.ID != l.ID || string(again.Link.AppendJSON(nil, "")) != string(l.AppendJSON(nil, "")) {
			t.Errorf("again: %+v %v", again, err)
		}
		if _, err := w.checkouts.CreateLink(ctx, w.who(), linkRequest(t, linkBody(key1, ""))); till.ErrorCode(err) != till.CodeKeyReused {
			t.Errorf("another body: %v", err)
		}
		time.Sleep(time.Second)
		fixed := w.link(`{"title":"Bread","amount":{"value":"5000","currency":"XAF"},"idempotency_key":"` + key2 + `"}`)
		off, title, end := false, "Alms of May", w.store.Now().Add(time.Hour)
		changed, err := w.checkouts.ChangeLink(ctx, refOf(l), checkout.LinkChange{Active: &off, Title: &title, ExpiresAt: &end}, "api:test")
		if err != nil || changed.Active || changed.Title != title || changed.ExpiresAt != end || changed.UpdatedAt <= l.UpdatedAt {
			t.Fatalf("%+v %v", changed, err)
		}
		read, err := w.checkouts.Link(ctx, refOf(l))
		if err != nil || string(read.AppendJSON(nil, "")) != string(changed.AppendJSON(nil, "")) {
			t.Errorf("%+v %v", read, err)
		}
		never := till.Time(0)
		if changed, err = w.checkouts.ChangeLink(ctx, refOf(l), checkout.LinkChange{ExpiresAt: &never}, "api:test"); err != nil || !changed.ExpiresAt.IsZero() {
			t.Errorf("%+v %v", changed, err)
		}
		before := changed.UpdatedAt
		if changed, err = w.checkouts.ChangeLink(ctx, refOf(l), checkout.LinkChange{Active: &off}, "api:test"); err != nil || changed.UpdatedAt != before {
			t.Errorf("a change of nothing: %+v %v", changed, err)
		}
		on := true
		for _, c := range []struct {
			f    checkouts.LinkFilter
			want []till.ID
		}{{checkouts.LinkFilter{}, []till.ID{fixed.ID, l.ID}}, {checkouts.LinkFilter{Active: &on}, []till.ID{fixed.ID}}, {checkouts.LinkFilter{Active: &off}, []till.ID{l.ID}},
			{checkouts.LinkFilter{To: l.CreatedAt}, []till.ID{l.ID}}} {
			all, total, err := w.checkouts.Links(ctx, w.client.ID, c.f, store.Page{Limit: 10})
			var got []till.ID
			for _, l := range all {
				got = append(got, l.ID)
			}
			if err != nil || !slices.Equal(got, c.want) || total != int64(len(c.want)) {
				t.Errorf("%+v: %v of %d, %v", c.f, got, total, err)
			}
		}
		other := storetest.NewClient(t, w.store, till.Test)
		for _, ref := range []store.Ref{{Client: other.ID, ID: l.ID}, {Client: w.client.ID, ID: till.NewID(1)}} {
			if _, err := w.checkouts.Link(ctx, ref); till.ErrorCode(err) != till.CodeLinkNotFound {
				t.Errorf("%v", err)
			}
			if _, err := w.checkouts.ChangeLink(ctx, ref, checkout.LinkChange{Active: &on}, "api:test"); till.ErrorCode(err) != till.CodeLinkNotFound {
				t.Errorf("%v", err)
			}
		}
	})
}

// What is wrong with a link is told at each member.
func TestBodiesThatAreNoLink(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		amount := `"amount":{"value":"5000","currency":"XAF"}`
		for body, pointer := range map[string]string{
			`{` + amount + `,"title":"A"}`:                                                                                                    "/idempotency_key",
			`{"idempotency_key":"K",` + amount + `}`:                                                                                          "/title",
			`{"idempotency_key":"K","title":"",` + amount + `}`:                                                                               "/title",
			`{"idempotency_key":"K","title":" A",` + amount + `}`:                                                                             "/title",
			`{"idempotency_key":"K","title":"A\nB",` + amount + `}`:                                                                           "/title",
			`{"idempotency_key":"K","title":"A` + "\u202e" + `B",` + amount + `}`:                                                             "/title",
			`{"idempotency_key":"K","title":"` + strings.Repeat("é", 61) + `",` + amount + `}`:                                                "/title",
			`{"idempotency_key":"K","title":"A"}`:                                                                                             "/amount",
			`{"idempotency_key":"K","title":"A",` + amount + `,"open_amount":{"currency":"XAF"}}`:                                             "/open_amount",
			`{"idempotency_key":"K","title":"A","open_amount":{}}`:                                                                            "/open_amount/currency",
			`{"idempotency_key":"K","title":"A","open_amount":{"currency":"EUR"}}`:                                                            "/open_amount/currency",
			`{"idempotency_key":"K","title":"A","open_amount":{"currency":"XAF","min":"600","max":"500"}}`:                                    "/open_amount/min",
			`{"idempotency_key":"K","title":"A","open_amount":{"currency":"XAF","min":"99999999999"}}`:                                        "/open_amount/min",
			`{"idempotency_key":"K","title":"A","open_amount":{"currency":"XAF","min":"0"}}`:                                                  "/open_amount/min",
			`{"idempotency_key":"K","title":"A","open_amount":{"currency":"XAF","max":"1.5"}}`:                                                "/open_amount/max",
			`{"idempotency_key":"K","title":"A","open_amount":{"currency":"XAF","min":"600","suggested":["500"]}}`:                            "/open_amount/suggested/0",
			`{"idempotency_key":"K","title":"A","open_amount":{"currency":"XAF","suggested":["99999999999"]}}`:                                "/open_amount/suggested/0",
			`{"idempotency_key":"K","title":"A","open_amount":{"currency":"XAF","suggested":["1000","1000","1000","1000","1000"]}}`:           "/open_amount/suggested",
			`{"idempotency_key":"K","title":"A",` + amount + `,"ask_reference":{}}`:                                                           "/ask_reference/label",
			`{"idempotency_key":"K","title":"A",` + amount + `,"ask_reference":{"label":"` + strings.Repeat("x", 31) + `"}}`:                  "/ask_reference/label",
			`{"idempotency_key":"K","title":"A",` + amount + `,"return_url":"javascript:alert(1)"}`:                                           "/return_url",
			`{"idempotency_key":"K","title":"A",` + amount + `,"expires_at":"tomorrow"}`:                                                      "/expires_at",
			`{"idempotency_key":"K","title":"A",` + amount + `,"expires_at":"2000-01-01T00:00:00Z"}`:                                          "/expires_at",
			`{"idempotency_key":"K","title":"A",` + amount + `,"expires_at":"2200-01-01T00:00:00Z"}`:                                          "/expires_at",
			`{"idempotency_key":"K","title":"A",` + amount + `,"methods":["visa"]}`:                                                           "/methods/0",
			`{"idempotency_key":"K","title":"A",` + amount + `,"country":"XX"}`:                                                               "/country",
			`{"idempotency_key":"K","title":"A",` + amount + `,"language":"sw"}`:                                                              "/language",
			`{"idempotency_key":"K","title":"A","amount":{"value":"99999999999","currency":"XAF"}}`:                                           "/amount/value",
			`{"idempotency_key":"K","title":"A","amount":{"value":"5000","currency":"XAF"},"description":"` + strings.Repeat("x", 256) + `"}`: "/description",
		} {
			_, err := w.checkouts.CreateLink(t.Context(), w.who(), linkRequest(t, strings.Replace(body, `"K"`, `"`+key1+`"`, 1)))
			var e *till.Error
			if !errors.As(err, &e) || e.Code != till.CodeValidationFailed || !slices.ContainsFunc(e.Fields, func(f till.FieldError) bool { return f.Pointer == pointer }) {
				t.Errorf("%s: %v", body, err)
			}
		}
		bad, past := "A\x07", w.store.Now()
		l := w.link(linkBody(key1, ""))
		for _, c := range []checkout.LinkChange{{Title: &bad}, {ExpiresAt: &past}} {
			if _, err := w.checkouts.ChangeLink(t.Context(), refOf(l), c, "api:test"); till.ErrorCode(err) != till.CodeValidationFailed {
				t.Errorf("%+v: %v", c, err)
			}
		}
		if now, err := w.checkouts.Link(t.Context(), refOf(l)); err != nil || now.Title != "Alms" || !now.ExpiresAt.IsZero() {
			t.Errorf("%+v %v", now, err)
		}
	})
}

// Each form opens one checkout, however often it is posted; two forms open two. A payment says by
// which link it came.
func TestALinkOpensACheckoutForEachForm(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		l := w.link(linkBody(key1, `,"ask_reference":{"label":"Your name"},"metadata":{"a":1}`))
		mine := checkout.Opening{Nonce: []byte("one"), Amount: 700, Reference: "Ada"}
		var wait sync.WaitGroup
		ids := make([]till.ID, 4)
		for i := range ids {
			wait.Go(func() {
				v, err := w.checkouts.Open(context.Background(), w.who(), refOf(l), mine)
				if err != nil {
					t.Error(err)
					return
				}
				ids[i] = v.Checkout.ID
			})
		}
		wait.Wait()
		if len(slices.Compact(ids)) != 1 || ids[0].IsZero() {
			t.Fatalf("one form opened %v", ids)
		}
		v, err := w.checkouts.Open(ctx, w.who(), refOf(l), checkout.Opening{Nonce: []byte("one"), Amount: 800, Reference: "Ada"})
		if !errors.Is(err, checkout.ErrOpened) || v.Checkout.ID != ids[0] || v.Checkout.Amount.Minor != 700 {
			t.Errorf("the form with another amount: %+v %v", v.Checkout, err)
		}
		other, err := w.checkouts.Open(ctx, w.who(), refOf(l), checkout.Opening{Nonce: []byte("two"), Amount: 50_000})
		if err != nil || other.Checkout.ID == ids[0] || other.Checkout.Token == v.Checkout.Token || other.Checkout.Reference != "" {
			t.Errorf("%+v %v", other.Checkout, err)
		}
		ref := store.Ref{Client: w.client.ID, ID: ids[0]}
		a := w.ask(ref, 1, "4567")
		time.Sleep(window)
		row := w.row(ref)
		if row.LinkID != l.ID || row.Reference != "Ada" || checkout.Description(&row.Checkout) != "Alms" {
			t.Errorf("%+v", row.Checkout)
		}
		storetest.View(t, w.store, func(ctx context.Context, tx *store.Tx) error {
			all, total, err := checkouts.List(ctx, tx, w.client.ID, checkouts.Filter{Link: l.ID}, store.Page{Limit: 10})
			if err != nil || total != 2 || len(all) != 2 || all[1].ID != ids[0] {
				t.Errorf("%d of %d checkouts of the link, %v", len(all), total, err)
			}
			if _, none, err := checkouts.List(ctx, tx, w.client.ID, checkouts.Filter{Link: till.NewID(1)}, store.Page{Limit: 10, Ascending: true}); err != nil || none != 0 {
				t.Errorf("%d of another link, %v", none, err)
			}
			paid := store.Ref{Client: w.client.ID, ID: a.PaymentID}
			rows, err := tx.Payments(ctx, []store.Ref{paid})
			if err != nil || rows[paid] == nil {
				t.Fatalf("%v %v", rows, err)
			}
			if want := fmt.Sprintf(`,"checkout":{"id":"%s","link_id":"%s","n":1}`, ids[0], l.ID); !strings.HasSuffix(string(rows[paid].Document), want) || !strings.Contains(string(rows[paid].Document), `"metadata":{"a":1}`) {
				t.Errorf("the payment says %s", rows[paid].Document)
			}
			return nil
		})
	})
}

// What a link does not take opens nothing: amounts outside of its bounds, a reference that is
// missing or not asked for, a link that is switched off or over, another client's.
func TestALinkTakesWhatItSays(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		l := w.link(linkBody(key1, `,"ask_reference":{"label":"Your name","required":true}`))
		fixed := w.link(`{"title":"Bread","amount":{"value":"5000","currency":"XAF"},"idempotency_key":"` + key2 + `"}`)
		n := 0
		open := func(l *till.Link, amount int64, reference string) error {
			n++
			_, err := w.checkouts.Open(ctx, w.who(), refOf(l), checkout.Opening{Nonce: []byte{byte(n)}, Amount: amount, Reference: reference})
			return err
		}
		for _, c := range []struct {
			link      *till.Link
			amount    int64
			reference string
			good      bool
		}{
			{l, 499, "Ada", false}, {l, 50_001, "Ada", false}, {l, 0, "Ada", false}, {l, -500, "Ada", false}, {l, 500, "", false}, {l, 500, strings.Repeat("x", 65), false}, {l, 500, "A\u202eda", false},
			{fixed, 4999, "", false}, {fixed, 0, "", false}, {fixed, 5000, "Ada", false},
			{l, 500, strings.Repeat("é", 64), true}, {l, 50_000, "Ada", true}, {fixed, 5000, "", true},
		} {
			if err := open(c.link, c.amount, c.reference); c.good && err != nil || !c.good && till.ErrorCode(err) != till.CodeValidationFailed {
				t.Errorf("%s %d %q: %v", c.link.Title, c.amount, c.reference, err)
			}
		}
		end := w.store.Now().Add(time.Hour)
		if _, err := w.checkouts.ChangeLink(ctx, refOf(l), checkout.LinkChange{ExpiresAt: &end}, "api:test"); err != nil {
			t.Fatal(err)
		}
		v, err := w.checkouts.Open(ctx, w.who(), refOf(l), checkout.Opening{Nonce: []byte("late"), Amount: 500, Reference: "Ada"})
		if err != nil || v.Checkout.ExpiresAt > end.Add(time.Second) {
			t.Errorf("it can be paid until %s, the link until %s: %v", v.Checkout.ExpiresAt, end, err)
		}
		time.Sleep(time.Hour)
		if err := open(l, 500, "Ada"); !errors.Is(err, checkout.ErrLinkOff) {
			t.Errorf("over: %v", err)
		}
		off, on := false, true
		if _, err := w.checkouts.ChangeLink(ctx, refOf(fixed), checkout.LinkChange{Active: &off}, "api:test"); err != nil {
			t.Fatal(err)
		}
		if err := open(fixed, 5000, ""); !errors.Is(err, checkout.ErrLinkOff) {
			t.Errorf("off: %v", err)
		}
		if _, err := w.checkouts.ChangeLink(ctx, refOf(fixed), checkout.LinkChange{Active: &on}, "api:test"); err != nil {
			t.Fatal(err)
		}
		if err := open(fixed, 5000, ""); err != nil {
			t.Errorf("on again: %v", err)
		}
		other := storetest.NewClient(t, w.store, till.Test)
		foreign := checkout.Client{Client: other, Enabled: func(string) bool { return true }}
		for _, ref := range []store.Ref{refOf(fixed), {Client: other.ID, ID: fixed.ID}} {
			if _, err := w.checkouts.Open(ctx, foreign, ref, checkout.Opening{Nonce: []byte("x"), Amount: 5000}); till.ErrorCode(err) != till.CodeLinkNotFound {
				t.Errorf("another client's link: %v", err)
			}
		}
	})
}

// What is paid for never changes, not even by a hand in the database; numbers go by an erasure alone.
func TestFixedColumnsOfLinksAndAsks(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		l := w.link(linkBody(key1, ""))
		v, err := w.checkouts.Open(t.Context(), w.who(), refOf(l), checkout.Opening{Nonce: []byte("x"), Amount: 500})
		if err != nil {
			t.Fatal(err)
		}
		w.ask(store.Ref{Client: w.client.ID, ID: v.Checkout.ID}, 1, "4567")
		w.ask(w.open(key2, `,"phone":"242061234567"`), 1, "4567")
		time.Sleep(window)
		for _, text := range []string{
			`UPDATE links SET min_amount = 1`, `UPDATE links SET max_amount = NULL`, `UPDATE links SET suggested = '1'`, `UPDATE links SET currency = 'XOF'`, `UPDATE links SET token = 'x'`,
			`UPDATE links SET ask_label = 'PIN'`, `UPDATE links SET document = body_hash`, `UPDATE links SET methods = 'airtel_money'`, `UPDATE links SET return_url = 'https://other.example/'`,
			`UPDATE checkouts SET link_id = NULL WHERE link_id IS NOT NULL`, `UPDATE checkouts SET link_id = id WHERE link_id IS NULL`, `UPDATE checkouts SET reference = 'x'`,
			`UPDATE checkouts SET phone = '242061234568' WHERE phone IS NOT NULL`, `UPDATE checkouts SET phone = NULL WHERE phone IS NOT NULL`, `UPDATE checkouts SET document = body_hash`,
			`UPDATE checkouts SET body_version = 9`, `UPDATE checkouts SET return_url = 'https://other.example/'`,
			`UPDATE checkout_asks SET phone = '242061234568'`, `UPDATE checkout_asks SET country = 'CM'`,
		} {
			err := w.store.Update(t.Context(), func(tx *store.Tx) error { return tx.DB().Script(context.Background(), text) })
			if err == nil || !strings.Contains(err.Error(), "a fixed column changed") {
				t.Errorf("%s: %v", text, err)
			}
		}
	})
}
