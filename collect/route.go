package collect

import (
	"context"
	"time"

	"till"
	"till/engine"
)

// routes returns the configured connections that a payment may take, in order.
func (c *Collector) routes(client *till.Client, method, country, currency string) []string {
	var names, out []string
	if c.c.Routes != nil {
		names = c.c.Routes(client, method, country, currency)
	} else {
		names = []string{c.c.Route(client.Mode, method, country, currency)}
	}
	for _, name := range names {
		if c.c.Connections[name] != nil {
			out = append(out, name)
		}
	}
	return out
}

// choose picks the connection of a new payment: the first one that is well. One
// that does not answer just now is passed over, before a byte is sent to it; but
// from time to time a payment is given to it as a probe, or it would never be
// found to be back. If there is none, the answer is that of Create: a refusal,
// or the replay of a key that made a payment before.
func (c *Collector) choose(ctx context.Context, who Client, o *order, r *Request) (name string, made Created, err error) {
	names := c.routes(who.Client, o.method, o.country, o.currency)
	refusal := till.Errorf(till.CodeMethodUnavailable, "the method cannot be reached just now")
	looked := false
	for _, name := range names {
		if c.engine.Passing(name) {
			return name, Created{}, nil
		}
		if wait := c.engine.RetryIn(name); refusal.RetryAfter == 0 || wait < refusal.RetryAfter {
			refusal.RetryAfter = wait
		}
		refusal.Detail = "the operator does not answer just now"
		if !c.engine.Offers(name) {
			continue
		}
		// A key that made a payment before is no new one, and must not use a
		// probe up.
		if !looked {
			if made, err := c.replayOr(ctx, who.ID, o.key, r, refusal); err != error(refusal) {
				return "", made, err
			}
			looked = true
		}
		if ok, _ := c.engine.Admit(name); ok {
			return name, Created{}, nil
		}
	}
	if looked {
		return "", Created{}, refusal
	}
	made, err = c.replayOr(ctx, who.ID, o.key, r, refusal)
	return "", made, err
}

// MethodStatus says how a method stands for a client, the same on all
// instances, and how long a customer has to approve. A method with several
// markets stands as the best of them does, and a market as the best of its
// connections: payments are refused by market.
func (c *Collector) MethodStatus(client *till.Client, m *till.Method) (status string, window time.Duration) {
	best := engine.Closed
	for _, k := range m.Markets {
		for _, name := range c.routes(client, m.Code, k.Country, k.Currency) {
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
