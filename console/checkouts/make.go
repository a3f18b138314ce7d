package checkouts

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"till"
	"till/checkout"
	"till/console/look"
	"till/console/shell"
	"till/engine"
	"till/internal/request"
	"till/store"
	"till/store/checkouts"
)

// What people may type into the form.
const (
	maxReference   = 64
	maxDescription = 255
)

// lives are how long an address can be paid, in seconds; the second is offered first.
var lives = []struct {
	Name    string
	Seconds int64
}{{"hour", 3600}, {"day", 86_400}, {"days", 3 * 86_400}, {"week", 7 * 86_400}, {"month", 30 * 86_400}}

const usualLife = 86_400

// makePage makes an address at which one order is paid.
type makePage struct {
	*shell.Frame
	Act         string // posted twice, it is one checkout
	Back        string
	NoPage      []string
	Amount      string // this and the following as they were typed
	Reference   string
	Description string
	Currency    string
	Currencies  []shell.Choice // none if there is one
	Lives       []shell.Choice
	life        int64
	bounds      []checkout.Bounds
	Problems    []problem
	Earlier     string // what the same form made before
	Uncertain   string // what is not certain after a failure
}

// problem is a mistake of one field.
type problem struct{ Field, Text string }

// WrongOf returns what is wrong with a field.
func (p *makePage) WrongOf(field string) string {
	for _, w := range p.Problems {
		if w.Field == field {
			return w.Text
		}
	}
	return ""
}

// Methods reports whether there is a method to pay with.
func (p *makePage) Methods() bool { return len(p.bounds) > 0 }

// make is GET /c/{client}/checkouts/new.
func (v *visit) make() error {
	who, err := v.who()
	if err != nil {
		return err
	}
	p, err := v.newMake(who)
	if err != nil {
		return err
	}
	return v.Page("checkout_new", p)
}

// who is the merchant as the functions of checkouts know who asks.
func (v *visit) who() (engine.Client, error) {
	s, err := v.Console.Accounts.Open(v.R.Context(), v.Client.ID)
	if err != nil {
		return engine.Client{}, err
	}
	return engine.Client{Client: s.Client, Enabled: s.Enabled, Fees: s.Fees(), Actor: v.Session.Actor(), Full: s.CheckTestQuota(v.Console.TestQuota)}, nil
}

// newMake returns the form with what was typed, or as it is at first.
func (v *visit) newMake(who engine.Client) (*makePage, error) {
	barred, err := v.barred()
	if err != nil {
		return nil, err
	}
	p := &makePage{Frame: v.Frame(v.Words.T("checkouts.new"), "menu.checkouts"), Act: v.NewAct(), Back: v.ClientPath("/checkouts"), NoPage: barred, life: usualLife}
	field := v.R.PostFormValue
	p.Amount, p.Reference, p.Description, p.Currency = bounded(field("amount")), bounded(field("reference")), bounded(field("description")), field("currency")
	p.bounds = v.Console.Checkouts.Bounds(who)
	v.setCurrency(p)
	for _, l := range lives {
		if field("life") == strconv.FormatInt(l.Seconds, 10) {
			p.life = l.Seconds
		}
	}
	for _, l := range lives {
		p.Lives = append(p.Lives, shell.Choice{Text: v.Words.T("checkouts.life_" + l.Name), Path: strconv.FormatInt(l.Seconds, 10), Current: l.Seconds == p.life})
	}
	if p.NoPage != nil {
		return p, nil
	}
	return p, v.View(func(ctx context.Context, tx *store.Tx) error {
		may, err := checkouts.MayWrite(ctx, tx)
		if err == nil && !may {
			p.NoPage = []string{v.Words.T("checkouts.not_yet"), v.Words.T("checkouts.not_yet_do")}
		}
		return err
	})
}

// setCurrency chooses the currency: the typed one, else that of the merchant's country.
func (v *visit) setCurrency(p *makePage) {
	has := func(currency string) bool {
		return slices.ContainsFunc(p.bounds, func(b checkout.Bounds) bool { return b.Currency == currency })
	}
	if !has(p.Currency) {
		p.Currency = ""
	}
	for _, m := range till.Methods() {
		for _, k := range m.Markets {
			if p.Currency == "" && k.Country == v.Profile.Country && has(k.Currency) {
				p.Currency = k.Currency
			}
		}
	}
	if p.Currency == "" && len(p.bounds) > 0 {
		p.Currency = p.bounds[0].Currency
	}
	if len(p.bounds) > 1 {
		for _, b := range p.bounds {
			p.Currencies = append(p.Currencies, shell.Choice{Text: b.Currency, Path: b.Currency, Current: b.Currency == p.Currency})
		}
	}
}

// bounded returns what was typed, cut where no field of the form goes.
func bounded(s string) string {
	s = strings.TrimSpace(strings.ToValidUTF8(s, "\ufffd"))
	if utf8.RuneCountInString(s) > 2*maxDescription {
		s = string([]rune(s)[:2*maxDescription])
	}
	return s
}

// postMake is POST /c/{client}/checkouts/new: it makes a checkout by the function that the API
// calls.
func (v *visit) postMake() error {
	act, err := v.ReadAct()
	if err != nil {
		return err
	}
	who, err := v.who()
	if err != nil {
		return err
	}
	p, err := v.newMake(who)
	if err != nil {
		return err
	}
	p.Act = act
	amount := v.check(p, who)
	if len(p.Problems) > 0 || p.NoPage != nil || !p.Methods() {
		return v.Page("checkout_new", p)
	}
	created, err := v.Console.Checkouts.Create(v.R.Context(), who, p.request(amount))
	if err != nil {
		return v.makeFailed(p, err)
	}
	return v.Redirect(v.ClientPath("/checkouts/" + created.Checkout.ID.String()))
}

// check fills in what is wrong with the form, and returns the amount.
func (v *visit) check(p *makePage, who engine.Client) till.Money {
	t := v.Words.T
	wrong := func(field, text string) { p.Problems = append(p.Problems, problem{field, text}) }
	minor, ok := look.ParseAmount(p.Amount, p.Currency)
	amount := till.Money{Minor: minor, Currency: p.Currency}
	at := slices.IndexFunc(p.bounds, func(b checkout.Bounds) bool { return b.Currency == p.Currency })
	switch {
	case at < 0:
	case !ok || minor == 0:
		wrong("amount", t("collect.wrong_amount"))
	case len(v.Console.Checkouts.Markets(who, &till.Checkout{Amount: amount})) == 0:
		b := p.bounds[at]
		wrong("amount", t("checkouts.wrong_limits", "min", till.Money{Minor: b.Min, Currency: b.Currency}, "max", till.Money{Minor: b.Max, Currency: b.Currency}))
	}
	v.checkTexts(p)
	return amount
}

// checkTexts fills in what is wrong with the texts of the form.
func (v *visit) checkTexts(p *makePage) {
	if utf8.RuneCountInString(p.Reference) > maxReference {
		p.Problems = append(p.Problems, problem{"reference", v.Words.T("collect.wrong_reference", "n", maxReference)})
	}
	if utf8.RuneCountInString(p.Description) > maxDescription {
		p.Problems = append(p.Problems, problem{"description", v.Words.T("checkouts.wrong_description", "n", maxDescription)})
	}
}

// request is what the API would have been sent.
func (p *makePage) request(amount till.Money) *checkout.Request {
	value := amount.Value()
	r := &checkout.Request{Amount: &request.Amount{Value: &value, Currency: &amount.Currency}, IdempotencyKey: &p.Act, ExpiresInSeconds: &p.life}
	if p.Reference != "" {
		r.Reference = &p.Reference
	}
	if p.Description != "" {
		r.Description = &p.Description
	}
	return r
}

// makeFailed shows the form again with what happened, what is certain and what to do.
func (v *visit) makeFailed(p *makePage, err error) error {
	var e *till.Error
	if !errors.As(err, &e) {
		e = &till.Error{}
	}
	switch e.Code {
	case till.CodeValidationFailed:
		for _, f := range e.Fields {
			field := map[string]string{"/amount/value": "amount", "/amount/currency": "amount", "/reference": "reference", "/description": "description"}[f.Pointer]
			p.Problems = append(p.Problems, problem{field, f.Detail})
		}
		return v.Page("checkout_new", p)
	case till.CodeKeyReused:
		if p.Earlier, err = v.earlier(p.Act); err != nil {
			return err
		}
		p.Act = v.NewAct()
		p.Problems = append(p.Problems, problem{"", v.Words.T("checkouts.used")})
		return v.Page("checkout_new", p)
	}
	return v.uncertain(p, "checkout_new", p, "checkout not created", err)
}

// uncertain shows the form again where nobody knows whether what it asks for was made. Other
// errors have a page of their own.
func (v *visit) uncertain(p *makePage, page string, data any, what string, err error) error {
	if v.PageError(err) != shell.ErrAway {
		return err
	}
	v.Console.Log.Warn(what, "request_id", v.ID, "error", err)
	p.Uncertain = v.Words.T("checkouts.uncertain")
	v.W.Header().Set("Retry-After", "2")
	v.Render(http.StatusServiceUnavailable, page, data) // the database is unreachable: nothing more is read
	return nil
}

// earlier returns the address of what a form made before, "" if there is nothing.
func (v *visit) earlier(act string) (path string, err error) {
	key, err := till.ParseID(act)
	if err != nil {
		return "", nil
	}
	err = v.View(func(ctx context.Context, tx *store.Tx) error {
		row, err := checkouts.OfKey(ctx, tx, v.Client.ID, key)
		if row != nil {
			path = v.ClientPath("/checkouts/" + row.ID.String())
		}
		return err
	})
	return path, err
}
