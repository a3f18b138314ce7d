package hooks

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"till"
	"till/console/shell"
	"till/console/subject"
	"till/people"
	"till/store"
	"till/store/webhooks"
	"till/webhook"
)

// webhooksPage lists the endpoints of a merchant.
type webhooksPage struct {
	*shell.Frame
	Done, Refused string
	Endpoints     []*endpointView
	Form          *endpointForm // nil: the person may make none, or there are enough
	Most          int
	Again         string
	Proof         *shell.ProofForm
}

// endpointView is an endpoint as people see it.
type endpointView struct {
	*webhooks.Endpoint
	Path    string
	Host    string
	State   shell.Chip
	Tone    string
	Say     string // what is going on
	Do      string // what to do about it
	Waiting string // how many events wait
	Next    string // when the next is tried
	Flushes string // what a test that arrives sends, too
	Last    string // the last that arrived
}

// endpointForm is what an endpoint is made or changed with.
type endpointForm struct {
	*shell.Frame
	Act         string
	Path        string
	URL         string
	Description string
	Kinds       []kindChoice
	Wrong       map[string]string // by field
	New         bool
}

type kindChoice struct {
	Kind   till.EventKind
	Chosen bool
}

// webhooks is GET /c/{client}/webhooks.
func (v *visit) webhooks() error {
	p, err := v.webhooksPage()
	if err != nil {
		return err
	}
	return v.Page("webhooks", p)
}

func (v *visit) webhooksPage() (*webhooksPage, error) {
	p := &webhooksPage{Frame: v.Frame(v.Words.T("menu.webhooks"), "menu.webhooks"), Most: webhook.MaxEndpoints, Again: v.R.URL.Path}
	_, p.Refused = v.Outcome()
	err := v.View(func(ctx context.Context, tx *store.Tx) error {
		all, err := webhooks.Endpoints(ctx, tx, v.Client.ID, webhook.MaxEndpoints)
		if err != nil {
			return err
		}
		p.Endpoints, err = v.endpointViews(ctx, tx, all)
		return err
	})
	if err != nil {
		return nil, err
	}
	if v.May(people.WebhooksManage) && len(p.Endpoints) < webhook.MaxEndpoints {
		p.Form = v.endpointForm(v.ClientPath("/webhooks"), nil)
		if p.Proof, err = v.ProofForm(); p.Proof != nil {
			p.Frame.Modules = []string{"passkey.js"}
		}
	}
	return p, err
}

// endpointViews puts the states of endpoints into words.
func (v *visit) endpointViews(ctx context.Context, tx *store.Tx, all []*webhooks.Endpoint) ([]*endpointView, error) {
	refs := make([]store.Ref, len(all))
	for i, e := range all {
		refs[i] = e.Ref()
	}
	troubles, err := webhooks.Troubles(ctx, tx, refs)
	if err != nil {
		return nil, err
	}
	out := make([]*endpointView, len(all))
	for i, e := range all {
		out[i] = v.endpointView(e, troubles[refs[i]])
	}
	return out, nil
}

func (v *visit) endpointView(e *webhooks.Endpoint, trouble *webhooks.Delivery) *endpointView {
	t := v.Words.T
	out := &endpointView{Endpoint: e, Path: v.ClientPath("/webhooks/" + e.ID.String()), Host: subject.HostOf(e.URL)}
	var last *webhooks.DeliveryAttempt
	if trouble != nil {
		last = &trouble.Last
	}
	why, fails := webhook.TroubleOf(&e.Endpoint, last)
	code := 0
	if last != nil {
		code = last.Code
	}
	out.Say = t("trouble."+string(why), "code", code, "host", out.Host)
	out.Tone, out.State = "paid", shell.Chip{Tone: "paid", Icon: "check", Text: t("hooks.works")}
	switch {
	case !e.Enabled:
		out.Tone, out.State = "ended", shell.Chip{Tone: "ended", Icon: "bar", Text: t("hooks.off")}
		if fails {
			out.Tone, out.State.Tone = "failed", "failed"
		}
		out.Say += " " + t("hooks.off_since", "t", v.Clock.Moment(e.DisabledAt, v.Now))
		out.Do = t("hooks.off_do")
	case fails:
		out.Tone, out.State = "failed", shell.Chip{Tone: "failed", Icon: "warn", Text: t("hooks.fails")}
		out.Say += " " + t("hooks.fails_since", "t", v.Clock.Moment(e.FailingSince, v.Now), "n", e.Failures)
		out.Do = t("hooks.fails_do")
	case why == webhook.TroubleNew:
		out.Tone, out.State = "processing", shell.Chip{Tone: "processing", Icon: "clock", Text: t("hooks.new")}
	}
	if next := webhook.NextTry(e, v.Now); fails && next > v.Now {
		out.Next = t("hooks.next_try", "t", v.Clock.Moment(next, v.Now))
	}
	if fails && e.Enabled && e.Backlog > 0 {
		out.Flushes = t("hooks.flushes", "n", e.Backlog)
	}
	if e.Backlog > 0 {
		out.Waiting = t("hooks.waiting", "n", e.Backlog)
	}
	if !e.LastSuccessAt.IsZero() {
		out.Last = t("hooks.last", "t", v.Clock.Moment(e.LastSuccessAt, v.Now))
	}
	return out
}

// ShownURL returns the address without a password in it.
func (e *endpointView) ShownURL() string {
	if u, err := url.Parse(e.URL); err == nil {
		return u.Redacted()
	}
	return e.URL
}

// endpointForm returns the form of a new endpoint, or of one that is changed.
func (v *visit) endpointForm(path string, e *webhooks.Endpoint) *endpointForm {
	f := &endpointForm{Frame: &shell.Frame{Catalogue: v.Words}, Act: v.NewAct(), Path: path, New: e == nil}
	if e != nil {
		f.URL, f.Description = e.URL, e.Description
	}
	for _, k := range till.EventKinds {
		f.Kinds = append(f.Kinds, kindChoice{k, e != nil && e.Events != nil && e.Subscribed(k)})
	}
	return f
}

// readEndpoint returns what a form asks for. No kind ticked means all of them.
func (v *visit) readEndpoint() *webhook.Request {
	address, description := strings.TrimSpace(v.R.PostFormValue("url")), strings.TrimSpace(v.R.PostFormValue("description"))
	kinds := v.R.PostForm["events"]
	if len(kinds) == 0 || len(kinds) == len(till.EventKinds) {
		kinds = []string{till.AllEvents}
	}
	return &webhook.Request{URL: &address, Events: &kinds, Description: &description}
}

// keep puts what was typed back into a form, with what is wrong with it; false
// if the error is about something else.
func (v *visit) keep(f *endpointForm, r *webhook.Request, err error) bool {
	var e *till.Error
	if !errors.As(err, &e) || e.Code != till.CodeValidationFailed {
		return false
	}
	f.URL, f.Description, f.Wrong = *r.URL, *r.Description, map[string]string{}
	for i := range f.Kinds {
		for _, k := range *r.Events {
			f.Kinds[i].Chosen = f.Kinds[i].Chosen || k == string(f.Kinds[i].Kind)
		}
	}
	for _, field := range e.Fields {
		name, _, _ := strings.Cut(strings.TrimPrefix(field.Pointer, "/"), "/")
		if name == "" {
			name = "url"
		}
		key := "hooks.wrong_" + name
		if field.Code == till.FieldURLNotAllowed {
			key = "hooks.wrong_url_not_allowed"
		}
		if field.Code == till.FieldTooMany && name == "url" {
			key = "hooks.wrong_many"
		}
		f.Wrong[name] = v.Words.T(key)
	}
	return true
}

// postWebhook is POST /c/{client}/webhooks: it makes an endpoint.
func (v *visit) postWebhook() error {
	act, err := v.ReadAct()
	if err != nil {
		return err
	}
	r := v.readEndpoint()
	secret := webhook.Secret(v.SeedOf(act)).Reveal()
	r.Secret = &secret
	made, err := v.Console.Endpoints.Create(v.R.Context(), v.Client, r, v.Requester())
	if err != nil {
		p, readErr := v.webhooksPage()
		if readErr != nil || p.Form == nil || !v.keep(p.Form, r, err) {
			return errors.Join(err, readErr)
		}
		v.Render(http.StatusUnprocessableEntity, "webhooks", p)
		return nil
	}
	path := v.ClientPath("/webhooks/" + made.Endpoint.ID.String())
	if made.Replayed && v.Now.Sub(made.Endpoint.CreatedAt) > shell.ShownAgain {
		return v.Redirect(path + "?refused=shown_once")
	}
	return v.showSecret(made.Endpoint, made.Secret, "")
}

// showSecret shows the secret of an endpoint, with how a receiver uses it.
func (v *visit) showSecret(e *webhooks.Endpoint, secret webhook.Secret, note string) error {
	t := v.Words.T
	p := &shell.OncePage{Frame: v.Frame(t("hooks.secret_title", "host", subject.HostOf(e.URL)), "menu.webhooks"), Lead: t("hooks.secret_lead"), Label: t("hooks.secret"),
		Secret: secret.Reveal(), Back: v.ClientPath("/webhooks/" + e.ID.String())}
	p.Notes = append(p.Notes, t("hooks.secret_use"))
	if note != "" {
		p.Notes = append(p.Notes, note)
	}
	for i, s := range verifySnippets {
		p.Shows = append(p.Shows, shell.Choice{Text: s.name, Path: s.code, Current: i == 0})
	}
	return v.ShowOnce(p)
}
