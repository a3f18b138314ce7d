// Package door is what the API and the console share where requests of strangers
// come in: who calls (Peer, Network, Local), how refusals are delayed (Delays) and what
// the log says of them (Log). How often an address may fail and what may be under way at
// once is counted by internal/limit.
//
// Everything is in memory and bounded, so a refusal reads and writes nothing. It
// knows neither keys nor sessions: who uses it decides what counts.
//
// # Unknown callers
//
// Unknown callers wait behind each other, not before clients. account/known_keys.go
// remembers which keys have worked here, and account/read_slots.go reads their rows
// separately, one at a time per client. internal/door counts failures by address before any
// lookup, for keys (api/address_limits.go), sign-ins and links (people/limit.go), slows
// down floods of rejected requests and counts them in the log. console/shell/gate.go bounds
// what one person and one address have under way.
//
// Start with peer.go.
package door
