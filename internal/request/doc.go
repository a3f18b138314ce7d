// Package request has the members that the bodies of both create calls share, for
// payments and for payouts, with their rules and their hash.
//
// A Validator collects all mistakes of a body. Body.Check applies the rules that
// cannot change. Parsed.CheckMarket applies those that can; they reject a call only
// after the idempotency key was looked up. The hash tells a retry from a reused key.
// Start reading at body.go.
package request
