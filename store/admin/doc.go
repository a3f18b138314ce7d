// Package admin has the SQL of the installation itself: its instances, jobs that one of them
// runs at a time, generations of its secret and what is sealed by them, certificates,
// connections with their health, results of backups and verifications, and the sums that
// gauges show.
//
// Its functions run in a transaction of store. No client's money is moved here.
package admin
