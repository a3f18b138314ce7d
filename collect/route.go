package collect

import (
	"till"
	"till/engine"
)

// Offer returns what a client's payments can have of a method.
func (c *Collector) Offer(client *till.Client, m *till.Method) engine.Offer {
	return c.engine.Offer(c.c.Routes, client, m)
}

// routed returns the connections that a client's payment may take.
func (c *Collector) routed(client *till.Client, method, country, currency string) []string {
	return c.engine.Routed(c.c.Routes, client, method, country, currency)
}
