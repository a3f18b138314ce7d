package console

import (
	"html/template"

	"till"
	"till/people"
)

const mePath = Prefix + "/me"

// mePage is the profile.
type mePage struct {
	*Frame
	Done, Refused string
	Session       *people.Session
	Roles         []roleOf
	Passkeys      []*people.Passkey
	Sessions      []*people.Session
	Reset         *people.Invitation // a link that would let somebody in as this person; nil: none
	CanPasskey    bool
	Proof         *proofForm
}

// roleOf is one role of the person.
type roleOf struct {
	Where string
	Role  till.Role
}

// me is GET /me.
func (v *visit) me() error {
	ctx := v.r.Context()
	p := &mePage{Frame: v.frame(v.words.T("me.title"), ""), Session: v.session, CanPasskey: v.k.People.CanPasskey()}
	p.Frame.Modules = []string{"passkey.js"}
	p.Done, p.Refused = v.told()
	var err error
	if p.Passkeys, err = v.k.People.Passkeys(ctx, v.session.Person.ID); err != nil {
		return err
	}
	if p.Sessions, err = v.k.People.Sessions(ctx, v.session.Person.ID); err != nil {
		return err
	}
	if p.Reset, err = v.k.People.OpenReset(ctx, v.session.Person.ID); err != nil {
		return err
	}
	if !v.session.FactorMissing {
		if p.Proof, err = v.proofForm(); err != nil {
			return err
		}
	}
	clients, err := v.k.People.Clients(ctx, v.session)
	if err != nil {
		return err
	}
	for _, c := range clients {
		p.Roles = append(p.Roles, roleOf{c.Name, v.session.RoleIn(c.ID)})
	}
	if r := v.session.RoleIn(till.House); r != "" {
		p.Roles = append(p.Roles, roleOf{v.words.T("me.house"), r})
	}
	return v.page("me", p)
}

// postMe is POST /me: name, language, zone, theme, shortcuts.
func (v *visit) postMe() error {
	err := v.k.People.SetProfile(v.r.Context(), v.session, people.Profile{Name: v.r.PostFormValue("name"), Language: v.r.PostFormValue("language"),
		Zone: v.r.PostFormValue("zone"), Theme: v.r.PostFormValue("theme"), NoKeys: v.r.PostFormValue("keys") == ""})
	return v.back(mePath, "profile", err)
}

// postProve is POST /me/prove: checkProof has taken the proof.
func (v *visit) postProve() error { return v.back(ownPath(v.r.PostFormValue("back")), "proved", nil) }

// changed gives the browser its new token after a change of what the person
// signs in with.
func (v *visit) changed(e people.Entry, done string, err error) error {
	if err == nil {
		v.renewed(e)
	}
	return v.back(mePath, done, err)
}

// postPassword is POST /me/password.
func (v *visit) postPassword() error {
	e, err := v.k.People.SetPassword(v.r.Context(), v.from, v.session, v.r.PostFormValue("password"))
	return v.changed(e, "password", err)
}

// totpPage sets up an authenticator app.
type totpPage struct {
	*Frame
	Setup *people.TOTPSetup
	QR    template.HTML
	Wrong string
}

// mayChange refuses somebody who must prove who they are before a page that
// changes what they sign in with.
func (v *visit) mayChange() error {
	if v.session.Fresh() || v.session.FactorMissing {
		return nil
	}
	return v.stop(v.back(mePath, "", &people.Refusal{Code: people.ProofNeeded}))
}

// totp is GET /me/totp.
func (v *visit) totp() error {
	if err := v.mayChange(); err != nil {
		return err
	}
	setup, err := v.k.People.BeginTOTP(v.r.Context(), v.session)
	if err != nil {
		return err
	}
	return v.showTOTP(setup, "")
}

func (v *visit) showTOTP(setup *people.TOTPSetup, wrong string) (err error) {
	p := &totpPage{Frame: v.frame(v.words.T("totp.title"), ""), Setup: setup, Wrong: wrong}
	if p.QR, err = v.qr(setup.URI, v.words.T("totp.qr")); err != nil {
		return err
	}
	v.plain = true
	return v.page("totp", p)
}

// codesPage shows recovery codes, once.
type codesPage struct {
	*Frame
	Codes []string
}

func (v *visit) showCodes(codes []string) error {
	v.plain = true
	return v.page("codes", &codesPage{v.frame(v.words.T("codes.title"), ""), codes})
}

// postTOTP is POST /me/totp.
func (v *visit) postTOTP() error {
	e, codes, err := v.k.People.ConfirmTOTP(v.r.Context(), v.from, v.session, v.r.PostFormValue("step"), v.r.PostFormValue("code"))
	if err != nil {
		return v.totpAgain(err)
	}
	v.renewed(e)
	if len(codes) > 0 {
		return v.showCodes(codes)
	}
	return v.back(mePath, "totp", nil)
}

// totpAgain shows the same secret again: the app has it already.
func (v *visit) totpAgain(cause error) error {
	wrong, err := v.refused(cause)
	if err != nil {
		return err
	}
	setup, err := v.k.People.ShowTOTP(v.session, v.r.PostFormValue("step"))
	if err != nil {
		return v.back(mePath, "", cause)
	}
	return v.showTOTP(setup, wrong)
}

// postTOTPRemove is POST /me/totp/remove.
func (v *visit) postTOTPRemove() error {
	e, err := v.k.People.RemoveTOTP(v.r.Context(), v.from, v.session)
	return v.changed(e, "totp_removed", err)
}

// postCodes is POST /me/codes.
func (v *visit) postCodes() error {
	codes, err := v.k.People.NewRecoveryCodes(v.r.Context(), v.session)
	if err != nil {
		return v.back(mePath, "", err)
	}
	return v.showCodes(codes)
}

// newPasskey is GET /me/passkey: the page on which the browser makes one.
func (v *visit) newPasskey() error {
	if err := v.mayChange(); err != nil {
		return err
	}
	c, err := v.k.People.BeginPasskey(v.r.Context(), v.session)
	if err != nil {
		return v.back(mePath, "", err)
	}
	p := &passkeyPage{Frame: v.frame(v.words.T("register.title"), ""), Passkey: ceremonyForm(c), Action: mePath + "/passkey", Back: mePath, Ask: true}
	p.Frame.Modules = []string{"passkey.js"}
	return v.page("passkey", p)
}

// postNewPasskey is POST /me/passkey.
func (v *visit) postNewPasskey() error {
	e, err := v.k.People.AddPasskey(v.r.Context(), v.from, v.session, v.r.PostFormValue("step"), []byte(v.r.PostFormValue("answer")), v.r.PostFormValue("name"))
	return v.changed(e, "passkey", err)
}

// postPasskeyRemove is POST /me/passkey/remove.
func (v *visit) postPasskeyRemove() error {
	id, err := till.ParseID(v.r.PostFormValue("passkey"))
	if err != nil {
		return errInput
	}
	e, err := v.k.People.RemovePasskey(v.r.Context(), v.from, v.session, id)
	return v.changed(e, "passkey_removed", err)
}

// postSessions is POST /me/sessions: it ends one, or all others.
func (v *visit) postSessions() error {
	text := v.r.PostFormValue("session")
	if text == "" {
		return v.back(mePath, "sessions", v.k.People.EndOthers(v.r.Context(), v.session))
	}
	id, err := till.ParseID(text)
	if err != nil {
		return errInput
	}
	return v.back(mePath, "sessions", v.k.People.EndSession(v.r.Context(), v.session, id))
}
