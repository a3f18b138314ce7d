package access

import (
	"context"

	"till"
	"till/people"
	"till/store"
	"till/store/access"
	"till/store/webhooks"
	"till/webhook"
)

// made is the access that a person has given to programs: it stays when the
// person goes, unless somebody ends it.
type made struct {
	Keys      []*till.Key
	Endpoints []*webhooks.Endpoint
}

// Any reports whether there is something.
func (m made) Any() bool { return len(m.Keys)+len(m.Endpoints) > 0 }

// madeIn returns what people have made in a merchant, by person.
func (v *visit) madeIn(client till.ID) (map[till.ID]made, error) {
	keys, err := v.Console.Accounts.KeysByPerson(v.R.Context(), client)
	if err != nil {
		return nil, err
	}
	endpoints, err := v.Console.Endpoints.ByPerson(v.R.Context(), client)
	if err != nil {
		return nil, err
	}
	out := map[till.ID]made{}
	for person, k := range keys {
		out[person] = made{k, endpoints[person]}
	}
	for person, e := range endpoints {
		out[person] = made{keys[person], e}
	}
	return out, nil
}

// endMade revokes the keys that a person made, with what descends from them, and
// disables the endpoints.
func (v *visit) endMade(client *till.Client, person till.ID) error {
	all, err := v.madeIn(client.ID)
	if err != nil {
		return err
	}
	m := all[person]
	for _, k := range m.Keys {
		if _, err := v.Console.Accounts.RevokeKey(v.R.Context(), client.ID, k.ID, true, v.Session.Actor()); err != nil {
			return err
		}
	}
	off := false
	for _, e := range m.Endpoints {
		if _, err := v.Console.Endpoints.Patch(v.R.Context(), client, e.ID, &webhook.Request{Enabled: &off}, v.Requester()); err != nil {
			return err
		}
	}
	return nil
}

// withMade runs an act that ends a person's access to some merchants and, if the
// form says so, ends the access that the person gave to programs there: before, so
// that a form that is sent again finds it, and after, for what was made meanwhile.
func (v *visit) withMade(person till.ID, in []*till.Client, act func() error) error {
	end := func() error {
		if v.R.PostFormValue("made") == "" {
			return nil
		}
		for _, c := range in {
			if err := v.endMade(c, person); err != nil {
				return err
			}
		}
		return nil
	}
	if err := end(); err != nil {
		return err
	}
	if err := act(); err != nil {
		return err
	}
	return end()
}

// merchantsOf returns the merchants that a person has a role with.
func (v *visit) merchantsOf(person till.ID) (out []*till.Client, err error) {
	err = v.View(func(ctx context.Context, tx *store.Tx) (err error) {
		out, err = access.ClientsOf(ctx, tx, person, people.MaxMemberships)
		return err
	})
	return out, err
}
