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
package recovery
