// Package sandbox is the built-in operator for test clients. The last four
// digits of a phone number choose what the customer does.
//
// It behaves like an external operator. It has a database of its own: a SQLite
// file, or a PostgreSQL schema with its own connections. It answers late or
// never, and it sends callbacks. Nothing of it is part of the service's
// transactions or backups, so the service can crash or be restored while the
// operator keeps its records.
//
// What happens to a request is a pure function of its row: when it arrived,
// when the customer's time ends, and what a person decided. There are no timers
// to lose. A restart, or another process on the same database, computes the
// same state at the same moment:
//
//	arrived ──► open ──► success | failed | expired
//	                         (0013 alone: expired ──► success,
//	                          0021 alone: success ──► reversed)
//
// It promises one request per reference, however many processes submit it, and
// one sender per callback. A callback that was being sent when its process died
// may arrive twice or not at all, as with real operators. While its database is
// unavailable, calls fail.
//
// A handset is a phone on a screen: while somebody holds the one of a number,
// payments of that number wait for a PIN, whatever its story is.
//
// Start reading at story.go, then handset.go.
package sandbox
