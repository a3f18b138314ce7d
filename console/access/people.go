package access

import (
	"html/template"
	"slices"
	"strings"

	"till"
	"till/console/shell"
	"till/people"
)

// peoplePage lists who may use the console for a merchant, or for the house.
type peoplePage struct {
	*shell.Frame
	Done, Refused string
	Where         string // the merchant, or the house
	Path          string
	Colleagues    []*people.Colleague
	Made          map[till.ID]made // what colleagues gave to programs; of a merchant
	Invitations   []*people.Invitation
	Roles         []till.Role
	Self          till.ID
	OfHouse       bool
	Factor        bool // asked of everybody
	MayFactor     bool
	Proof         *shell.ProofForm

	DevicesOf *people.Colleague // whose sessions are listed; nil: nobody's
	Devices   []*people.Session
	Going     *people.Colleague // who is about to be removed; nil: nobody
}

// Here says in words' names which of the two it is.
func (p *peoplePage) Here() string {
	if p.OfHouse {
		return "house"
	}
	return "client"
}

// peoplePath is where the people of the merchant, or of the house, are listed.
func (v *visit) peoplePath() string {
	if v.Client == nil {
		return shell.Prefix + "/house/people"
	}
	return v.ClientPath("/people")
}

// people is GET …/people.
func (v *visit) people() error {
	ctx := v.R.Context()
	p := &peoplePage{Frame: v.Frame(v.Words.T("menu.people"), "menu.people"), Path: v.peoplePath(), Self: v.Session.Person.ID, OfHouse: v.Client == nil, Roles: till.HouseRoles}
	p.Frame.Modules = []string{"passkey.js"}
	p.Frame.Notice = "" // Done says it
	p.Done, p.Refused = v.Outcome()
	p.Where = v.Words.T("me.house")
	var err error
	if v.Client != nil {
		p.Where, p.Roles = v.ClientName(), till.StaffRoles
		if v.Session.RoleIn(v.Client.ID) == "" {
			p.Roles = []till.Role{till.RoleOwner} // the house invites owners, who invite the rest
		}
		if p.Factor, err = v.Console.People.RequireFactor(ctx, v.Client); err != nil {
			return err
		}
		p.MayFactor = v.May(people.PolicySet)
	}
	if p.Colleagues, err = v.Console.People.Colleagues(ctx, v.Client); err != nil {
		return err
	}
	if v.Client != nil {
		if p.Made, err = v.madeIn(v.Client.ID); err != nil {
			return err
		}
	}
	p.Going = v.named(p.Colleagues, "remove")
	if err := v.devices(p); err != nil {
		return err
	}
	if p.Invitations, err = v.Console.People.Invitations(ctx, v.Client); err != nil {
		return err
	}
	if p.Proof, err = v.ProofForm(); err != nil {
		return err
	}
	return v.Page("people", p)
}

// devices lists where the colleague of the address is signed in.
func (v *visit) devices(p *peoplePage) (err error) {
	if p.DevicesOf = v.named(p.Colleagues, "devices"); p.DevicesOf == nil {
		return nil
	}
	p.Devices, err = v.Console.People.Sessions(v.R.Context(), p.DevicesOf.Person.ID)
	return err
}

// named returns the colleague whom a value of the address names, but not the reader
// for an act that nobody does to themselves; nil: nobody.
func (v *visit) named(all []*people.Colleague, value string) *people.Colleague {
	id, _ := till.ParseID(v.R.URL.Query().Get(value)) // nobody has the zero id
	i := slices.IndexFunc(all, func(c *people.Colleague) bool { return c.Person.ID == id && id != v.Session.Person.ID })
	if i < 0 {
		return nil
	}
	return all[i]
}

// invitedPage shows a link, once.
type invitedPage struct {
	*shell.Frame
	Invitation *people.Invitation
	Link, Back string
	Message    string // to be sent to the invited
	QR         template.HTML
	Reset      bool
}

func (v *visit) showInvited(inv *people.Invitation, token string) (err error) {
	p := &invitedPage{Frame: v.Frame(v.Words.T("invited.title", "name", inv.Name), "menu.people"), Invitation: inv, Link: v.Console.People.Origin() + shell.Prefix + "/join/" + token,
		Back: v.peoplePath(), Reset: inv.Kind == people.KindReset}
	if p.QR, err = v.qr(p.Link, v.Words.T("invited.qr")); err != nil {
		return err
	}
	key := "invited.message"
	if p.Reset {
		key = "invited.message_reset"
	}
	p.Message = v.Words.T(key, "name", inv.Name, "where", v.whereOf(), "role", v.Words.T("role."+string(inv.Role)), "link", p.Link, "until", v.Clock.DateTime(inv.ExpiresAt))
	v.Plain = true // it is a secret
	return v.Page("invited", p)
}

// whereOf names the merchant, or the house, that an invitation is to.
func (v *visit) whereOf() string {
	if v.Client == nil {
		return v.Words.T("me.house")
	}
	return v.ClientName()
}

// postInvite is POST …/people/invite.
func (v *visit) postInvite() error {
	inv, token, err := v.Console.People.Invite(v.R.Context(), v.Session, v.Client, till.Role(v.R.PostFormValue("role")), v.R.PostFormValue("name"), strings.TrimSpace(v.R.PostFormValue("login")))
	if err != nil {
		return v.Back(v.peoplePath(), "", err)
	}
	return v.showInvited(inv, token)
}

// chosen returns the person or invitation that a form is about; the zero id, of
// which there is none, if it names nobody.
func (v *visit) chosen(name string) till.ID {
	id, _ := till.ParseID(v.R.PostFormValue(name))
	return id
}

// postWithdraw is POST …/people/withdraw.
func (v *visit) postWithdraw() error {
	return v.Back(v.peoplePath(), "withdrawn", v.Console.People.Withdraw(v.R.Context(), v.Session, v.Client, v.chosen("invitation")))
}

// postRole is POST …/people/role. To take every role is postRemove.
func (v *visit) postRole() error {
	role := till.Role(v.R.PostFormValue("role"))
	if role == "" {
		return v.Back(v.peoplePath(), "", &people.Refusal{Code: people.ValueInvalid})
	}
	return v.Back(v.peoplePath(), "role", v.Console.People.SetRole(v.R.Context(), v.Session, v.Client, v.chosen("person"), role))
}

// postRemove is POST …/people/remove: somebody has no role here any more.
func (v *visit) postRemove() error {
	person, done := v.chosen("person"), "removed"
	var in []*till.Client
	if v.Client != nil && person != v.Session.Person.ID {
		in = append(in, v.Client)
		all, err := v.madeIn(v.Client.ID)
		if err != nil {
			return err
		}
		switch {
		case all[person].Any() && v.R.PostFormValue("made") != "":
			done = "removed_made"
		case all[person].Any():
			done = "removed_kept"
		}
	}
	err := v.withMade(person, in, func() error {
		return v.Console.People.SetRole(v.R.Context(), v.Session, v.Client, person, "")
	})
	return v.Back(v.peoplePath(), done, err)
}

// postReset is POST …/people/reset.
func (v *visit) postReset() error {
	inv, token, err := v.Console.People.Reset(v.R.Context(), v.Session, v.Client, v.chosen("person"))
	if err != nil {
		return v.Back(v.peoplePath(), "", err)
	}
	return v.showInvited(inv, token)
}

// postEnd is POST …/people/end: it ends one session of a colleague, or all of them.
func (v *visit) postEnd() error {
	one := v.chosen("session")
	if one.IsZero() && v.R.PostFormValue("session") != "" {
		return shell.ErrInput
	}
	return v.Back(v.peoplePath(), "sessions", v.Console.People.EndSessionsOf(v.R.Context(), v.Session, v.Client, v.chosen("person"), one))
}

// postDisable is POST /house/people/disable.
func (v *visit) postDisable() error {
	person := v.chosen("person")
	in, err := v.merchantsOf(person)
	if err != nil {
		return err
	}
	if person == v.Session.Person.ID {
		in = nil
	}
	err = v.withMade(person, in, func() error {
		return v.Console.People.SetDisabled(v.R.Context(), v.Session, person, v.R.PostFormValue("enable") == "")
	})
	return v.Back(v.peoplePath(), "disabled", err)
}

// postFactor is POST …/people/factor: whether everybody needs a second factor.
func (v *visit) postFactor() error {
	return v.Back(v.peoplePath(), "factor", v.Console.People.SetRequireFactor(v.R.Context(), v.Session, v.Client, v.R.PostFormValue("factor") != ""))
}

// rolesPage shows what each role may, from the table that decides it.
type rolesPage struct {
	*shell.Frame
	Families []roleFamily
}

type roleFamily struct {
	Title string
	Roles []till.Role
	Rules []roleRow
}

type roleRow struct {
	Permission people.Permission
	Fresh      bool
	Cells      []string // a word of grant.*
}

var grantKeys = map[people.Grant]string{
	people.None: "none", people.Full: "full", people.Recent: "recent", people.TestOnly: "test_only", people.NoPayoutKeys: "no_payout_keys",
}

// roles is GET /roles.
func (v *visit) roles() error {
	p := &rolesPage{Frame: v.Frame(v.Words.T("roles.title"), "")}
	for _, f := range []struct {
		title string
		roles []till.Role
		rules []people.Rule
	}{{"roles.staff", till.StaffRoles, people.StaffRules}, {"roles.house", till.HouseRoles, people.HouseRules}} {
		family := roleFamily{Title: v.Words.T(f.title), Roles: f.roles}
		for _, rule := range f.rules {
			row := roleRow{Permission: rule.Permission, Fresh: rule.Fresh}
			for _, role := range f.roles {
				cell := grantKeys[rule.Grants[role]]
				if people.ByKeys(rule.Permission, role) {
					cell = "by_keys"
				}
				row.Cells = append(row.Cells, cell)
			}
			family.Rules = append(family.Rules, row)
		}
		p.Families = append(p.Families, family)
	}
	return v.Page("roles", p)
}
