// Package certificates has the TLS certificates that the service proves its name with:
// from two files, or from a certificate authority by ACME.
//
// A pair of files is read again once a minute. It is never replaced by a pair that does
// not fit together or is not valid now. What is obtained by ACME is in the table
// certificates, sealed, so that every instance uses it and any instance answers the
// authority's challenges. One instance at a time orders, and ever more rarely if that fails.
//
// It does not know HTTP servers: package server listens.
//
// Start reading at source.go.
package certificates
