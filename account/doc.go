// Package account knows who may use the service: clients, their keys, what a
// key may do, which methods a client has and which fees it pays.
//
//	X-Api-Key ─ ParseKey (checksum, no database) ─ cache ─ store ─ Session
//
// It promises that a secret is stored only as a hash and compared in constant
// time; that an unknown key and a wrong one take the same way and get the same
// answer; that a session is never older than one second, so a revocation, a
// suspension, a new method or a new fee is seen within that time (AuthenticateNow: at
// once); and that every act on an account leaves an audit row in the commit
// that did it.
//
// Keys that have opened a session on this instance are read beside those that
// have not, one at a time of each client: nobody waits behind who tries out keys.
//
// It knows no HTTP: which route needs which scope is the table in package api.
//
// Start reading at key.go, then session.go.
package account
