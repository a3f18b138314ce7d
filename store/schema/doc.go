// Package schema has the migrations of the database, written out for each engine, and
// runs them. A migration that was released is never changed: the database keeps the
// checksum of its text.
package schema
