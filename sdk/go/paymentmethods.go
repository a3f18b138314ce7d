package till

import "context"

// PaymentMethods are the calls about methods.
type PaymentMethods struct{ c *Client }

// List returns the methods enabled for you.
func (s *PaymentMethods) List(ctx context.Context) (*PaymentMethodList, error) {
	return read[PaymentMethodList](ctx, s.c, request{op: opListPaymentMethods})
}

// Predict reads a number as it was typed, and says which of your methods it probably
// belongs to. The country may be "" if the number begins with its calling code, or if
// all your methods are in one country.
func (s *PaymentMethods) Predict(ctx context.Context, phone, country string) (*PaymentMethodPrediction, error) {
	body := PredictPaymentMethod{Phone: phone}
	if country != "" {
		body.Country = &country
	}
	return send[PaymentMethodPrediction](ctx, s.c, opPredictPaymentMethod, body)
}
