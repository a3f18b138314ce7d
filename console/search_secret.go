package console

import (
	"context"
	"strings"

	"till"
	"till/account"
	"till/people"
	"till/store"
)

// oursKey says in an address that a typed secret is an API key of this installation. A
// webhook's secret is said by its endpoint.
const oursKey = "key"

// secretOfOurs returns what a typed secret opens: oursKey, the id of one of the
// merchant's endpoints, or "". A key is marked as exposed: who typed it into a search may
// have typed it elsewhere too.
func (v *visit) secretOfOurs(text string) (string, error) {
	if !strings.HasPrefix(text, "whsec_") {
		genuine, err := v.k.Accounts.FlagExposed(v.r.Context(), text, account.SeenInSearch, v.session.Actor())
		if err != nil || !genuine {
			return "", err
		}
		return oursKey, nil
	}
	if v.client == nil || !v.may(people.WebhooksSee) {
		return "", nil
	}
	var found string
	err := v.view(func(ctx context.Context, tx *store.Tx) error {
		endpoints, err := tx.Endpoints(ctx, v.client.ID, maxEndpointsShown)
		for _, e := range endpoints {
			if v.k.Endpoints.Holds(e, text) {
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
		p.Secret = v.words.T("search.secret_key")
		if v.client != nil && v.may(people.KeysManage) {
			p.Replace = v.clientPath("/keys")
		}
		return nil
	}
	id, err := till.ParseID(ours)
	if err != nil || v.client == nil || !v.may(people.WebhooksSee) {
		return nil // the address is anybody's
	}
	return v.view(func(ctx context.Context, tx *store.Tx) error {
		endpoints, err := tx.Endpoints(ctx, v.client.ID, maxEndpointsShown)
		for _, e := range endpoints {
			if e.ID == id {
				p.Secret, p.Replace = v.words.T("search.secret_hook", "host", hostOf(e.URL)), v.clientPath("/webhooks/"+ours)
			}
		}
		return err
	})
}
