package money

import (
	"context"
	"strings"

	"till"
	"till/account"
	"till/console/subject"
	"till/people"
	"till/store"
	"till/store/webhooks"
	"till/webhook"
)

// oursKey says in an address that a typed secret is an API key of this installation. A
// webhook's secret is said by its endpoint.
const oursKey = "key"

// secretOfOurs returns what a typed secret opens: oursKey, the id of one of the
// merchant's endpoints, or "". A key is marked as exposed: who typed it into a search may
// have typed it elsewhere too.
func (v *visit) secretOfOurs(text string) (string, error) {
	if !strings.HasPrefix(text, "whsec_") {
		genuine, err := v.Console.Accounts.FlagExposed(v.R.Context(), text, account.SeenInSearch, v.Session.Actor())
		if err != nil || !genuine {
			return "", err
		}
		return oursKey, nil
	}
	if v.Client == nil || !v.May(people.WebhooksSee) {
		return "", nil
	}
	var found string
	err := v.View(func(ctx context.Context, tx *store.Tx) error {
		endpoints, err := webhooks.Endpoints(ctx, tx, v.Client.ID, webhook.MaxEndpoints)
		for _, e := range endpoints {
			if v.Console.Endpoints.Holds(e, text) {
				found = e.ID.String()
			}
		}
		return err
	})
	return found, err
}

// describeSecret says what the address names: see secretOfOurs.
func (v *visit) describeSecret(p *searchPage, ours string) error {
	if ours == oursKey {
		p.Secret = v.Words.T("search.secret_key")
		if v.Client != nil && v.May(people.KeysManage) {
			p.Replace = v.ClientPath("/keys")
		}
		return nil
	}
	id, err := till.ParseID(ours)
	if err != nil || v.Client == nil || !v.May(people.WebhooksSee) {
		return nil // the address is anybody's
	}
	return v.View(func(ctx context.Context, tx *store.Tx) error {
		endpoints, err := webhooks.Endpoints(ctx, tx, v.Client.ID, webhook.MaxEndpoints)
		for _, e := range endpoints {
			if e.ID == id {
				p.Secret, p.Replace = v.Words.T("search.secret_hook", "host", subject.HostOf(e.URL)), v.ClientPath("/webhooks/"+ours)
			}
		}
		return err
	})
}
