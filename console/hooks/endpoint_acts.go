package hooks

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"till"
	"till/console/shell"
	"till/store"
	"till/store/webhooks"
	"till/webhook"
)

// What people do to an endpoint, through the functions that the API calls.

// endpointID returns the endpoint of the path, and where its page is.
func (v *visit) endpointID() (till.ID, string, error) {
	ref, err := v.Ref("endpoint")
	return ref.ID, v.ClientPath("/webhooks/" + ref.ID.String()), err
}

// postEndpointEdit is POST …/webhooks/{endpoint}/edit.
func (v *visit) postEndpointEdit() error {
	id, path, err := v.endpointID()
	if err != nil {
		return err
	}
	r := v.readEndpoint()
	_, err = v.Console.Endpoints.Patch(v.R.Context(), v.Client, id, r, v.Requester())
	if err == nil {
		return v.Redirect(path + "?done=endpoint_changed")
	}
	p, readErr := v.endpointPage()
	if readErr != nil || p.Form == nil || !v.keep(p.Form, r, err) {
		return errors.Join(readErr, err)
	}
	p.Again = p.Path
	v.Render(http.StatusUnprocessableEntity, "endpoint", p)
	return nil
}

// postEndpointState is POST …/webhooks/{endpoint}/state: on or off.
func (v *visit) postEndpointState() error {
	id, path, err := v.endpointID()
	if err != nil {
		return err
	}
	on := v.R.PostFormValue("on") != ""
	if on {
		if err := v.CheckActive(); err != nil {
			return err
		}
	}
	_, err = v.Console.Endpoints.Patch(v.R.Context(), v.Client, id, &webhook.Request{Enabled: &on}, v.Requester())
	return v.After(path, map[bool]string{true: "endpoint_on", false: "endpoint_off"}[on], err)
}

// postEndpointTest is POST …/webhooks/{endpoint}/test.
func (v *visit) postEndpointTest() error {
	id, path, err := v.endpointID()
	if err == nil {
		_, err = v.Console.Endpoints.Test(v.R.Context(), v.Client.ID, id, v.Session.Actor())
	}
	return v.After(path, "endpoint_test", err)
}

// postEndpointAgain is POST …/webhooks/{endpoint}/again: one event, a range of
// them, or all that failed.
func (v *visit) postEndpointAgain() error {
	id, path, err := v.endpointID()
	if err != nil {
		return err
	}
	if event := v.R.PostFormValue("event"); event != "" {
		named, err := till.ParseID(event)
		if err != nil {
			return shell.ErrNoPage
		}
		_, err = v.Console.Endpoints.Redeliver(v.R.Context(), v.Client.ID, named, &id, v.Requester())
		return v.After(path+"/events/"+strconv.FormatInt(named.EventSequence(), 10), "sent_again", err)
	}
	r := &webhook.Replay{}
	if v.R.PostFormValue("failed") != "" {
		failed := true
		r.Failed = &failed
	} else {
		for name, to := range map[string]**int64{"from": &r.From, "to": &r.To} {
			if text := strings.TrimSpace(v.R.PostFormValue(name)); text != "" {
				n, err := strconv.ParseInt(text, 10, 64)
				if err != nil {
					return v.Redirect(path + "?refused=value_invalid")
				}
				*to = &n
			}
		}
	}
	_, err = v.Console.Endpoints.Replay(v.R.Context(), v.Client.ID, id, r, v.Requester())
	return v.After(path, "range_again", err)
}

// postEndpointRotate is POST …/webhooks/{endpoint}/rotate.
func (v *visit) postEndpointRotate() error {
	id, path, err := v.endpointID()
	if err != nil {
		return err
	}
	act, err := v.ReadAct()
	if err != nil {
		return err
	}
	secret := webhook.Secret(v.SeedOf(act)).Reveal()
	var e *webhooks.Endpoint
	if err := v.View(func(ctx context.Context, tx *store.Tx) (err error) { e, err = v.endpoint(ctx, tx); return err }); err != nil {
		return err
	}
	if v.Console.Endpoints.Holds(e, secret) && v.Now.Sub(e.UpdatedAt) > shell.ShownAgain {
		return v.Redirect(path + "?refused=shown_once")
	}
	e, made, err := v.Console.Endpoints.Rotate(v.R.Context(), v.Client.ID, id, v.ReadOverlap(), &secret, v.Requester())
	if err != nil {
		return v.After(path, "", err)
	}
	note := v.Words.T("hooks.old_over")
	if e.OldUntil > v.Now {
		note = v.Words.T("hooks.old_signs", "t", v.Clock.DateTime(e.OldUntil))
	}
	return v.showSecret(e, made, note)
}

// postEndpointDelete is POST …/webhooks/{endpoint}/delete.
func (v *visit) postEndpointDelete() error {
	id, path, err := v.endpointID()
	if err != nil {
		return err
	}
	if v.R.PostFormValue("sure") == "" {
		err := v.View(func(ctx context.Context, tx *store.Tx) error { _, err := v.endpoint(ctx, tx); return err })
		if err != nil {
			return err
		}
		return v.Redirect(path)
	}
	return v.After(v.ClientPath("/webhooks"), "endpoint_deleted", v.Console.Endpoints.Delete(v.R.Context(), v.Client.ID, id, v.Session.Actor()))
}
