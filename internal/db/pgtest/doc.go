// Package pgtest runs PostgreSQL clusters for tests: it finds or installs the
// programs, starts a cluster in a folder of its own on loopback, and stops it
// and removes the folder at the end. PostgreSQL refuses to run as root, so a
// root process starts it as another user.
//
// Start reading at cluster.go.
package pgtest
