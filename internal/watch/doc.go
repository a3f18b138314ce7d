// Package watch notifies those who wait for one payment, payout or checkout that it has
// changed. One goroutine per client follows the event log while somebody waits, however many
// wait: an event costs one read, not one for each of them.
package watch
