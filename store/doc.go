// Package store holds all SQL, one file per noun. The statements are defined at
// the top of the file, with a text for each engine (db.SQL); testdata/sql.*.txt
// shows what is sent. Only lists are put together at run time, in list_sql.go.
//
// The package knows no business rules; it knows how to write many rows in one commit,
// how to count without counting, and what an engine's errors mean.
//
//	Update(ctx, f)        run f in one write transaction, requests first
//	UpdateBackground(ctx, f)  the same, after the requests that are waiting
//	View(ctx, f)          run f on one snapshot
//	Listen(client)        hear that a client's event log has grown
//
// f may run more than once, so it touches nothing but its Tx. Lock order:
// breakers, budgets, steps, client heads, then the rows that only the holder of a
// head writes. Each group is locked in key order. For webhooks: heads, then
// endpoints, then their rows. An error at COMMIT means that the outcome is
// unknown: the caller runs again and adopts by its own keys what is there.
//
// Every hot write takes a slice. Times come from the database's clock after
// the client's head is locked (Head.Tick), so that their order is the order
// of commits.
//
// Start reading at store.go, then payments.go.
package store
