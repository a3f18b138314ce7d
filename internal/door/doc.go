// Package door is what the API and the console share where requests of strangers
// come in: who calls (Peer, Network, Local), how refusals are delayed (Delays) and what
// the log says of them (Log). How often an address may fail and what may be under way at
// once is counted by internal/limit.
//
// Everything is in memory and bounded, so a refusal reads and writes nothing. It
// knows neither keys nor sessions: who uses it decides what counts.
//
// Start with peer.go.
package door
