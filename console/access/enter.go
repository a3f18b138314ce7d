package access

import (
	"html/template"

	"till"
	"till/console/shell"
	"till/internal/qrcode"
	"till/people"
)

// enterPage is GET /enter.
type enterPage struct {
	*shell.Frame
	To, Login, Wrong string
	Stay, Nobody     bool
	Passkey          *shell.PasskeyForm
	Demo             []people.DemoPerson
	DemoToken        string
}

// enter is GET /enter.
func (v *visit) enter() error { return v.showEnter(&enterPage{To: v.R.URL.Query().Get("to")}) }

func (v *visit) showEnter(p *enterPage) error {
	ctx := v.R.Context()
	p.Frame = v.Frame(v.Words.T("enter.title"), "")
	p.Frame.Modules = []string{"passkey.js"}
	if p.To != "" {
		p.To = shell.OwnPath(p.To)
	}
	if p.DemoToken = v.Console.People.DemoToken(v.From); p.DemoToken != "" {
		p.Demo = v.Console.People.DemoPeople()
	}
	there, err := v.Console.People.Any(ctx)
	if err != nil {
		return err
	}
	p.Nobody = !there
	if there && v.Console.People.CanPasskey() {
		c, err := v.Console.People.BeginPasskeySignIn(ctx)
		if err != nil {
			return err
		}
		p.Passkey = shell.CeremonyForm(c)
	}
	return v.Page("enter", p)
}

// postEnter is POST /enter: login and password.
func (v *visit) postEnter() error {
	p := &enterPage{To: v.R.PostFormValue("to"), Login: v.R.PostFormValue("login"), Stay: v.R.PostFormValue("stay") != ""}
	e, err := v.Console.People.SignIn(v.R.Context(), v.From, p.Login, v.R.PostFormValue("password"), p.Stay)
	if err != nil {
		if p.Wrong, err = v.Refused(err); err != nil {
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
		v.SetLastingToken(e.Token, int(e.Session.ExpiresAt.Sub(v.Now).Seconds()))
	} else {
		v.SetToken(e.Token)
	}
	v.KeepDevice(e.Session.Person.Login)
	if e.Session.FactorMissing {
		return v.Redirect(shell.Prefix + "/me")
	}
	return v.Redirect(shell.OwnPath(to))
}

// codePage asks for the second factor.
type codePage struct {
	*shell.Frame
	To, Step, Wrong string
	Stay            bool
}

func (v *visit) showCode(p *codePage) error {
	p.Frame = v.Frame(v.Words.T("enter.code_title"), "")
	return v.Page("code", p)
}

// postCode is POST /enter/code.
func (v *visit) postCode() error {
	p := &codePage{To: v.R.PostFormValue("to"), Step: v.R.PostFormValue("step"), Stay: v.R.PostFormValue("stay") != ""}
	e, err := v.Console.People.SignInCode(v.R.Context(), v.From, p.Step, v.R.PostFormValue("code"))
	if err == nil {
		return v.entered(e, p.Stay, p.To)
	}
	over := people.RefusalOf(err) != nil && people.RefusalOf(err).Code == people.StepOver
	if p.Wrong, err = v.Refused(err); err != nil {
		return err
	}
	if over {
		return v.showEnter(&enterPage{To: p.To, Wrong: p.Wrong, Stay: p.Stay})
	}
	return v.showCode(p)
}

// postPasskey is POST /enter/passkey: what the authenticator said.
func (v *visit) postPasskey() error {
	stay, to := v.R.PostFormValue("stay") != "", v.R.PostFormValue("to")
	e, err := v.Console.People.SignInPasskey(v.R.Context(), v.From, v.R.PostFormValue("step"), []byte(v.R.PostFormValue("answer")), stay)
	if err == nil {
		return v.entered(e, stay, to)
	}
	wrong, err := v.Refused(err)
	if err != nil {
		return err
	}
	return v.showEnter(&enterPage{To: to, Wrong: wrong, Stay: stay})
}

// enterDemo is GET /enter/{token}: the link that till dev prints.
func (v *visit) enterDemo() error { return v.demo(v.R.PathValue("token"), till.ID{}) }

// postDemo is POST /enter/as: a button of the demo.
func (v *visit) postDemo() error {
	person, err := till.ParseID(v.R.PostFormValue("person"))
	if err != nil {
		return shell.ErrInput
	}
	return v.demo(v.R.PostFormValue("token"), person)
}

func (v *visit) demo(token string, person till.ID) error {
	e, err := v.Console.People.EnterDemo(v.R.Context(), v.From, token, person)
	if r := people.RefusalOf(err); r != nil && r.Code == people.LinkUnknown {
		return shell.ErrNoPage
	}
	if err != nil {
		return err
	}
	return v.entered(e, false, v.R.PostFormValue("to"))
}

// qr draws a QR code.
func (v *visit) qr(text, label string) (template.HTML, error) {
	svg, err := qrcode.SVG(text, label)
	return template.HTML(svg), err
}
