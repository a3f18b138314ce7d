// Package server is the whole program as a value: a Config, New, and Run until a
// context ends. The command line and the tests start the same Server.
//
//	lock ─ listen ─ store ─ secret ─ sandbox ─ connections ─ collector, API ─ demo
//
// New runs these steps in order and undoes them in reverse if one fails. When
// Run's context ends, it stops accepting requests, waits for requests and operator
// calls to finish and be recorded, closes the database and releases the lock.
//
// It promises:
//
//   - One database file has one server.
//   - A database is used only with the secret that it was created with.
//   - A connection's name stands for one account while payments on it are open.
//   - Nothing is scanned at start.
//   - No key, secret or full phone number is logged (package logs).
//
// It knows no business rules: it connects the packages that do.
//
// Start reading at server.go.
package server
