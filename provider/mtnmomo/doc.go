// Package mtnmomo speaks to MTN MoMo: collections (request to pay) and
// disbursements (transfer).
//
// What MTN's answers mean is in the tables of wire.go, a row for each
// documented word with its source. sim.go is MTN's side, for tests and for
// whoever builds against it.
//
// MTN is moving from proxy.momoapi.mtn.com to momoapi.momo.africa. Both are
// served: what differs (the address, the form of the API user, the header on
// the token call) is configuration, or sent in the way that both take. A payment
// can be read only on the platform that it was made on, so the address is part
// of the fingerprint.
//
// Start reading at mtnmomo.go.
package mtnmomo
