package engine

import (
	"till"
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

// Routed returns those of the routes that are configured here.
func (e *Engine) Routed(routes Routes, client *till.Client, method, country, currency string) (out []string) {
	for _, name := range routes(client, method, country, currency) {
		if e.Has(name) {
			out = append(out, name)
		}
	}
	return out
}
