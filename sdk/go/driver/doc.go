// Package driver plays the shop for the conformance suite: it reads one JSON
// command a line and writes one JSON result a line, as sdk/conformance/README.md
// says. The suite judges by the service's books and by what the shop did.
//
// Main is the program, for any store; files is it with the file store. Mutants
// break one duty on purpose, to show that the suite would notice.
package driver
