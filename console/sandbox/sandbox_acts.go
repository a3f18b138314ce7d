package sandbox

import (
	"errors"
	"net/url"
	"strings"

	"till"
	"till/collect"
	"till/console/look"
	"till/console/shell"
	"till/console/subject"
	"till/engine"
	body "till/internal/request"
	"till/provider/sandbox"
)

// tableOf reads the choices that a form carries in its hidden address.
func (v *visit) tableOf() *table {
	u, err := url.Parse(v.R.PostFormValue("at"))
	if err != nil {
		return v.readTable(url.Values{})
	}
	return v.readTable(u.Query())
}

// chooseNumber is POST /c/{client}/sandbox/choose: another wallet, another story, or
// with an empty one none. It is no GET because what it is sent may hold a number.
func (v *visit) chooseNumber() error {
	t := v.tableOf()
	q := url.Values{"market": {t.market.Key()}}
	if m := v.R.PostFormValue("market"); m != "" {
		q.Set("market", m)
	}
	switch chosen, sent := v.R.PostForm["story"]; {
	case sent:
		q.Set("story", chosen[0])
	case t.story != nil:
		q.Set("story", t.story.Name)
	}
	return v.Redirect(v.tableAddress(v.readTable(q)))
}

// maxTyped is the longest text that is taken for a phone.
const maxTyped = 200

// placeOrder is POST /c/{client}/sandbox/order: the shop asks for the money by
// the function that the API calls.
func (v *visit) placeOrder() error {
	t := v.tableOf()
	typed := v.R.PostFormValue("phone")
	if len(typed) > maxTyped {
		return shell.ErrInput
	}
	if t.story == nil {
		phone := subject.PhoneIn(t.market.Country, typed)
		if ok, _ := t.market.Method.CheckPhone(t.market.Country, phone); !ok {
			return v.showTable(t, typed, v.Words.T("sandbox.wrong_phone", "name", shell.MethodName(t.market.Method.Code, t.market.Country.Code),
				"example", look.Phone(t.market.Method.PhoneExample(t.market.Country))))
		}
		t.phone = phone
		if _, err := v.holdHandset(t); err != nil {
			return err
		}
	}
	who, err := v.Console.Accounts.Open(v.R.Context(), v.Client.ID)
	if err != nil {
		return err
	}
	created, err := v.Console.Collector.Create(v.R.Context(), engine.Client{Client: who.Client, Enabled: who.Enabled, Fees: who.Fees(), Actor: v.Session.Actor(),
		Full: who.CheckTestQuota(v.Console.TestQuota)}, v.orderRequest(t))
	var refused *till.Error
	if errors.As(err, &refused) && refused.Code == till.CodeValidationFailed && len(refused.Fields) > 0 {
		return v.showTable(t, typed, refused.Fields[0].Detail)
	}
	if err != nil {
		return err
	}
	t.order = created.Payment.ID
	return v.Redirect(v.tableAddress(t))
}

// orderRequest returns what the shop posts.
func (v *visit) orderRequest(t *table) *collect.Request {
	total, names := int64(0), []string{}
	for _, g := range goods {
		total += g.price
		names = append(names, v.Words.T(g.key))
	}
	text := func(s string) *string { return &s }
	key := v.R.PostFormValue("key")
	return &collect.Request{
		Body: body.Body{Method: &t.market.Method.Code, Country: &t.market.Country.Code, IdempotencyKey: &key,
			Amount:    &body.Amount{Value: text(t.market.Minor(total).Value()), Currency: &t.market.Currency},
			Reference: text("SHOP-" + key[max(0, len(key)-4):]), Description: text(strings.Join(names, ", "))},
		Customer: &collect.Customer{Phone: &t.phone},
	}
}

// answerPrompt is POST /c/{client}/sandbox/answer: the customer's PIN, or no.
func (v *visit) answerPrompt() error {
	t := v.tableOf()
	if err := v.answerForm(); err != nil {
		return err
	}
	return v.Redirect(v.tableAddress(t))
}

// answerForm answers a prompt as the form of the handset says: a PIN, no, or one
// of the ends that a PIN can have.
func (v *visit) answerForm() error {
	payment, err := till.ParseID(v.R.PostFormValue("payment"))
	if err != nil {
		return shell.ErrInput
	}
	switch do := v.R.PostFormValue("do"); do {
	case "cancel":
		err = v.Console.Sandbox.Decide(v.R.Context(), v.Client.ID, payment, sandbox.Decline)
	case string(sandbox.WrongPIN), string(sandbox.NoFunds):
		err = v.Console.Sandbox.Decide(v.R.Context(), v.Client.ID, payment, sandbox.Decision(do))
	default:
		_, _, err = v.Console.Sandbox.TypePIN(v.R.Context(), v.Client.ID, payment, v.R.PostFormValue("pin"))
	}
	// A prompt that has ended meanwhile is gone from the screen: that says it.
	if till.ErrorCode(err) == till.CodePromptNotFound {
		return nil
	}
	return err
}

// setHandset is POST /c/{client}/sandbox/handset.
func (v *visit) setHandset() error {
	t := v.tableOf()
	if err := v.stateForm(t); err != nil {
		return err
	}
	return v.Redirect(v.tableAddress(t))
}

// stateForm switches the handset on or off, or its network off.
func (v *visit) stateForm(t *table) error {
	state := sandbox.HandsetState(v.R.PostFormValue("state"))
	if !state.Valid() || t.story != nil {
		return shell.ErrInput
	}
	return v.Console.Sandbox.HoldHandset(v.R.Context(), v.Client.ID, t.phone, state)
}
