// Package sim runs the whole service in one process and in virtual time, and lets it fail
// wherever it can: instances joined as the server joins them, one SQLite file that stands
// for the database that they share, the adapters, the simulated operators, clients and
// receivers of webhooks, on a network in memory. It is for tests: nothing that serves
// imports it.
//
// A World counts effects: each transaction that begins, each batch and commit and its
// answer, each connection, request and answer of operators, callbacks and webhooks. A test
// runs a story once to count its effects, and then again with the n-th one failed. At the
// end the books decide: ours (books.Verify), the operators', the client's and the
// receiver's.
//
// Start reading at world.go; the stories are in stories_test.go, and oracle.go says what
// must hold.
package sim
