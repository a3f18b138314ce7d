package console

import (
	"till"
	"till/people"
)

// joinPage is what somebody sees behind a link.
type joinPage struct {
	*Frame
	Token, Wrong      string
	Invitation        *people.Invitation
	By, Where         string
	Name, Login       string
	Reset, CanPasskey bool
	As                *till.Person // who is signed in and may take the role with what they have
}

// linkPage says why a link does not work.
type linkPage struct {
	*Frame
	Why string
}

// join is GET /join/{token}. It shows and spends nothing: chats open links
// first.
func (v *visit) join() error { return v.showJoin(&joinPage{}) }

func (v *visit) showJoin(p *joinPage) error {
	p.Token = v.r.PathValue("token")
	inv, err := v.k.People.Invitation(v.r.Context(), v.from, p.Token)
	if err != nil {
		return v.deadLink(err)
	}
	v.plain = true // the page holds the link
	p.Invitation, p.Reset, p.CanPasskey = inv, inv.Kind == people.KindReset, v.k.People.CanPasskey()
	p.By, p.Where = till.NameOfActor(inv.InvitedBy), inv.ClientName
	if _, person := till.PersonOfActor(inv.InvitedBy); !person {
		p.By = v.words.T("join.by_command")
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
	if token := v.token(); token != "" && !p.Reset {
		if s, err := v.k.sessionOf(v, token); err == nil {
			p.As = &s.Person
		}
	}
	p.Frame = v.frame(v.words.T(title), "")
	return v.page("join", p)
}

// deadLink says why a link does not work.
func (v *visit) deadLink(err error) error {
	why, err := v.refused(err)
	if err != nil {
		return err
	}
	return v.page("link", &linkPage{v.frame(v.words.T("join.dead"), ""), why})
}

// joining reads what somebody filled in.
func (v *visit) joining() people.Joining {
	return people.Joining{Login: v.r.PostFormValue("login"), Name: v.r.PostFormValue("name"), Language: v.words.Lang(), Zone: "",
		Password: v.r.PostFormValue("password"), Step: v.r.PostFormValue("step"), Answer: []byte(v.r.PostFormValue("answer"))}
}

// postJoin is POST /join/{token}: it spends the link.
func (v *visit) postJoin() error {
	j := v.joining()
	e, err := v.k.People.Join(v.r.Context(), v.from, v.r.PathValue("token"), j)
	if err == nil {
		return v.entered(e, false, "")
	}
	wrong, err := v.refused(err)
	if err != nil {
		return err
	}
	return v.showJoin(&joinPage{Wrong: wrong, Name: j.Name, Login: j.Login})
}

// passkeyPage lets the browser make a passkey.
type passkeyPage struct {
	*Frame
	Passkey *passkeyForm
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
	j, token := v.joining(), v.r.PathValue("token")
	c, err := v.k.People.BeginJoin(v.r.Context(), v.from, token, j)
	if err != nil {
		wrong, err := v.refused(err)
		if err != nil {
			return err
		}
		return v.showJoin(&joinPage{Wrong: wrong, Name: j.Name, Login: j.Login})
	}
	p := &passkeyPage{Frame: v.frame(v.words.T("register.title"), ""), Passkey: ceremonyForm(c), Action: Prefix + "/join/" + token,
		Back: Prefix + "/join/" + token, Fields: []field{{"name", j.Name}, {"login", j.Login}}}
	p.Frame.Modules = []string{"passkey.js"}
	v.plain = true
	return v.page("passkey", p)
}

// postAccept is POST /join/{token}/accept: somebody who is signed in takes the
// role.
func (v *visit) postAccept() error {
	e, err := v.k.People.Accept(v.r.Context(), v.from, v.session, v.r.PathValue("token"))
	if err != nil {
		return v.deadLink(err)
	}
	return v.entered(e, false, "")
}
