package access

import (
	"till"
	"till/console/shell"
	"till/people"
)

// joinPage is what somebody sees behind a link.
type joinPage struct {
	*shell.Frame
	Token, Wrong      string
	Invitation        *people.Invitation
	By, Where         string
	Name, Login       string
	Reset, CanPasskey bool
	As                *till.Person // who is signed in and may take the role with what they have
}

// linkPage says why a link does not work.
type linkPage struct {
	*shell.Frame
	Why string
}

// join is GET /join/{token}. It shows and spends nothing: chats open links
// first.
func (v *visit) join() error { return v.showJoin(&joinPage{}) }

func (v *visit) showJoin(p *joinPage) error {
	p.Token = v.R.PathValue("token")
	inv, err := v.Console.People.Invitation(v.R.Context(), v.From, p.Token)
	if err != nil {
		return v.deadLink(err)
	}
	v.Plain = true // the page holds the link
	p.Invitation, p.Reset, p.CanPasskey = inv, inv.Kind == people.KindReset, v.Console.People.CanPasskey()
	p.By, p.Where = till.NameOfActor(inv.InvitedBy), inv.ClientName
	if _, person := till.PersonOfActor(inv.InvitedBy); !person {
		p.By = v.Words.T("join.by_command")
	}
	if p.Name == "" {
		p.Name = inv.Name
	}
	if inv.Login != "" {
		p.Login = inv.Login
	}
	title := "join.title"
	if p.Reset {
		title = "join.reset_title"
	}
	if token := v.Token(); token != "" && !p.Reset {
		if s, err := v.Console.SessionOf(v.Visit, token); err == nil {
			p.As = &s.Person
		}
	}
	p.Frame = v.Frame(v.Words.T(title), "")
	return v.Page("join", p)
}

// deadLink says why a link does not work.
func (v *visit) deadLink(err error) error {
	why, err := v.Refused(err)
	if err != nil {
		return err
	}
	return v.Page("link", &linkPage{v.Frame(v.Words.T("join.dead"), ""), why})
}

// joining reads what somebody filled in.
func (v *visit) joining() people.Joining {
	return people.Joining{Login: v.R.PostFormValue("login"), Name: v.R.PostFormValue("name"), Language: v.Words.Lang(), Zone: "",
		Password: v.R.PostFormValue("password"), Step: v.R.PostFormValue("step"), Answer: []byte(v.R.PostFormValue("answer"))}
}

// postJoin is POST /join/{token}: it spends the link.
func (v *visit) postJoin() error {
	j := v.joining()
	e, err := v.Console.People.Join(v.R.Context(), v.From, v.R.PathValue("token"), j)
	if err == nil {
		return v.entered(e, false, "")
	}
	wrong, err := v.Refused(err)
	if err != nil {
		return err
	}
	return v.showJoin(&joinPage{Wrong: wrong, Name: j.Name, Login: j.Login})
}

// passkeyPage lets the browser make a passkey.
type passkeyPage struct {
	*shell.Frame
	Passkey *shell.PasskeyForm
	Action  string // where the answer is posted
	Back    string
	Fields  []field
	Ask     bool // for a name
}

// field is a hidden field.
type field struct{ Name, Value string }

// postJoinPasskey is POST /join/{token}/passkey: the page on which the browser
// makes the passkey. It spends nothing.
func (v *visit) postJoinPasskey() error {
	j, token := v.joining(), v.R.PathValue("token")
	c, err := v.Console.People.BeginJoin(v.R.Context(), v.From, token, j)
	if err != nil {
		wrong, err := v.Refused(err)
		if err != nil {
			return err
		}
		return v.showJoin(&joinPage{Wrong: wrong, Name: j.Name, Login: j.Login})
	}
	p := &passkeyPage{Frame: v.Frame(v.Words.T("register.title"), ""), Passkey: shell.CeremonyForm(c), Action: shell.Prefix + "/join/" + token,
		Back: shell.Prefix + "/join/" + token, Fields: []field{{"name", j.Name}, {"login", j.Login}}}
	p.Frame.Modules = []string{"passkey.js"}
	v.Plain = true
	return v.Page("passkey", p)
}

// postAccept is POST /join/{token}/accept: somebody who is signed in takes the
// role.
func (v *visit) postAccept() error {
	e, err := v.Console.People.Accept(v.R.Context(), v.From, v.Session, v.R.PathValue("token"))
	if err != nil {
		return v.deadLink(err)
	}
	return v.entered(e, false, "")
}
