// Package sandbox is the operator we ship: it serves test clients, and the
// last four digits of a phone number choose what its customer does.
//
// It stands outside the service like any operator. It keeps its own book in
// its own database file, or in a PostgreSQL schema with connections of its
// own, answers late or never, and calls back. Nothing of it is in the service's
// transactions or backups, so the service can crash or be restored while the
// operator remembers.
//
// A story is a pure function of what the book holds: when the request arrived,
// when the customer's time ends and what a person decided. There are no timers
// to lose. A restart, or another process with the same book open, reads the
// same state at the same moment:
//
//	arrived ──► open ──► success | failed | expired
//	                         (0013 alone: expired ──► success,
//	                          0021 alone: success ──► reversed)
//
// The book promises one request per reference, however many processes submit
// it, and one sender per callback. A book in a file survives the death of its
// processes, not the loss of power; one in PostgreSQL survives what the server
// does. While the book is away nobody gets an answer that it would have to
// give. A callback that was being sent when its process died may
// come twice or not at all: that is how operators are.
//
// Start reading at story.go.
package sandbox
