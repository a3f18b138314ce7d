package airtel

import (
	"testing"

	"till"
)

func TestServes(t *testing.T) {
	t.Parallel()
	chad, _ := till.CountryOf("TD")
	p := &service{country: chad, currency: "XAF"}
	if m, _ := till.MethodOf(Method); !m.Serves("TD") || !p.Serves(Method, "TD", "XAF") {
		t.Error("Chad cannot be routed to")
	}
	if p.Serves(Method, "CG", "XAF") || p.Serves(Method, "TD", "XOF") || p.Serves("mtn_momo", "TD", "XAF") {
		t.Error("it serves what is not its own")
	}
}
