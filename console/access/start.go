package access

import (
	"slices"

	"till/console/shell"
	"till/console/words"
	"till/people"
)

// start is GET /: it leads to the one page that the person came for.
func (v *visit) start() error {
	clients, err := v.Console.People.Clients(v.R.Context(), v.Session)
	if err != nil {
		return err
	}
	if len(clients) == 0 && v.Session.MayHouse(people.OperatorsSee) {
		return v.Redirect(shell.Prefix + "/house")
	}
	if len(clients) == 0 {
		return &people.Refusal{Code: people.NotAllowed}
	}
	return v.Redirect(shell.Prefix + "/c/" + clients[0].ID.String())
}

// clientStart is GET /c/{client}: it leads to the first page of the menu.
func (v *visit) clientStart() error {
	f := v.Frame("", "")
	if len(f.Menu) == 0 {
		return &people.Refusal{Code: people.NotAllowed, Need: people.PaymentsSee}
	}
	return v.Redirect(f.Menu[0][0].Path)
}

// setLanguage is POST /me/language: the switch of each page.
func (v *visit) setLanguage() error {
	lang := v.R.PostFormValue("language")
	if !slices.Contains(words.Languages, lang) {
		return shell.ErrInput
	}
	p := &v.Session.Person
	err := v.Console.People.SetProfile(v.R.Context(), v.Session, people.Profile{Name: p.Name, Language: lang, Zone: p.Zone, Theme: p.Theme, NoKeys: p.NoKeys})
	if err != nil {
		return err
	}
	return v.Redirect(shell.OwnPath(v.R.PostFormValue("back")))
}

// leave is POST /leave: the session ends, here and in the database.
func (v *visit) leave() error {
	if err := v.Console.People.SignOut(v.R.Context(), v.Session); err != nil {
		return err
	}
	v.DropToken()
	return v.Redirect(shell.Prefix + "/enter")
}
