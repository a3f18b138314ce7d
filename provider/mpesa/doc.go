// Package mpesa is the adapter for Safaricom's Daraja: M-Pesa Express (STK push)
// for payments and B2C for payouts.
//
// An STK push accepts no reference of ours, so it is never sent twice. Its id
// comes in the answer to the push or, if that answer was lost, in the callback.
// A payout accepts our reference, but Daraja answers a status query by a second
// callback: payouts.go explains which answers are trusted.
//
// Start reading at mpesa.go; codes.go lists Daraja's codes, sim.go is a
// simulated Daraja.
package mpesa
