package console

import (
	"slices"

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
