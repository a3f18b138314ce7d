package console

import (
	"html/template"
	"slices"
	"strings"

	"till"
	"till/people"
)

// peoplePage lists who may use the console for a merchant, or for the house.
type peoplePage struct {
	*Frame
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
	Proof         *proofForm

	DevicesOf *people.Colleague // whose sessions are listed; nil: nobody's
	Devices   []*people.Session
}

// peoplePath is where the people of the merchant, or of the house, are listed.
func (v *visit) peoplePath() string {
	if v.client == nil {
		return Prefix + "/house/people"
	}
	return v.clientPath("/people")
}

// people is GET …/people.
func (v *visit) people() error {
	ctx := v.r.Context()
	p := &peoplePage{Frame: v.frame(v.words.T("menu.people"), "menu.people"), Path: v.peoplePath(), Self: v.session.Person.ID, OfHouse: v.client == nil, Roles: till.HouseRoles}
	p.Frame.Modules = []string{"passkey.js"}
	p.Frame.Notice = "" // Done says it
	p.Done, p.Refused = v.told()
	p.Where = v.words.T("me.house")
	var err error
	if v.client != nil {
		p.Where, p.Roles = v.clientName(), till.StaffRoles
		if v.session.RoleIn(v.client.ID) == "" {
			p.Roles = []till.Role{till.RoleOwner} // the house invites owners, who invite the rest
		}
		if p.Factor, err = v.k.People.RequireFactor(ctx, v.client); err != nil {
			return err
		}
		p.MayFactor = v.may(people.PolicySet)
	}
	if p.Colleagues, err = v.k.People.Colleagues(ctx, v.client); err != nil {
		return err
	}
	if v.client != nil {
		if p.Made, err = v.madeIn(v.client.ID); err != nil {
			return err
		}
	}
	if err := v.devices(p); err != nil {
		return err
	}
	if p.Invitations, err = v.k.People.Invitations(ctx, v.client); err != nil {
		return err
	}
	if p.Proof, err = v.proofForm(); err != nil {
		return err
	}
	return v.page("people", p)
}

// devices lists where the colleague of the address is signed in.
func (v *visit) devices(p *peoplePage) (err error) {
	id, _ := till.ParseID(v.r.URL.Query().Get("devices")) // nobody has the zero id
	i := slices.IndexFunc(p.Colleagues, func(c *people.Colleague) bool { return c.Person.ID == id })
	if i < 0 {
		return nil
	}
	p.DevicesOf = p.Colleagues[i]
	p.Devices, err = v.k.People.Sessions(v.r.Context(), id)
	return err
}

// invitedPage shows a link, once.
type invitedPage struct {
	*Frame
	Invitation *people.Invitation
	Link, Back string
	Message    string // to be sent to the invited
	QR         template.HTML
	Reset      bool
}

func (v *visit) showInvited(inv *people.Invitation, token string) (err error) {
	p := &invitedPage{Frame: v.frame(v.words.T("invited.title", "name", inv.Name), "menu.people"), Invitation: inv, Link: v.k.People.Origin() + Prefix + "/join/" + token,
		Back: v.peoplePath(), Reset: inv.Kind == people.KindReset}
	if p.QR, err = v.qr(p.Link, v.words.T("invited.qr")); err != nil {
		return err
	}
	key := "invited.message"
	if p.Reset {
		key = "invited.message_reset"
	}
	p.Message = v.words.T(key, "name", inv.Name, "link", p.Link, "until", v.clock.DateTime(inv.ExpiresAt))
	v.plain = true // it is a secret
	return v.page("invited", p)
}

// postInvite is POST …/people/invite.
func (v *visit) postInvite() error {
	inv, token, err := v.k.People.Invite(v.r.Context(), v.session, v.client, till.Role(v.r.PostFormValue("role")), v.r.PostFormValue("name"), strings.TrimSpace(v.r.PostFormValue("login")))
	if err != nil {
		return v.back(v.peoplePath(), "", err)
	}
	return v.showInvited(inv, token)
}

// chosen returns the person or invitation that a form is about; the zero id, of
// which there is none, if it names nobody.
func (v *visit) chosen(name string) till.ID {
	id, _ := till.ParseID(v.r.PostFormValue(name))
	return id
}

// postWithdraw is POST …/people/withdraw.
func (v *visit) postWithdraw() error {
	return v.back(v.peoplePath(), "withdrawn", v.k.People.Withdraw(v.r.Context(), v.session, v.client, v.chosen("invitation")))
}

// postRole is POST …/people/role.
func (v *visit) postRole() error {
	if v.r.PostFormValue("role") != "" { // to take one away is always possible
		if err := v.checkActive(); err != nil {
			return err
		}
	}
	person := v.chosen("person")
	var in []*till.Client
	if v.client != nil && person != v.session.Person.ID {
		in = append(in, v.client)
	}
	err := v.withMade(person, in, func() error {
		return v.k.People.SetRole(v.r.Context(), v.session, v.client, person, till.Role(v.r.PostFormValue("role")))
	})
	return v.back(v.peoplePath(), "role", err)
}

// postReset is POST …/people/reset.
func (v *visit) postReset() error {
	inv, token, err := v.k.People.Reset(v.r.Context(), v.session, v.client, v.chosen("person"))
	if err != nil {
		return v.back(v.peoplePath(), "", err)
	}
	return v.showInvited(inv, token)
}

// postEnd is POST …/people/end: it ends one session of a colleague, or all of them.
func (v *visit) postEnd() error {
	one := v.chosen("session")
	if one.IsZero() && v.r.PostFormValue("session") != "" {
		return errInput
	}
	return v.back(v.peoplePath(), "sessions", v.k.People.EndSessionsOf(v.r.Context(), v.session, v.client, v.chosen("person"), one))
}

// postDisable is POST /house/people/disable.
func (v *visit) postDisable() error {
	person := v.chosen("person")
	in, err := v.merchantsOf(person)
	if err != nil {
		return err
	}
	if person == v.session.Person.ID {
		in = nil
	}
	err = v.withMade(person, in, func() error {
		return v.k.People.SetDisabled(v.r.Context(), v.session, person, v.r.PostFormValue("enable") == "")
	})
	return v.back(v.peoplePath(), "disabled", err)
}

// postFactor is POST …/people/factor: whether everybody needs a second factor.
func (v *visit) postFactor() error {
	return v.back(v.peoplePath(), "factor", v.k.People.SetRequireFactor(v.r.Context(), v.session, v.client, v.r.PostFormValue("factor") != ""))
}

// rolesPage shows what each role may, from the table that decides it.
type rolesPage struct {
	*Frame
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
	p := &rolesPage{Frame: v.frame(v.words.T("roles.title"), "")}
	for _, f := range []struct {
		title string
		roles []till.Role
		rules []people.Rule
	}{{"roles.staff", till.StaffRoles, people.StaffRules}, {"roles.house", till.HouseRoles, people.HouseRules}} {
		family := roleFamily{Title: v.words.T(f.title), Roles: f.roles}
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
	return v.page("roles", p)
}
