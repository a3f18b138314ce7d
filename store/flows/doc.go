// Package flows has the SQL of what a payment has that is not approved by a prompt: the
// one-time code that the customer gave, until the operator has answered, and the address that
// the customer goes to, until the payment ends.
//
// They are rows of their own, so that other payments are not touched and their steps stay
// narrow: a payment by prompt has none. A row changes only while the client's head is locked,
// and the database keeps the first address that was told.
package flows
