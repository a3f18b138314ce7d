package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"till"
	"till/operators"
	"till/store"
	"till/store/access"
)

// maxKeysRead is how many keys of a client are looked at; active ones are fewer.
const maxKeysRead = 1000

// examineRoutes reports each gap between live clients' methods and the routes:
// for payments, and for payouts if a client's key may create them. A method
// without any route is a warning. A country without a route is not: an
// operator of one country has many such.
func (d *doctor) examineRoutes(ctx context.Context, s *store.Store, ops *operators.Operators) error {
	nowhere, partly := map[string]int{}, map[string]int{} // what is missing, and for how many clients
	live := 0
	err := s.EachClient(ctx, func(c *till.Client) (bool, error) {
		if c.Mode != till.Live {
			return true, nil
		}
		live++
		methods, kinds, err := methodsInUse(ctx, s, c.ID)
		for _, code := range methods {
			for _, kind := range kinds {
				what := fmt.Sprintf("%s for %ss", code, kind)
				switch leads, gaps := routeGaps(ops, c.ID, kind, code); {
				case !leads:
					nowhere[what]++
				case len(gaps) > 0:
					partly[what+" leads nowhere in "+strings.Join(gaps, ", ")]++
				}
			}
		}
		return true, err
	})
	if err != nil {
		return err
	}
	for _, what := range slices.Sorted(maps.Keys(nowhere)) {
		d.add("routes", Risky, "%s may use %s, and no route leads anywhere: it is not offered", till.Count(nowhere[what], "live client", "live clients"), what)
	}
	for _, what := range slices.Sorted(maps.Keys(partly)) {
		d.add("routes", Fine, "%s: %s not offered it there", what, till.Count(partly[what], "live client is", "live clients are"))
	}
	if len(nowhere)+len(partly) == 0 {
		d.add("routes", Fine, "every method of %s leads to an operator", till.Count(live, "live client", "live clients"))
	}
	d.examineDeadEnds(ops)
	return nil
}

// methodsInUse returns the methods that a client may use, and for which kinds.
func methodsInUse(ctx context.Context, s *store.Store, client till.ID) (methods []string, kinds []till.SubjectKind, err error) {
	kinds = []till.SubjectKind{till.SubjectPayment}
	err = s.View(ctx, func(tx *store.Tx) (err error) {
		if methods, err = tx.ClientMethods(ctx, client); err != nil {
			return err
		}
		keys, err := access.Keys(ctx, tx, client, maxKeysRead)
		if slices.ContainsFunc(keys, func(k *till.Key) bool { return k.Allows(till.PayoutsWrite) && k.Active(tx.Now()) }) {
			kinds = append(kinds, till.SubjectPayout)
		}
		return err
	})
	return methods, kinds, err
}

// routeGaps reports whether a client's payments or payouts of a method have a
// route, and the countries of the method without one.
func routeGaps(ops *operators.Operators, client till.ID, kind till.SubjectKind, code string) (leads bool, gaps []string) {
	m, ok := till.MethodOf(code)
	if !ok {
		return false, nil
	}
	for _, k := range m.Markets {
		if ops.HasRoute(client, kind, code, k) {
			leads = true
		} else {
			gaps = append(gaps, marketName(m, k))
		}
	}
	return leads, gaps
}

// marketName is the country of a market, with its currency if the country has
// several.
func marketName(m *till.Method, k till.Market) string {
	for _, other := range m.Markets {
		if other.Country == k.Country && other.Currency != k.Currency {
			return k.Country + " " + k.Currency
		}
	}
	return k.Country
}

// examineDeadEnds finds routes with countries that none of their connections
// serves. A kind that none of them serves is no mistake: by default a route is
// for both.
func (d *doctor) examineDeadEnds(ops *operators.Operators) {
	for _, r := range ops.File.Routes {
		m, ok := till.MethodOf(r.Method)
		if !ok || !r.NamesCountries {
			continue
		}
		for _, kind := range r.Kinds {
			var dead []string
			for _, k := range r.Markets {
				if !slices.ContainsFunc(r.Connections, func(name string) bool { return ops.Serves(name, kind, r.Method, k) }) {
					dead = append(dead, marketName(m, k))
				}
			}
			if len(dead) > 0 && len(dead) < len(r.Markets) {
				d.add("routes", Risky, "the route in line %d names %s in %s, where none of its connections serves %ss",
					r.Line, r.Method, strings.Join(dead, ", "), kind)
			}
		}
	}
}
