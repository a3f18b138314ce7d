// Package access has the SQL of who may come in: people with their passwords, passkeys
// and second factors, their sessions and invitations, and the keys of clients.
//
// Its functions run in a transaction of store, which also has the rules of writing
// (Update, View). Secrets are stored as hashes or sealed by the caller.
package access
