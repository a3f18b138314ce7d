package mpesa

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"till"
	"till/provider"
	"till/provider/wire"
)

// paymentService is the provider of payments: M-Pesa Express, the STK push.
type paymentService struct{ *Operator }

var (
	_ provider.Tester       = (*paymentService)(nil)
	_ provider.HandleReader = (*paymentService)(nil)
)

// Fingerprint names the account.
func (p *paymentService) Fingerprint() string { return "mpesa stk " + p.base + " " + p.c.ShortCode }

// Traits returns how the STK push behaves. It accepts no reference of ours, so a payment is
// sent only once. Its callback is kept, because only the callback may have the id to check
// by.
func (p *paymentService) Traits() provider.Traits {
	return provider.Traits{
		ClientReference:   false,
		ApprovalWindow:    p.c.window().Duration(),
		SubmitTimeout:     15 * time.Second,
		CheckTimeout:      10 * time.Second,
		NotFoundDelay:     2 * time.Minute, // unused: a query never says "not found"
		Poll:              p.c.poll().Duration(),
		PollMax:           time.Hour,
		Grace:             2 * time.Minute,
		LateReads:         lateReads,
		NeedsCallbackBody: true,
		SubmitRate:        wire.Rate(p.c.SubmitRate, defaultRate),
		CheckRate:         wire.Rate(p.c.CheckRate, defaultRate),
	}
}

// pushRequest is the body of an STK push.
type pushRequest struct {
	BusinessShortCode json.Number
	Password          string
	Timestamp         string
	TransactionType   string
	Amount            string
	PartyA            string
	PartyB            string
	PhoneNumber       string
	CallBackURL       string
	AccountReference  string
	TransactionDesc   string
}

// Submit prompts the customer.
func (p *paymentService) Submit(ctx context.Context, r provider.Request) (provider.Result, error) {
	callback := r.CallbackURL
	if callback == "" {
		callback = p.callbackURL
	}
	if err := checkSendable(r.Amount, callback); err != nil {
		return provider.Result{}, fmt.Errorf("mpesa: %w", err)
	}
	amount, ok := wholeShillings(r.Amount)
	if !ok {
		return rejectAmount(), nil
	}
	q := pushRequest{
		BusinessShortCode: json.Number(p.c.ShortCode), TransactionType: p.c.TransactionType, Amount: amount,
		PartyA: r.Phone, PartyB: p.c.PartyB, PhoneNumber: r.Phone, CallBackURL: callback,
		AccountReference: p.accountReference(r.ID), TransactionDesc: wire.PlainASCII(r.Description, maxDesc),
	}
	q.Timestamp, q.Password = p.signTimestamp()
	if q.TransactionType == "" {
		q.TransactionType = payBill
	}
	if q.PartyB == "" {
		q.PartyB = p.c.ShortCode
	}
	if q.TransactionDesc == "" {
		q.TransactionDesc = "Payment"
	}
	reply, err := p.call(ctx, "/mpesa/stkpush/v1/processrequest", &q)
	if err != nil {
		return provider.Result{}, fmt.Errorf("mpesa submit: %w", err)
	}
	result, err := readPush(reply.Status, reply.Body)
	if err != nil {
		p.answerLog.Unreadable("stk submit", reply, err)
		return provider.Result{}, fmt.Errorf("mpesa submit: %w", err)
	}
	return result, nil
}

// accountReference returns what the customer sees as the purpose. The end of the id is
// random, so it finds a payment on Safaricom's portal.
func (p *paymentService) accountReference(id till.ID) string {
	if p.c.AccountReference != "" {
		return p.c.AccountReference
	}
	s := id.String()
	return strings.ToUpper(s[len(s)-maxAccountRef:])
}

// pushQuery is the body of a query about an STK push.
type pushQuery struct {
	BusinessShortCode json.Number
	Password          string
	Timestamp         string
	CheckoutRequestID string
}

// errNoHandle says that the push's id is unknown: its answer was lost and no callback came.
// Only a person can find out, on Safaricom's portal.
var errNoHandle = errors.New("no CheckoutRequestID for this push; Daraja has no lookup by our reference")

// errOtherPayment says that the only callback is about another push: it names another
// amount or customer.
var errOtherPayment = errors.New("no CheckoutRequestID for this push; its callback names another amount or customer")

// Check queries a push by the id in its answer. If that answer was lost, it takes the id
// from the callback, unless the callback names another amount or customer. The callback
// alone is never trusted: anyone could have sent it. Daraja's query names nothing of ours,
// so the engine checks that no other payment has the id.
func (p *paymentService) Check(ctx context.Context, q provider.Query) (provider.Result, error) {
	id := q.Handle
	if mail := readPushCallback(q.CallbackBody); id == "" && mail != nil {
		if !mail.matches(&q) {
			return provider.Result{}, fmt.Errorf("mpesa check: %w", errOtherPayment)
		}
		id = mail.id()
	}
	if id == "" {
		return provider.Result{}, fmt.Errorf("mpesa check: %w", errNoHandle)
	}
	ask := pushQuery{BusinessShortCode: json.Number(p.c.ShortCode), CheckoutRequestID: id}
	ask.Timestamp, ask.Password = p.signTimestamp()
	reply, err := p.call(ctx, "/mpesa/stkpushquery/v1/query", &ask)
	if err != nil {
		return provider.Result{}, fmt.Errorf("mpesa check: %w", err)
	}
	result, err := readPushQuery(reply.Status, reply.Body, id)
	if err != nil {
		p.answerLog.Unreadable("stk check", reply, err)
		return provider.Result{}, fmt.Errorf("mpesa check: %w", err)
	}
	if result.Outcome == provider.Success {
		// The query names neither receipt nor amount. Now that it confirms this push, the
		// push's callback can be used.
		if mail := readPushCallback(q.CallbackBody); mail != nil && mail.id() == id {
			result.Receipt, result.Amount = mail.receipt(), mail.amount()
		}
	}
	return result, nil
}
