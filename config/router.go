package config

import "till"

// routeKey is what a route is for.
type routeKey struct {
	client                    till.ID // zero: any
	kind                      till.SubjectKind
	method, country, currency string
}

func (r *Route) eachKey(f func(k routeKey)) {
	clients := r.Clients
	if len(clients) == 0 {
		clients = []till.ID{{}}
	}
	for _, c := range clients {
		for _, kind := range r.Kinds {
			for _, k := range r.Markets {
				f(routeKey{c, kind, r.Method, k.Country, k.Currency})
			}
		}
	}
}

// Router finds the connections of a live client's payments and payouts. It never changes.
type Router struct {
	connections map[routeKey][]string
}

// Router returns the router of a file. It drops connections that do not serve the route's
// kind, according to serves.
func (f *File) Router(serves func(connection string, kind till.SubjectKind) bool) *Router {
	r := &Router{map[routeKey][]string{}}
	for _, route := range f.Routes {
		for _, kind := range route.Kinds {
			var names []string
			for _, name := range route.Connections {
				if serves(name, kind) {
					names = append(names, name)
				}
			}
			one := *route
			one.Kinds = []till.SubjectKind{kind}
			one.eachKey(func(k routeKey) { r.connections[k] = names })
		}
	}
	return r
}

// Find returns the connections, the preferred one first: those of the client's own route,
// or of the general one.
func (r *Router) Find(client till.ID, kind till.SubjectKind, method, country, currency string) []string {
	if r == nil {
		return nil
	}
	if own, ok := r.connections[routeKey{client, kind, method, country, currency}]; ok {
		return own
	}
	return r.connections[routeKey{till.ID{}, kind, method, country, currency}]
}
