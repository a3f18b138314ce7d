package operators

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"till"
	"till/books"
	"till/store"
	"till/store/admin"
)

// ConnectionStatus is how a connection does, for payments and payouts together.
type ConnectionStatus struct {
	Name        string
	Operator    string // "" where no configuration was read
	Configured  bool
	Payments    bool
	Payouts     bool
	State       admin.BreakerState
	RetryAt     till.Time              // when a stopped one is tried again
	Operations  []books.OperationCalls // calls of the last minute, by name
	CallbackURL string                 // "": the operator calls no address of its own, or it is not known
	Case        string                 // what a person has to check
}

// ListConnections returns how connections do, by name: those that were ever used or called
// and, if the source names a configuration, those that it has.
func ListConnections(ctx context.Context, s *store.Store, source *Source) ([]*ConnectionStatus, error) {
	by := map[string]*ConnectionStatus{}
	of := func(name string) *ConnectionStatus {
		if by[name] == nil {
			by[name] = &ConnectionStatus{Name: name, State: admin.Passing}
		}
		return by[name]
	}
	err := s.View(ctx, func(tx *store.Tx) error {
		operators, err := books.ReadOperators(ctx, tx)
		for _, o := range operators {
			of(o.Connection).add(o)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if source.Config != "" {
		ops, ring, err := source.Open(ctx, s)
		if err != nil {
			return nil, err
		}
		for _, f := range ops.File.Connections {
			c := of(f.Name)
			c.Configured, c.Operator = true, f.Operator
			c.Payments, c.Payouts = ops.Payments[f.Name] != nil, ops.Payouts[f.Name] != nil
			if ops.Called(f.Name) && source.BaseURL != "" {
				c.CallbackURL = CallbackURL(source.BaseURL, f.Name, ring)
			}
		}
	}
	return slices.SortedFunc(maps.Values(by), func(a, b *ConnectionStatus) int { return cmp.Compare(a.Name, b.Name) }), nil
}

// add adds what the books know of a connection's payments or payouts.
func (c *ConnectionStatus) add(o *books.OperatorStatus) {
	c.Payouts, c.Payments = c.Payouts || o.Used && o.Payouts, c.Payments || o.Used && !o.Payouts
	if o.State != admin.Passing {
		c.State, c.RetryAt = o.State, o.RetryAt
	}
	c.Operations = append(c.Operations, o.Operations...)
	slices.SortFunc(c.Operations, func(a, b books.OperationCalls) int { return cmp.Compare(a.Name, b.Name) })
	if o.Case != "" {
		c.Case = strings.TrimPrefix(c.Case+"; "+o.Case, "; ")
	}
}
