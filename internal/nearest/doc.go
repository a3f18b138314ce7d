// Package nearest finds the known word that somebody meant who wrote another one.
// Errors say it, so that a typing mistake is mended without a look at the reference.
package nearest
