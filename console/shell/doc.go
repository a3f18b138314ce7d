// Package shell is what is around every page of the console: the table of routes and
// who may, a visit from its cookie to its page, the frame with the menus, what somebody
// must prove, how answers are written, live hints, and the gate in front of all of it.
//
// It knows no page. Rooms import it, and package console joins them.
//
// Start reading at visit.go: run takes a visit through the gates in front of its handler.
package shell
