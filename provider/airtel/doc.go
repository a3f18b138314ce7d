// Package airtel is the adapter for Airtel Money: collections (USSD push) and
// disbursements.
//
// Airtel answers most rejections with HTTP 200 and a code. It acknowledges a
// push with words that look like a completed payment. So only the transaction
// status of an enquiry is final; codes.go and wire.go list every documented
// code. sim.go is a simulated Airtel.
//
// Airtel's documents contradict each other in places: the padding of the PIN,
// the bytes under a callback's hash, message signing. There the adapter accepts
// both forms or has a setting, and a comment says so.
//
// Start reading at airtel.go.
package airtel
