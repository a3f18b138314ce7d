// Package batch is group commit: many callers, one commit.
//
//	Do ─┐
//	Do ─┼─ queue (bounded) ─ worker: all that is queued ─ run(items) ─┐
//	Do ─┘                                                            │
//	each Do returns ─────────────────────────────────────────────────┘
//
// While one batch runs, the next one gathers. There is no timer: a lone caller
// waits for nobody and runs its batch itself, and under load batches grow by
// themselves, as far as the commit is slow.
//
// Promises:
//
//   - Every item that was queued runs once, in the order in which it came.
//   - A batch runs on the Batcher's own context, so a caller who gives up takes
//     nobody else's commit with him.
//   - The queue is bounded. A full queue is told at once, never waited for.
//   - A panic fails its batch, not the process and not the next batch.
//
// It knows nothing of databases and nothing of outcomes: run writes the outcome
// of each item into the item.
//
// Start reading at batch.go.
package batch
