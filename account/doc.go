// Package account knows who may use the service: clients, their API keys, the
// scopes of a key, and a client's methods and fees.
//
//	X-Api-Key ─ ParseKey (checksum, no database) ─ cache ─ store ─ Session
//
// It promises:
//
//   - A secret is stored only as a hash and compared in constant time. An unknown
//     key and a wrong secret take the same path and get the same answer.
//   - A session is at most one second old. A revocation, a suspension, a new
//     method or a new fee takes effect within that time; AuthenticateNow reads
//     the database.
//   - Every change of an account writes an audit row in the same commit.
//   - Keys that have opened a session on this instance are read in slots of their
//     own, one at a time per client. A flood of unknown keys does not delay them.
//
// It knows no HTTP. The table in api/routes.go says which route needs which scope.
//
// Start reading at key.go, then session.go.
package account
