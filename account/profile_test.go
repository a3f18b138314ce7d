package account_test

import (
	"strings"
	"testing"

	"till"
	"till/account"
	"till/store"
	"till/store/storetest"
)

// A profile is kept as it was set, and one that was never set has defaults.
func TestProfile(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		ctx, a := t.Context(), account.New(s, nil)
		c, _, err := a.CreateClient(ctx, "shop", till.Test, "a test")
		if err != nil {
			t.Fatal(err)
		}
		if p, err := a.Profile(ctx, c.ID); err != nil || p.Zone != till.DefaultZone {
			t.Fatalf("a new client's profile: %+v, %v", p, err)
		}
		want := till.Profile{ClientID: c.ID, Name: "Boulangerie", Zone: "Africa/Brazzaville", Country: "CG", Language: "fr", ReceiptHead: "BP 12\nBrazzaville", ReceiptFoot: "Merci"}
		for range 2 {
			if err := a.SetProfile(ctx, &want, "a test"); err != nil {
				t.Fatal(err)
			}
		}
		if p, err := a.Profile(ctx, c.ID); err != nil || *p != want {
			t.Errorf("got %+v, %v", p, err)
		}
		if err := a.SetProfile(ctx, &till.Profile{ClientID: till.NewID(s.Now()), Zone: "UTC"}, "a test"); till.ErrorCode(err) != till.CodeClientNotFound {
			t.Errorf("a client that does not exist: %v", err)
		}
	})
}

func TestCheckProfile(t *testing.T) {
	t.Parallel()
	for pointer, p := range map[string]till.Profile{
		"/name": {Zone: "UTC", Name: "a\nb"}, "/zone": {Zone: "Not/AZone"}, "/country": {Zone: "UTC", Country: "ZZ"}, "/language": {Zone: "UTC", Language: "de"},
		"/receipt_head": {Zone: "UTC", ReceiptHead: strings.Repeat("x", 501)}, "/receipt_foot": {Zone: "UTC", ReceiptFoot: strings.Repeat("x\n", 11)},
	} {
		if fields := account.CheckProfile(&p); len(fields) != 1 || fields[0].Pointer != pointer {
			t.Errorf("%s: %+v", pointer, fields)
		}
	}
	if fields := account.CheckProfile(&till.Profile{}); len(fields) != 1 {
		t.Errorf("no zone: %+v", fields)
	}
}
