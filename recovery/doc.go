// Package recovery is for the days on which the database is not what it was.
//
//	MarkRestored  marks a database as restored from a backup, or as that of a
//	              standby that took over; Release ends it
//	Remake        makes payments and payouts again that were lost, from a journal
//	RepairWallet  rebuilds a wallet that differs from its lines
//
// What an old database says about open payments may be wrong. So they are checked
// and never sent again, and payouts are held until a person releases them. Start
// reading at restore.go.
//
// # After a restore
//
// After a restore the old database may be wrong about each payment and payout that was
// open. till restored (restore.go) marks each open step as possibly sent: it is
// checked and never sent again (engine.MarkRestored). Until release.go runs, payouts
// are held. First sends to operators without a client reference are held too
// (engine/hold.go), because each may be the retry of a lost payment (ADR 0016). With a
// journal (journal, engine/journal.go), remake.go makes the lost rows again under
// their own ids and keys, possibly sent like the others (ADR 0044).
package recovery
