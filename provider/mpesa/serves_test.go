package mpesa

import (
	"testing"

	"till/provider"
)

func TestServes(t *testing.T) {
	t.Parallel()
	for _, p := range []provider.Selective{&paymentService{}, &payoutService{}} {
		if !p.Serves(Method, "KE", "KES") || p.Serves(Method, "TZ", "TZS") || p.Serves(Method, "KE", "USD") || p.Serves("airtel_money", "KE", "KES") {
			t.Errorf("%T serves what is not its own, or not that", p)
		}
	}
}
