// Package mpesa is the adapter for Safaricom's Daraja: M-Pesa Express (STK push)
// for payments and B2C for payouts.
//
// An STK push accepts no reference of ours, so it is never sent twice. Its id
// comes in the answer to the push or, if that answer was lost, in the callback.
// A payout accepts our reference, but Daraja answers a status query by a second
// callback: payouts.go explains which answers are trusted. A callback is the answer
// to our question only if it names the ConversationID that Daraja gave us for it over
// its own TLS, and came to the address of that payout. Success is only "Completed" in
// such an answer. A failure needs two: a documented code in the payout's own callback,
// and an answer to a question of ours that does not contradict it.
//
// Start reading at mpesa.go; codes.go lists Daraja's codes, sim.go is a
// simulated Daraja.
package mpesa
