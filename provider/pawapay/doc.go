// Package pawapay speaks to pawaPay, which reaches many operators: deposits
// and payouts of its version 2.
package pawapay
