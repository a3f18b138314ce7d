// Package wire is what the adapters of operators share of HTTP and JSON: one
// call with a bounded answer, no redirect and no retry, and decoders for
// operators that write numbers as strings and strings as numbers.
//
// It decides nothing: what an answer means is each adapter's own table.
package wire
