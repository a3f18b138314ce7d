// Command bench measures how fast Till is, and how near that is to what the
// machine can do at all.
//
//	go run ./bench                      everything, on both engines, a million rows
//	go run ./bench -only lists,scale    some scenarios
//	go run ./bench -engine sqlite       one engine
//	go run ./bench -rows 10000000       more rows
//	go run ./bench -report report       also write bench/report.md, .json and plots
//
// A scenario compares sides that take turns within one run, because a machine's
// speed drifts: only the ratio of two figures of one round means anything. Each
// server is a process of its own: the shipped program, or this one once more
// (serve.go) as a handler that stores nothing, as an operator, as a receiver of
// webhooks, or as Till with settings that the shipped program has no flags for. The load generator
// (internal/dev/loadgen) is a closed loop over plain connections that costs far less
// than the servers, since it takes its share of the same cores. Every answer
// must be a 202, and at the end each list must count exactly as many payments
// as there were such answers.
//
// It talks to loopback only, every load is bounded in time and in count, and
// whatever it starts is stopped and removed when it ends, also by an interrupt.
// Resource figures are read from /proc and are missing on systems without it.
//
// Start reading at scenario.go; goals.go has the table that is filled.
package main
