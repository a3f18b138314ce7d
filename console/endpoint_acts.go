package console

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"till"
	"till/store"
	"till/webhook"
)

// What people do to an endpoint, through the functions that the API calls.

// endpointID returns the endpoint of the path, and where its page is.
func (v *visit) endpointID() (till.ID, string, error) {
	ref, err := v.ref("endpoint")
	return ref.ID, v.clientPath("/webhooks/" + ref.ID.String()), err
}

// postEndpointEdit is POST …/webhooks/{endpoint}/edit.
func (v *visit) postEndpointEdit() error {
	id, path, err := v.endpointID()
	if err != nil {
		return err
	}
	r := v.readEndpoint()
	_, err = v.k.Endpoints.Patch(v.r.Context(), v.client, id, r, v.requester())
	if err == nil {
		return v.redirect(path + "?done=endpoint_changed")
	}
	p, readErr := v.endpointPage()
	if readErr != nil || p.Form == nil || !v.keep(p.Form, r, err) {
		return errors.Join(readErr, err)
	}
	p.Again = p.Path
	v.render(http.StatusUnprocessableEntity, "endpoint", p)
	return nil
}

// postEndpointState is POST …/webhooks/{endpoint}/state: on or off.
func (v *visit) postEndpointState() error {
	id, path, err := v.endpointID()
	if err != nil {
		return err
	}
	on := v.r.PostFormValue("on") != ""
	if on {
		if err := v.checkActive(); err != nil {
			return err
		}
	}
	_, err = v.k.Endpoints.Patch(v.r.Context(), v.client, id, &webhook.Request{Enabled: &on}, v.requester())
	return v.after(path, map[bool]string{true: "endpoint_on", false: "endpoint_off"}[on], err)
}

// postEndpointTest is POST …/webhooks/{endpoint}/test.
func (v *visit) postEndpointTest() error {
	id, path, err := v.endpointID()
	if err == nil {
		_, err = v.k.Endpoints.Test(v.r.Context(), v.client.ID, id, v.session.Actor())
	}
	return v.after(path, "endpoint_test", err)
}

// postEndpointAgain is POST …/webhooks/{endpoint}/again: one event, a range of
// them, or all that failed.
func (v *visit) postEndpointAgain() error {
	id, path, err := v.endpointID()
	if err != nil {
		return err
	}
	if event := v.r.PostFormValue("event"); event != "" {
		named, err := till.ParseID(event)
		if err != nil {
			return errNoPage
		}
		_, err = v.k.Endpoints.Redeliver(v.r.Context(), v.client.ID, named, &id, v.requester())
		return v.after(path+"/events/"+strconv.FormatInt(named.EventSequence(), 10), "sent_again", err)
	}
	r := &webhook.Replay{}
	if v.r.PostFormValue("failed") != "" {
		failed := true
		r.Failed = &failed
	} else {
		for name, to := range map[string]**int64{"from": &r.From, "to": &r.To} {
			if text := strings.TrimSpace(v.r.PostFormValue(name)); text != "" {
				n, err := strconv.ParseInt(text, 10, 64)
				if err != nil {
					return v.redirect(path + "?refused=value_invalid")
				}
				*to = &n
			}
		}
	}
	_, err = v.k.Endpoints.Replay(v.r.Context(), v.client.ID, id, r, v.requester())
	return v.after(path, "range_again", err)
}

// postEndpointRotate is POST …/webhooks/{endpoint}/rotate.
func (v *visit) postEndpointRotate() error {
	id, path, err := v.endpointID()
	if err != nil {
		return err
	}
	act, err := v.readAct()
	if err != nil {
		return err
	}
	secret := webhook.Secret(v.seedOf(act)).Reveal()
	var e *store.Endpoint
	if err := v.view(func(ctx context.Context, tx *store.Tx) (err error) { e, err = v.endpoint(ctx, tx); return err }); err != nil {
		return err
	}
	if v.k.Endpoints.Holds(e, secret) && v.now.Sub(e.UpdatedAt) > shownAgain {
		return v.redirect(path + "?refused=shown_once")
	}
	e, made, err := v.k.Endpoints.Rotate(v.r.Context(), v.client.ID, id, v.readOverlap(), &secret, v.requester())
	if err != nil {
		return v.after(path, "", err)
	}
	note := v.words.T("hooks.old_over")
	if e.OldUntil > v.now {
		note = v.words.T("hooks.old_signs", "t", v.clock.DateTime(e.OldUntil))
	}
	return v.showSecret(e, made, note)
}

// postEndpointDelete is POST …/webhooks/{endpoint}/delete.
func (v *visit) postEndpointDelete() error {
	id, path, err := v.endpointID()
	if err != nil {
		return err
	}
	if v.r.PostFormValue("sure") == "" {
		err := v.view(func(ctx context.Context, tx *store.Tx) error { _, err := v.endpoint(ctx, tx); return err })
		if err != nil {
			return err
		}
		return v.redirect(path)
	}
	return v.after(v.clientPath("/webhooks"), "endpoint_deleted", v.k.Endpoints.Delete(v.r.Context(), v.client.ID, id, v.session.Actor()))
}
