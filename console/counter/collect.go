package counter

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"till"
	"till/account"
	"till/collect"
	"till/console/look"
	"till/console/shell"
	"till/console/subject"
	"till/engine"
	body "till/internal/request"
	"till/people"
	"till/store"
	"till/store/lookup"
)

// maxDeskReference is how long a reference may be that is typed at the counter.
const maxDeskReference = 64

// collectPage asks a customer at the counter for money.
type collectPage struct {
	*shell.Frame
	Key       string // of the act: posted twice, it is one payment
	Amount    string // this and the following as they were typed
	Phone     string
	Reference string
	Markets   []*counterMarket // of one country
	Countries []shell.Choice   // to switch between; none if there is one
	Country   string           // the code and calling code of the one that is shown
	Chosen    *counterMarket   // nil: there is no method
	Problems  []problem
	Uncertain string // what is not certain after a failure
	Earlier   string // the address of what the same form asked for before
	Sure      *sure  // what is about to be asked, where the form has not shown it
	Again     string
	Mine      *minePart
}

// problem is a mistake of one field.
type problem struct{ Field, Text string }

// sure is what the person is asked to confirm.
type sure struct {
	Phone string // whole
	Shown string // as people read it
	Money till.Money
}

// counterMarket is a method that the form offers, with what its script needs.
type counterMarket struct {
	subject.Market
	limits  *till.Market
	Name    string
	Calling string
	Checked bool
}

// Prefixes are what national numbers of the method begin with, or likely begin with: the
// form chooses the method by them, and the person may choose another one.
func (m *counterMarket) Prefixes() string {
	prefixes := m.limits.Prefixes
	if len(prefixes) == 0 {
		prefixes = m.limits.Likely
	}
	return strings.Join(prefixes, " ")
}

// Example is a number without its calling code.
func (m *counterMarket) Example() string {
	return localPhone(m.Method.PhoneExample(m.Country), m.Country)
}

// localPhone returns a number as people of the country write it.
func localPhone(phone string, c *till.Country) string {
	return strings.TrimLeft(strings.TrimPrefix(look.Phone(phone), "+"+c.CallingCode), " \u00a0\u202f")
}

// collect is GET /c/{client}/collect.
func (v *visit) collect() error {
	who, err := v.Console.Accounts.Open(v.R.Context(), v.Client.ID)
	if err != nil {
		return err
	}
	p := v.newCollect(who, v.R.URL.Query().Get("country"))
	if err := v.askAgain(p, who); err != nil {
		return err
	}
	return v.showCollect(http.StatusOK, p)
}

func (v *visit) newCollect(who *account.Session, country string) *collectPage {
	p := &collectPage{Frame: v.Frame(v.Words.T("menu.collect"), "menu.collect"), Key: till.NewID(v.Now).String(), Again: v.ClientPath("/collect")}
	p.Modules = append(p.Modules, "counter.js")
	v.setMarkets(p, who, country)
	return p
}

// setMarkets offers the methods of one country. A merchant that has named no
// country in its profile chooses one here.
func (v *visit) setMarkets(p *collectPage, who *account.Session, country string) {
	all := v.counterMarkets(who)
	p.Markets, p.Countries, p.Chosen = nil, nil, nil
	if len(all) == 0 {
		return
	}
	if !slices.ContainsFunc(all, func(m *counterMarket) bool { return m.Country.Code == country }) {
		country = all[0].Country.Code
	}
	for _, m := range all {
		name := m.Country.Code + " " + m.Calling
		if !slices.ContainsFunc(p.Countries, func(c shell.Choice) bool { return c.Text == name }) {
			p.Countries = append(p.Countries, shell.Choice{Text: name, Path: p.Again + "?country=" + m.Country.Code, Current: m.Country.Code == country})
		}
		if m.Country.Code == country {
			p.Markets, p.Country = append(p.Markets, m), name
		}
	}
	if len(p.Countries) == 1 {
		p.Countries = nil
	}
	p.choose(p.Markets[0].Key())
}

// showCollect answers with the form.
func (v *visit) showCollect(status int, p *collectPage) error {
	var err error
	if p.Mine, err = v.readMine(v.Session.Person.ID, recentMine); err != nil {
		return err
	}
	if status == http.StatusOK {
		return v.Page("collect", p)
	}
	v.Render(status, "collect", p)
	return nil
}

// counterMarkets returns the methods that the merchant can collect by: those of its
// country or, where it has named none, all.
func (v *visit) counterMarkets(who *account.Session) (out []*counterMarket) {
	for _, m := range till.Methods() {
		if !who.Enabled(m.Code) {
			continue
		}
		offer := v.Console.Collector.Offer(v.Client, m)
		for i := range m.Markets {
			k := &offer.Markets[i].Market
			c, ok := till.CountryOf(k.Country)
			if k.Flow != till.FlowPush { // the customer would have to see an address, or to say a code aloud
				continue
			}
			if !ok || !offer.Served[i] || v.Profile.Country != "" && k.Country != v.Profile.Country {
				continue
			}
			d := &counterMarket{Market: subject.Market{Method: m, Country: c, Currency: k.Currency}, limits: k, Name: m.NameIn(c.Code), Calling: "+" + c.CallingCode}
			out = append(out, d)
		}
	}
	for _, d := range out {
		for _, other := range out {
			if other != d && other.Method == d.Method && other.Country == d.Country {
				d.Name = d.Method.NameIn(d.Country.Code) + " " + d.Currency // one method in two currencies
			}
		}
	}
	return out
}

// choose marks the market of a key, if there is one.
func (p *collectPage) choose(key string) {
	for _, m := range p.Markets {
		if m.Key() != key {
			continue
		}
		if p.Chosen != nil {
			p.Chosen.Checked = false
		}
		p.Chosen, m.Checked = m, true
	}
}

// Many reports whether the methods are better chosen from a list.
func (p *collectPage) Many() bool { return len(p.Markets) > 4 }

// WrongOf returns what is wrong with a field.
func (p *collectPage) WrongOf(field string) string {
	for _, w := range p.Problems {
		if w.Field == field {
			return w.Text
		}
	}
	return ""
}

// askAgain fills in what was asked for before, once that has ended. The person who asked
// sees the whole number again: they typed it.
func (v *visit) askAgain(p *collectPage, who *account.Session) error {
	id, err := till.ParseID(v.R.URL.Query().Get("again"))
	if err != nil {
		return nil
	}
	pay, person, err := v.readDesk(id)
	if till.ErrorCode(err) == till.CodePaymentNotFound || err == nil && (person != v.Session.Person.ID || !pay.Status.Final() || pay.Credited()) {
		return nil
	}
	if err != nil {
		return err
	}
	v.setMarkets(p, who, pay.Country)
	p.choose(pay.Method + "." + pay.Country + "." + pay.Amount.Currency)
	p.Amount, p.Reference = look.Amount(v.Words.Lang(), pay.Amount), pay.Reference
	if c, ok := till.CountryOf(pay.Country); ok {
		p.Phone = localPhone(pay.Phone, c)
	}
	return nil
}

// readDesk reads a payment, and who asked for it at the counter.
func (v *visit) readDesk(id till.ID) (pay *store.PaymentRow, person till.ID, err error) {
	err = v.View(func(ctx context.Context, tx *store.Tx) (err error) {
		if pay, err = tx.Payment(ctx, store.Ref{Client: v.Client.ID, ID: id}); err != nil {
			return err
		}
		person, err = v.collectorOf(ctx, tx, pay)
		return err
	})
	return pay, person, err
}

func (v *visit) collectorOf(ctx context.Context, tx *store.Tx, pay *store.PaymentRow) (till.ID, error) {
	key, err := till.ParseID(pay.IdempotencyKey)
	if err != nil {
		return till.ID{}, nil // a key in another spelling is no form's
	}
	return lookup.CollectorOf(ctx, tx, v.Client.ID, key)
}

// postCollect is POST /c/{client}/collect: it asks the customer by the function
// that the API calls. A number that the form has not shown in full is shown
// first: it is never repaired without a word.
func (v *visit) postCollect() error {
	who, err := v.Console.Accounts.Open(v.R.Context(), v.Client.ID)
	if err != nil {
		return err
	}
	field := v.R.PostFormValue
	key := strings.Split(field("market")+"..", ".")
	p := v.newCollect(who, key[1])
	p.choose(field("market"))
	p.Amount, p.Phone, p.Reference = bounded(field("amount")), bounded(field("phone")), bounded(field("reference"))
	if id, err := till.ParseID(field("key")); err == nil {
		p.Key = id.String()
	}
	asked := v.checkCollect(p)
	switch {
	case len(p.Problems) > 0 || asked == nil || field("change") != "":
		return v.showCollect(http.StatusOK, p)
	case field("sure") != asked.Phone:
		p.Sure = asked
		return v.showCollect(http.StatusOK, p)
	}
	created, err := v.Console.Collector.CreateAtCounter(v.R.Context(), engine.Client{Client: who.Client, Enabled: who.Enabled, Fees: who.Fees(), Actor: v.Session.Actor(),
		Full: who.CheckTestQuota(v.Console.TestQuota)}, v.Session.Person.ID, requestOf(p, asked))
	if err != nil {
		return v.collectFailed(p, err)
	}
	return v.Redirect(v.ClientPath("/collect/" + created.Payment.ID.String()))
}

// bounded returns what was typed, cut where no field of the form goes.
func bounded(s string) string {
	s = strings.TrimSpace(strings.ToValidUTF8(s, "\ufffd"))
	if utf8.RuneCountInString(s) > 2*maxDeskReference {
		s = string([]rune(s)[:2*maxDeskReference])
	}
	return s
}

// checkCollect returns what the form asks for, or fills in what is wrong.
func (v *visit) checkCollect(p *collectPage) *sure {
	t, m := v.Words.T, p.Chosen
	if m == nil {
		return nil // the page says that there is no method
	}
	wrong := func(field, text string) { p.Problems = append(p.Problems, problem{field, text}) }
	minor, ok := look.ParseAmount(p.Amount, m.Currency)
	money := func(minor int64) till.Money { return till.Money{Minor: minor, Currency: m.Currency} }
	switch {
	case !ok:
		wrong("amount", t("collect.wrong_amount"))
	case minor < m.limits.Min || minor > m.limits.Max:
		wrong("amount", t("collect.wrong_limits", "name", m.Name, "min", money(m.limits.Min), "max", money(m.limits.Max)))
	case m.limits.Step > 1 && minor%m.limits.Step != 0:
		wrong("amount", t("collect.wrong_step", "name", m.Name, "step", money(m.limits.Step)))
	}
	phone := subject.PhoneIn(m.Country, p.Phone)
	if good, _ := m.Method.CheckPhone(m.Country, phone); !good {
		wrong("phone", v.wrongPhone(p, phone))
	}
	if utf8.RuneCountInString(p.Reference) > maxDeskReference {
		wrong("reference", t("collect.wrong_reference", "n", maxDeskReference))
	}
	return &sure{Phone: phone, Shown: look.Phone(phone), Money: money(minor)}
}

// wrongPhone says why a number is refused: it may be good for another method.
func (v *visit) wrongPhone(p *collectPage, phone string) string {
	for _, other := range p.Markets {
		if good, _ := other.Method.CheckPhone(other.Country, phone); good && other.Country == p.Chosen.Country {
			return v.Words.T("collect.other_phone", "phone", look.Phone(phone), "name", other.Name)
		}
	}
	return v.Words.T("collect.wrong_phone", "name", p.Chosen.Name, "example", look.Phone(p.Chosen.Method.PhoneExample(p.Chosen.Country)))
}

// requestOf returns what the API would have been sent.
func requestOf(p *collectPage, s *sure) *collect.Request {
	value, m := s.Money.Value(), p.Chosen
	r := &collect.Request{
		Body: body.Body{Method: &m.Method.Code, Country: &m.Country.Code, IdempotencyKey: &p.Key,
			Amount: &body.Amount{Value: &value, Currency: &m.Currency}},
		Customer: &collect.Customer{Phone: &s.Phone},
	}
	if p.Reference != "" {
		r.Reference = &p.Reference
	}
	return r
}

// collectFailed shows the form again with what happened, what is certain and
// what to do.
func (v *visit) collectFailed(p *collectPage, err error) error {
	var e *till.Error
	t := v.Words.T
	if !errors.As(err, &e) {
		e = &till.Error{}
	}
	switch e.Code {
	case till.CodeValidationFailed:
		for _, f := range e.Fields {
			field := map[string]string{"/amount/value": "amount", "/customer/phone": "phone", "/reference": "reference"}[f.Pointer]
			p.Problems = append(p.Problems, problem{field, f.Detail})
		}
		return v.showCollect(http.StatusOK, p)
	case till.CodeKeyReused:
		if p.Earlier, err = v.earlierDesk(p.Key); err != nil {
			return err
		}
		p.Key = till.NewID(v.Now).String()
		p.Problems = append(p.Problems, problem{"", t("collect.used")})
		return v.showCollect(http.StatusOK, p)
	case till.CodeMethodUnavailable:
		p.Problems = append(p.Problems, problem{"market", t("collect.unavailable", "name", p.Chosen.Name)})
		return v.showCollect(http.StatusOK, p)
	}
	if v.PageError(err) != shell.ErrAway {
		return err
	}
	v.Console.Log.Warn("payment at the counter not created", "request_id", v.ID, "error", err)
	p.Uncertain = t("collect.uncertain")
	v.W.Header().Set("Retry-After", "2")
	v.Render(http.StatusServiceUnavailable, "collect", p) // the database is unreachable: nothing more is read
	return nil
}

// earlierDesk returns the address of the payment that the person asked for with
// a key, "" if there is none.
func (v *visit) earlierDesk(sent string) (path string, err error) {
	key, err := till.ParseID(sent)
	if err != nil {
		return "", nil
	}
	err = v.View(func(ctx context.Context, tx *store.Tx) error {
		person, err := lookup.CollectorOf(ctx, tx, v.Client.ID, key)
		if err != nil || person != v.Session.Person.ID {
			return err
		}
		pay, err := tx.PaymentByKey(ctx, v.Client.ID, key)
		if pay != nil {
			path = v.ClientPath("/collect/" + pay.ID.String())
		}
		return err
	})
	return path, err
}

// earliestPayment is earliest for pages whose own permission is not about seeing
// payments.
func (v *visit) earliestPayment() till.Time {
	if v.Session.May(v.Client, people.PaymentsSee) == people.Recent {
		return v.Now.Add(-people.RecentWindow)
	}
	return 0
}
