package books

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"till"
	"till/store"
	"till/store/admin"
)

// healthSpan is over which time calls to operators are added up, the same as a
// breaker's.
const healthSpan = time.Minute

// PayoutSuffix ends the names under which connections keep what is of payouts.
const PayoutSuffix = store.PayoutSuffix

// OperatorStatus is how a connection does: its breaker, and its calls of the last
// minute. Payments and payouts of one connection have a status each.
type OperatorStatus struct {
	Connection string
	Payouts    bool
	Used       bool // a payment or payout has gone through it
	State      admin.BreakerState
	Since      till.Time // of the state; zero: always
	RetryAt    till.Time // when a stopped one is tried again
	Calls      admin.CallStats
	Operations []OperationCalls // the same by what was called, by name
	Case       string           // what a person has to check
}

// OperationCalls are the calls of one operation.
type OperationCalls struct {
	Name string
	admin.CallStats
}

// name is the status's name in the database.
func (o *OperatorStatus) name() string {
	if o.Payouts {
		return o.Connection + PayoutSuffix
	}
	return o.Connection
}

// operatorSet collects statuses by their names.
type operatorSet map[string]*OperatorStatus

func (s operatorSet) of(name string) *OperatorStatus {
	if s[name] == nil {
		connection, payouts := strings.CutSuffix(name, PayoutSuffix)
		s[name] = &OperatorStatus{Connection: connection, Payouts: payouts, State: admin.Passing}
	}
	return s[name]
}

// ReadOperators returns how the connections do that were ever used or called, by name.
func ReadOperators(ctx context.Context, tx *store.Tx) ([]*OperatorStatus, error) {
	set := operatorSet{}
	known, err := admin.Connections(ctx, tx)
	if err != nil {
		return nil, err
	}
	for name := range known {
		set.of(name).Used = true
	}
	breakers, err := admin.Breakers(ctx, tx)
	if err != nil {
		return nil, err
	}
	for name, b := range breakers {
		o := set.of(name)
		if o.State = b.State; b.State != admin.Passing {
			o.Since, o.RetryAt = b.ChangedAt, b.RetryAt
		}
	}
	rows, err := admin.Health(ctx, tx, healthSpan)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		set.of(r.Connection).add(r.Name, r.CallStats)
	}
	cases, err := tx.OperatorCases(ctx, false)
	if err != nil {
		return nil, err
	}
	for _, c := range cases {
		o := set.of(c.Connection)
		o.Case = strings.TrimPrefix(o.Case+"; "+c.Detail, "; ")
	}
	return slices.SortedFunc(maps.Values(set), func(a, b *OperatorStatus) int {
		return cmp.Or(cmp.Compare(a.Connection, b.Connection), cmp.Compare(a.name(), b.name()))
	}), nil
}

// add adds calls of an operation.
func (o *OperatorStatus) add(operation string, calls admin.CallStats) {
	o.Calls.Add(calls)
	i, found := slices.BinarySearchFunc(o.Operations, operation, func(c OperationCalls, name string) int { return cmp.Compare(c.Name, name) })
	if !found {
		o.Operations = slices.Insert(o.Operations, i, OperationCalls{Name: operation})
	}
	o.Operations[i].Add(calls)
}
