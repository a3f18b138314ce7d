package mpesa

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"till/provider"
	"till/provider/wire"
)

// Test queries a push that does not exist. Daraja checks token, short code and passkey
// before it searches. No money moves.
func (p *paymentService) Test(ctx context.Context) error {
	ask := pushQuery{BusinessShortCode: json.Number(p.c.ShortCode), CheckoutRequestID: "ws_CO_01012020000000000000000000"}
	ask.Timestamp, ask.Password = p.signTimestamp()
	reply, err := p.call(ctx, "/mpesa/stkpushquery/v1/query", &ask)
	a, err := checkTestReply(reply, err)
	if err != nil {
		return err
	}
	if _, err := a.result(reply.Status); errors.Is(err, provider.ErrCredentials) {
		return fmt.Errorf("Daraja refuses short_code and passkey: %w. They must be of the same app and environment", err)
	}
	if p.callbackURL == "" {
		return errors.New("Daraja requires a callback URL with every push. Configure the public address of this service, or callback_url")
	}
	// Daraja has searched for the push, or found its id invalid: nothing is wrong with our
	// credentials.
	if a.Code == "" || isBeingProcessed(a.Message) || strings.Contains(strings.ToLower(string(a.Message)), "checkoutrequestid") {
		return nil
	}
	return provider.Unproven(fmt.Sprintf("Daraja takes our token, and answers the question with HTTP %d, %s %s: whether short_code and passkey are right is not known",
		reply.Status, wire.Truncate(string(a.Code), maxCode), wire.Truncate(string(a.Message), maxText)))
}

// Test sends an empty query. Daraja rejects it, but only after it has checked the token.
// Nothing more can be tested without an answer by callback.
func (p *payoutService) Test(ctx context.Context) error {
	reply, err := p.call(ctx, "/mpesa/transactionstatus/v1/query", struct{}{})
	a, err := checkTestReply(reply, err)
	if err != nil {
		return err
	}
	if _, err := a.result(reply.Status); errors.Is(err, provider.ErrCredentials) {
		return fmt.Errorf("Daraja gave a token and then refused the call: %w. Is \"Transaction Status\" among the app's products?", err)
	}
	return provider.Unproven("Daraja takes our token; whether payout_short_code, initiator and its password are right shows with the first payout only")
}

// checkTestReply says whether a call with a token was accepted, and returns Daraja's
// answer.
func checkTestReply(reply *wire.Reply, err error) (accepted, error) {
	if later := wire.RateLimitedTest("Daraja", err); later != nil {
		return accepted{}, later
	}
	switch {
	case errors.Is(err, provider.ErrCredentials):
		return accepted{}, fmt.Errorf("Daraja refuses consumer_key and consumer_secret: %w. Copy them from the app on Daraja's portal; "+
			"the sandbox and the live system have different ones", err)
	case err != nil:
		return accepted{}, fmt.Errorf("Daraja cannot be reached: %w. Check base_url and this server's connection to the Internet", err)
	}
	var a accepted
	if err := wire.Decode(reply.Body, &a); err != nil || a.Code == "" && a.ResponseCode == "" {
		return accepted{}, fmt.Errorf("Daraja gave a token, and then answered a query with HTTP %d and no body of its own (%s). "+
			"Try again; if it stays so, look at base_url, at proxies on the way, and ask Safaricom",
			reply.Status, wire.Truncate(reply.Header.Get("Content-Type"), 60))
	}
	return a, nil
}

// CheckCallback reports whether Safaricom would call an address. A base URL without HTTPS
// is a simulator's, which calls any.
func (o *Operator) CheckCallback(address string) error {
	switch lower := strings.ToLower(address); {
	case address == "" && o.payouts != nil:
		return errors.New("answers about payouts come only by callback; name the service's address with --base-url to see whether they can")
	case address == "" || strings.HasPrefix(o.base, "http://"):
		return nil
	case !strings.HasPrefix(lower, "https://"):
		return errors.New("Safaricom calls HTTPS only, and the service's address does not begin with https://")
	case strings.Contains(lower, "mpesa") || strings.Contains(lower, "m-pesa") || strings.Contains(lower, "safaricom"):
		return errors.New("integrators report that Safaricom refuses addresses with \"mpesa\" or \"safaricom\" in them, and ours has one: " +
			"the name of the connection is part of it, so give a new connection another name")
	}
	return nil
}
