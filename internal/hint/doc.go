// Package hint notifies subscribers that a client's event log has grown, after the commit,
// in this process and in others on the same database.
//
// A hint is an optimisation. It may be late, lost or spurious, so every subscriber also
// polls, at the latest after Subscription.MaxWait.
package hint
