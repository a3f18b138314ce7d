// Package acmetest is a certificate authority for tests: the part of RFC 8555 that a
// client needs to obtain a certificate, by http-01 and tls-alpn-01.
//
// It verifies each signature and nonce, and it connects to the client for each
// challenge, as a real authority does. A test can have it refuse.
//
// It knows nothing of Till. Start reading at server.go.
package acmetest
