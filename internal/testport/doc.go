// Package testport finds addresses for what tests start, stop and start again.
//
// The system gives a free port to a program that asks for any, and to every connection: one that
// was asked for and let go may be taken when the server comes, and stays taken for a minute
// after the connection has ended. The ports here are below those.
package testport
