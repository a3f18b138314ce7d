// Package relay reads a client's event log over HTTP and posts each event to a handler,
// signed as the service signs webhooks, for a handler that the service cannot reach. It is
// till listen.
//
// It promises that every event is accepted at least once, the events of one payment one
// after the other, also if the program is killed. Its cursor file never passes an event that
// was not accepted. It knows no database and prints nothing.
//
// Start reading at relay.go; cursor.go is the file, event.go reads a page of the log.
package relay
