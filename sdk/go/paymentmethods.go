package till

import "context"

// PaymentMethods are the calls about methods.
type PaymentMethods struct{ c *Client }

// List returns the methods enabled for you.
func (s *PaymentMethods) List(ctx context.Context) (*PaymentMethodList, error) {
	return read[PaymentMethodList](ctx, s.c, request{op: opListPaymentMethods})
}
