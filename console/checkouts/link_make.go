package checkouts

import (
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"till"
	"till/checkout"
	"till/internal/request"
	"till/store"
	"till/store/checkouts"
)

// newLinkPage makes an address on which anybody can pay.
type newLinkPage struct {
	*makePage
	Heading  string // the link's title, this and the following as they were typed
	Label    string // what the customer is asked for
	Required bool
}

// newLink is GET /c/{client}/links/new.
func (v *visit) newLink() error {
	who, err := v.who()
	if err != nil {
		return err
	}
	p, err := v.newLinkForm(who)
	if err != nil {
		return err
	}
	return v.Page("link_new", p)
}

func (v *visit) newLinkForm(who checkout.Client) (*newLinkPage, error) {
	form, err := v.newMake(who)
	if err != nil {
		return nil, err
	}
	form.Frame, form.Back = v.Frame(v.Words.T("links.new"), "menu.links"), v.ClientPath("/links")
	field := v.R.PostFormValue
	return &newLinkPage{makePage: form, Heading: bounded(field("title")), Label: bounded(field("label")), Required: field("required") != ""}, nil
}

// postNewLink is POST /c/{client}/links/new: it makes a link by the function that the API calls.
func (v *visit) postNewLink() error {
	act, err := v.ReadAct()
	if err != nil {
		return err
	}
	who, err := v.who()
	if err != nil {
		return err
	}
	p, err := v.newLinkForm(who)
	if err != nil {
		return err
	}
	p.Act = act
	amount := v.checkLink(p, who)
	if len(p.Problems) > 0 || p.NoPage != nil || !p.Methods() {
		return v.Page("link_new", p)
	}
	created, err := v.Console.Checkouts.CreateLink(v.R.Context(), who, p.linkRequest(amount))
	if err != nil {
		return v.newLinkFailed(p, err)
	}
	return v.Redirect(v.ClientPath("/links/" + created.Link.ID.String()))
}

// checkLink fills in what is wrong with the form, and returns the amount; the customer types it
// where the form has none.
func (v *visit) checkLink(p *newLinkPage, who checkout.Client) (amount till.Money) {
	t := v.Words.T
	if p.Amount != "" {
		amount = v.check(p.makePage, who)
	} else {
		amount.Currency = p.Currency
		v.checkTexts(p.makePage)
	}
	if n := utf8.RuneCountInString(p.Heading); n == 0 || n > till.MaxLinkTitle {
		p.Problems = append(p.Problems, problem{"title", t("links.wrong_title", "n", till.MaxLinkTitle)})
	}
	if utf8.RuneCountInString(p.Label) > till.MaxAskLabel {
		p.Problems = append(p.Problems, problem{"label", t("links.wrong_label", "n", till.MaxAskLabel)})
	}
	return amount
}

// linkRequest is what the API would have been sent.
func (p *newLinkPage) linkRequest(amount till.Money) *checkout.LinkRequest {
	r := &checkout.LinkRequest{Title: &p.Heading, IdempotencyKey: &p.Act}
	if p.Description != "" {
		r.Description = &p.Description
	}
	if value := amount.Value(); amount.Minor > 0 {
		r.Amount = &request.Amount{Value: &value, Currency: &p.Currency}
	} else {
		r.OpenAmount = &checkout.OpenAmount{Currency: &p.Currency}
	}
	if p.Label != "" {
		r.AskReference = &checkout.AskReference{Label: &p.Label, Required: &p.Required}
	}
	return r
}

// newLinkFailed shows the form again with what happened, what is certain and what to do.
func (v *visit) newLinkFailed(p *newLinkPage, err error) error {
	var e *till.Error
	if !errors.As(err, &e) {
		e = &till.Error{}
	}
	switch e.Code {
	case till.CodeValidationFailed:
		for _, f := range e.Fields {
			field := map[string]string{"/title": "title", "/description": "description", "/ask_reference/label": "label"}[f.Pointer]
			if field == "" && (strings.HasPrefix(f.Pointer, "/amount") || strings.HasPrefix(f.Pointer, "/open_amount")) {
				field = "amount"
			}
			text := f.Detail
			if field == "title" || field == "label" {
				text = v.Words.T("links.wrong_plain")
			}
			p.Problems = append(p.Problems, problem{field, text})
		}
		return v.Page("link_new", p)
	case till.CodeKeyReused:
		if p.Earlier, err = v.earlierLink(p.Act); err != nil {
			return err
		}
		p.Act = v.NewAct()
		p.Problems = append(p.Problems, problem{"", v.Words.T("links.used")})
		return v.Page("link_new", p)
	}
	return v.uncertain(p.makePage, "link_new", p, "link not created", err)
}

// earlierLink returns the address of what a form made before, "" if there is nothing.
func (v *visit) earlierLink(act string) (path string, err error) {
	key, err := till.ParseID(act)
	if err != nil {
		return "", nil
	}
	err = v.View(func(ctx context.Context, tx *store.Tx) error {
		row, err := checkouts.LinkOfKey(ctx, tx, v.Client.ID, key)
		if row != nil {
			path = v.ClientPath("/links/" + row.ID.String())
		}
		return err
	})
	return path, err
}
