package access

import (
	"html/template"

	"till"
	"till/console/shell"
	"till/people"
)

const mePath = shell.Prefix + "/me"

// mePage is the profile.
type mePage struct {
	*shell.Frame
	Done, Refused string
	Session       *people.Session
	Roles         []roleOf
	Passkeys      []*people.Passkey
	Sessions      []*people.Session
	Reset         *people.Invitation // a link that would let somebody in as this person; nil: none
	CanPasskey    bool
	Proof         *shell.ProofForm
}

// roleOf is one role of the person.
type roleOf struct {
	Where string
	Role  till.Role
}

// me is GET /me.
func (v *visit) me() error {
	ctx := v.R.Context()
	p := &mePage{Frame: v.Frame(v.Words.T("me.title"), ""), Session: v.Session, CanPasskey: v.Console.People.CanPasskey()}
	p.Frame.Modules = []string{"passkey.js"}
	p.Done, p.Refused = v.Outcome()
	var err error
	if p.Passkeys, err = v.Console.People.Passkeys(ctx, v.Session.Person.ID); err != nil {
		return err
	}
	if p.Sessions, err = v.Console.People.Sessions(ctx, v.Session.Person.ID); err != nil {
		return err
	}
	if p.Reset, err = v.Console.People.OpenReset(ctx, v.Session.Person.ID); err != nil {
		return err
	}
	if !v.Session.FactorMissing {
		if p.Proof, err = v.ProofForm(); err != nil {
			return err
		}
	}
	clients, err := v.Console.People.Clients(ctx, v.Session)
	if err != nil {
		return err
	}
	for _, c := range clients {
		p.Roles = append(p.Roles, roleOf{c.Name, v.Session.RoleIn(c.ID)})
	}
	if r := v.Session.RoleIn(till.House); r != "" {
		p.Roles = append(p.Roles, roleOf{v.Words.T("me.house"), r})
	}
	return v.Page("me", p)
}

// postMe is POST /me: name, language, zone, theme, shortcuts.
func (v *visit) postMe() error {
	err := v.Console.People.SetProfile(v.R.Context(), v.Session, people.Profile{Name: v.R.PostFormValue("name"), Language: v.R.PostFormValue("language"),
		Zone: v.R.PostFormValue("zone"), Theme: v.R.PostFormValue("theme"), NoKeys: v.R.PostFormValue("keys") == ""})
	return v.Back(mePath, "profile", err)
}

// postProve is POST /me/prove: checkProof has taken the proof.
func (v *visit) postProve() error {
	return v.Back(shell.OwnPath(v.R.PostFormValue("back")), "proved", nil)
}

// changed gives the browser its new token after a change of what the person
// signs in with.
func (v *visit) changed(e people.Entry, done string, err error) error {
	if err == nil {
		v.Renewed(e)
	}
	return v.Back(mePath, done, err)
}

// postPassword is POST /me/password.
func (v *visit) postPassword() error {
	e, err := v.Console.People.SetPassword(v.R.Context(), v.From, v.Session, v.R.PostFormValue("password"))
	return v.changed(e, "password", err)
}

// totpPage sets up an authenticator app.
type totpPage struct {
	*shell.Frame
	Setup *people.TOTPSetup
	QR    template.HTML
	Wrong string
}

// mayChange refuses somebody who must prove who they are before a page that
// changes what they sign in with.
func (v *visit) mayChange() error {
	if v.Session.Fresh() || v.Session.FactorMissing {
		return nil
	}
	return v.Stop(v.Back(mePath, "", &people.Refusal{Code: people.ProofNeeded}))
}

// totp is GET /me/totp.
func (v *visit) totp() error {
	if err := v.mayChange(); err != nil {
		return err
	}
	setup, err := v.Console.People.BeginTOTP(v.R.Context(), v.Session)
	if err != nil {
		return err
	}
	return v.showTOTP(setup, "")
}

func (v *visit) showTOTP(setup *people.TOTPSetup, wrong string) (err error) {
	p := &totpPage{Frame: v.Frame(v.Words.T("totp.title"), ""), Setup: setup, Wrong: wrong}
	if p.QR, err = v.qr(setup.URI, v.Words.T("totp.qr")); err != nil {
		return err
	}
	v.Plain = true
	return v.Page("totp", p)
}

// codesPage shows recovery codes, once.
type codesPage struct {
	*shell.Frame
	Codes []string
}

func (v *visit) showCodes(codes []string) error {
	v.Plain = true
	return v.Page("codes", &codesPage{v.Frame(v.Words.T("codes.title"), ""), codes})
}

// postTOTP is POST /me/totp.
func (v *visit) postTOTP() error {
	e, codes, err := v.Console.People.ConfirmTOTP(v.R.Context(), v.From, v.Session, v.R.PostFormValue("step"), v.R.PostFormValue("code"))
	if err != nil {
		return v.totpAgain(err)
	}
	v.Renewed(e)
	if len(codes) > 0 {
		return v.showCodes(codes)
	}
	return v.Back(mePath, "totp", nil)
}

// totpAgain shows the same secret again: the app has it already.
func (v *visit) totpAgain(cause error) error {
	wrong, err := v.Refused(cause)
	if err != nil {
		return err
	}
	setup, err := v.Console.People.ShowTOTP(v.Session, v.R.PostFormValue("step"))
	if err != nil {
		return v.Back(mePath, "", cause)
	}
	return v.showTOTP(setup, wrong)
}

// postTOTPRemove is POST /me/totp/remove.
func (v *visit) postTOTPRemove() error {
	e, err := v.Console.People.RemoveTOTP(v.R.Context(), v.From, v.Session)
	return v.changed(e, "totp_removed", err)
}

// postCodes is POST /me/codes.
func (v *visit) postCodes() error {
	codes, err := v.Console.People.NewRecoveryCodes(v.R.Context(), v.Session)
	if err != nil {
		return v.Back(mePath, "", err)
	}
	return v.showCodes(codes)
}

// newPasskey is GET /me/passkey: the page on which the browser makes one.
func (v *visit) newPasskey() error {
	if err := v.mayChange(); err != nil {
		return err
	}
	c, err := v.Console.People.BeginPasskey(v.R.Context(), v.Session)
	if err != nil {
		return v.Back(mePath, "", err)
	}
	p := &passkeyPage{Frame: v.Frame(v.Words.T("register.title"), ""), Passkey: shell.CeremonyForm(c), Action: mePath + "/passkey", Back: mePath, Ask: true}
	p.Frame.Modules = []string{"passkey.js"}
	return v.Page("passkey", p)
}

// postNewPasskey is POST /me/passkey.
func (v *visit) postNewPasskey() error {
	e, err := v.Console.People.AddPasskey(v.R.Context(), v.From, v.Session, v.R.PostFormValue("step"), []byte(v.R.PostFormValue("answer")), v.R.PostFormValue("name"))
	return v.changed(e, "passkey", err)
}

// postPasskeyRemove is POST /me/passkey/remove.
func (v *visit) postPasskeyRemove() error {
	id, err := till.ParseID(v.R.PostFormValue("passkey"))
	if err != nil {
		return shell.ErrInput
	}
	e, err := v.Console.People.RemovePasskey(v.R.Context(), v.From, v.Session, id)
	return v.changed(e, "passkey_removed", err)
}

// postSessions is POST /me/sessions: it ends one, or all others.
func (v *visit) postSessions() error {
	text := v.R.PostFormValue("session")
	if text == "" {
		return v.Back(mePath, "sessions", v.Console.People.EndOthers(v.R.Context(), v.Session))
	}
	id, err := till.ParseID(text)
	if err != nil {
		return shell.ErrInput
	}
	return v.Back(mePath, "sessions", v.Console.People.EndSession(v.R.Context(), v.Session, id))
}
