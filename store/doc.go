// Package store has transactions and the SQL of money, one file per noun. Its rooms
// have the other SQL, as functions over *Tx: access has who may come in, admin the
// installation, auditlog who did what, lookup search, matching what operators say, proof the
// reads of till verify, and webhooks endpoints and deliveries. Something is a method of Tx
// only if it is on the way of money, or if several rooms need it. A statement is defined at the top
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
// # Engines
//
// SQLite: WAL, synchronous=FULL, STRICT tables, one writer and a few readers (ADR 0024). PostgreSQL
// 15 and newer: a few writers, which wait for each other only at client heads (ADR 0022).
// Deferred writes go out with the COMMIT. internal/db/queue.go is the queue before the
// writers: requests go before background work.
//
// # Citus
//
// Citus spreads the clients over nodes (store/schema/citus.go, ADR 0071). Batches are split
// by node, one question covers what is due in all lanes, and while a node is unreachable, reads
// over all clients leave it out (store/nodes.go, engine/nodes.go), also if it neither
// answers nor refuses (store/away.go).
//
// # Ids
//
// Ids are UUIDv7; their bits hold the creation time to the microsecond. created_at strictly
// increases per client. So the unique index on (client, id) is also the index of each list
// (ADR 0003).
//
// # Tallies
//
// Tallies per (client, method, status) and hour change in the commit that changes what they
// count. An hour later they are rolled up into counters per hour, day, month and in total
// (upkeep/rollup.go). A total sums few of both and counts rows only in the first and last
// hour; a deep offset finds its bucket by them (ADR 0004). The parts of an hour with many
// rows are counted too (store/hour_parts.go). Tallies and counters also add money up
// (store/sums.go, ADR 0029). The bytes that test clients store are tallied in the same way;
// api/test_quota.go limits them.
//
// # Constraints
//
// The database itself rejects a second credit, a balance out of bounds, an illegal
// transition, a changed transaction, and a receipt or reference that is used twice.
// operator_receipts records which payment and which payout has an operator's receipt, over
// all clients; the commit of the credit writes it. At an aggregator the operator in a
// country is the issuer, not the connection (ADR 0070). Like operator_references, it is a
// table that does not begin with a client. store/*_test.go tries each constraint.
//
// # Entries
//
// The wallet's line of an entry is a row of transactions; the other lines are rows of
// postings under the same id.
//
// # Events
//
// An event row keeps what changed. event_json.go renders its body, for the log and for
// webhooks, with the part of the payment that never changes.
//
// # The client's head
//
// The client's head is a row that assigns times, event numbers and audit numbers. Their
// order is the order of commits.
//
// Start reading at store.go, then payments.go.
package store
