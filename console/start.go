package console

import (
	"slices"

	"till"
	"till/console/words"
	"till/people"
)

// start is GET /: it leads to the one page that the person came for.
func (v *visit) start() error {
	clients, err := v.k.People.Clients(v.r.Context(), v.session)
	if err != nil {
		return err
	}
	if len(clients) == 0 && v.session.MayHouse(people.OperatorsSee) {
		return v.redirect(Prefix + "/house")
	}
	if len(clients) == 0 {
		return &people.Refusal{Code: people.NotAllowed}
	}
	return v.redirect(Prefix + "/c/" + clients[0].ID.String())
}

// clientStart is GET /c/{client}: it leads to the first page of the menu.
func (v *visit) clientStart() error {
	f := v.frame("", "")
	if len(f.Menu) == 0 {
		return &people.Refusal{Code: people.NotAllowed, Need: people.PaymentsSee}
	}
	return v.redirect(f.Menu[0][0].Path)
}

// maxListedClients is how many merchants the house's people are offered to
// switch to; others are found by their address.
const maxListedClients = 100

// clientsOf returns the merchants that a person may look at.
func (k *Console) clientsOf(v *visit) ([]*till.Client, error) {
	own, err := k.People.Clients(v.r.Context(), v.session)
	if err != nil || !v.session.MayHouse(people.ClientsLook) {
		return own, err
	}
	all, err := k.Accounts.Clients(v.r.Context(), till.ID{}, maxListedClients)
	for _, c := range all {
		if !slices.ContainsFunc(own, func(o *till.Client) bool { return o.ID == c.ID }) {
			own = append(own, c)
		}
	}
	return own, err
}

// noteLook writes down that a person of the house looks into a merchant.
func (k *Console) noteLook(v *visit) error {
	return k.People.NoteLook(v.r.Context(), v.session, v.client)
}

// setLanguage is POST /me/language: the switch of each page.
func (v *visit) setLanguage() error {
	lang := v.r.PostFormValue("language")
	if !slices.Contains(words.Languages, lang) {
		return errInput
	}
	p := &v.session.Person
	err := v.k.People.SetProfile(v.r.Context(), v.session, people.Profile{Name: p.Name, Language: lang, Zone: p.Zone, Theme: p.Theme, NoKeys: p.NoKeys})
	if err != nil {
		return err
	}
	return v.redirect(ownPath(v.r.PostFormValue("back")))
}

// leave is POST /leave: the session ends, here and in the database.
func (v *visit) leave() error {
	if err := v.k.People.SignOut(v.r.Context(), v.session); err != nil {
		return err
	}
	v.dropToken()
	return v.redirect(Prefix + "/enter")
}
