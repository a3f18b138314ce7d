package mpesa

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"till"
	"till/provider"
	"till/provider/wire"
)

// payoutService is the provider of payouts: B2C.
//
// B2C answers each request twice. At once, over the connection that we opened, it says that
// it accepted the request. Later, a callback brings the result, and anyone who knows the
// address could send one. A status query is answered the same way.
//
// Only the second answer to a query of ours is trusted. It comes to an address that only
// Safaricom knows. It must name the ConversationID that Safaricom gave us, over its own
// TLS, for that query. The callback about the payout itself is a hint: it causes a query.
// Its failure code is kept, and used if the query's answer does not contradict it.
//
// Between the two answers Check returns AnswerPending. The handle keeps what the next Check
// needs: see handleState.
type payoutService struct{ *Operator }

var _ provider.Tester = (*payoutService)(nil)

// Fingerprint names the account.
func (p *payoutService) Fingerprint() string {
	return "mpesa b2c " + p.base + " " + p.c.PayoutShortCode
}

// Traits returns how B2C behaves. It rejects a second request with the same
// OriginatorConversationID, which is our reference.
func (p *payoutService) Traits() provider.Traits {
	return provider.Traits{
		ClientReference:   true,
		ApprovalWindow:    payoutWindow,
		SubmitTimeout:     15 * time.Second,
		CheckTimeout:      10 * time.Second,
		NotFoundDelay:     p.c.settle().Duration(),
		Poll:              payoutPoll,
		PollMax:           time.Hour,
		Grace:             15 * time.Minute,
		LateReads:         lateReads,
		NeedsCallbackBody: true,
		SubmitRate:        wire.Rate(p.c.SubmitRate, defaultRate),
		CheckRate:         wire.Rate(p.c.CheckRate, defaultRate),
	}
}

// payoutRequest is the body of a B2C payment.
type payoutRequest struct {
	OriginatorConversationID string
	InitiatorName            string
	SecurityCredential       string
	CommandID                string
	Amount                   string
	PartyA                   string
	PartyB                   string
	Remarks                  string
	QueueTimeOutURL          string
	ResultURL                string
	Occassion                string // Daraja's spelling
}

// Submit requests a payout.
func (p *payoutService) Submit(ctx context.Context, r provider.Request) (provider.Result, error) {
	// There is no default address here: without the callbacks nothing is ever known.
	if err := checkSendable(r.Amount, r.CallbackURL); err != nil {
		return provider.Result{}, fmt.Errorf("mpesa: %w", err)
	}
	amount, ok := wholeShillings(r.Amount)
	if !ok {
		return rejectAmount(), nil
	}
	q := payoutRequest{
		OriginatorConversationID: r.Reference.String(), InitiatorName: p.c.Initiator, SecurityCredential: p.credential,
		CommandID: p.c.Command, Amount: amount, PartyA: p.c.PayoutShortCode, PartyB: r.Phone,
		Remarks: wire.PlainASCII(r.Description, maxRemarks), QueueTimeOutURL: r.CallbackURL, ResultURL: r.CallbackURL, Occassion: r.ID.String(),
	}
	if q.CommandID == "" {
		q.CommandID = "BusinessPayment"
	}
	if len(q.Remarks) < 2 {
		q.Remarks = "Payout"
	}
	reply, err := p.call(ctx, "/mpesa/b2c/v3/paymentrequest", &q)
	if err != nil {
		return provider.Result{}, fmt.Errorf("mpesa payout: %w", err)
	}
	result, err := readPayout(reply.Status, reply.Body)
	if err != nil {
		p.answerLog.Unreadable("b2c submit", reply, err)
		return provider.Result{}, fmt.Errorf("mpesa payout: %w", err)
	}
	return result, nil
}

// statusQuery is the body of a query about a payout.
type statusQuery struct {
	Initiator              string
	SecurityCredential     string
	CommandID              string
	OriginalConversationID string
	PartyA                 string
	IdentifierType         string
	ResultURL              string
	QueueTimeOutURL        string
	Remarks                string
	Occasion               string
}

// Check reads the answer to the last query if it has come, and sends a new query if not.
func (p *payoutService) Check(ctx context.Context, q provider.Query) (provider.Result, error) {
	m := parseHandleState(q.Handle)
	mail := readResultCallback(q.CallbackBody)
	if mail != nil {
		if id := mail.conversation(); m.takeQuery(id) {
			r := p.readStatusAnswer(m, mail)
			if ours := q.Reference.String(); strings.EqualFold(r.Reference, ours) {
				r.Reference = ours // in the caller's spelling, because it is compared as text
			}
			return r, nil
		}
		m.noteCallback(mail, q.Reference.String())
	}
	if q.CallbackURL == "" {
		return provider.Result{}, errors.New("mpesa check: Daraja answers by callback, and no callback address is configured")
	}
	reply, err := p.call(ctx, "/mpesa/transactionstatus/v1/query", &statusQuery{
		Initiator: p.c.Initiator, SecurityCredential: p.credential, CommandID: "TransactionStatusQuery",
		OriginalConversationID: q.Reference.String(), PartyA: p.c.PayoutShortCode, IdentifierType: "4",
		ResultURL: q.CallbackURL, QueueTimeOutURL: q.CallbackURL, Remarks: "Status", Occasion: q.ID.String(),
	})
	if err != nil {
		return provider.Result{}, fmt.Errorf("mpesa check: %w", err)
	}
	id, err := readQueryAccepted(reply.Status, reply.Body)
	if err != nil {
		p.answerLog.Unreadable("b2c check", reply, err)
		return provider.Result{}, fmt.Errorf("mpesa check: %w", err)
	}
	m.addQuery(id)
	return provider.Result{Outcome: provider.AnswerPending, Handle: m.String()}, nil
}

// readStatusAnswer reads the answer to a query of ours. AnswerPending means that nothing
// was learned; the query is repeated.
func (p *payoutService) readStatusAnswer(m *handleState, a *resultCallback) provider.Result {
	r := provider.Result{Outcome: provider.AnswerPending, Handle: m.String()}
	code := wire.Truncate(string(a.Result.ResultCode), maxCode)
	if code != "0" {
		// The query failed, which says nothing about the payout. But Safaricom's callback
		// said that the payout was not paid, under the ConversationID that Safaricom gave
		// us for it.
		switch {
		case m.failureCode != "" && m.confirmed:
			return m.failureResult(r)
		case slices.Contains(p.c.NotFoundCodes, code):
			r.Outcome = provider.NotFound
		}
		r.Code, r.Message, r.OurFault = code, wire.Truncate(string(a.Result.ResultDesc), maxText), ourFault(code)
		return r
	}
	status := wire.Truncate(a.parameter("TransactionStatus"), maxCode)
	if r.Reference = wire.Truncate(a.parameter("OriginatorConversationID"), maxID); r.Reference == "" {
		r.Reference = wire.Truncate(a.parameter("Originator Conversation ID"), maxID)
	}
	state, known := payoutStates[status]
	switch {
	case status == "":
	case state.outcome == provider.Success:
		amount := a.parameter("Amount")
		if r.Amount = parseShillings(amount); r.Amount.IsZero() && amount != "" {
			return r // an amount that cannot be read proves nothing
		}
		r.Outcome = provider.Success
		if r.Receipt = wire.Truncate(a.parameter("ReceiptNo"), maxID); r.Receipt == "" {
			r.Receipt = wire.Truncate(string(a.Result.TransactionID), maxID)
		}
	case state.outcome == provider.Open:
		r.Outcome = provider.Open
	case m.failureCode != "":
		return m.failureResult(r)
	case known:
		r.Outcome, r.Reason, r.Retryable, r.Code = state.outcome, state.reason, state.retryable, status
		r.Message = wire.Truncate(a.parameter("TransactionReason"), maxText)
	case slices.Contains(p.c.FailedStates, status):
		r.Outcome, r.Reason, r.Code = provider.Failed, till.Unspecified, status
		r.Message = wire.Truncate(a.parameter("TransactionReason"), maxText)
	default:
		r.Outcome, r.Code, r.Message = provider.Unrecognised, status, wire.Truncate(a.parameter("TransactionReason"), maxText)
	}
	return r
}

// failureResult returns the result for the failure code of the payout's callback.
func (m *handleState) failureResult(r provider.Result) provider.Result {
	v := payoutCodes[m.failureCode]
	r.Outcome, r.Reason, r.Retryable, r.Code, r.OurFault = v.outcome, v.reason, v.retryable, m.failureCode, ourFault(m.failureCode)
	return r
}

// readPayout reads the first answer to a payout request.
func readPayout(status int, body []byte) (provider.Result, error) {
	var a accepted
	refused, err := decodeReply(status, body, &a, &a.errorBody)
	switch {
	case err != nil:
		return provider.Result{}, err
	case refused && isDuplicate(a.Message):
		return provider.Result{Outcome: provider.Duplicate}, nil
	case refused:
		return a.result(status)
	case a.ResponseCode != "0" || !isID(string(a.ConversationID)):
		return provider.Result{}, fmt.Errorf("a payout was answered with %q", wire.Truncate(string(a.ResponseCode), maxCode))
	}
	m := handleState{conversationID: string(a.ConversationID)}
	return provider.Result{Outcome: provider.Accepted, Handle: m.String()}, nil
}

// readQueryAccepted returns the ConversationID of a query that Daraja accepted.
func readQueryAccepted(status int, body []byte) (string, error) {
	var a accepted
	refused, err := decodeReply(status, body, &a, &a.errorBody)
	if err != nil {
		return "", err
	}
	if refused {
		if _, err := a.result(status); err != nil {
			return "", err
		}
		return "", fmt.Errorf("the question was refused: HTTP %d, error %q", status, wire.Truncate(string(a.Code), maxCode))
	}
	if a.ResponseCode != "0" || !isID(string(a.ConversationID)) {
		return "", fmt.Errorf("a question was answered with %q", wire.Truncate(string(a.ResponseCode), maxCode))
	}
	return string(a.ConversationID), nil
}
