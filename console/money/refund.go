package money

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"till"
	"till/console/look"
	"till/console/shell"
	"till/console/subject"
	"till/engine"
	"till/internal/request"
	"till/payout"
	"till/people"
	"till/store"
)

// refundPage gives a payment back: first how much and why, then what that does, in numbers.
type refundPage struct {
	*shell.Frame
	Back    string // the payment
	Refused string // of a proof that was wrong
	Payment till.Money
	State   shell.Chip
	To      string // the number that paid, masked
	Method  string
	Left    till.Money
	Typed   string // the amount, as it was typed
	Reason  string
	Reasons []shell.Choice
	Wrong   string // with the amount
	Barred  string // why nothing can go back now; there is no form then
	Earlier string // the refund that is in the way
	Sure    *refundSure
}

// refundSure is what a refund does, for the person who makes it.
type refundSure struct {
	Key           string // of the act: posted twice, it is one refund
	Amount        till.Money
	Fee           till.Money // of the refund
	Kept          till.Money // the payment's fee, which is not given back
	Before, After till.Money // what the wallet has available
	Reason        string
	Again         string // this page, after a wrong proof
	Change        string
	Proof         *shell.ProofForm
	Balances      bool   // the numbers are known
	Uncertain     string // what is not certain after a failure
}

// refund is GET and POST /c/{client}/payments/{id}/refund. It asks for a refund by the function
// that the API calls. A refund that one person proposes and another one approves is not built:
// so the person who makes one may do both.
func (v *visit) refund() error {
	for _, need := range []people.Permission{people.RefundsPropose, people.PaymentsSee} {
		if !v.May(need) {
			return &people.Refusal{Code: people.NotAllowed, Need: need}
		}
	}
	ref, err := v.Ref("id")
	if err != nil {
		return err
	}
	p, err := v.newRefund(ref)
	if err != nil {
		return err
	}
	if v.R.Method == http.MethodPost {
		return v.postRefund(p)
	}
	q := v.R.URL.Query()
	p.setReason(v, q.Get("reason"))
	if p.Typed = typedAmount(q.Get("amount")); p.Typed != "" {
		return v.showRefund(p, v.NewAct())
	}
	if _, err := v.offer(p, v.NewAct(), till.Money{}); err != nil {
		return err
	}
	p.Typed = look.Amount(v.Words.Lang(), p.Left)
	return v.Page("refund", p)
}

// refundForm is a form with what its act needs.
type refundForm struct {
	*refundPage
	row *store.PaymentRow
	who engine.Client
}

func (v *visit) newRefund(ref store.Ref) (*refundForm, error) {
	f := &refundForm{refundPage: &refundPage{}}
	err := v.View(func(ctx context.Context, tx *store.Tx) (err error) {
		f.row, err = tx.Payment(ctx, ref)
		return err
	})
	if err != nil {
		return nil, err
	}
	who, err := v.Console.Accounts.Open(v.R.Context(), v.Client.ID)
	if err != nil {
		return nil, err
	}
	f.who = engine.Client{Client: who.Client, Enabled: who.Enabled, Fees: who.Fees(), Actor: v.Session.Actor(), Full: who.CheckTestQuota(v.Console.TestQuota)}
	f.Frame = v.Frame(v.Words.T("refunds.title")+" "+look.Money(v.Words.Lang(), f.row.Amount), "menu.payments")
	f.Modules = append(f.Modules, "passkey.js")
	_, f.Refused = v.Outcome()
	f.Back, f.Payment, f.Left = v.ClientPath("/payments/"+ref.ID.String()), f.row.Amount, till.Money{Currency: f.row.Amount.Currency}
	f.State, _ = subject.PaymentChip(v.Visit, f.row)
	f.To, f.Method = subject.MaskPhone(f.row.Phone), shell.MethodName(f.row.Method, f.row.Country)
	return f, nil
}

// setReason offers the reasons.
func (p *refundPage) setReason(v *visit, chosen string) {
	if p.Reason = chosen; !slices.Contains(till.RefundReasons, chosen) {
		p.Reason = till.RefundReasons[0]
	}
	for _, r := range till.RefundReasons {
		p.Reasons = append(p.Reasons, shell.Choice{Text: v.Words.T("refunds.reason_" + r), Path: r, Current: r == p.Reason})
	}
}

// request is what the API would be sent: all that is left where no amount is named.
func (f *refundForm) request(key string, amount till.Money) *payout.RefundRequest {
	id, value := f.row.ID.String(), amount.Value()
	r := &payout.RefundRequest{PaymentID: &id, IdempotencyKey: &key, Reason: &f.Reason}
	if amount.Minor != 0 {
		r.Amount = &request.Amount{Value: &value, Currency: &amount.Currency}
	}
	return r
}

// offer asks what a refund would do, all that is left where no amount is named, and says what
// stands in its way.
func (v *visit) offer(f *refundForm, key string, amount till.Money) (*payout.RefundOffer, error) {
	o, err := v.Console.Payouts.OfferRefund(v.R.Context(), f.who, f.request(key, amount))
	if err != nil {
		return nil, err
	}
	if f.Left.Minor = o.Left; o.Refused != nil {
		err = v.refuseRefund(f, o)
	}
	return o, err
}

// showRefund shows what a refund of the typed amount does, or the form with what is wrong.
func (v *visit) showRefund(f *refundForm, key string) error {
	amount, ok := f.amount()
	beyond := amount.Minor > f.Payment.Minor
	if beyond {
		amount.Minor = 0
	}
	o, err := v.offer(f, key, amount)
	switch {
	case err != nil:
		return err
	case f.Barred != "":
	case !ok:
		f.Wrong = v.Words.T("collect.wrong_amount")
	case beyond:
		f.Wrong = v.Words.T("refunds.too_much", "left", f.Left)
	}
	if f.Barred != "" || f.Wrong != "" {
		return v.Page("refund", f)
	}
	same := url.Values{"amount": {f.Typed}, "reason": {f.Reason}}
	f.Sure = &refundSure{Key: key, Amount: o.Refund.Amount, Fee: till.Money{Minor: o.Refund.Fee, Currency: amount.Currency},
		Kept: till.Money{Minor: f.row.Fee, Currency: amount.Currency}, Before: o.Balance, After: o.After(), Reason: v.Words.T("refunds.reason_" + f.Reason),
		Again: f.Back + "/refund?" + same.Encode(), Change: f.Back + "/refund", Balances: true}
	if f.Sure.Proof, err = v.ProofForm(); err != nil {
		return err
	}
	return v.Page("refund", f)
}

// postRefund makes the refund.
func (v *visit) postRefund(f *refundForm) error {
	key, err := v.ReadAct()
	if err != nil {
		return err
	}
	f.setReason(v, v.R.PostFormValue("reason"))
	f.Typed = typedAmount(v.R.PostFormValue("amount"))
	amount, ok := f.amount()
	if !ok {
		return v.showRefund(f, key)
	}
	created, err := v.Console.Payouts.Refund(v.R.Context(), f.who, f.request(key, amount))
	var e *till.Error
	switch {
	case err == nil:
		return v.Redirect(v.ClientPath("/refunds/" + created.Payout.ID.String() + "?done=refund"))
	case v.PageError(err) == shell.ErrAway:
		return v.refundUncertain(f, key, amount, err)
	case !errors.As(err, &e):
		return err
	case e.Code == till.CodeKeyReused:
		if f.Barred = v.Words.T("refunds.used"); !e.RefundID.IsZero() {
			f.Earlier = v.ClientPath("/refunds/" + e.RefundID.String())
		}
		return v.Page("refund", f)
	}
	return v.showRefund(f, v.NewAct()) // what stands in the way is said there
}

// refundUncertain keeps the form: pressed again, it is the same refund.
func (v *visit) refundUncertain(f *refundForm, key string, amount till.Money, err error) error {
	v.Console.Log.Warn("refund not created", "request_id", v.ID, "error", err)
	f.Sure = &refundSure{Key: key, Amount: amount, Reason: v.Words.T("refunds.reason_" + f.Reason), Change: f.Back + "/refund", Uncertain: v.Words.T("refunds.uncertain")}
	v.W.Header().Set("Retry-After", "2")
	v.Render(http.StatusServiceUnavailable, "refund", f) // the database is unreachable: nothing more is read
	return nil
}

// refuseRefund says what stands in the way of a refund: beside the amount where another one may
// pass, or else instead of the form.
func (v *visit) refuseRefund(f *refundForm, o *payout.RefundOffer) error {
	var e *till.Error
	if !errors.As(o.Refused, &e) {
		return o.Refused
	}
	t := v.Words.T
	switch e.Code {
	case till.CodeRefundExceeds:
		if f.Wrong = t("refunds.too_much", "left", f.Left); o.Left == 0 {
			f.Barred, f.Wrong = t("refunds.nothing_left"), ""
		}
	case till.CodeInsufficientBalance:
		f.Wrong = t("refunds.balance", "available", o.Balance)
	case till.CodeValidationFailed:
		f.Wrong = v.wrongRefundAmount(o)
	case till.CodeRefundInProgress:
		f.Barred, f.Earlier = t("refunds.open"), v.ClientPath("/refunds/"+e.RefundID.String())
	case till.CodeNotRefundable:
		f.Barred = t("refunds.bar_"+string(o.Bar), "n", int64(v.Console.Payouts.RefundAge()/(24*time.Hour)))
	case till.CodeRefundNotPossible:
		f.Barred = t("refunds.no_road")
	case till.CodeMethodUnavailable:
		f.Barred = t("refunds.unavailable", "name", f.Method)
	case till.CodePayoutsHeld:
		f.Barred = t("refunds.held")
	case till.CodeServiceUnavailable:
		if f.Barred = t("refunds.elsewhere"); o.Low {
			f.Barred = t("refunds.not_yet")
		}
	default:
		return e
	}
	return nil
}

// wrongRefundAmount says which amounts the operator moves.
func (v *visit) wrongRefundAmount(o *payout.RefundOffer) string {
	m, k := o.Market()
	if k == nil {
		return v.Words.T("collect.wrong_amount")
	}
	money := func(minor int64) till.Money { return till.Money{Minor: minor, Currency: k.Currency} }
	text := v.Words.T("collect.wrong_limits", "name", m.Name, "min", money(k.Min), "max", money(k.Max))
	if k.Step > 1 {
		text += " " + v.Words.T("collect.wrong_step", "name", m.Name, "step", money(k.Step))
	}
	return text
}

// maxTyped is how many bytes of a typed amount are read.
const maxTyped = 64

func typedAmount(s string) string {
	s = strings.TrimSpace(s)
	return strings.ToValidUTF8(s[:min(len(s), maxTyped)], "")
}

// amount returns the typed amount; false if it is none.
func (f *refundForm) amount() (till.Money, bool) {
	minor, ok := look.ParseAmount(f.Typed, f.Payment.Currency)
	return till.Money{Minor: minor, Currency: f.Payment.Currency}, ok && minor > 0
}

// refundReason returns a refund's reason in words. The list of reasons is open.
func (v *visit) refundReason(code string) string {
	if key := "refunds.reason_" + code; v.Words.Has(key) {
		return v.Words.T(key)
	}
	return v.Words.T("refunds.reason_other")
}

// tail is how an id is named briefly.
func tail(id till.ID) string {
	text := id.String()
	return text[len(text)-8:]
}
