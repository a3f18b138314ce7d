// Package till is the Go SDK of Till, which collects money from mobile money
// wallets. It does the duties of a client, so that a shop that crashes, loses
// answers and hears everything twice asks each customer once and ships each
// order once.
//
// A [Client] makes calls: it repeats what may be repeated, within a deadline and
// a budget, and tells three kinds of failure apart: [Refused] (nothing exists),
// [Unavailable] (nothing happened, try later) and [Unclear] (it may have
// happened). A [Store] is three tables in your database; sqlstore and filestore
// are two. A [Teller] is both and one function of yours:
//
//   - Collect writes the wish, with its key, in your transaction beside the
//     order. Send posts it; what is not settled is sent again by Run or Sweep,
//     the same bytes with the same key. Checkout does so for an order that is
//     paid on a page, PayOut and Refund for money that goes out and back.
//   - Webhook, the event log and the sweep are three roads to your function. It
//     is called once for each change, inside a transaction of your database.
//
// An order is your own id for what is being paid. An attempt is one payment for
// an order, a try is one HTTP request. Amounts are texts in minor units, never
// floats.
//
// No transport repeats a request by itself. Whether a refusal means that nothing
// exists depends on the tries before it, so each request that left is counted: a
// repeat that nobody saw could turn a lost answer into a refusal, and the shop
// would ask the customer again with a new key.
//
// Start reading at [Teller]. The interface itself is described in
// api/openapi.yaml, from which the types here are generated.
package till
