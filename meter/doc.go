// Package meter counts what the program does, and serves the numbers to Prometheus.
//
// Every metric is a row of Table: its name, kind, labels, the closed list that each
// label comes from, and one sentence. docs/guide/metrics.md is written from the table.
// No label is ever a client's text, an id, an address or an error.
//
// The other packages hold handles (a Route, an Operation, a Batch), which they get when
// the program starts. Counting through a handle allocates nothing and looks no label
// up. A nil *Meter gives nil handles, and a nil handle counts nothing: so a package
// needs no second way for a program without metrics.
//
// Numbers about money do not come from here: books reads them from the database, and
// Replace shows them. It is the only package that knows Prometheus.
//
// # Counting
//
// api, engine, webhook and server hold handles of meter, resolved at start; internal/batch,
// internal/db and internal/loop call an observer. What a commit changed is counted and
// logged after it (engine/observe.go). server/loops.go knows when each loop last finished a
// step; /healthz fails if one is late.
//
// Start reading at table.go, then meter.go.
package meter
