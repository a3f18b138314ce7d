// Package hint tells that a client's event log has grown, after the commit that made it
// grow, in this process and from others on the same database.
//
// A hint is an optimisation. It may be late, lost or spurious, so every subscriber also
// polls, at the latest after Subscription.MaxWait.
package hint
