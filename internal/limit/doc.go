// Package limit bounds what callers of an instance may do: how often each may try
// (Buckets), what each may have under way at once (Slots), and how often the log says the
// same (Lines).
//
// Everything is in memory and bounded. It knows neither addresses nor keys: who uses it
// decides what counts as one caller. Bytes that are held are counted by internal/quota.
//
// Start with buckets.go.
package limit
