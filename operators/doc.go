// Package operators opens the connections to mobile money operators that a configuration
// names: their adapters, their credentials, and whose accounts they are.
//
//	config ─ Adapters ─ Open ─ Renew ─ engine
//
// It promises:
//
//   - A connection's name stands for one account while payments on it are open (Register).
//   - Nothing is sent to an account that may be another company's, and "not found" there
//     proves nothing.
//   - Credentials that an operator refuses are read again, and new ones are tried before
//     they replace those that work.
//   - What operators say of our accounts (Markets) is read by one instance and followed by all.
//     An answer that cannot be read, or cannot be, changes nothing.
//
// Start reading at operators.go.
package operators
