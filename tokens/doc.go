// Package tokens keeps what operators let us in by, for all instances: sealed
// in the database, and asked for by one instance at a time.
//
// An operator that lets only one token live, or counts how many are asked for,
// must not see every instance ask. Who finds no good token takes a lease on its
// row by compare-and-swap, asks the operator, and writes the answer down; the
// others look at the row until it is there. A lease ends by itself, so a dead
// instance keeps nobody waiting for long.
//
// Each instance also remembers what it has read, so that a call costs no read,
// and goes on for as long as a token lives if the database is away. A token is
// renewed before its end, by one caller, while all others still use it.
package tokens
