// Package pawapay speaks to pawaPay, which reaches many operators: deposits
// and payouts of version 2 of its Merchant API.
//
// A deposit or payout is named by a UUID that we make; pawaPay ignores a second
// one of the same name, and a status read finds it by that name. "Not found" is
// trusted only a quarter of an hour after a send: pawaPay's own rule.
//
// Start reading at pawapay.go; wire.go holds their words and what we make of
// them, routes.go what each of their providers can express, verify.go the
// signatures of their callbacks, sim.go their side.
package pawapay
