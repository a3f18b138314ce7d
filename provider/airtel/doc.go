// Package airtel speaks to Airtel Money: collections (USSD push) and
// disbursements.
//
// Airtel answers most refusals with HTTP 200 and a code, and an acknowledged
// push with words that look like a payment: what its answers mean is in the
// tables of wire.go and codes.go, a row for each documented code. Only an
// enquiry's own transaction status ends anything. sim.go is Airtel's side, for
// tests and for whoever builds against it.
//
// No two copies of Airtel's documentation agree on everything. Where they do
// not (the padding of the PIN, the bytes under the hash of a callback, the
// signing of messages) the difference is configuration or both are taken, and
// the comment says so.
//
// Start reading at airtel.go.
package airtel
