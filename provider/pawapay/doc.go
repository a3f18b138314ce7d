// Package pawapay is the adapter for pawaPay, which connects to many operators:
// deposits, payouts and refunds of version 2 of its Merchant API.
//
// We choose the UUID of a deposit, payout or refund. pawaPay ignores a second request
// with the same UUID, and a status read finds it by that UUID. "Not found" is
// trusted only 15 minutes after a send: that is pawaPay's own rule.
//
// Start reading at pawapay.go; codes.go lists pawaPay's codes, routes.go the
// providers and their amounts, redirect.go the hosts that customers may be sent to,
// callback.go verifies signatures, sim.go is a simulated pawaPay, sim_refunds.go its refunds,
// sim_flows.go its providers that do not prompt.
package pawapay
