package access

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"till"
	"till/console/shell"
	"till/people"
	"till/store"
	"till/store/access"
)

// keysPage lists the API keys of a merchant.
type keysPage struct {
	*shell.Frame
	Done, Refused string
	Keys          []*keyView
	Ended         []*keyView
	More          bool // there are more that have ended
	Form          *keyForm
	Proof         *shell.ProofForm
	Full          bool // the person may give every scope
}

// keyView is a key as people see it.
type keyView struct {
	*till.Key
	Shown   string // till_live_8f3k…
	Scope   string // in words
	Used    string
	Until   string
	Exposed string
	Strong  bool // it moves money out, or makes keys
	Rotate  bool // the person may replace it
	Act     string
}

// keyForm is what a key is made with.
type keyForm struct {
	*shell.Frame
	Act    string
	Name   string
	Days   string
	Scopes []scopeChoice
	Strong []scopeChoice // those that have a step of their own
	Wrong  map[string]string
}

type scopeChoice struct {
	Scope  till.Scope
	Chosen bool
}

// strongScopes are those that a developer may not give, and that an owner gives
// in a step of its own.
var strongScopes = []till.Scope{till.RefundsWrite, till.PayoutsWrite, till.KeysManage}

func isStrong(scopes []till.Scope) bool {
	return slices.ContainsFunc(scopes, func(s till.Scope) bool { return slices.Contains(strongScopes, s) })
}

// The limits of the page.
const (
	maxListedKeys = 1000 // as the API lists
	maxEndedKeys  = 30
)

// expiries are the days after which a key can end; "" is never.
var expiries = []string{"", "30", "90", "365"}

// Expiries are the choices of a key's form.
func (f *keyForm) Expiries() []shell.Choice {
	out := make([]shell.Choice, len(expiries))
	for i, d := range expiries {
		out[i] = shell.Choice{Text: f.T("apikey.never_ends"), Path: d}
		if d != "" {
			out[i].Text = f.T("apikey.days", "days", d)
		}
	}
	return out
}

// keys is GET /c/{client}/keys.
func (v *visit) keys() error {
	p, err := v.keysPage()
	if err != nil {
		return err
	}
	return v.Page("keys", p)
}

func (v *visit) keysPage() (*keysPage, error) {
	p := &keysPage{Frame: v.Frame(v.Words.T("menu.keys"), "menu.keys"), Full: v.Grant == people.Full}
	p.Frame.Modules = []string{"passkey.js"}
	_, p.Refused = v.Outcome()
	var all []*till.Key
	err := v.View(func(ctx context.Context, tx *store.Tx) (err error) {
		all, err = access.Keys(ctx, tx, v.Client.ID, maxListedKeys)
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b *till.Key) int { return int(max(-1, min(1, int64(b.CreatedAt)-int64(a.CreatedAt)))) })
	for _, k := range all {
		switch {
		case k.Active(v.Now):
			p.Keys = append(p.Keys, v.keyView(k))
		case len(p.Ended) < maxEndedKeys:
			p.Ended = append(p.Ended, v.keyView(k))
		default:
			p.More = true
		}
	}
	p.Form = v.keyForm()
	p.Proof, err = v.ProofForm()
	return p, err
}

// keyStart is the part of a key's text that is no secret.
func (v *visit) keyStart(id string) string {
	if v.Client.Mode == till.Live {
		return "till_live_" + id + "_…"
	}
	return "till_test_" + id + "_…"
}

func (v *visit) keyView(k *till.Key) *keyView {
	t := v.Words.T
	out := &keyView{Key: k, Shown: v.keyStart(k.ID), Strong: isStrong(k.Scopes), Act: v.NewAct()}
	words := make([]string, len(k.Scopes))
	for i, s := range k.Scopes {
		words[i] = t("scope." + string(s))
	}
	out.Scope = strings.Join(words, ", ")
	out.Rotate = v.Grant == people.Full || !out.Strong
	out.Used = t("apikey.unused")
	if !k.LastUsedAt.IsZero() {
		out.Used = t("apikey.used", "t", v.Clock.Moment(k.LastUsedAt, v.Now))
	}
	switch {
	case !k.RevokedAt.IsZero():
		out.Until = t("apikey.revoked", "t", v.Clock.DateTime(k.RevokedAt))
	case !k.ExpiresAt.IsZero() && k.ExpiresAt <= v.Now:
		out.Until = t("apikey.expired", "t", v.Clock.DateTime(k.ExpiresAt))
	case !k.ExpiresAt.IsZero():
		out.Until = t("apikey.ends", "t", v.Clock.DateTime(k.ExpiresAt))
	}
	if !k.ExposedAt.IsZero() {
		out.Exposed = t("apikey.exposed", "t", v.Clock.DateTime(k.ExposedAt))
	}
	return out
}

func (v *visit) keyForm() *keyForm {
	f := &keyForm{Frame: &shell.Frame{Catalogue: v.Words}, Act: v.NewAct()}
	for _, s := range till.Scopes {
		c := scopeChoice{s, slices.Contains(till.DefaultScopes, s)}
		switch {
		case !slices.Contains(strongScopes, s):
			f.Scopes = append(f.Scopes, c)
		case v.Grant == people.Full:
			f.Strong = append(f.Strong, c)
		}
	}
	return f
}

// readKey returns what the form asks for.
func (v *visit) readKey() (name string, scopes []till.Scope, expires till.Time) {
	for _, s := range v.R.PostForm["scopes"] {
		scopes = append(scopes, till.Scope(s))
	}
	switch v.R.PostFormValue("days") {
	case "30":
		expires = v.Now.Add(30 * 24 * time.Hour)
	case "90":
		expires = v.Now.Add(90 * 24 * time.Hour)
	case "365":
		expires = v.Now.Add(365 * 24 * time.Hour)
	}
	return strings.TrimSpace(v.R.PostFormValue("name")), scopes, expires
}

// postKey is POST /c/{client}/keys: it makes a key.
func (v *visit) postKey() error {
	act, err := v.ReadAct()
	if err != nil {
		return err
	}
	name, scopes, expires := v.readKey()
	strong := isStrong(scopes)
	if strong && v.Grant != people.Full {
		return v.Redirect(v.ClientPath("/keys?refused=not_allowed"))
	}
	if scopes == nil {
		scopes = []till.Scope{} // none, not the default ones
	}
	if strong && v.R.PostFormValue("sure") == "" && v.Console.Accounts.CheckKey(name, scopes, expires) == nil {
		return v.confirmKey(act, name, scopes)
	}
	text, key, err := v.Console.Accounts.CreateKeyOnce(v.R.Context(), v.SeedOf(act), v.Client.ID, name, scopes, expires, v.Session.Actor())
	if err != nil {
		return v.keyMistake(name, scopes, err)
	}
	return v.showKey(text, key, "")
}

// keyMistake shows the form again with what is wrong.
func (v *visit) keyMistake(name string, scopes []till.Scope, err error) error {
	var e *till.Error
	if !errors.As(err, &e) || e.Code != till.CodeValidationFailed {
		return err
	}
	p, readErr := v.keysPage()
	if readErr != nil {
		return readErr
	}
	p.Form.Name, p.Form.Days, p.Form.Wrong = name, v.R.PostFormValue("days"), map[string]string{}
	for _, list := range [][]scopeChoice{p.Form.Scopes, p.Form.Strong} {
		for i := range list {
			list[i].Chosen = slices.Contains(scopes, list[i].Scope)
		}
	}
	for _, field := range e.Fields {
		where, _, _ := strings.Cut(strings.TrimPrefix(field.Pointer, "/"), "/")
		switch where {
		case "name":
			p.Form.Wrong["name"] = v.Words.T("apikey.wrong_name")
		case "scopes":
			p.Form.Wrong["scopes"] = v.Words.T("apikey.wrong_scopes")
		default:
			p.Form.Wrong["name"] = v.Words.T("refusal.too_many")
		}
	}
	v.Render(http.StatusUnprocessableEntity, "keys", p)
	return nil
}

// confirmPage asks once more before a key is made that moves money out or makes
// keys: what it allows, and the same form again.
type confirmPage struct {
	*shell.Frame
	Act, KeyName, Days string
	Scopes             []till.Scope
	Strong             []till.Scope
	Path, Back         string
}

func (v *visit) confirmKey(act, name string, scopes []till.Scope) error {
	p := &confirmPage{Frame: v.Frame(v.Words.T("apikey.confirm_title"), "menu.keys"), Act: act, KeyName: name, Days: v.R.PostFormValue("days"), Scopes: scopes,
		Path: v.ClientPath("/keys"), Back: v.ClientPath("/keys")}
	for _, s := range scopes {
		if slices.Contains(strongScopes, s) {
			p.Strong = append(p.Strong, s)
		}
	}
	return v.Page("key_confirm", p)
}

// showKey shows a key, once.
func (v *visit) showKey(text string, k *till.Key, note string) error {
	if v.Now.Sub(k.CreatedAt) > shell.ShownAgain {
		return v.Redirect(v.ClientPath("/keys?refused=shown_once"))
	}
	t := v.Words.T
	p := &shell.OncePage{Frame: v.Frame(t("apikey.once_title"), "menu.keys"), Lead: t("apikey.once_lead"), Label: t("apikey.once"), Secret: text, Back: v.ClientPath("/keys")}
	p.Notes = append(p.Notes, t("apikey.once_use"))
	if note != "" {
		p.Notes = append(p.Notes, note)
	}
	p.Shows = []shell.Choice{{Text: "curl", Path: "export KEY=…\ncurl " + v.Console.BaseURL + "/payment-methods -H \"X-Api-Key: $KEY\"", Current: true}}
	return v.ShowOnce(p)
}

// chosenKey returns the key of a form.
func (v *visit) chosenKey() (k *till.Key, err error) {
	err = v.View(func(ctx context.Context, tx *store.Tx) (err error) {
		k, err = access.Key(ctx, tx, v.Client.ID, v.R.PostFormValue("key"))
		return err
	})
	return k, err
}

// postKeyRotate is POST /c/{client}/keys/rotate.
func (v *visit) postKeyRotate() error {
	path := v.ClientPath("/keys")
	act, err := v.ReadAct()
	if err != nil {
		return err
	}
	k, err := v.chosenKey()
	if till.ErrorCode(err) == till.CodeKeyNotFound {
		return v.Redirect(path + "?refused=key_unknown")
	}
	if err != nil {
		return err
	}
	if isStrong(k.Scopes) && v.Grant != people.Full {
		return v.Redirect(path + "?refused=not_allowed")
	}
	overlap := v.ReadOverlap()
	text, made, err := v.Console.Accounts.RotateKeyOnce(v.R.Context(), v.SeedOf(act), v.Client.ID, k.ID, overlap, v.Session.Actor())
	switch code := till.ErrorCode(err); {
	case code == till.CodeKeyNotFound:
		return v.Redirect(path + "?refused=key_unknown")
	case code == till.CodeValidationFailed:
		return v.Redirect(path + "?refused=key_replaced")
	case err != nil:
		return err
	}
	note := v.Words.T("apikey.old_over")
	if overlap > 0 {
		note = v.Words.T("apikey.old_works", "t", v.Clock.DateTime(made.CreatedAt.Add(overlap)))
	}
	return v.showKey(text, made, note)
}

// postKeyRevoke is POST /c/{client}/keys/revoke.
func (v *visit) postKeyRevoke() error {
	path := v.ClientPath("/keys")
	_, err := v.Console.Accounts.RevokeKey(v.R.Context(), v.Client.ID, v.R.PostFormValue("key"), v.R.PostFormValue("cascade") != "", v.Session.Actor())
	if till.ErrorCode(err) == till.CodeKeyNotFound {
		return v.Redirect(path + "?refused=key_unknown")
	}
	return v.After(path, "key_revoked", err)
}
