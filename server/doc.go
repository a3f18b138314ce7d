// Package server is the whole program as a value: a Config, New, and Run
// until a context ends. The command line and the tests start the same thing.
//
//	lock ─ listen ─ store ─ secret ─ sandbox ─ connections ─ collector, API ─ demo
//
// New takes these steps in order and undoes them in reverse if one fails. Run
// serves and works; when its context ends it stops accepting, lets requests
// finish, lets the calls to operators finish and be recorded, closes the
// database and releases the lock. Nothing that was answered is lost.
//
// It promises that one database file has one server; that a database is only
// ever used with the secret it was made with, and a connection's name only
// ever for the account it stood for while payments on it are open; that
// nothing is scanned at start; and that no key, secret or full phone number
// reaches a log (NewLogger).
//
// It knows no business: it joins the packages that do.
//
// Start reading at server.go.
package server
