package console

import (
	"html/template"

	"till"
	"till/internal/qrcode"
	"till/people"
)

// enterPage is GET /enter.
type enterPage struct {
	*Frame
	To, Login, Wrong string
	Stay, Nobody     bool
	Passkey          *passkeyForm
	Demo             []people.DemoPerson
	DemoToken        string
}

// enter is GET /enter.
func (v *visit) enter() error { return v.showEnter(&enterPage{To: v.r.URL.Query().Get("to")}) }

func (v *visit) showEnter(p *enterPage) error {
	ctx := v.r.Context()
	p.Frame = v.frame(v.words.T("enter.title"), "")
	p.Frame.Modules = []string{"passkey.js"}
	if p.To != "" {
		p.To = ownPath(p.To)
	}
	if p.DemoToken = v.k.People.DemoToken(v.from); p.DemoToken != "" {
		p.Demo = v.k.People.DemoPeople()
	}
	there, err := v.k.People.Any(ctx)
	if err != nil {
		return err
	}
	p.Nobody = !there
	if there && v.k.People.CanPasskey() {
		c, err := v.k.People.BeginPasskeySignIn(ctx)
		if err != nil {
			return err
		}
		p.Passkey = ceremonyForm(c)
	}
	return v.page("enter", p)
}

// postEnter is POST /enter: login and password.
func (v *visit) postEnter() error {
	p := &enterPage{To: v.r.PostFormValue("to"), Login: v.r.PostFormValue("login"), Stay: v.r.PostFormValue("stay") != ""}
	e, err := v.k.People.SignIn(v.r.Context(), v.from, p.Login, v.r.PostFormValue("password"), p.Stay)
	if err != nil {
		if p.Wrong, err = v.refused(err); err != nil {
			return err
		}
		return v.showEnter(p)
	}
	if e.Step != "" {
		return v.showCode(&codePage{To: p.To, Step: e.Step, Stay: p.Stay})
	}
	return v.entered(e, p.Stay, p.To)
}

// entered gives the browser its token and leads on.
func (v *visit) entered(e people.Entry, stay bool, to string) error {
	if stay {
		v.setLastingToken(e.Token, int(e.Session.ExpiresAt.Sub(v.now).Seconds()))
	} else {
		v.setToken(e.Token)
	}
	v.keepDevice(e.Session.Person.Login)
	if e.Session.FactorMissing {
		return v.redirect(Prefix + "/me")
	}
	return v.redirect(ownPath(to))
}

// codePage asks for the second factor.
type codePage struct {
	*Frame
	To, Step, Wrong string
	Stay            bool
}

func (v *visit) showCode(p *codePage) error {
	p.Frame = v.frame(v.words.T("enter.code_title"), "")
	return v.page("code", p)
}

// postCode is POST /enter/code.
func (v *visit) postCode() error {
	p := &codePage{To: v.r.PostFormValue("to"), Step: v.r.PostFormValue("step"), Stay: v.r.PostFormValue("stay") != ""}
	e, err := v.k.People.SignInCode(v.r.Context(), v.from, p.Step, v.r.PostFormValue("code"))
	if err == nil {
		return v.entered(e, p.Stay, p.To)
	}
	over := people.RefusalOf(err) != nil && people.RefusalOf(err).Code == people.StepOver
	if p.Wrong, err = v.refused(err); err != nil {
		return err
	}
	if over {
		return v.showEnter(&enterPage{To: p.To, Wrong: p.Wrong, Stay: p.Stay})
	}
	return v.showCode(p)
}

// postPasskey is POST /enter/passkey: what the authenticator said.
func (v *visit) postPasskey() error {
	stay, to := v.r.PostFormValue("stay") != "", v.r.PostFormValue("to")
	e, err := v.k.People.SignInPasskey(v.r.Context(), v.from, v.r.PostFormValue("step"), []byte(v.r.PostFormValue("answer")), stay)
	if err == nil {
		return v.entered(e, stay, to)
	}
	wrong, err := v.refused(err)
	if err != nil {
		return err
	}
	return v.showEnter(&enterPage{To: to, Wrong: wrong, Stay: stay})
}

// enterDemo is GET /enter/{token}: the link that till dev prints.
func (v *visit) enterDemo() error { return v.demo(v.r.PathValue("token"), till.ID{}) }

// postDemo is POST /enter/as: a button of the demo.
func (v *visit) postDemo() error {
	person, err := till.ParseID(v.r.PostFormValue("person"))
	if err != nil {
		return errInput
	}
	return v.demo(v.r.PostFormValue("token"), person)
}

func (v *visit) demo(token string, person till.ID) error {
	e, err := v.k.People.EnterDemo(v.r.Context(), v.from, token, person)
	if r := people.RefusalOf(err); r != nil && r.Code == people.LinkUnknown {
		return errNoPage
	}
	if err != nil {
		return err
	}
	return v.entered(e, false, v.r.PostFormValue("to"))
}

// qr draws a QR code.
func (v *visit) qr(text, label string) (template.HTML, error) {
	svg, err := qrcode.SVG(text, label)
	return template.HTML(svg), err
}
