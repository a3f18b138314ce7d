package main

import (
	"bytes"
	"fmt"
	"strings"
)

// markdown renders the whole report.
func (r *report) markdown(name string) []byte {
	b := &bytes.Buffer{}
	m := r.Machine
	fmt.Fprintf(b, "# Benchmark of %s\n\n", r.Date)
	fmt.Fprintf(b, "- Machine: %d cores, %s, %d GiB, %s, %s; load average before the run, from other work: %.2f\n",
		m.Cores, m.CPU, m.MemoryGB, m.System, m.Go, m.Load)
	fmt.Fprintf(b, "- Command: `%s`, %.0f minutes\n", r.Command, r.Minutes)
	fmt.Fprintf(b, "- Rounds: one to warm up, then %d, in which the sides of a comparison take turns; %v s each where nothing else is said\n\n",
		r.Rounds, r.Seconds)
	fmt.Fprintf(b, "%s## Plots\n\n", r.tables())
	plots := r.plots()
	for _, plot := range []string{"rates", "latency", "lists-" + engineSQLite, "lists-" + enginePostgres} {
		if plots[plot] != nil {
			fmt.Fprintf(b, "![%s](%s-%s.svg)\n\n", plot, name, plot)
		}
	}
	fmt.Fprintf(b, remarks, r.Connections, r.BodyBytes, strings.Join(serverSettings, " and "),
		settleBatch, settleWriters, submitsAtOnce, duePayments, dueRate, outageRate, hookPosts, idleCreates, createHooks,
		victimRate, floodConnections, floodAddresses, floodClient, listLimit, listAsks, listBlocks, smallRows)
	return b.Bytes()
}

const remarks = `## What is compared

Ratios are taken round by round, because a machine's speed drifts; the median and the range are of those. Rates of different
runs, and of different machines, do not compare. What a scenario leaves in the database is removed before the next one begins, because
a server goes on working on it for minutes. Noise is large where server, database, operator and generator share the
cores: a difference of a tenth says nothing.

**Creates.** The same generator asks in turns: %d connections, each asking again as soon as it is answered, a body of %d bytes, a
new random idempotency key each time. "nothing stored" is net/http with encoding/json: it decodes the body and encodes a payment
object of the same fields, and neither checks nor stores anything. "till" is the program as it is shipped, on SQLite with
synchronous=FULL or on a PostgreSQL server of the run's own, by its socket, with fsync and synchronous_commit on, and %s: it
authenticates the key, validates the whole body, and answers 202 only after the commit that holds the payment, its event, its first
step and its tally is on the disk. The files of the server's log have been used before, as on any server that has run for some
time; a new one would have to fill each with zeros first. "batches of one" is the same Till with one create to a commit. "two
instances" share one database and the connections. The rounds are three times as many as elsewhere, and a third as long. Every answer
must be a 202, and at the end each list must count exactly as many payments as there were such answers. Latencies under full load mostly tell how long a request waits for a core.

**One at a time.** One connection, against an overwrite of 4 KiB with fdatasync on the disk of the database, and one request to
the handler that stores nothing. A virtual disk may acknowledge a flush from its host's memory, which no program can tell.

**Settlement.** Answers "success" for payments of one client are given to collect.Apply in the benchmark's own process: %d in a
commit, or one in a commit by one writer on SQLite, by %d at once on PostgreSQL.

**Whole lives.** The operator is another process, reached by HTTP: it accepts at once and says "success" when it is asked, in
just enough HTTP, because it shares Till's cores. A round creates under full load, then waits until the last payment has succeeded;
all of that time counts. Creates go before the engine's work, so the backlog of a round is worked off after it. The rounds are twice as many as
elsewhere.

**API and worker.** Whole lives on PostgreSQL, with two processes that share one database: one serves requests, the other calls operators.
They take turns with one process that does both, on a database of its own.

**Calls to operators.** Two clients' payments go through the shipped adapter of MTN MoMo to two simulators in processes of their own, which
take 50 ms for every answer. A round of submits is %d payments made under full load, from the arrival of the first send to that of
the last. Questions are due twelve seconds after the operator's answer, as the adapter says; how late they are is from then to
their arrival, for %d payments at %d per second. While it is down, the other operator takes every request and answers none, with
all that was sent to it due to be asked about and %d new payments per second.

**Webhooks.** The receiver is another process: it answers at once, verifies nothing, and counts distinct ids. The backlog is of
payments that have succeeded, made while no instance runs, so that an instance started on it has nothing to do but to tell. "till" is
the program as it is shipped, with one endpoint that is told everything; "bare loop" posts the same events, signed beforehand, by a
net/http client, %d at once as Till does. Rates are from the arrival of the tenth part to that of the last. "beside a dead
one" is another database, where another client's endpoint refuses every connection. On the idle system, %d payments in each
round are made one at a time through the API and live their whole lives in the sandbox; each event's way is from the time in its
body, which was read before its commit, to its arrival. Creates are compared under full load, with none and with %d endpoints, while
nobody sends.

**Floods.** One client asks %d times a second, in turns for a new payment, a list and its payouts (for which its key is read from the
database each time), over one connection; how long an answer took counts from when the request was due. Beside it, in a process of its own on
the same cores, nothing runs; or %d connections with invented keys of the right form, a new one each time, in the header and each fourth time
four in the URL, that ask again as soon as they are answered, from one loopback address or from %d; or another client over %d connections
that creates, lists and reads its payouts. The server is as it is shipped: 100 requests a second and client. A round
begins when the connections are open, so the wave of their first requests is in it, and is twice as long as elsewhere.

**Lists.** One client's payments are seeded by SQL with their exact counters, and pages of %d are asked for through the API over one
connection, in blocks of %d for one page, %d blocks of each page in a round. A page's p50 and p99 are the medians of those of its blocks, and
the ratio is of these; its range is of the ratios that each turn through all pages would give, in which the slowest page mostly is one that
met a stall of the machine.
"naive" is count(*) and OFFSET for the same filter on the same data, asked of the database alone; its total must be the same.

**Console.** One client's payments are seeded with their events, entries and sums, and its pages are asked for over one connection by a person who
is signed in, in blocks that take turns; the time counts to the last compressed byte. Then payments of the same client are created under full load,
in turns beside nothing and beside 50 tabs, half on the list and half on home: each holds a stream and fetches its region again at each hint,
which is at most one a second. The tabs share the generator's thread. Memory and start are with the console, which has shown one page, less those
without it.

**Many rows.** Creates in the seeded database against creates in one that had %d rows before them; cost is the inverse of the rate.
`
