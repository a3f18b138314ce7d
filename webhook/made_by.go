package webhook

import (
	"context"
	"slices"

	"till"
	"till/store"
	"till/store/auditlog"
	"till/store/webhooks"
)

// maxActsRead is how many acts on an endpoint are looked through, the oldest first.
const maxActsRead = 200

// givingActs are the acts on an endpoint after which a person can read what it is sent.
var givingActs = []string{"webhook_endpoint.create", "webhook_endpoint.patch", "webhook_endpoint.rotate"}

// ByPerson returns the endpoints of a client that are enabled, by each person of the console
// who made or changed them: the person knows their secret, or chose where they lead.
func (s *Endpoints) ByPerson(ctx context.Context, client till.ID) (out map[till.ID][]*webhooks.Endpoint, err error) {
	err = s.Store.View(ctx, func(tx *store.Tx) error {
		out = map[till.ID][]*webhooks.Endpoint{}
		all, err := webhooks.Endpoints(ctx, tx, client, MaxEndpoints)
		if err != nil {
			return err
		}
		for _, e := range all {
			acts, err := auditlog.ActsOn(ctx, tx, e.Ref(), maxActsRead)
			if err != nil {
				return err
			}
			for _, a := range acts {
				maker, ok := till.PersonOfActor(a.Actor)
				if ok && e.Enabled && slices.Contains(givingActs, a.Action) && !slices.Contains(out[maker], e) {
					out[maker] = append(out[maker], e)
				}
			}
		}
		return nil
	})
	return out, err
}
