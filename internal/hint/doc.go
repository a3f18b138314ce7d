// Package hint notifies subscribers that a client's event log has grown, after the commit,
// in this process and in others on the same database.
//
// A hint is an optimisation. It may be late, lost or spurious, so every subscriber also
// polls, at the latest after Subscription.MaxWait.
//
// A commit that adds to a client's event log notifies the subscribers in this process. Other
// processes are notified by PostgreSQL's NOTIFY, sent after the commit and coalesced, or by
// SQLite's data_version.
package hint
