package mtnmomo

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"till/provider"
	"till/provider/wire"
)

// Test fetches a token and reads the balance of the account. It says in plain
// words what is wrong.
func (p *product) Test(ctx context.Context) error {
	reply, err := p.access.Call(ctx, refused, func(token string) (*wire.Reply, error) {
		return p.client.Do(ctx, http.MethodGet, p.base+"/"+p.name+"/v1_0/account/balance", p.header(token), nil)
	})
	switch {
	case errors.Is(err, provider.ErrCredentials) && errors.Is(err, provider.ErrNotSent):
		return fmt.Errorf("MTN gives no token: api_user, api_key and the subscription key of %s must belong together, to %s and to base_url: %w", p.name, p.environment, err)
	case errors.Is(err, provider.ErrCredentials):
		return fmt.Errorf("MTN gives a token and then refuses it: %s_subscription_key may be that of another product: %w", p.name, err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("MTN does not answer in time at base_url (a token can take 20 s on the new platform): %w", err)
	case err != nil:
		return fmt.Errorf("MTN cannot be reached at base_url: %w", err)
	}
	f, _ := readFault(reply.Body)
	switch code := normal(string(f.Code)); {
	case reply.Status == http.StatusForbidden:
		return fmt.Errorf("MTN refuses our IP address (403): ask MTN to put the address that this server calls from on the list of %s", p.name)
	case code == "NOT_ALLOWED_TARGET_ENVIRONMENT" || reply.Status == http.StatusBadRequest:
		return fmt.Errorf("MTN refuses target_environment = %q (%d %s): is it the country of this account?", p.environment, reply.Status, code)
	case reply.Status == http.StatusNotFound:
		return errors.New("MTN knows no such address (404): is base_url right, without a path?")
	case reply.Status != http.StatusOK:
		return fmt.Errorf("MTN answers %d %s to a read of the balance", reply.Status, wire.Clip(code, maxCode))
	}
	var b struct {
		Available wire.Text `json:"availableBalance"`
	}
	if err := wire.Decode(reply.Body, &b); err != nil || b.Available == "" {
		return errors.New("the answer to a read of the balance is not MTN's: is base_url right?")
	}
	return nil
}
