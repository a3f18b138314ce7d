package sandbox

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"till"
	"till/console/look"
	"till/console/shell"
	"till/console/subject"
	"till/people"
	"till/provider/sandbox"
	"till/store"
	"till/store/webhooks"
)

// goods are what the demo shop sells, priced in units of the market's currency.
var goods = []struct {
	key   string
	price int64
}{{"sandbox.loaves", 1000}, {"sandbox.coffee", 500}}

// sandboxMarkets returns what the sandbox serves, as the catalogue orders it.
func sandboxMarkets() (out []subject.Market) {
	for _, m := range till.Methods() {
		for i := range m.Markets {
			if k := &m.Markets[i]; k.Sandbox {
				if c, ok := till.CountryOf(k.Country); ok {
					out = append(out, subject.Market{Method: m, Country: c, Currency: k.Currency})
				}
			}
		}
	}
	return out
}

// table is what the person has chosen: it is all in the address.
type table struct {
	market subject.Market
	phone  string         // whole
	story  *sandbox.Story // nil: the handset asks
	order  till.ID        // zero: nothing was ordered
}

// readTable reads the choices of an address. What it does not understand is as
// if it were not there.
func (v *visit) readTable(q url.Values) *table {
	t := &table{}
	markets := sandboxMarkets()
	for _, m := range markets {
		if t.market.Method == nil || m.Country.Code == v.Profile.Country && t.market.Country.Code != m.Country.Code {
			t.market = m
		}
	}
	for _, m := range markets {
		if m.Key() == q.Get("market") {
			t.market = m
		}
	}
	t.phone = t.market.Method.PhoneExample(t.market.Country)
	if phone, ok := v.OpenText(q.Get("who")); ok && t.fits(phone) {
		t.phone = phone
	}
	for i, s := range sandbox.Stories() {
		if s.Subject == string(till.SubjectPayment) && s.Name == q.Get("story") && s.EndsIn != "0000" {
			t.story = &sandbox.Stories()[i]
			t.phone = t.storyPhone(s.EndsIn)
		}
	}
	t.order, _ = till.ParseID(q.Get("order")) // none if it is not an id
	return t
}

// fits reports whether a phone can be asked for money in the market.
func (t *table) fits(phone string) bool {
	ok, _ := t.market.Method.CheckPhone(t.market.Country, phone)
	return ok
}

// storyPhone returns a number of the market whose last digits choose a story.
// It is never the number of the handset, which would ask the person.
func (t *table) storyPhone(endsIn string) string {
	if endsIn == "" {
		endsIn = "0001" // of no other story: the customer approves
	}
	example := t.market.Method.PhoneExample(t.market.Country)
	return example[:len(example)-len(endsIn)] + endsIn
}

// tableAddress returns the page's address with these choices.
func (v *visit) tableAddress(t *table) string {
	q := url.Values{"market": {t.market.Key()}}
	if t.story != nil {
		q.Set("story", t.story.Name)
	} else if t.phone != t.market.Method.PhoneExample(t.market.Country) {
		q.Set("who", v.SealText(t.phone))
	}
	if !t.order.IsZero() {
		q.Set("order", t.order.String())
	}
	return v.ClientPath("/sandbox") + "?" + q.Encode()
}

// sandboxPage is the shop, the phone and what the API saw.
type sandboxPage struct {
	*shell.Frame
	Again   string // this page's address
	PIN     string // the right one
	Goods   []good
	Total   till.Money
	Key     string // of the next order: sent twice, it is one order
	Calling string
	Local   string // the phone without its calling code
	Wrong   string // why the phone was refused
	Market  string
	Markets []shell.Choice
	Story   *sandbox.Story
	Stories []shell.Choice
	Refunds []string // what becomes of a refund, by the number that paid
	Order   *order
	Handset *handset
	Saw     []saw
	Curl    string
	Own     string // where the person takes their own phone
}

type good struct {
	Name  string
	Price till.Money
}

// order is what the shop knows of its last order.
type order struct {
	State  shell.Chip
	Reason string
	Path   string
	Paid   bool
}

// handset is the phone as the page shows it.
type handset struct {
	*sandbox.Handset
	Name     string // of the wallet
	Whole    string // the number
	Balance  string
	Answer   string  // where its forms go: an answer to the prompt
	Set      string  // on, off, no network
	Prompt   *prompt // what is on the screen; nil: nothing
	Waiting  int     // prompts that are not on the screen
	Messages []message
}

type prompt struct {
	Payment     string
	Amount      string
	Description string
	ExpiresAt   till.Time
	Span        string // until then
	Left        string // tries of the PIN, in words, if one was wrong
}

type message struct {
	At   till.Time
	Time string
	Text string
}

// sandbox is GET /c/{client}/sandbox. A view of the page holds the number for
// a while: who sees the phone answers its prompts.
func (v *visit) sandbox() error {
	return v.showTable(v.readTable(v.R.URL.Query()), "", "")
}

func (v *visit) showTable(t *table, typed, wrong string) error {
	p := &sandboxPage{PIN: sandbox.PIN, Frame: v.Frame(v.Words.T("sandbox.title"), "menu.sandbox"), Again: v.tableAddress(t), Key: till.NewID(v.Now).String(),
		Calling: "+" + t.market.Country.CallingCode, Local: typed, Wrong: wrong, Market: shell.MethodName(t.market.Method.Code, t.market.Country.Code), Story: t.story}
	if v.R.Method == http.MethodGet {
		p.Again = v.R.URL.RequestURI() // sealed anew, the same phone has another text
	}
	if typed == "" {
		p.Local = strings.TrimPrefix(look.Phone(t.phone), p.Calling)
		p.Local = strings.TrimLeft(p.Local, " \u00a0\u202f")
	}
	p.Total = t.market.Minor(0)
	for _, g := range goods {
		price := t.market.Minor(g.price)
		p.Goods = append(p.Goods, good{v.Words.T(g.key), price})
		p.Total.Minor += price.Minor
	}
	for _, m := range sandboxMarkets() {
		p.Markets = append(p.Markets, shell.Choice{Text: shell.MethodName(m.Method.Code, m.Country.Code), Path: m.Key(), Current: m == t.market})
	}
	for _, s := range sandbox.Stories() {
		if s.Subject == string(till.SubjectPayment) && s.EndsIn != "0000" {
			p.Stories = append(p.Stories, shell.Choice{Text: v.Words.T("story." + s.Name), Path: s.Name, Current: t.story != nil && s.Name == t.story.Name})
		}
		if s.Subject == string(till.NounRefund) && s.EndsIn != "" {
			p.Refunds = append(p.Refunds, v.Words.T("refundstory."+s.Name))
		}
	}
	p.Curl = subject.Curl(v.Visit, t.market.Method.Code, t.market.Country.Code, t.phone, p.Total)
	p.Own = strings.Replace(v.tableAddress(&table{market: t.market, phone: t.phone}), "/sandbox?", "/sandbox/phone?", 1)
	if err := v.readHandset(p, t); err != nil {
		return err
	}
	if err := v.readOrder(p, t); err != nil {
		return err
	}
	return v.Page("sandbox", p)
}

// holdHandset holds the number, unless it plays its story, and returns the
// phone.
func (v *visit) holdHandset(t *table) (*sandbox.Handset, error) {
	ctx := v.R.Context()
	h, err := v.Console.Sandbox.Handset(ctx, v.Client.ID, t.phone, t.market.Currency)
	if err == nil && t.story == nil {
		err = v.Console.Sandbox.HoldHandset(ctx, v.Client.ID, t.phone, h.State)
	}
	return h, err
}

// readHandset shows the phone.
func (v *visit) readHandset(p *sandboxPage, t *table) (err error) {
	if p.Handset, err = v.showHandset(t); err != nil {
		return err
	}
	p.Handset.Answer, p.Handset.Set = v.ClientPath("/sandbox/answer"), v.ClientPath("/sandbox/handset")
	return nil
}

// showHandset returns the phone as pages show it, and holds its number.
func (v *visit) showHandset(t *table) (*handset, error) {
	h, err := v.holdHandset(t)
	if err != nil {
		return nil, err
	}
	lang := v.Words.Lang()
	out := &handset{Handset: h, Name: shell.MethodName(t.market.Method.Code, t.market.Country.Code), Whole: look.Phone(t.phone), Balance: look.MoneyInUse(lang, h.Balance)}
	for _, m := range h.Messages {
		out.Messages = append(out.Messages, message{m.At, v.Clock.Time(m.At), v.Words.T("message."+string(m.Kind), "amount", look.MoneyInUse(lang, m.Amount),
			"name", v.ClientName(), "balance", look.MoneyInUse(lang, m.Balance), "receipt", m.Receipt)})
	}
	out.Waiting = len(h.Prompts)
	if len(h.Prompts) > 0 && h.State == sandbox.HandsetOn {
		first := h.Prompts[0]
		out.Waiting--
		out.Prompt = &prompt{Payment: first.Payment.String(), Amount: look.MoneyInUse(lang, first.Amount), ExpiresAt: first.ExpiresAt, Span: look.Span(lang, max(0, first.ExpiresAt.Sub(v.Now)))}
		if out.Prompt.Description, err = v.descriptionOf(first.Payment); err != nil {
			return nil, err
		}
		if first.WrongPINs > 0 {
			out.Prompt.Left = v.Words.T("sandbox.tries", "n", strconv.Itoa(sandbox.MaxWrongPINs-first.WrongPINs))
		}
	}
	return out, nil
}

// descriptionOf returns what a payment is for, as its merchant wrote it.
func (v *visit) descriptionOf(payment till.ID) (text string, err error) {
	err = v.View(func(ctx context.Context, tx *store.Tx) error {
		p, err := tx.Payment(ctx, store.Ref{Client: v.Client.ID, ID: payment})
		if err == nil {
			text, _ = subject.ReadDocument(p.Document)
		}
		if till.ErrorCode(err) == till.CodePaymentNotFound {
			return nil // the sandbox's book is older than the database
		}
		return err
	})
	return text, err
}

// saw is one thing that the API saw or said.
type saw struct {
	Tone, Tag string
	Text      string
	At        till.Time
	Time      string
	Body      string
}

// readOrder shows the last order, and what the API saw of it.
func (v *visit) readOrder(p *sandboxPage, t *table) error {
	// A cashier sees the last two days; nobody needs an older order here.
	if t.order.IsZero() || t.order.Time() < v.Now.Add(-people.RecentWindow) {
		return nil
	}
	story, told, err := subject.ReadStory(v.Visit, till.SubjectPayment, store.Ref{Client: v.Client.ID, ID: t.order})
	if till.ErrorCode(err) == till.CodePaymentNotFound {
		return nil // an address that somebody wrote by hand
	}
	if err != nil {
		return err
	}
	pay := story.Payment
	p.Order = &order{Path: v.ClientPath("/payments/" + pay.ID.String()), Paid: pay.Status == till.Success}
	p.Order.State, p.Order.Reason = subject.PaymentChip(v.Visit, pay)
	see := func(tone, tag, text string, at till.Time, body string) {
		p.Saw = append(p.Saw, saw{tone, tag, text, at, v.Clock.Time(at), body})
	}
	see("ended", "POST", "/v1/payments", pay.CreatedAt, "")
	see("processing", "202", string(till.Pending), pay.CreatedAt, "{ \"id\": \""+pay.ID.String()+"\",\n  \"status\": \"pending\",\n  \"amount\": { \"value\": \""+
		pay.Amount.Value()+"\",\n              \"currency\": \""+pay.Amount.Currency+"\" } }")
	for _, e := range story.Events {
		see("ended", v.Words.T("sandbox.event"), string(e.Kind), e.CreatedAt, "")
		for _, d := range told.Deliveries {
			if d.EventID == e.ID() && told.Endpoints[d.EndpointID] != nil {
				see(deliveryTone(d.Status), v.Words.T("sandbox.webhook"), subject.HostOf(told.Endpoints[d.EndpointID].URL)+": "+v.Words.T("delivery."+string(d.Status)), e.CreatedAt, "")
			}
		}
	}
	return nil
}

func deliveryTone(s webhooks.DeliveryStatus) string {
	switch s {
	case webhooks.DeliveryDelivered:
		return "paid"
	case webhooks.DeliveryPending:
		return "pending"
	}
	return "failed"
}

// StateIs reports what the person has done with the handset.
func (h *handset) StateIs(s string) bool { return string(h.State) == s }
