package collect

import (
	"time"

	"till"
	"till/engine"
)

// MethodStatus says how a method stands for a client, the same on all
// instances, and how long a customer has to approve. A method with several
// markets stands as the best of them does, and a market as the best of its
// connections: payments are refused by market.
func (c *Collector) MethodStatus(client *till.Client, m *till.Method) (status string, window time.Duration) {
	best := engine.Closed
	for _, k := range m.Markets {
		for _, name := range c.engine.Routed(c.c.Routes, client, m.Code, k.Country, k.Currency) {
			s := c.engine.Status(name)
			if window == 0 || s == engine.Operational && best != engine.Operational || s == engine.Degraded && best == engine.Closed {
				best, window = s, c.c.Connections[name].Traits().ApprovalWindow
			}
		}
	}
	if best == engine.Closed {
		window = 0
	}
	return string(best), window
}
