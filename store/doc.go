// Package store has all SQL, one file per noun. A statement is defined at the top
// of its file, with a text for each engine (db.SQL). testdata/sql.*.txt lists
// every text that is sent. Only lists are assembled at run time, in list_sql.go.
//
// The package knows no business rules. It writes many rows in one commit, counts
// rows without reading them, and says what an engine's errors mean.
//
//	Update(ctx, f)            run f in one write transaction, before background work
//	UpdateBackground(ctx, f)  the same for work that can wait
//	View(ctx, f)              run f on one snapshot
//	Subscribe(client)         get a hint when a client's event log has grown
//
// f may run more than once, so it changes nothing but its Tx. Lock order:
// breakers, budgets, steps, client heads, then the rows that only the holder of a
// head writes. Each group is locked in key order. For webhooks: heads, then
// endpoints, then their rows.
//
// If COMMIT fails, its outcome may be unknown (ErrUnknownCommit). The caller runs
// the transaction again and adopts by its own keys the rows that are there.
//
// Writes of payments, steps and events take slices. A client's times come from the
// database's clock, after its head is locked (Head.NextTime), so they are in the
// order of commits.
//
// Start reading at store.go, then payments.go.
package store
