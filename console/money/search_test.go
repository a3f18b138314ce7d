package money

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"till/console/shell"
	"till/people"
	"till/store"
	"till/store/storetest"
)

func TestSearchWays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, first string }{
		{"019a82f4-6c1e-7b90-a3d2-5e0c9f417a11", asID}, {"242061234567", asPhone}, {"06 123 45 67", asPhone}, {"ORDER-1042", asText}, {"1042", asText},
		{"5000", asText}, {"5 000", asAmount}, {"5.000", asAmount}, {"5 000 XAF", asAmount}, {"5,000 xaf", asAmount}, {"5 000 FCFA", asAmount}, {"5000 F CFA", asAmount}, {"EM100377", asText},
		{"till_test_x", asSecret}, {"whsec_x", asSecret}, {"1234567890123456", asText}, {"...", asText}, {"FCFA", asText}, {"CAFF", asText}, {"019a82f4-6c1e", asText},
	} {
		if got := waysOf(c.text); got[0] != c.first {
			t.Errorf("%q is taken as %v, want %s", c.text, got, c.first)
		}
	}
}

// What is not whole must not look whole: who lost the role gets no more.
func TestAStatementEndsWithTheRole(t *testing.T) {
	t.Parallel()
	ctx, secret := context.Background(), []byte("a secret for tests only")
	db, err := store.Open(ctx, storetest.Engines()[0].Config(t))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	folk, err := people.New(people.Config{Store: db, Secret: secret, Origin: "http://localhost:8080"})
	if err != nil {
		t.Fatal(err)
	}
	k, err := shell.New(shell.Config{Store: db, People: folk, Secret: secret, BaseURL: "http://localhost:8080/v1"}, shell.Rooms{})
	if err != nil {
		t.Fatal(err)
	}
	k.SessionOf = func(*shell.Visit, string) (*people.Session, error) {
		return nil, &people.Refusal{Code: people.SessionOver}
	}
	r := httptest.NewRequest(http.MethodGet, "http://localhost:8080/", nil)
	r.Header.Set("Cookie", "till=token")
	a := httptest.NewRecorder()
	out := &statementWriter{v: &visit{&shell.Visit{Console: k, W: a, R: r, Route: &shell.Route{}, Written: true}}}
	if _, err := out.Write([]byte("more")); people.RefusalOf(err) == nil || a.Body.Len() > 0 {
		t.Errorf("a slice after the role was taken: %v, %q", err, a.Body)
	}
}
