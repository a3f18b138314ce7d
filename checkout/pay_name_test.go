package checkout_test

import (
	"context"
	"errors"
	"testing"

	"till"
	"till/checkout"
	"till/store"
	"till/store/auditlog"
	"till/store/checkouts"
	"till/store/storetest"
)

// payName reads how pages show a client.
func (w *world) payName(client till.ID) (n checkouts.PayName) {
	w.t.Helper()
	storetest.View(w.t, w.store, func(ctx context.Context, tx *store.Tx) (err error) {
		n, err = checkouts.ReadPayName(ctx, tx, client)
		return err
	})
	return n
}

// P9: a live client's pages show the old name until the house has confirmed the new one, by its
// name; each change is confirmed anew and noted.
func TestANameIsConfirmed(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		shop := storetest.NewClient(t, w.store, till.Live)
		shown := func(want, asked string) {
			t.Helper()
			if n := w.payName(shop.ID); checkout.NameOnPages("MTN", n.Shown) != want || n.Asked != asked || (n.AskedAt != 0) != (asked != "") {
				t.Fatalf("pages show %q, asked for is %+v; want %q and %q", checkout.NameOnPages("MTN", n.Shown), n, want, asked)
			}
		}
		ask := func(name string) {
			t.Helper()
			if err := checkout.AskName(ctx, w.store, shop.ID, name, "person:Mado"); err != nil {
				t.Fatal(err)
			}
		}
		shown("", "")
		ask("  Chez   Mado ")
		shown("", "Chez Mado")
		ask("Chez Ada") // after the house has read the first
		for _, name := range []string{"Chez Mado", "", "chez ada"} {
			if err := checkout.ConfirmName(ctx, w.store, shop.ID, name, "person:Awa"); till.ErrorCode(err) != till.CodeValidationFailed {
				t.Errorf("%q: %v", name, err)
			}
		}
		shown("", "Chez Ada")
		for range 2 {
			if err := checkout.ConfirmName(ctx, w.store, shop.ID, "Chez Ada", "person:Awa"); err != nil {
				t.Fatal(err)
			}
		}
		shown("Chez Ada", "")
		ask("Ada & Fils")
		shown("Chez Ada", "Ada & Fils")
		ask("") // taken back
		shown("Chez Ada", "")
		ask("Ada & Fils")
		ask("Chez Ada") // it is shown: nothing waits
		shown("Chez Ada", "")
		if err := checkout.SetName(ctx, w.store, shop.ID, "Boulangerie Ada", "person:Awa"); err != nil {
			t.Fatal(err)
		}
		shown("Boulangerie Ada", "")

		var acts []string
		storetest.View(t, w.store, func(ctx context.Context, tx *store.Tx) error {
			rows, err := auditlog.Read(ctx, tx, shop.ID, 0, 100)
			for _, a := range rows {
				if a.Action == checkout.ActNameAsked || a.Action == checkout.ActNameConfirmed {
					acts = append(acts, a.Actor+" "+a.Action+" "+a.Detail)
				}
			}
			return err
		})
		if len(acts) != 8 || acts[2] != `person:Awa client.pay_name_confirmed name on pages: "Chez Ada"` {
			t.Errorf("%d acts: %q", len(acts), acts)
		}

		tester := storetest.NewClient(t, w.store, till.Test)
		if err := checkout.AskName(ctx, w.store, tester.ID, "Chez Ada", "person:Mado"); err != nil {
			t.Fatal(err)
		}
		if n := w.payName(tester.ID); n.Shown != "Chez Ada" || n.Asked != "" {
			t.Errorf("a test client: %+v", n)
		}
	})
}

// P9: names of operators, other scripts, marks of direction, forty-one characters, and names that
// look like another live client's are refused, when they are asked for and when they are confirmed.
func TestNamesThatAreRefused(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		shop, other := storetest.NewClient(t, w.store, till.Live), storetest.NewClient(t, w.store, till.Live)
		if err := checkout.SetName(ctx, w.store, other.ID, "Boulangerie Total", "person:Awa"); err != nil {
			t.Fatal(err)
		}
		for name, rule := range map[string]checkout.NameRule{
			"MTN Mobile Money": checkout.NameTaken, "M.T.N. Shop": checkout.NameTaken, "0range Money": checkout.NameTaken, "Votre wallet": checkout.NameTaken,
			"Ваня": checkout.NameLetters, "Chez \u202eodaM": checkout.NameLetters, "Shop <b>": checkout.NameLetters, "...": checkout.NameEmpty,
			"A2345678901234567890123456789012345678901": checkout.NameLong,
			"BOULANGERIE T0TAL":                         checkout.NameTwin, "Boulangerie Tôtal": checkout.NameTwin, "Bou1angerie-Total": checkout.NameTwin, "Boulangerietotal": checkout.NameTwin,
		} {
			for what, do := range map[string]func() error{
				"asked for": func() error { return checkout.AskName(ctx, w.store, shop.ID, name, "person:Mado") },
				"set":       func() error { return checkout.SetName(ctx, w.store, shop.ID, name, "person:Awa") },
			} {
				var wrong *checkout.NameError
				if err := do(); !errors.As(err, &wrong) || wrong.Rule != rule {
					t.Errorf("%q, %s: %v, want %s", name, what, err, rule)
				}
			}
		}
		if n := w.payName(shop.ID); n.Shown != "" || n.Asked != "" {
			t.Errorf("%+v", n)
		}
		// Two ask for the same: who is confirmed first has it.
		for _, c := range []till.ID{shop.ID, other.ID} {
			if err := checkout.AskName(ctx, w.store, c, "Les Deux", "person:Mado"); err != nil {
				t.Fatal(err)
			}
		}
		if err := checkout.ConfirmName(ctx, w.store, other.ID, "Les Deux", "person:Awa"); err != nil {
			t.Fatal(err)
		}
		var wrong *checkout.NameError
		if err := checkout.ConfirmName(ctx, w.store, shop.ID, "Les Deux", "person:Awa"); !errors.As(err, &wrong) || wrong.Rule != checkout.NameTwin {
			t.Errorf("the second: %v", err)
		}
	})
}

// A client whose own name pages may not show has pages once it has one that they may.
func TestANameOpensPages(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.client.Name = "MTN MoMo"
		if _, err := w.checkouts.Create(t.Context(), w.who(), request(t, body(key1, ""))); till.ErrorCode(err) != till.CodePagesNotAvailable {
			t.Fatal(err)
		}
		if err := checkout.AskName(t.Context(), w.store, w.client.ID, "Chez Mado", "person:Mado"); err != nil {
			t.Fatal(err)
		}
		w.open(key1, "")
		w.link(linkBody(key2, ""))
	})
}

// What the house has switched off or blocked is refused in the commit that would write it down,
// whatever a page has read before.
func TestNothingIsWrittenDownThatTheHouseForbids(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		limits, err := checkout.NewLimits([]byte(secret))
		if err != nil {
			t.Fatal(err)
		}
		strict := w.make(func(c *checkout.Config) { c.Blocked = limits.Blocked })
		ref, l := w.open(key1, ""), w.link(linkBody(key2, ""))
		if _, err := limits.Block(ctx, w.store, typed(1, "4567").Phone, true, "person:Awa", "letter"); err != nil {
			t.Fatal(err)
		}
		if a, err := strict.Ask(ctx, w.who(), ref, typed(1, "4567")); !errors.Is(err, checkout.ErrBlocked) || a != nil {
			t.Errorf("a blocked number: %+v %v", a, err)
		}
		if err := checkout.SwitchPages(ctx, w.store, w.client.ID, true, "person:Awa", "poster"); err != nil {
			t.Fatal(err)
		}
		if _, err := strict.Ask(ctx, w.who(), ref, typed(1, "4568")); till.ErrorCode(err) != till.CodePagesNotAvailable {
			t.Errorf("an ask: %v", err)
		}
		if _, err := strict.Open(ctx, w.who(), refOf(l), checkout.Opening{Nonce: []byte("x"), Amount: 500}); till.ErrorCode(err) != till.CodePagesNotAvailable {
			t.Errorf("a link: %v", err)
		}
		if v := w.view(ref); v.Last != nil || w.way.submits.Load() != 0 {
			t.Errorf("%+v was written down", v.Last)
		}
		if c, err := strict.Create(ctx, w.who(), request(t, body(key1, ""))); err != nil || !c.Replayed {
			t.Errorf("a retry of the create call: %v", err)
		}
	})
}
