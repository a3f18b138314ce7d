// Package door is what the API and the console share where requests of strangers
// come in: who calls (Peer, Network, Local), how often an address may fail
// (Buckets), what may be under way at once (Slots), how refusals are delayed
// (Delays) and what the log says of them (Log).
//
// Everything is in memory and bounded, so a refusal reads and writes nothing. It
// knows neither keys nor sessions: who uses it decides what counts.
//
// Start with peer.go.
package door
