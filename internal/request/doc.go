// Package request reads what a client asks for: the parts that the bodies of
// create calls have alike, for payments and for payouts, with their rules.
//
// A Checker gathers all mistakes of a body. Body.Check applies the rules that
// cannot change; Order.CheckCatalogue those that can, which are a refusal only
// after the idempotency key was looked up. A Hasher tells a retry from a reused
// key. Start reading at body.go.
package request
