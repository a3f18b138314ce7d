// Package simulator is what the simulated operators share: a book that
// remembers every request and counts how often money moved for it, the clock
// by which customers decide, callbacks, and faults.
//
// Each operator's folder has a sim.go that speaks the operator's own words on
// top of it. A simulator knows nothing of Till: it plays somebody else's
// system, and other software can be tested with it too.
//
// Start reading at book.go.
package simulator
