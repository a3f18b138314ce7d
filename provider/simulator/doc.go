// Package simulator is the base of the simulated operators: a book that records
// every request and counts how often money moved, a clock by which customers
// decide, callbacks, and faults.
//
// Each adapter's sim.go implements the operator's protocol on top of it. A
// simulator knows nothing of Till, so other software can be tested with it too.
//
// Start reading at book.go.
package simulator
