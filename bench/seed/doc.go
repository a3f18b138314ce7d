// Package seed fills a database with payments for a measurement, many times
// faster than the service makes them, and measures what is there. It also has
// the naive list that the real one is compared with.
//
// It sends its own statements, in the transactions of package store. What store
// can write by itself, it writes: heads, wallets, counters. The statements are
// not the product's, so they are in no golden file.
package seed
