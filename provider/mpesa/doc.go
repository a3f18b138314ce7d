// Package mpesa speaks to Safaricom's Daraja: M-Pesa Express (STK push) for
// payments and B2C for payouts.
//
// An STK push takes no reference of ours. It is never sent twice; what it is
// asked about by comes in its answer or, if that is lost, in its callback. A
// payout takes one, but a question about it is answered by another callback:
// payout.go says what is believed and why.
//
// Start reading at mpesa.go; wire.go holds Daraja's words and what we make of
// them, sim.go its side.
package mpesa
