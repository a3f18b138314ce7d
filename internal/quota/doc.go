// Package quota counts the bytes that a process holds for its clients: of all
// together, and of each.
//
// Whoever keeps something takes its bytes first and gives them back when it is
// dropped. What does not fit is not kept, or is refused: a bound by number alone
// would let a client choose how much memory it costs, by the size of what it sends.
//
// Promises:
//
//   - What is held never exceeds the bounds, of a client or in all.
//   - Take never waits. A client that holds nothing is not remembered.
//
// Start reading at quota.go.
package quota
