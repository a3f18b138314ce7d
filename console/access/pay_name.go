package access

import (
	"context"
	"errors"
	"net/http"

	"till"
	"till/checkout"
	"till/console/shell"
	"till/store"
	"till/store/checkouts"
)

// payName is the name that pages to pay on show.
type payName struct {
	Shown  string // "": none, because the merchant's own breaks a rule
	Asked  string // it waits for the house
	Since  string
	Waits  bool // a new one has to be confirmed
	Typed  string
	Wrong  string
	Longer int // how many characters it has at most
}

// readPayName reads how pages show the merchant.
func (v *visit) readPayName() (*payName, error) {
	var n checkouts.PayName
	err := v.View(func(ctx context.Context, tx *store.Tx) (err error) {
		n, err = checkouts.ReadPayName(ctx, tx, v.Client.ID)
		return err
	})
	if err != nil {
		return nil, err
	}
	p := &payName{Shown: checkout.NameOnPages(v.Client.Name, n.Shown), Asked: n.Asked, Waits: v.Client.Mode == till.Live, Longer: checkout.MaxName}
	if p.Typed = p.Shown; n.Asked != "" {
		p.Typed, p.Since = n.Asked, v.Clock.DateTime(n.AskedAt)
	}
	return p, nil
}

// postPayName is POST /c/{client}/settings/pay-name: the owner asks for the name on pages.
func (v *visit) postPayName() error {
	name := v.R.PostFormValue("pay_name")
	err := checkout.AskName(v.R.Context(), v.Console.Store, v.Client.ID, name, v.Session.Actor())
	var wrong *checkout.NameError
	if !errors.As(err, &wrong) {
		return v.After(v.ClientPath("/settings"), "profile", err)
	}
	p, err := v.settingsPage(v.Profile)
	if err != nil {
		return err
	}
	p.PayName.Typed, p.PayName.Wrong = name, v.Words.T("settings.pay_wrong_"+string(wrong.Rule))
	v.Render(http.StatusUnprocessableEntity, "settings", p)
	return nil
}

// postConfirmName is POST /house/names: the house lets a merchant's pages show the name that was
// asked for, if it is still the one that was read.
func (v *visit) postConfirmName() error {
	id, err := till.ParseID(v.R.PostFormValue("client"))
	if err != nil {
		return shell.ErrNoPage
	}
	err = checkout.ConfirmName(v.R.Context(), v.Console.Store, id, v.R.PostFormValue("name"), v.Session.Actor())
	var wrong *checkout.NameError
	if errors.As(err, &wrong) {
		return v.Redirect(shell.Prefix + "/house?refused=name_taken")
	}
	if till.ErrorCode(err) == till.CodeValidationFailed {
		return v.Redirect(shell.Prefix + "/house?refused=name_changed")
	}
	return v.After(shell.Prefix+"/house", "name_confirmed", err)
}
