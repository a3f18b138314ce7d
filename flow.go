package till

import "slices"

// Flow is how a customer approves a payment, and so what a create needs besides the number.
type Flow string

// The flows.
const (
	FlowPush     Flow = "push"     // the operator asks on the customer's phone
	FlowRedirect Flow = "redirect" // the customer goes to an address of the operator, and comes back
	FlowCode     Flow = "code"     // the customer gets a one-time code from the operator, and gives it to us
)

// flows lists every flow.
var flows = []Flow{FlowPush, FlowRedirect, FlowCode}

// Valid reports whether f is one of the flows.
func (f Flow) Valid() bool { return slices.Contains(flows, f) }

// FlowOf returns the flow of a method in a country and currency; FlowPush where the catalogue does
// not have them.
func FlowOf(method, country, currency string) Flow {
	if m, ok := MethodOf(method); ok {
		if k, ok := m.Market(country, currency); ok {
			return k.Flow
		}
	}
	return FlowPush
}
