// Package mtnmomo is the adapter for MTN MoMo: collections (request to pay) and
// disbursements (transfer).
//
// wire.go and codes.go list what each documented answer means, with its source.
// sim.go is a simulated MTN.
//
// MTN is moving from proxy.momoapi.mtn.com to momoapi.momo.africa. The adapter
// supports both. A payment can be read only on the platform where it was
// created, so the base URL is part of the fingerprint.
//
// Start reading at mtnmomo.go.
package mtnmomo
