package console

import (
	"context"
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"till"
	"till/console/shell"
)

// An open link that lets somebody in as this person is told in the profile,
// until it ends.
func TestTheProfileTellsOfAnOpenReset(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	link := b.invite(b.client.ID, till.RoleCashier, "brice@shop.example")
	b.send(http.MethodPost, link, url.Values{"name": {"Brice"}, "password": {password}})
	tells := func() bool {
		page := html.UnescapeString(b.page(shell.Prefix + "/me"))
		return strings.Contains(page, "Whoever runs this service made a link") && strings.Contains(page, "Open link to get back in")
	}
	if tells() {
		t.Error("there is no link")
	}
	list, err := b.console.People.Colleagues(context.Background(), b.client)
	if err != nil || len(list) != 1 {
		t.Fatalf("%d people, %v", len(list), err)
	}
	if _, _, err := b.console.People.ResetAs(context.Background(), "cli:root", b.client.ID, list[0].Person.ID); err != nil {
		t.Fatal(err)
	}
	if !tells() {
		t.Errorf("the profile says nothing:\n%s", b.page(shell.Prefix+"/me"))
	}
}
