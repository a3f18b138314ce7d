// Package quota counts the bytes that a process holds for its clients: in total
// and per client.
//
// A holder takes bytes before it keeps something and gives them back when it drops
// it. What does not fit is not kept, or is rejected. A limit on the number of items
// alone would let a client choose how much memory it uses, by the size of each item.
// Of long calls the API counts how many are under way.
//
// It promises:
//
//   - The held bytes never exceed the limits, per client or in total.
//   - Take never waits. A client that holds nothing uses no memory.
//
// # Memory
//
// Memory that is held for clients is counted in bytes (internal/quota): bodies and pages in
// flight (api/memory.go), recent sends (engine/recent.go), events (webhook/memory.go,
// webhook/body_cache.go). No decision uses a payment's document, so recording an answer
// does not read it. A reader of many rows learns the size of each and can stop (Tx.Weigh in
// store/store.go).
//
// Start reading at quota.go.
package quota
