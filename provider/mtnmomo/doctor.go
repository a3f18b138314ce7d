package mtnmomo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"till/provider"
	"till/provider/wire"
)

// Test fetches a token and reads the account's balance. Its error says what is wrong and
// what to do.
func (p *service) Test(ctx context.Context) error {
	reply, err := p.access.Call(ctx, tokenRefused, func(token string) (*wire.Reply, error) {
		return p.client.Do(ctx, http.MethodGet, p.base+"/"+p.name+"/v1_0/account/balance", p.header(token), nil)
	})
	if later := wire.RateLimitedTest("MTN", err); later != nil {
		return later
	}
	switch {
	case errors.Is(err, provider.ErrCredentials) && errors.Is(err, wire.ErrNoToken):
		return fmt.Errorf("MTN gives no token: api_user, api_key and the subscription key of %s must belong together, to %s and to base_url: %w", p.name, p.environment, err)
	case errors.Is(err, provider.ErrCredentials):
		return fmt.Errorf("MTN gave a token and then refused it: %s_subscription_key may be that of another product: %w", p.name, err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("MTN does not answer in time at base_url (a token can take 20 s on the new platform): %w", err)
	case err != nil:
		return fmt.Errorf("MTN cannot be reached at base_url: %w", err)
	}
	f, _ := readError(reply.Body)
	switch code := normalizeCode(string(f.Code)); {
	case reply.Status == http.StatusForbidden:
		return fmt.Errorf("MTN refuses our IP address (403): ask MTN to put the address that this server calls from on the list of %s", p.name)
	case code == "NOT_ALLOWED_TARGET_ENVIRONMENT" || reply.Status == http.StatusBadRequest:
		return fmt.Errorf("MTN refuses target_environment = %q (%d %s): is it the country of this account?", p.environment, reply.Status, code)
	case reply.Status == http.StatusNotFound:
		return errors.New("MTN knows no such address (404): is base_url right, without a path?")
	case reply.Status != http.StatusOK:
		return fmt.Errorf("MTN answers %d %s to a read of the balance", reply.Status, wire.Truncate(code, maxCode))
	}
	var b struct {
		Available wire.Text `json:"availableBalance"`
	}
	if err := wire.Decode(reply.Body, &b); err != nil || b.Available == "" {
		return errors.New("the answer to a read of the balance is not MTN's: is base_url right?")
	}
	return p.testCallbackHost(ctx)
}

// testCallbackHost compares callback_host with the registered host. Only the sandbox
// reports that; any other answer is ignored.
func (p *service) testCallbackHost(ctx context.Context) error {
	if p.environment != sandboxEnvironment || p.callbackHost == "" {
		return nil
	}
	reply, err := p.client.Do(ctx, http.MethodGet, p.base+"/v1_0/apiuser/"+url.PathEscape(p.user), http.Header{"Ocp-Apim-Subscription-Key": p.keyHeader}, nil)
	if err != nil || reply.Status != http.StatusOK {
		return nil
	}
	var u struct {
		Host wire.Text `json:"providerCallbackHost"`
	}
	if err := wire.Decode(reply.Body, &u); err != nil || u.Host == "" || strings.EqualFold(string(u.Host), p.callbackHost) {
		return nil
	}
	return fmt.Errorf("callback_host = %q, but MTN has %q registered for the API user, and refuses every request that names another",
		p.callbackHost, wire.Truncate(string(u.Host), maxCode))
}

// CheckCallback reports whether MTN would be given a callback address. MTN rejects a whole
// request whose address is on another host than the registered one, so then it gets none.
func (p *service) CheckCallback(address string) error {
	switch {
	case p.callbackHost == "" || p.mayCallBack(address):
		return nil
	case address == "":
		return fmt.Errorf("callback_host = %q; name the service's address with --base-url to see whether it is on that host", p.callbackHost)
	}
	u, err := url.Parse(address)
	if err != nil {
		return err
	}
	return fmt.Errorf("callback_host = %q, but the service's address is on %q: MTN gets no callback address, and Till finds out everything by polling. "+
		"callback_host is the host that is registered with MTN, and that of --base-url", p.callbackHost, u.Hostname())
}
