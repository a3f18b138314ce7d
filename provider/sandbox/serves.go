package sandbox

import "till"

// Serves implements provider.Selective: the sandbox serves the markets in the table of
// methods.
func (o *Operator) Serves(method, country, currency string) bool {
	m, ok := till.MethodOf(method)
	if !ok {
		return false
	}
	k, ok := m.Market(country, currency)
	return ok && k.Sandbox
}

// Serves implements provider.Selective, as with payments.
func (p Payouts) Serves(method, country, currency string) bool {
	return p.o.Serves(method, country, currency)
}
