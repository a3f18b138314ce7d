// Package wire has the HTTP and JSON helpers that the adapters share: one call
// with a bounded answer, without redirects and without retries; access tokens
// that are refreshed once; and decoders for operators that write numbers as
// strings and strings as numbers.
//
// It does not interpret answers. Each adapter has its own table of codes.
//
// Start reading at wire.go, then access.go.
package wire
