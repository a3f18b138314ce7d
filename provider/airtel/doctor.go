package airtel

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"till/provider"
	"till/provider/wire"
)

// Test fetches a token and reads the balance. Its error says what is wrong and what to do.
func (p *service) Test(ctx context.Context) error {
	reply, err := p.call(ctx, http.MethodGet, "/standard/v1/users/balance", nil)
	if later := wire.RateLimitedTest("Airtel", err); later != nil {
		return later
	}
	switch {
	case errors.Is(err, provider.ErrCredentials) && errors.Is(err, wire.ErrNoToken):
		return fmt.Errorf("Airtel gives no token: client_id and client_secret must be those of an approved application at this base_url: %w", err)
	case errors.Is(err, provider.ErrCredentials):
		return fmt.Errorf("Airtel gave a token and then refused the call: is this server's IP address on the application's list in the portal, and is the product enabled? %w", err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("Airtel does not answer in time at base_url (its test system is often down): %w", err)
	case err != nil:
		return fmt.Errorf("Airtel cannot be reached at base_url: %w", err)
	}
	var a answer
	if err := wire.Decode(reply.Body, &a); err != nil {
		return fmt.Errorf("the answer to a read of the balance (%d) is not Airtel's: is base_url right?", reply.Status)
	}
	code := a.code()
	switch {
	case strings.HasPrefix(code, "ROUTER"):
		return fmt.Errorf("Airtel's gateway refuses us (%s %s): country and currency must be those of the application", code, a.message())
	case reply.Status != http.StatusOK || a.failed():
		return fmt.Errorf("Airtel answers %d %s %s to a read of the balance", reply.Status, wire.Truncate(code, maxCode), a.message())
	}
	return nil
}
