// Command bench measures how many durable payments per second Till accepts,
// and how near that is to what the machine can do at all.
//
//	go run ./bench                  compare, 5 rounds of 3 s each
//	go run ./bench -ready           also: a million payments, then how fast it starts
//	go run ./bench -role all        the same with the sandbox working behind
//	go run ./bench -engine both     on SQLite and on PostgreSQL
//	go run ./bench -lists           seed a million payments and ask for pages
//	go run ./bench -report          also write bench/report.md, .json and plots
//
// Two servers run beside the load generator, each in its own process:
//
//	till   the shipped program (CGO_ENABLED=0) on a SQLite file with
//	       synchronous=FULL, or on a PostgreSQL server of the run's own with
//	       the durability it ships with: keys are checked, bodies validated, and each 202
//	       means that the payment is on the disk
//	base   net/http and encoding/json, decoding the same body and answering an
//	       object of the same fields; it checks nothing and stores nothing
//
// They are loaded in turns within one run, because a machine's speed drifts:
// only the ratio of two figures of one run means anything. The generator is a
// closed loop over plain connections (internal/load) that costs far less than the
// servers, since it takes its share of the same cores. Every answer must be a
// 202, and at the end the list must count exactly as many payments as there
// were such answers.
//
// It talks to loopback only, every load is bounded in time and in count, and
// whatever it starts is stopped when it ends, also by an interrupt. Resource
// figures are read from /proc and are missing on systems without it.
//
// Start reading at compare.go.
package main
