package engine

import (
	"slices"
	"time"

	"till"
	"till/provider"
)

// Routes says which connections a client's payment or payout may take, the
// preferred one first; none if there is no way. It takes the first one that is
// well when it is made, and keeps it.
type Routes func(client *till.Client, method, country, currency string) []string

// ByMode is Routes where there is one way at most for clients of a mode.
func ByMode(route func(mode till.Mode, method, country, currency string) string) Routes {
	return func(client *till.Client, method, country, currency string) []string {
		if name := route(client.Mode, method, country, currency); name != "" {
			return []string{name}
		}
		return nil
	}
}

// routed returns those of the routes that lead somewhere: to connections that
// are configured here and serve the market. If there are none, nothing will
// change by waiting.
func (w *Worker) routed(client *till.Client, method, country, currency string) (out []string) {
	for _, name := range w.c.Routes(client, method, country, currency) {
		if provider.Serves(w.c.Connections[name], method, country, currency) {
			out = append(out, name)
		}
	}
	return out
}

// Offer is what a client can have of a method.
type Offer struct {
	// Served says for each of the method's markets whether a route leads
	// somewhere.
	Served []bool
	// Status is how the method stands, the same on all instances, and Window how
	// long a customer has to approve. A method with several markets stands as the
	// best of them does, and a market as the best of its connections: payments are
	// refused by market.
	Status Status
	Window time.Duration
}

// Any reports whether a route leads anywhere at all.
func (o *Offer) Any() bool { return slices.Contains(o.Served, true) }

// Offer returns what a client can have of a method.
func (w *Worker) Offer(client *till.Client, m *till.Method) Offer {
	o := Offer{Served: make([]bool, len(m.Markets)), Status: Closed}
	for i, k := range m.Markets {
		for _, name := range w.routed(client, m.Code, k.Country, k.Currency) {
			s := w.Status(name)
			if o.Window == 0 || s == Operational && o.Status != Operational || s == Degraded && o.Status == Closed {
				o.Status, o.Window = s, w.c.Connections[name].Traits().ApprovalWindow
			}
			o.Served[i] = true
		}
	}
	if o.Status == Closed {
		o.Window = 0
	}
	return o
}
