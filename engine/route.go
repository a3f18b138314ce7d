package engine

import (
	"slices"
	"time"

	"till"
	"till/provider"
)

// Routes returns the connections that a client's payment or payout may take, the preferred
// one first; none if there is no route. A new row takes the first healthy one and keeps it.
type Routes func(client *till.Client, method, country, currency string) []string

// ByMode returns Routes with at most one connection for clients of a mode.
func ByMode(route func(mode till.Mode, method, country, currency string) string) Routes {
	return func(client *till.Client, method, country, currency string) []string {
		if name := route(client.Mode, method, country, currency); name != "" {
			return []string{name}
		}
		return nil
	}
}

// Routed returns the routes to connections that are configured here and serve the market.
// If there are none, waiting will not help.
func (w *Worker) Routed(client *till.Client, method, country, currency string) (out []string) {
	for _, name := range w.c.Routes(client, method, country, currency) {
		if provider.Serves(w.c.Connections[name], method, country, currency) {
			out = append(out, name)
		}
	}
	return out
}

// Offer is a method as it is available to a client.
type Offer struct {
	// Served says for each of the method's markets whether there is a route.
	Served []bool
	// Markets are the method's markets as operators have them: with our bounds or tighter ones.
	Markets []MarketOffer
	// Status is the method's health, the same on all instances. Window is how long a
	// customer has to approve. A method is as healthy as its best market, and a market as
	// its best connection.
	Status Status
	Window time.Duration
	Since  till.Time // since when its best connection does not pass; zero: it does
}

// MarketOffer is a market as it is available to a client.
type MarketOffer struct {
	till.Market
	Status Status // Closed, too, if every operator says so
	Dial   string // what brings the prompt, "" if that is not known
}

// Any reports whether there is any route.
func (o *Offer) Any() bool { return slices.Contains(o.Served, true) }

// Offer returns a method as it is available to a client.
func (w *Worker) Offer(client *till.Client, m *till.Method) Offer {
	o := Offer{Served: make([]bool, len(m.Markets)), Markets: make([]MarketOffer, len(m.Markets)), Status: Closed}
	for i := range m.Markets {
		k := &o.Markets[i]
		k.Market, k.Status = m.Markets[i], Closed
		for _, name := range w.Routed(client, m.Code, k.Country, k.Currency) {
			here := w.standing(name, m.Code, &m.Markets[i])
			s := w.Status(name)
			switch {
			case here.Closed:
				s = Closed
			case here.Delayed && s == Operational:
				s = Degraded
			}
			if o.Window == 0 || better(s, o.Status) {
				o.Status, o.Window, o.Since = s, w.c.Connections[name].Traits().ApprovalWindow, w.troubleSince(name)
			}
			k.add(&here, s, !o.Served[i])
			o.Served[i] = true
		}
	}
	if o.Status == Closed {
		o.Window = 0
	}
	return o
}

// add adds a connection to a market: the bounds are those of any of them.
func (k *MarketOffer) add(here *standing, s Status, first bool) {
	if first {
		k.Min, k.Max, k.Step = here.Min, here.Max, here.Step
	} else {
		k.Min, k.Max, k.Step = min(k.Min, here.Min), max(k.Max, here.Max), min(k.Step, here.Step)
	}
	if first || better(s, k.Status) {
		k.Status, k.Dial = s, here.Dial
	}
}

// better reports whether a status is better than another.
func better(a, b Status) bool {
	return a == Operational && b != Operational || a == Degraded && b == Closed
}
