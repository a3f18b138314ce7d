// Package batch is group commit: many callers, one commit.
//
//	Do ─┐
//	Do ─┼─ queue (bounded) ─ worker: all that is queued ─ run(items) ─┐
//	Do ─┘                                                            │
//	each Do returns ─────────────────────────────────────────────────┘
//
// While one batch runs, the next one collects items. There is no timer: a single
// caller waits for nobody and runs its own batch. Under load, batches grow with
// the duration of a commit.
//
// It promises:
//
//   - Every queued item runs once, in the order of arrival.
//   - A batch runs on the Batcher's own context, so a caller that gives up does
//     not cancel the commit of others.
//   - The queue is bounded. Do fails at once when it is full.
//   - A panic fails its batch, not the process and not the next batch.
//
// It knows no databases and no outcomes: run writes the outcome into each item.
//
// Start reading at batch.go.
package batch
