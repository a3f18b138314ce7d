// Package trigger makes things happen in the sandbox of a running service: it chooses a
// story, by name or by the event that it brings, and a phone number that plays it, and
// creates the payment, payout or refund as any client would. It is till trigger.
//
// The stories come from the service, and the service's checks apply to every body. It
// prints nothing. Start reading at trigger.go.
package trigger
